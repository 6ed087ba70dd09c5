//! Why a check is refused, in the terms of [`Check`](crate::Check).

use std::fmt;

use preempt_explore::plan::strategies;
use preempt_explore::plan::terms::write_variant;
use preempt_explore::{Setting, Term, Terms};

/// Why a check with these settings, or of this test, is refused.
///
/// ```
/// use preempt::{Check, Refusal};
///
/// let refusal = Check::new().jobs(0).try_run(|| ()).expect_err("there is no worker");
/// assert!(matches!(refusal, Refusal::Search(_)));
/// assert_eq!(refusal.to_string(), "`jobs` must be at least 1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The settings are senseless or unsound as a search.
    Search(preempt_explore::Refusal),
    /// A variable `PREEMPT_…` that does not exist.
    UnknownVariable {
        /// The name, without `PREEMPT_`.
        name: String,
        /// The name of a similar variable, if there is one.
        similar: Option<&'static str>,
        /// All variables.
        known: &'static [&'static str],
    },
    /// The value of a variable `PREEMPT_…` is not understood.
    Value {
        /// The name, without `PREEMPT_`.
        name: &'static str,
        /// The value.
        value: String,
        /// A description of valid values.
        expected: String,
    },
    /// The stack size is outside the possible range.
    StackSize {
        /// The size asked for.
        size: usize,
        /// The smallest possible size.
        least: usize,
    },
    /// `max_steps` is 0.
    NoSteps,
    /// `stop_at` without a schedule to replay.
    StopWithoutReplay,
    /// A check inside another check.
    Nested,
    /// The tests are built with `panic = "abort"`.
    PanicAbort,
    /// The test cannot be explored; the reason and what to do.
    Test(String),
}

impl From<preempt_explore::Refusal> for Refusal {
    fn from(refusal: preempt_explore::Refusal) -> Refusal {
        Refusal::Search(refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Search(refusal) => {
                let terms = CheckTerms { is_set: |name| std::env::var_os(name).is_some() };
                refusal.in_terms_of(&terms).fmt(f)
            }
            Refusal::UnknownVariable { name, similar: Some(similar), .. } => {
                write!(f, "PREEMPT_{name} is not a setting: did you mean PREEMPT_{similar}?")
            }
            Refusal::UnknownVariable { name, similar: None, known } => write!(
                f,
                "PREEMPT_{name} is not a setting: there are PREEMPT_{}",
                known.join(", PREEMPT_")
            ),
            Refusal::Value { name, value, expected } => {
                write!(f, "PREEMPT_{name}={value} is not understood: expected {expected}")
            }
            Refusal::StackSize { size, least } => {
                write!(f, "`stack_size` must be at least {least} and below 2^36, not {size}")
            }
            Refusal::NoSteps => f.write_str("`max_steps` must be at least 1"),
            Refusal::StopWithoutReplay => f.write_str("`stop_at` needs `replay`"),
            Refusal::Nested => f.write_str(
                "a check cannot run inside of another check: call `check` outside of the closure \
                 under test",
            ),
            Refusal::PanicAbort => f.write_str(
                "a check needs panics that unwind: remove `panic = \"abort\"` from the profile \
                 that tests are built with",
            ),
            Refusal::Test(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refusal::Search(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// Methods of [`Check`](crate::Check); variables `PREEMPT_…` for what the environment sets.
struct CheckTerms {
    /// Whether the environment sets the variable of this name.
    is_set: fn(&str) -> bool,
}

impl Terms for CheckTerms {
    fn write(&self, term: Term, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = |setting| format!("PREEMPT_{}", method(setting).to_uppercase());
        match term {
            Term::Setting(setting) if (self.is_set)(&variable(setting)) => {
                f.write_str(&variable(setting))
            }
            Term::Setting(setting) => write!(f, "`{}`", method(setting)),
            Term::Strategy(name) => {
                let entry = strategies::named(name).expect("refusals name strategies of the table");
                match variable(entry.setting()) {
                    variable if (self.is_set)(&variable) => write!(f, "{variable}={name}"),
                    _ => write_variant(name, f),
                }
            }
            Term::Cache(cache) => write!(f, "`Cache::{cache:?}`"),
            other => unreachable!("a check has no {other:?}"),
        }
    }
}

fn method(setting: Setting) -> &'static str {
    match setting {
        Setting::Order => "order",
        Setting::Reduction => "reduce",
        Setting::Bound => "bound",
        Setting::Jobs => "jobs",
        Setting::First => "first",
        Setting::KeepGoing => "keep_going",
        Setting::Runs => "runs",
        Setting::Seed => "seed",
        Setting::PctDepth => "Order::Pct::depth",
        Setting::Executions => "executions",
        Setting::Depth => "steps",
        Setting::Memory => "memory_limit",
        Setting::Time => "time",
        other => unreachable!("a check has no {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use preempt_explore::{Order, Plan};

    use super::*;

    #[test]
    fn a_refusal_names_what_its_user_wrote() {
        let refusal = |plan: Plan, is_set: fn(&str) -> bool| {
            let refusal = plan.build().expect_err("it is refused");
            refusal.in_terms_of(&CheckTerms { is_set }).to_string()
        };
        let plan = Plan::new().order(Order::Random).runs(0);
        assert_eq!(refusal(plan, |_| false), "`runs` must be at least 1");
        assert_eq!(refusal(plan, |name| name == "PREEMPT_RUNS"), "PREEMPT_RUNS must be at least 1");
        let plan = Plan::new().order(Order::ContextBounded);
        assert_eq!(
            refusal(plan, |name| name == "PREEMPT_ORDER"),
            "PREEMPT_ORDER=cb-dfs needs `bound`; without a bound use PREEMPT_ORDER=executions"
        );
    }
}
