//! The search over execution graphs: litmus tests with exact numbers, and random programs against
//! brute force over the memory and against the axioms of its model. `preempt_closures::weak` has
//! random programs with all objects that block.
//!
//! All search orders share the library's memory model, which counts distinct graphs by their
//! fingerprints. So a search over graphs that counts as many graphs as brute force has visited the
//! same graphs, and one with as many executions as graphs has visited each once.

use std::collections::BTreeSet;

use preempt::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use preempt::sync::{Arc, Condvar, Mutex};
use preempt::{Check, FailureKind, Memory, Order, Outcome, Reduction, Verdict, thread};
use preempt_litmus::random::{self, Random, Shape};
use preempt_litmus::{Expected, Order as LitmusOrder, axioms, expected};

use Ordering::{Acquire, Relaxed, Release};

use crate::weak::{explore, weak, within};

fn graphs() -> Check {
    weak().unbounded().reduce(Reduction::Graphs)
}

/// The numbers of executions and of graphs.
fn numbers(outcome: &Outcome) -> (u64, u64) {
    let executions = outcome.tally.map(|tally| tally.executions);
    (executions.expect("executions are counted"), outcome.traces().expect("graphs are counted"))
}

#[test]
fn litmus_tests_have_their_graphs_each_once() {
    let mut wrong = Vec::new();
    for test in expected::all() {
        let (outcome, found) = explore(&graphs().keep_going(), &test);
        let mut kinds: Vec<FailureKind> =
            outcome.findings.iter().map(|finding| finding.failure.kind).collect();
        kinds.dedup();
        let expected = match (test.racy, test.stuck) {
            (0, 0) => None,
            (0, _) => Some(FailureKind::Deadlock),
            _ => Some(FailureKind::Race),
        };
        assert_eq!(kinds, Vec::from_iter(expected), "{}", test.name);
        // The number is not defined for programs with a data race.
        if test.racy > 0 {
            continue;
        }
        let count = test.graphs as u64;
        if numbers(&outcome) != (count, count) || !outcome.complete {
            wrong.push(format!("{}: {:?} instead of {count}", test.name, numbers(&outcome)));
        } else if found != within(&test, u32::MAX) {
            wrong.push(format!("{}: {found:?}", test.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn with_sequentially_consistent_orderings_graphs_are_traces() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        let program = test.program.with_order(LitmusOrder::SeqCst);
        // A partial-order reduction treats every exchange as a write.
        let has_exchange = program.show().contains(".cas(");
        let all_sc = Expected { program, ..test.clone() };
        let (outcome, found) = explore(&graphs().keep_going(), &all_sc);
        let count = test.graphs_all_sc as u64;
        assert_eq!(numbers(&outcome), (count, count), "{}", test.name);
        let optimal = weak().memory(Memory::Sc).unbounded().keep_going();
        let (optimal, traces) = explore(&optimal, &all_sc);
        assert!(has_exchange || numbers(&optimal).0 == count, "{}", test.name);
        assert_eq!(found, traces, "{}", test.name);
    }
}

#[test]
fn random_programs_have_the_graphs_that_the_axioms_allow() {
    let mut random = Random(15);
    let (mut compared, mut all) = (0, 0);
    while compared < 150 {
        let shape = Shape { threads: 3, length: 4, mutexes: false };
        let program = random::program(&mut random, shape);
        let Some(expected) = axioms::consistent(&program, 10_000) else { continue };
        let count = expected.len() as u64;
        let outcomes: BTreeSet<String> = expected.into_values().collect();
        let test = Expected { program, ..expected::all().remove(0) };
        let (outcome, found) = explore(&graphs(), &test);
        assert_eq!(numbers(&outcome), (count, count), "{}", test.program.show());
        assert_eq!(found, outcomes, "{}", test.program.show());
        (compared, all) = (compared + 1, all + count);
    }
    assert!(all > 1_500, "the programs have few graphs: {all}");
}

#[test]
fn random_programs_have_the_graphs_of_brute_force() {
    let mut random = Random(16);
    let (mut compared, mut all, mut dead) = (0, 0, 0);
    while compared < 100 {
        let shape = Shape { threads: 3, length: 3, mutexes: true };
        let program = random::program(&mut random, shape);
        let test = Expected { program, ..expected::all().remove(0) };
        let brute = weak().unbounded().order(Order::Executions).executions(5_000).keep_going();
        let (brute, outcomes) = explore(&brute, &test);
        if brute.verdict == Verdict::Incomplete || numbers(&brute).0 >= 5_000 {
            continue;
        }
        let (outcome, found) = explore(&graphs().keep_going(), &test);
        let (executions, count) = numbers(&outcome);
        assert_eq!(count, numbers(&brute).1, "{}", test.program.show());
        assert_eq!(executions, count, "{}: a graph twice", test.program.show());
        assert_eq!(found, outcomes, "{}", test.program.show());
        dead += outcome.tally.map_or(0, |tally| tally.pruned);
        (compared, all) = (compared + 1, all + count);
    }
    assert!(all > 200, "the programs have few graphs: {all}");
    assert!(dead * 50 <= all, "{dead} dead ends for {all} graphs");
}

/// Why a check by graphs is refused.
fn refusal(check: &Check, body: impl Fn() + Sync) -> String {
    check.try_run(body).err().map(|refusal| refusal.to_string()).unwrap_or_default()
}

#[test]
fn unsupported_operations_are_refused_by_name() {
    let wait = refusal(&graphs().spurious_wakeups(), || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || pair.1.notify_one()
        });
        drop(pair.1.wait(pair.0.lock().unwrap()));
        t.join().unwrap();
    });
    assert!(wait.contains("`Reduction::Graphs` does not handle `"), "{wait}");
    assert!(wait.contains("graphs.rs:"), "{wait}");
    let assume = refusal(&graphs(), || preempt::assume(false));
    assert!(assume.contains("`Reduction::Graphs` does not handle `"), "{assume}");
    let spin = refusal(&graphs(), || {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || flag.store(true, Release)
        });
        while !flag.load(Acquire) {
            preempt::hint::spin_loop();
        }
        t.join().unwrap();
    });
    assert!(spin.contains("in a loop that repeats without an effect"), "{spin}");
    let plain = refusal(&graphs(), || {
        let mut atomic = AtomicU64::new(0);
        atomic.store(1, Relaxed);
        *atomic.get_mut() = 2;
        assert_eq!(atomic.load(Relaxed), 2);
    });
    assert!(plain.contains("written through its only reference"), "{plain}");
}

#[test]
fn unsupported_combinations_are_refused() {
    let body = || ();
    let bound = refusal(&weak().bound(2).reduce(Reduction::Graphs), body);
    assert!(bound.contains("`bound`"), "{bound}");
    let jobs = refusal(&graphs().jobs(2), body);
    assert!(jobs.contains("`jobs`"), "{jobs}");
    let sc = refusal(&graphs().memory(Memory::Sc), body);
    assert!(sc.contains("execution graphs of weak memory"), "{sc}");
}

#[test]
fn a_failing_execution_is_found_and_replayed() {
    let outcome = graphs().run(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.store(1, Relaxed);
                shared.1.store(true, Relaxed);
            }
        });
        if shared.1.load(Acquire) {
            assert_eq!(shared.0.load(Relaxed), 1);
        }
        t.join().unwrap();
    });
    let kinds: Vec<FailureKind> = outcome.findings.iter().map(|it| it.failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Panic]);
}
