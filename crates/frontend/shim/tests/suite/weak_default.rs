//! The default memory model of a check: weak memory where it makes a difference.

use std::collections::BTreeSet;

use preempt::sync::atomic::{AtomicUsize, Ordering};
use preempt::sync::{Arc, Mutex};
use preempt::{Cache, Check, FailureKind, Memory, Order, Outcome, Reduction, Verdict, thread};
use preempt_litmus::random::{self, Random, Shape};
use preempt_litmus::{Expected, Order as LitmusOrder, axioms, expected};

use Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::weak::{explore, message, within};

fn check() -> Check {
    Check::new().quiet().allow_uncontrolled()
}

/// Two threads store to one atomic and load the other.
fn store_buffering(order: Ordering) {
    let load = if order == Release { Acquire } else { order };
    let pair = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let run = move |pair: &[AtomicUsize; 2], mine: usize| {
        pair[mine].store(1, order);
        pair[1 - mine].load(load)
    };
    let t = thread::spawn({
        let pair = pair.clone();
        move || run(&pair, 1)
    });
    let seen = run(&pair, 0);
    assert!(t.join().unwrap() + seen > 0, "both missed the store of the other");
}

fn executions(outcome: &Outcome) -> u64 {
    outcome.executions().expect("executions are counted")
}

#[test]
fn litmus_tests_have_their_outcomes_by_default() {
    let mut sequential = Vec::new();
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        let (outcome, found) = explore(&check().unbounded().keep_going(), &test);
        assert_eq!(found, within(&test, u32::MAX), "{}", test.name);
        assert!(outcome.complete, "{}", test.name);
        if outcome.memory == Memory::Sc {
            sequential.push(test.name.clone());
            assert_eq!(test.graphs, test.graphs_all_sc, "{}: weak memory adds no graph", test.name);
        }
        for bound in 0..=2 {
            let (_, found) = explore(&check().bound(bound).keep_going(), &test);
            assert_eq!(found, within(&test, bound), "{} with bound {bound}", test.name);
        }
    }
    // Tests with `SeqCst` alone, counters and mutexes.
    assert_eq!(sequential.len(), 20, "{sequential:?}");
}

#[test]
fn random_programs_have_their_outcomes_by_default() {
    let mut random = Random(17);
    let (mut compared, mut sequential) = (0, 0);
    while compared < 100 {
        let shape = Shape { threads: 3, length: 3, mutexes: false };
        let program = random::program(&mut random, shape);
        let Some(expected) = axioms::consistent(&program, 2_000) else { continue };
        let outcomes: BTreeSet<String> = expected.into_values().collect();
        let test = Expected { program, ..expected::all().remove(0) };
        let (outcome, found) = explore(&check().unbounded(), &test);
        assert_eq!(found, outcomes, "{}", test.program.show());
        sequential += u32::from(outcome.memory == Memory::Sc);
        compared += 1;
    }
    assert!((1..100).contains(&sequential), "{sequential} programs stay sequentially consistent");
}

#[test]
fn sequentially_consistent_programs_keep_their_search() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        let program = test.program.with_order(LitmusOrder::SeqCst);
        let all_sc = Expected { program, ..test.clone() };
        for check in [check().keep_going(), check().unbounded().keep_going()] {
            let (outcome, _) = explore(&check, &all_sc);
            let (explicit, _) = explore(&check.clone().memory(Memory::Sc), &all_sc);
            assert_eq!(outcome.memory, Memory::Sc, "{}", test.name);
            assert_eq!(executions(&outcome), executions(&explicit), "{}", test.name);
        }
    }
}

#[test]
fn a_weak_outcome_is_found_by_default_and_replayed() {
    for order in [Relaxed, Release] {
        let outcome = check().run(|| store_buffering(order));
        assert_eq!((outcome.memory, outcome.verdict), (Memory::Weak, Verdict::Panic));
        let text = check().report(|| store_buffering(order));
        assert!(text.contains("memory    weak: what the orderings"), "{text}");
        assert!(text.contains("0 preemptions and 1 stale read"), "{text}");
        let (_, token) = text.split_once("PREEMPT_REPLAY=").expect("a finding can be replayed");
        let token = token.split_whitespace().next().unwrap();
        let replayed = check().replay(token).run(|| store_buffering(order));
        assert_eq!(replayed.findings.len(), 1);
        assert_eq!(replayed.memory, Memory::Weak);
    }
}

#[test]
fn a_failure_that_needs_no_weak_memory_is_reported_and_replayed_without_it() {
    let lost_update = || {
        let n = Arc::new(AtomicUsize::new(0));
        let add = |n: &AtomicUsize| n.store(n.fetch_add(0, Relaxed) + 1, SeqCst);
        let t = thread::spawn({
            let n = n.clone();
            move || add(&n)
        });
        t.join().unwrap();
        add(&n);
        assert_eq!(n.load(Relaxed), 1, "it is two");
    };
    let text = check().report(lost_update);
    assert!(text.contains("sequentially consistent, which is enough for this failure"), "{text}");
    let (_, token) = text.split_once("PREEMPT_REPLAY=").expect("a finding can be replayed");
    let token = token.split_whitespace().next().unwrap();
    let replayed = check().replay(token).run(lost_update);
    assert_eq!((replayed.findings.len(), replayed.memory), (1, Memory::Sc));
}

#[test]
fn sequential_consistency_can_be_chosen() {
    let outcome = check().memory(Memory::Sc).run(|| store_buffering(Relaxed));
    assert_eq!((outcome.memory, outcome.verdict), (Memory::Sc, Verdict::Ok));
    let text = check().memory(Memory::Sc).report(|| store_buffering(Relaxed));
    assert!(text.contains("what weaker orderings of atomics allow was\n"), "{text}");
}

#[test]
fn a_strategy_that_cannot_search_weak_memory_stays_sequentially_consistent() {
    for reduction in [Reduction::Optimal, Reduction::CbPor, Reduction::Sleep] {
        let chosen = check().reduce(reduction);
        let outcome = chosen.run(|| store_buffering(Relaxed));
        assert_eq!((outcome.memory, outcome.verdict), (Memory::Sc, Verdict::Ok), "{reduction:?}");
    }
    // A strategy that searches only weak memory starts with it.
    let graphs = check().unbounded().reduce(Reduction::Graphs);
    assert_eq!(graphs.run(|| store_buffering(SeqCst)).memory, Memory::Weak);
    assert_eq!(graphs.run(|| store_buffering(Relaxed)).verdict, Verdict::Panic);
    for order in [Order::Icb { cache: Cache::Hb }, Order::Executions, Order::Random] {
        let chosen = check().order(order).unbounded();
        let outcome = chosen.run(|| store_buffering(Relaxed));
        assert_eq!((outcome.memory, outcome.verdict), (Memory::Weak, Verdict::Panic), "{order:?}");
    }
}

/// Programs with weak orderings that allow nothing beyond sequential consistency keep the search
/// and its numbers.
#[test]
fn counters_and_locked_flags_cost_nothing() {
    let counters = || {
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let add = |counts: &(AtomicUsize, AtomicUsize)| {
            counts.0.fetch_add(1, Relaxed);
            counts.1.fetch_add(2, Relaxed);
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let counts = counts.clone();
                thread::spawn(move || add(&counts))
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!((counts.0.load(Relaxed), counts.1.load(Relaxed)), (2, 4));
    };
    let locked = || {
        let shared = Arc::new((Mutex::new(()), AtomicUsize::new(0)));
        let work = |shared: &(Mutex<()>, AtomicUsize)| {
            let _guard = shared.0.lock().unwrap();
            shared.1.store(shared.1.load(Relaxed) + 1, Relaxed);
        };
        let t = thread::spawn({
            let shared = shared.clone();
            move || work(&shared)
        });
        work(&shared);
        t.join().unwrap();
        assert_eq!(shared.1.load(Relaxed), 2);
    };
    let references = || {
        let count = Arc::new(AtomicUsize::new(2));
        let release = |count: &AtomicUsize| {
            if count.fetch_sub(1, Release) == 1 {
                preempt::sync::atomic::fence(Acquire);
            }
        };
        let t = thread::spawn({
            let count = count.clone();
            move || release(&count)
        });
        release(&count);
        t.join().unwrap();
    };
    for program in [&counters as &(dyn Fn() + Sync), &locked, &references] {
        for check in [check(), check().unbounded(), check().bound(1)] {
            let outcome = check.run(program);
            let explicit = check.clone().memory(Memory::Sc).run(program);
            assert_eq!((outcome.memory, outcome.verdict), (Memory::Sc, Verdict::Ok));
            assert_eq!(executions(&outcome), executions(&explicit));
            assert!(outcome.complete == explicit.complete);
            let text = check.report(program);
            assert!(text.contains("the orderings of atomics allow nothing else"), "{text}");
        }
    }
}

/// A weak ordering counts even if it is used before the threads exist, or reached only in some
/// executions.
#[test]
fn a_late_weak_ordering_is_detected() {
    let early = || {
        let pair = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        pair[0].store(1, Relaxed);
        let t = thread::spawn({
            let pair = pair.clone();
            move || pair[1].store(1, SeqCst)
        });
        assert_eq!(pair[1].load(SeqCst) + pair[0].load(SeqCst) / 2, 0);
        t.join().unwrap();
    };
    assert_eq!(check().run(early).verdict, Verdict::Panic);
    let late = || {
        let all = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
        let t = thread::spawn({
            let all = all.clone();
            move || {
                all[0].store(1, SeqCst);
                if all[1].load(SeqCst) == 0 {
                    all[2].store(1, Relaxed);
                    all[0].store(2, Relaxed);
                }
            }
        });
        all[1].store(1, SeqCst);
        if all[0].load(SeqCst) == 2 {
            assert_eq!(all[2].load(SeqCst), 1, "the store was not seen");
        }
        t.join().unwrap();
    };
    let outcome = check().run(late);
    assert_eq!((outcome.memory, outcome.verdict), (Memory::Weak, Verdict::Panic));
}

#[test]
fn the_names_of_loom_explore_weak_memory() {
    let failed = std::panic::catch_unwind(|| {
        preempt::loom::model(|| store_buffering(Relaxed));
    });
    let message = failed.expect_err("the test fails").downcast::<String>().unwrap();
    assert!(message.contains("both missed the store of the other"), "{message}");
    assert!(message.contains("memory    weak"), "{message}");
    preempt::loom::model(|| store_buffering(SeqCst));
}

#[test]
fn races_are_those_of_weak_memory() {
    let race = check().run(|| message(Relaxed, Acquire));
    assert_eq!(race.findings[0].failure.kind, FailureKind::Race);
    assert_eq!(check().run(|| message(Release, Acquire)).verdict, Verdict::Ok);
}
