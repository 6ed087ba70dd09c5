//! The `PREEMPT_…` variables: each setting of a [`Check`] without a change of the code.
//!
//! An unknown variable is refused: otherwise a check would prove something else than its user
//! believes.

use std::str::FromStr;
use std::time::Duration;

use preempt_explore::plan::strategies::{self, Entry, STRATEGIES, Value, Written};
use preempt_explore::{Count, Order, Reduction, Setting, Subject};
use preempt_system::MemoryModel;
use preempt_system::text::nearest;

use crate::Refusal;
use crate::check::{Bound, Check};

/// The check with the settings of the environment.
pub(crate) fn of_environment(check: Check) -> Result<Check, Refusal> {
    let mut settings = Vec::new();
    for (name, value) in std::env::vars_os() {
        if let Some(name) = name.to_str().and_then(|name| name.strip_prefix("PREEMPT_")) {
            known(name)?;
            settings.extend(
                value
                    .into_string()
                    .ok()
                    .filter(|value| !value.is_empty())
                    .map(|value| (name.to_owned(), value)),
            );
        }
    }
    // The common case: no variable is set.
    if settings.is_empty() {
        return Ok(check);
    }
    with(check, |name| {
        settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    })
}

/// The variables, without `PREEMPT_`.
static NAMES: [&str; 32] = [
    "ALLOW_INCOMPLETE",
    "ALLOW_PANICS",
    "ALLOW_UNCONTROLLED",
    "BOUND",
    "COUNT",
    "EXECUTIONS",
    "FIRST",
    "HTML",
    "JOBS",
    "KEEP_GOING",
    "MAX_STEPS",
    "MAX_THREADS",
    "MAX_TURN",
    "MEMORY",
    "MEMORY_LIMIT",
    "OPERATIONS",
    "ORDER",
    "QUIET",
    "REDUCE",
    "REPLAY",
    "RUNS",
    "SAVE_SCHEDULE",
    "SCENARIO",
    "SEED",
    "SHRINK",
    "SPURIOUS_WAKEUPS",
    "STACK_SIZE",
    "STEPS",
    "STOP_AT",
    "THREADS",
    "TIME",
    "WEAK_CAS_FAILURES",
];

/// The value of a variable that is not a setting of a [`Check`], if it is set.
pub(crate) fn variable(name: &str) -> Option<String> {
    debug_assert!(NAMES.contains(&name), "PREEMPT_{name} would be refused");
    std::env::var(format!("PREEMPT_{name}")).ok().filter(|value| !value.is_empty())
}

/// Refuses an unknown variable.
fn known(name: &str) -> Result<(), Refusal> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    let similar = nearest(name, NAMES.iter().copied());
    Err(Refusal::UnknownVariable { name: name.to_owned(), similar, known: &NAMES })
}

fn with(mut check: Check, get: impl Fn(&str) -> Option<String>) -> Result<Check, Refusal> {
    let get = |name: &str| {
        debug_assert!(NAMES.contains(&name), "PREEMPT_{name} would be refused");
        get(name)
    };
    if let Some(value) = get("BOUND") {
        check.bound = match value.parse() {
            Ok(bound) => Bound::At(bound),
            Err(_) if value == "none" => Bound::None,
            Err(_) => {
                return Err(wrong(
                    "BOUND",
                    &value,
                    "a number of preemptions, or none for all schedules",
                ));
            }
        };
    }
    if let Some(value) = get("ORDER") {
        check.order = Some(order(&value)?);
    }
    if let Some(value) = get("REDUCE") {
        check.reduction = Some(reduction(&value)?);
    }
    if let Some(value) = get("COUNT") {
        check.count = match value.as_str() {
            "executions" => Count::Executions,
            "traces" => Count::Traces,
            "states" => Count::States,
            _ => return Err(wrong("COUNT", &value, "executions, traces, states")),
        };
    }
    if let Some(value) = get("TIME") {
        check.limits.time = Some(seconds("TIME", &value)?);
    }
    if let Some(value) = get("EXECUTIONS") {
        check.limits.executions = Some(number("EXECUTIONS", &value)?);
    }
    if let Some(value) = get("MEMORY") {
        let known = MemoryModel::ALL.into_iter().find(|model| model.name() == value);
        check = check.memory(known.ok_or_else(|| {
            wrong("MEMORY", &value, "weak or sc; PREEMPT_MEMORY_LIMIT limits the memory of a check")
        })?);
    }
    if let Some(value) = get("MEMORY_LIMIT") {
        let words = "bytes, or a number with K, M or G";
        check =
            check.memory_limit(size(&value).ok_or_else(|| wrong("MEMORY_LIMIT", &value, words))?);
    }
    if let Some(value) = get("STEPS") {
        check.limits.depth = Some(number("STEPS", &value)?);
    }
    if let Some(value) = get("JOBS") {
        check.jobs = number("JOBS", &value)?;
    }
    if let Some(value) = get("SEED") {
        check.seed = number("SEED", &value)?;
    }
    if let Some(value) = get("RUNS") {
        check.runs = number("RUNS", &value)?;
    }
    check.replay = get("REPLAY").or(check.replay);
    if let Some(value) = get("STOP_AT") {
        check.stop_at = Some(number("STOP_AT", &value)?);
    }
    check.save_schedule = get("SAVE_SCHEDULE").map(Into::into).or(check.save_schedule);
    if let Some(value) = get("SHRINK") {
        check = check.shrink(seconds("SHRINK", &value)?);
    }
    check.html = get("HTML").map(Into::into).or(check.html);
    if let Some(value) = get("STACK_SIZE") {
        check.options.stack_size = number("STACK_SIZE", &value)?;
    }
    if let Some(value) = get("MAX_STEPS") {
        check.options.max_steps = number("MAX_STEPS", &value)?;
    }
    if let Some(value) = get("MAX_THREADS") {
        check = check.max_threads(number("MAX_THREADS", &value)?);
    }
    if let Some(value) = get("MAX_TURN") {
        check.max_turn = seconds("MAX_TURN", &value)?;
    }
    for (name, flag) in [
        ("QUIET", &mut check.quiet),
        ("KEEP_GOING", &mut check.keep_going),
        ("FIRST", &mut check.first),
        ("ALLOW_INCOMPLETE", &mut check.allow_incomplete),
        ("ALLOW_PANICS", &mut check.options.allow_panics),
        ("ALLOW_UNCONTROLLED", &mut check.allow_uncontrolled),
        ("SPURIOUS_WAKEUPS", &mut check.options.spurious_wakeups),
        ("WEAK_CAS_FAILURES", &mut check.options.weak_cas_failures),
    ] {
        if let Some(value) = get(name) {
            *flag = match value.as_str() {
                "1" | "true" | "yes" => true,
                "0" | "false" | "no" => false,
                _ => return Err(wrong(name, &value, "1 or 0")),
            };
        }
    }
    Ok(check)
}

pub(crate) fn number<N: FromStr>(name: &'static str, value: &str) -> Result<N, Refusal> {
    value.parse().map_err(|_| wrong(name, value, "a number"))
}

fn seconds(name: &'static str, value: &str) -> Result<Duration, Refusal> {
    Duration::try_from_secs_f64(number(name, value)?).map_err(|_| wrong(name, value, "seconds"))
}

/// A number of bytes: `65536`, `64K`, `500M`, `4G`. The letters mean powers of 1024.
fn size(value: &str) -> Option<usize> {
    let digits = value.trim_end_matches(['K', 'M', 'G']);
    let shift = match &value[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

fn wrong(name: &'static str, value: &str, expected: &str) -> Refusal {
    Refusal::Value { name, value: value.to_owned(), expected: expected.to_owned() }
}

/// The order that a value of `PREEMPT_ORDER` names.
fn order(value: &str) -> Result<Order, Refusal> {
    let written = strategies::parse(value);
    match written.map(|written| written.value_for(Subject::Program)) {
        Ok(Value::Order(Order::DepthFirst)) => Err(wrong(
            "ORDER",
            value,
            "a search over executions, and dfs searches states: use executions for all executions",
        )),
        Ok(Value::Order(order)) => Ok(order),
        _ => Err(wrong("ORDER", value, &offered(Setting::Order))),
    }
}

/// The reduction that a value of `PREEMPT_REDUCE` names.
fn reduction(value: &str) -> Result<Reduction, Refusal> {
    match strategies::parse(value) {
        Ok(Written { value: Value::Reduction(reduction), .. }) => Ok(reduction),
        _ if value == "none" => Ok(Reduction::None),
        _ => Err(wrong("REDUCE", value, &format!("none, {}", offered(Setting::Reduction)))),
    }
}

/// The strategies that can search closures.
fn offered(setting: Setting) -> String {
    let entries = STRATEGIES
        .iter()
        .filter(|entry| entry.setting() == setting && entry.searches(Subject::Program));
    entries.map(Entry::written).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use preempt_explore::Cache;

    use super::*;

    fn set(settings: &[(&str, &str)]) -> Check {
        let get = |name: &str| {
            settings.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        with(Check::new(), get).expect("all values are understood")
    }

    fn refusal<T>(of: Result<T, Refusal>) -> String {
        of.err().map(|refusal| refusal.to_string()).expect("the input is refused")
    }

    #[test]
    fn every_setting_has_a_variable() {
        let check = set(&[
            ("BOUND", "none"),
            ("ORDER", "pct:4"),
            ("TIME", "1.5"),
            ("EXECUTIONS", "7"),
            ("STEPS", "8"),
            ("JOBS", "2"),
            ("SEED", "3"),
            ("REPLAY", "p1-0"),
            ("STOP_AT", "6"),
            ("SAVE_SCHEDULE", "a.schedule"),
            ("SHRINK", "0"),
            ("RUNS", "4"),
            ("HTML", "out.html"),
            ("STACK_SIZE", "65536"),
            ("MAX_STEPS", "99"),
            ("QUIET", "1"),
            ("MAX_THREADS", "3"),
            ("MAX_TURN", "5"),
            ("MEMORY_LIMIT", "500M"),
            ("COUNT", "executions"),
            ("KEEP_GOING", "1"),
            ("FIRST", "1"),
            ("ALLOW_INCOMPLETE", "yes"),
            ("ALLOW_PANICS", "1"),
            ("ALLOW_UNCONTROLLED", "1"),
            ("SPURIOUS_WAKEUPS", "true"),
            ("WEAK_CAS_FAILURES", "0"),
        ]);
        assert_eq!((check.bound, check.order), (Bound::None, Some(Order::Pct { depth: 4 })));
        assert_eq!(
            (check.limits.time, check.limits.executions),
            (Some(Duration::from_millis(1500)), Some(7))
        );
        assert_eq!((check.limits.depth, check.jobs, check.seed, check.runs), (Some(8), 2, 3, 4));
        assert_eq!(
            (check.replay.as_deref(), check.stop_at, check.shrink),
            (Some("p1-0"), Some(6), None)
        );
        assert_eq!(check.save_schedule.as_deref(), Some(std::path::Path::new("a.schedule")));
        assert_eq!(check.html, Some("out.html".into()));
        assert!(
            check.keep_going
                && check.first
                && check.allow_incomplete
                && check.options.spurious_wakeups
        );
        assert!(
            check.options.allow_panics
                && check.allow_uncontrolled
                && check.max_turn == Duration::from_secs(5)
        );
        assert!(!check.options.weak_cas_failures && check.options.stack_size == 65536);
        assert_eq!((check.count, check.limits.memory), (Count::Executions, Some(500 << 20)));
        assert!(check.quiet && (check.options.max_steps, check.options.max_threads) == (99, 3));
        let bounded = set(&[("BOUND", "5"), ("REDUCE", "cb-por")]).plan();
        assert_eq!(
            (bounded.bound, bounded.reduction, bounded.order),
            (Some(5), Reduction::CbPor, Order::ContextBounded)
        );
    }

    #[test]
    fn strategies_are_those_of_the_table() {
        for entry in STRATEGIES.iter().filter(|entry| entry.searches(Subject::Program)) {
            let text = entry.written().replace(":n", ":7");
            let known = match entry.value {
                Value::Order(_) => order(&text).is_ok(),
                Value::Reduction(_) => reduction(&text).is_ok(),
            };
            assert!(known, "{text}");
        }
        assert_eq!(order("icb"), Ok(Order::Icb { cache: Cache::Hb }));
        assert_eq!(order("icb:none"), Ok(Order::Icb { cache: Cache::None }));
        assert_eq!(order("delay"), Ok(Order::Delay { cache: Cache::Hb }));
        assert_eq!(order("delay:none"), Ok(Order::Delay { cache: Cache::None }));
        assert_eq!(order("executions"), Ok(Order::Executions));
        let states = refusal(order("dfs"));
        assert!(states.ends_with("use executions for all executions"), "{states}");
        assert!(refusal(order("dpor")).contains("expected icb, delay, cb-dfs, dfs-hb, "));
        assert!(refusal(reduction("icb")).contains("expected none, sleep, dpor, dpor-optimal,"));
    }

    #[test]
    fn all_names_are_known() {
        let source = include_str!("settings.rs")
            .split("#[cfg(test)]")
            .next()
            .expect("the part before the tests");
        let scenarios = include_str!("linearize/driver.rs");
        for name in NAMES {
            assert!(known(name).is_ok(), "{name}");
            assert!(
                source.contains(&format!("get(\"{name}\")"))
                    || source.contains(&format!("(\"{name}\", &mut"))
                    || scenarios.contains(&format!("variable(\"{name}\")"))
                    || scenarios.contains(&format!("(\"{name}\", &mut")),
                "{name}"
            );
        }
    }

    #[test]
    fn a_misspelt_name_is_refused() {
        assert_eq!(
            refusal(known("BUOND")),
            "PREEMPT_BUOND is not a setting: did you mean PREEMPT_BOUND?"
        );
    }

    #[test]
    fn a_name_that_is_like_no_other_gets_the_list() {
        let text = refusal(known("COFFEE_BREAK"));
        let begin = "PREEMPT_COFFEE_BREAK is not a setting: there are PREEMPT_ALLOW_INCOMPLETE, \
                     PREEMPT_ALLOW_PANICS,";
        assert!(text.starts_with(begin), "{text}");
    }

    #[test]
    fn a_value_that_is_not_understood_is_refused() {
        let flags = ["KEEP_GOING", "QUIET"].map(|name| (name, "perhaps"));
        let numbers =
            ["TIME", "SHRINK", "MAX_TURN", "JOBS", "MAX_STEPS"].map(|name| (name, "many"));
        let others = [
            ("BOUND", "two"),
            ("ORDER", "sideways"),
            ("TIME", "-1"),
            ("MEMORY_LIMIT", "1X"),
            ("COUNT", "all"),
        ];
        for (name, value) in flags.into_iter().chain(numbers).chain(others) {
            let text =
                refusal(with(Check::new(), |other| (other == name).then(|| value.to_owned())));
            assert!(
                text.starts_with(&format!("PREEMPT_{name}={value} is not understood: expected ")),
                "{text}"
            );
        }
    }
}
