//! The command line's words for settings and strategies: flags and their values.

use std::fmt;

use preempt_explore::plan::strategies;
use preempt_explore::{Setting, Term, Terms};

/// Flags of `preempt check`.
pub struct Flags;

impl Terms for Flags {
    fn write(&self, term: Term, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match term {
            Term::Setting(setting) => f.write_str(flag(setting)),
            Term::Strategy(name) => {
                let entry = strategies::named(name).expect("refusals name strategies of the table");
                write!(f, "{} {name}", flag(entry.setting()))
            }
            Term::Cache(cache) => write!(f, "--cache {}", cache.name()),
            Term::Points(points) => write!(f, "--points {}", points.name()),
            Term::Bitstate => f.write_str("--store bitstate"),
            Term::Sorted => f.write_str("--store sorted"),
            other => unreachable!("{other:?} has no flag"),
        }
    }
}

/// Flags of `preempt run` and `cargo preempt test`. They explore executables, whose steps are not
/// known well enough for execution graphs.
pub struct ExecutableFlags;

impl Terms for ExecutableFlags {
    fn write(&self, term: Term, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Flags.write(term, f)
    }

    fn has(&self, strategy: &str) -> bool {
        strategy != "graphs"
    }
}

/// The flag of a setting.
pub fn flag(setting: Setting) -> &'static str {
    match setting {
        Setting::Order => "--order",
        Setting::Reduction => "--reduce",
        Setting::Bound => "--bound",
        Setting::Cache => "--cache",
        Setting::Points => "--points",
        Setting::Promote => "--promote",
        Setting::Store => "--store",
        Setting::BitstateSize => "--bitstate-size",
        Setting::Spill => "--spill",
        Setting::Jobs => "--jobs",
        Setting::First => "--first",
        Setting::KeepGoing => "--keep-going",
        Setting::IgnoreDeadlocks => "--no-deadlock",
        Setting::Runs => "--runs",
        Setting::Seed => "--seed",
        Setting::PctDepth => "--pct-depth",
        Setting::States => "--states",
        Setting::Executions => "--executions",
        Setting::Depth => "--depth",
        Setting::Memory => "--memory",
        Setting::Time => "--time",
        Setting::Checkpoint => "--checkpoint",
        other => unreachable!("{other:?} has no flag"),
    }
}

#[cfg(test)]
mod tests {
    use preempt_explore::{Order, Plan, Reduction, Refusal};
    use preempt_system::MemoryModel;

    use super::*;

    fn refusal(plan: Plan) -> String {
        let refusal: Refusal = plan.build().expect_err("it is refused");
        refusal.in_terms_of(&Flags).to_string()
    }

    #[test]
    fn refusals_suggest_strategies_that_the_front_end_has() {
        let plan = Plan { memory: MemoryModel::Weak, reduction: Reduction::Sleep, ..Plan::new() };
        let plan = plan.order(Order::Executions);
        let refused = plan.build().expect_err("it is refused");
        let suggested = |terms: &dyn Terms| {
            let text = refused.in_terms_of(terms).to_string();
            text.rsplit_once("; use ").expect("it suggests something").1.to_owned()
        };
        assert_eq!(suggested(&Flags), "--order icb, --reduce graphs or --order executions");
        assert_eq!(suggested(&ExecutableFlags), "--order icb or --order executions");
    }

    #[test]
    fn refusals_name_flags() {
        assert_eq!(refusal(Plan::new().jobs(0)), "--jobs must be at least 1");
        assert_eq!(refusal(Plan::new().promote()), "--promote needs --points sync");
        let random = Plan::new().order(Order::Random);
        assert_eq!(refusal(random.runs(0)), "--runs must be at least 1");
        assert_eq!(
            refusal(random.bound(1)),
            "--order random cannot be combined with --bound: random executions have any number of \
             preemptions; use --order icb, or remove --bound"
        );
        assert_eq!(
            refusal(Plan::new().order(Order::ContextBounded)),
            "--order cb-dfs needs --bound; without a bound use --order executions"
        );
    }
}
