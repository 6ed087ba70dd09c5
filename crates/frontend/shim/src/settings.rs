//! The `PREEMPT_…` variables: each setting of a [`Check`] without a change of the code.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use preempt_explore::{Cache, Order, Reduction};

use crate::check::{Bound, Check};

/// The check with what the environment says.
pub(crate) fn of_environment(check: Check) -> Check {
    let get = |name: &str| std::env::var(format!("PREEMPT_{name}")).ok().filter(|value| !value.is_empty());
    with(check, get)
}

fn with(mut check: Check, get: impl Fn(&str) -> Option<String>) -> Check {
    if let Some(value) = get("BOUND") {
        check.bound = if value == "none" { Bound::None } else { Bound::At(number("BOUND", &value)) };
    }
    if let Some(value) = get("ORDER") {
        check.order = Some(order(&value).unwrap_or_else(|| {
            wrong("ORDER", &value, "icb, cb-dfs, dfs-hb, dfs, depth:n, idfs:n, random, pct:n, urw")
        }));
    }
    if let Some(value) = get("REDUCE") {
        let words = "none, sleep, dpor, dpor-optimal, dpor-fg, cb-por, cb-por-states, budgeted-sleep";
        check.reduction = Some(reduction(&value).unwrap_or_else(|| wrong("REDUCE", &value, words)));
    }
    if let Some(value) = get("TIME") {
        let seconds: f64 = number("TIME", &value);
        check.limits.time =
            Some(Duration::try_from_secs_f64(seconds).unwrap_or_else(|_| wrong("TIME", &value, "seconds")));
    }
    if let Some(value) = get("EXECUTIONS") {
        check.limits.executions = Some(number("EXECUTIONS", &value));
    }
    if let Some(value) = get("STEPS") {
        check.limits.depth = Some(number("STEPS", &value));
    }
    if let Some(value) = get("JOBS") {
        check.jobs = number("JOBS", &value);
    }
    if let Some(value) = get("SEED") {
        check.seed = number("SEED", &value);
    }
    if let Some(value) = get("RUNS") {
        check.runs = number("RUNS", &value);
    }
    check.replay = get("REPLAY").or(check.replay);
    if let Some(value) = get("STOP_AT") {
        check.stop_at = Some(number("STOP_AT", &value));
    }
    check.save_schedule = get("SAVE_SCHEDULE").map(Into::into).or(check.save_schedule);
    if let Some(value) = get("SHRINK") {
        let time = Duration::try_from_secs_f64(number("SHRINK", &value));
        check = check.shrink(time.unwrap_or_else(|_| wrong("SHRINK", &value, "seconds")));
    }
    if let Some(value) = get("STACK_SIZE") {
        check.options.stack_size = number("STACK_SIZE", &value);
    }
    for (name, flag) in [
        ("KEEP_GOING", &mut check.keep_going),
        ("ALLOW_INCOMPLETE", &mut check.allow_incomplete),
        ("SPURIOUS_WAKEUPS", &mut check.options.spurious_wakeups),
        ("WEAK_CAS_FAILURES", &mut check.options.weak_cas_failures),
    ] {
        if let Some(value) = get(name) {
            *flag = match value.as_str() {
                "1" | "true" | "yes" => true,
                "0" | "false" | "no" => false,
                _ => wrong(name, &value, "1 or 0"),
            };
        }
    }
    check
}

fn number<N: FromStr>(name: &str, value: &str) -> N {
    value.parse().unwrap_or_else(|_| wrong(name, value, "a number"))
}

fn wrong<T>(name: &str, value: &str, expected: impl Display) -> T {
    panic!("PREEMPT_{name}={value} is not understood: expected {expected}")
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
        let get = |name: &str| settings.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        with(Check::new(), get)
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
            ("STACK_SIZE", "65536"),
            ("KEEP_GOING", "1"),
            ("ALLOW_INCOMPLETE", "yes"),
            ("SPURIOUS_WAKEUPS", "true"),
            ("WEAK_CAS_FAILURES", "0"),
        ]);
        assert_eq!((check.bound, check.order), (Bound::None, Some(Order::Pct { depth: 4 })));
        assert_eq!((check.limits.time, check.limits.executions), (Some(Duration::from_millis(1500)), Some(7)));
        assert_eq!((check.limits.depth, check.jobs, check.seed, check.runs), (Some(8), 2, 3, 4));
        assert_eq!((check.replay.as_deref(), check.stop_at, check.shrink), (Some("p1-0"), Some(6), None));
        assert_eq!(check.save_schedule.as_deref(), Some(std::path::Path::new("a.schedule")));
        assert!(check.keep_going && check.allow_incomplete && check.options.spurious_wakeups);
        assert!(!check.options.weak_cas_failures && check.options.stack_size == 65536);
        let bounded = set(&[("BOUND", "5"), ("REDUCE", "cb-por")]).plan();
        assert_eq!(
            (bounded.bound, bounded.reduction, bounded.order),
            (Some(5), Reduction::CbPor, Order::ContextBounded)
        );
    }

    #[test]
    #[should_panic(expected = "PREEMPT_ORDER=sideways is not understood")]
    fn a_word_that_is_not_understood_is_refused() {
        let _ = set(&[("ORDER", "sideways")]);
    }
}
