//! The `PREEMPT_…` variables: each setting of a [`Check`] without a change of the code.
//!
//! A variable that nobody knows is a mistake, and refused: a check with other settings than its
//! user believes proves something else.

use std::str::FromStr;
use std::time::Duration;

use preempt_explore::{Cache, Count, Order, Reduction, Refusal};
use preempt_system::text::nearest;

use crate::check::{Bound, Check};

/// The check with what the environment says, or why that is refused.
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
    // Mostly there are none.
    if settings.is_empty() {
        return Ok(check);
    }
    with(check, |name| {
        settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    })
}

/// All of them.
const NAMES: [&str; 28] = [
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
    "MEMORY_LIMIT",
    "ORDER",
    "QUIET",
    "REDUCE",
    "REPLAY",
    "RUNS",
    "SAVE_SCHEDULE",
    "SEED",
    "SHRINK",
    "SPURIOUS_WAKEUPS",
    "STACK_SIZE",
    "STEPS",
    "STOP_AT",
    "TIME",
    "WEAK_CAS_FAILURES",
];

/// Refuses a name that is none.
fn known(name: &str) -> Result<(), Refusal> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    let hint = nearest(name, NAMES.iter().copied()).map_or_else(
        || format!("there are PREEMPT_{}", NAMES.join(", PREEMPT_")),
        |near| format!("did you mean PREEMPT_{near}?"),
    );
    Err(Refusal::because(&format!("PREEMPT_{name} is not a setting: {hint}")))
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
        let words = "icb, cb-dfs, dfs-hb, dfs, depth:n, idfs:n, random, pct:n, urw";
        check.order = Some(order(&value).ok_or_else(|| wrong("ORDER", &value, words))?);
    }
    if let Some(value) = get("REDUCE") {
        let words =
            "none, sleep, dpor, dpor-optimal, dpor-fg, cb-por, cb-por-states, budgeted-sleep";
        check.reduction = Some(reduction(&value).ok_or_else(|| wrong("REDUCE", &value, words))?);
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

fn number<N: FromStr>(name: &str, value: &str) -> Result<N, Refusal> {
    value.parse().map_err(|_| wrong(name, value, "a number"))
}

fn seconds(name: &str, value: &str) -> Result<Duration, Refusal> {
    Duration::try_from_secs_f64(number(name, value)?).map_err(|_| wrong(name, value, "seconds"))
}

/// A number of bytes: `65536`, `64K`, `500M`, `4G`. The letters stand for powers of 1024.
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

fn wrong(name: &str, value: &str, expected: &str) -> Refusal {
    Refusal::because(&format!("PREEMPT_{name}={value} is not understood: expected {expected}"))
}

fn order(word: &str) -> Option<Order> {
    let (word, n) = match word.split_once(':') {
        Some((word, n)) => (word, Some(n.parse().ok()?)),
        None => (word, None),
    };
    Some(match (word, n) {
        ("icb", None) => Order::Icb { cache: Cache::Hb },
        ("cb-dfs", None) => Order::ContextBounded,
        ("dfs-hb", None) => Order::DfsHb,
        ("dfs" | "executions", None) => Order::Executions,
        ("depth", Some(steps)) => Order::Depth { steps },
        ("idfs", Some(by)) => Order::IterativeDepth { by },
        ("random", None) => Order::Random,
        ("pct", depth) => Order::Pct { depth: depth.unwrap_or(3) },
        ("urw", None) => Order::Urw,
        _ => return None,
    })
}

fn reduction(word: &str) -> Option<Reduction> {
    Some(match word {
        "none" => Reduction::None,
        "sleep" => Reduction::Sleep,
        "dpor" => Reduction::Source,
        "dpor-optimal" => Reduction::Optimal,
        "dpor-fg" => Reduction::FlanaganGodefroid,
        "cb-por" => Reduction::CbPor,
        "cb-por-states" => Reduction::CbPorStates,
        "budgeted-sleep" => Reduction::BudgetedSleep,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &[(&str, &str)]) -> Check {
        let get = |name: &str| {
            settings.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        with(Check::new(), get).expect("all values are understood")
    }

    fn refusal<T>(of: Result<T, Refusal>) -> String {
        of.err().map(|refusal| refusal.to_string()).expect("it is refused")
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
    fn all_names_are_known() {
        let source = include_str!("settings.rs")
            .split("#[cfg(test)]")
            .next()
            .expect("what is before the tests");
        for name in NAMES {
            assert!(known(name).is_ok(), "{name}");
            assert!(
                source.contains(&format!("get(\"{name}\")"))
                    || source.contains(&format!("(\"{name}\", &mut"))
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
        let begin = "PREEMPT_COFFEE_BREAK is not a setting: there are PREEMPT_ALLOW_INCOMPLETE, PREEMPT_ALLOW_PANICS,";
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
