//! Programs that synchronise with Rust's standard library, parts of which are precompiled: errors
//! that need a preemption between an atomic operation and precompiled code, and correct variants.

use preempt_explore::{Cache, Order, Outcome, Plan, Reduction};
use preempt_native::{Executable, Level, Native};
use preempt_system::Verdict;

use crate::compile::instrumented;

/// The programs with errors: their verdicts, the fewest preemptions, and the executions up to the
/// first error.
const WRONG: [(&str, Verdict, u32, u64); 6] = [
    ("flag_condvar_lost", Verdict::Deadlock, 2, 5),
    ("park_twice", Verdict::Deadlock, 2, 9),
    ("barrier_leader", Verdict::Panic, 1, 3),
    ("mpsc_idle_lost", Verdict::Deadlock, 2, 24),
    ("once_park_lost", Verdict::Deadlock, 2, 4),
    ("rwlock_upgrade", Verdict::Panic, 1, 5),
];

/// The correct programs, and the executions up to each bound.
const RIGHT: [(&str, [u64; 3]); 6] = [
    ("flag_condvar", [1, 5, 13]),
    ("park_loop", [1, 5, 10]),
    ("barrier_after", [1, 3, 5]),
    ("mpsc_idle", [1, 8, 30]),
    ("once_park", [1, 4, 6]),
    ("rwlock_recheck", [1, 10, 69]),
];

fn explore(name: &str, plan: Plan) -> (Outcome, Native) {
    let path = instrumented(name, Level::Atomics);
    let native =
        Native::new(Executable::find(&path, Vec::new()).expect("the program can be explored"));
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(native, &());
    assert_eq!(native.refusal(), None, "{name}");
    (outcome, native)
}

fn icb(cache: Cache) -> Plan {
    Plan { order: Order::Icb { cache }, bound: Some(2), ..Plan::new() }
}

#[test]
fn errors_between_an_operation_and_precompiled_code_are_found() {
    let expected = WRONG.map(|(name, ..)| name);
    let found = expected.map(|name| {
        let (outcome, native) = explore(name, icb(Cache::Hb));
        let preemptions = outcome.findings.first().map_or(u32::MAX, |f| f.preemptions);
        let unseen = native.assumptions();
        assert!(!unseen.iter().any(|text| text.contains("before a call")), "{name}: {unseen:?}");
        (name, outcome.verdict, preemptions, outcome.executions().unwrap_or(0))
    });
    assert_eq!(found, WRONG);
}

/// The error is found only because of the scheduling points at the entries of functions.
#[test]
fn an_executable_without_symbols_passes_under_an_assumption() {
    let path = instrumented("flag_condvar_lost", Level::Atomics);
    let stripped = path.with_file_name("flag_condvar_lost_stripped");
    let status = std::process::Command::new("strip").arg("-o").args([&stripped, &path]).status();
    assert!(status.expect("strip belongs to gcc").success());
    let native =
        Native::new(Executable::find(&stripped, Vec::new()).expect("the program can be explored"));
    let search = icb(Cache::Hb).build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(native, &());
    assert_eq!(outcome.verdict, Verdict::Ok);
    let assumptions = native.assumptions();
    let words = "interrupted before a call of `Condvar::wait`";
    assert!(assumptions.iter().any(|text| text.contains(words)), "{assumptions:?}");
}

/// cb-por would miss the deadlock of this program.
#[test]
fn reductions_are_refused_where_precompiled_code_synchronises() {
    let path = instrumented("once_park_lost", Level::Atomics);
    let executable = Executable::find(&path, Vec::new()).expect("the program can be explored");
    assert_eq!(executable.suits(&icb(Cache::Hb)), Ok(()));
    for reduction in [Reduction::Sleep, Reduction::Optimal] {
        let why = executable.suits(&Plan { reduction, ..Plan::new() });
        let why = why.expect_err("what the standard library does is not visible");
        assert!(why.contains("leave out --reduce"), "{why}");
    }
}

#[test]
fn correct_programs_pass() {
    let found = RIGHT.map(|(name, _)| {
        let (outcome, _) = explore(name, icb(Cache::Hb));
        assert_eq!(outcome.findings, [], "{name}");
        assert_eq!(outcome.verdict, Verdict::Ok, "{name}");
        let per_bound: Vec<u64> = outcome.bounds.iter().map(|b| b.all.executions).collect();
        (name, per_bound.try_into().expect("there are three bounds"))
    });
    assert_eq!(found, RIGHT);
}

#[test]
fn a_search_without_a_cache_agrees() {
    let wrong = WRONG.map(|(name, verdict, ..)| (name, verdict));
    let right = RIGHT.map(|(name, _)| (name, Verdict::Ok));
    for (name, verdict) in wrong.into_iter().chain(right) {
        let (outcome, _) = explore(name, icb(Cache::None));
        assert_eq!(outcome.verdict, verdict, "{name}");
    }
}
