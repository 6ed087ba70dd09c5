//! `preempt::assume`: executions in which an assumption fails are not executions of the test.

use std::collections::BTreeSet;
use std::sync::Mutex as Real;

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Cache, Check, FailureKind, Memory, Order, Reduction, assume, thread};

/// Assumes that the load comes after the store of another thread.
fn reads_the_store() {
    let x = Arc::new(AtomicUsize::new(0));
    let stores = thread::spawn({
        let x = x.clone();
        move || x.store(1, SeqCst)
    });
    assume(x.load(SeqCst) == 1);
    stores.join().expect("the thread does not panic");
}

/// In the first execution the load comes first. A reduction sees the race with the store only
/// because the other thread goes on.
#[test]
fn reductions_reverse_the_races_of_executions_that_are_discarded() {
    let reductions = [
        Reduction::Optimal,
        Reduction::Source,
        Reduction::Sleep,
        Reduction::FlanaganGodefroid,
        Reduction::CbPor,
    ];
    for reduction in reductions {
        let check = Check::new().reduce(reduction);
        let check = if reduction == Reduction::CbPor { check.bound(2) } else { check };
        let outcome = check.run(reads_the_store);
        let discarded = outcome.tally.map(|tally| tally.discarded);
        assert_eq!((outcome.traces(), discarded), (Some(1), Some(1)), "{reduction:?}");
        let is_bounded = reduction == Reduction::CbPor;
        assert!(outcome.complete || is_bounded, "{reduction:?}: {}", outcome.guarantee());
    }
    let orders = [
        Order::Executions,
        Order::Icb { cache: Cache::Hb },
        Order::Icb { cache: Cache::None },
        Order::Delay { cache: Cache::Hb },
        Order::DfsHb,
    ];
    for order in orders {
        let outcome = Check::new().order(order).run(reads_the_store);
        assert_eq!(outcome.traces(), Some(1), "{order:?}: {}", outcome.guarantee());
        assert!(outcome.guarantee().ends_with("in which an assumption failed"), "{order:?}");
    }
}

/// The thread whose assumption failed never unlocks the mutex.
#[test]
fn waiting_for_a_thread_whose_assumption_failed_is_not_a_deadlock() {
    let seen = Real::new(BTreeSet::new());
    let outcome = Check::new().run(|| {
        let n = Arc::new(Mutex::new(0));
        let other = thread::spawn({
            let n = n.clone();
            move || *n.lock().expect("not poisoned") += 1
        });
        let mut mine = n.lock().expect("not poisoned");
        assume(*mine == 1);
        *mine += 1;
        drop(mine);
        other.join().expect("the thread does not panic");
        // Before the lock of the test's own set: an execution may be abandoned at any step.
        let end = *n.lock().expect("not poisoned");
        seen.lock().expect("not poisoned").insert(end);
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{}", outcome.guarantee());
    assert_eq!(*seen.lock().expect("not poisoned"), BTreeSet::from([2]));
}

/// The other thread fails whether or not it comes after the assumption.
#[test]
fn the_failure_of_another_thread_is_a_finding() {
    let outcome = Check::new().run(|| {
        let other = thread::spawn(|| panic!("an error"));
        assume(false);
        drop(other);
    });
    assert_eq!(outcome.findings[0].failure.kind, FailureKind::Panic);
}

/// A test of which nothing is left passes, and says so.
#[test]
fn a_test_without_executions_says_so() {
    let outcome = Check::new().run(|| assume(false));
    let text = outcome.guarantee();
    assert_eq!(outcome.executions(), Some(0), "{text}");
    assert!(text.ends_with("not counted: 1 execution in which an assumption failed"), "{text}");
}

#[test]
fn execution_graphs_refuse_assumptions_by_name() {
    let check = Check::new().memory(Memory::Weak).reduce(Reduction::Graphs).unbounded();
    let refusal = check.try_run(reads_the_store).expect_err("graphs has no rule for it");
    assert!(refusal.to_string().contains("does not handle `assume`"), "{refusal}");
}
