//! Races with the initial values of atomics: a thread that reaches an atomic without coming after
//! its creation.

use std::ptr;

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicPtr, AtomicU32, Ordering, fence};
use preempt::{FailureKind, Outcome, Reduction, Verdict, thread};

use Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::weak::weak;

fn kinds(outcome: &Outcome) -> Vec<FailureKind> {
    outcome.findings.iter().map(|finding| finding.failure.kind).collect()
}

/// A thread publishes an atomic that it has created, and another one uses it.
fn publish(store: Ordering, load: Ordering) {
    let shared = Arc::new(AtomicPtr::new(ptr::null_mut::<AtomicU32>()));
    let publisher = thread::spawn({
        let shared = shared.clone();
        move || shared.store(Box::into_raw(Box::new(AtomicU32::new(7))), store)
    });
    let published = shared.load(load);
    if !published.is_null() {
        // SAFETY: it is freed after the publisher was joined.
        assert_eq!(unsafe { &*published }.load(Relaxed), 7);
    }
    publisher.join().unwrap();
    // SAFETY: the publisher has published it, and no other thread uses it.
    drop(unsafe { Box::from_raw(shared.load(Relaxed)) });
}

#[test]
fn an_atomic_that_was_published_too_weakly_races_with_its_initial_value() {
    let right = weak().run(|| publish(Release, Acquire));
    assert_eq!((right.verdict, right.findings.len()), (Verdict::Ok, 0));
    for (store, load) in [(Relaxed, Acquire), (Release, Relaxed), (Relaxed, Relaxed)] {
        let outcome = weak().run(|| publish(store, load));
        assert_eq!(kinds(&outcome), [FailureKind::Race], "{store:?}, {load:?}");
        let message = &outcome.findings[0].failure.message;
        assert!(message.contains("nothing orders its initialisation"), "{message}");
        let graphs = weak().unbounded().reduce(Reduction::Graphs);
        assert_eq!(kinds(&graphs.run(|| publish(store, load))), [FailureKind::Race]);
    }
}

#[test]
fn fences_and_release_sequences_order_initial_values() {
    let fences = || {
        let shared = Arc::new(AtomicPtr::new(ptr::null_mut::<AtomicU32>()));
        let publisher = thread::spawn({
            let shared = shared.clone();
            move || {
                let made = Box::into_raw(Box::new(AtomicU32::new(7)));
                fence(Release);
                shared.store(made, Relaxed);
            }
        });
        let other = thread::spawn({
            let shared = shared.clone();
            // A read-modify-write continues the release sequence.
            move || shared.fetch_update(Relaxed, Relaxed, Some).is_ok()
        });
        let published = shared.load(Relaxed);
        if !published.is_null() {
            fence(Acquire);
            // SAFETY: it is never freed.
            assert_eq!(unsafe { &*published }.fetch_add(1, AcqRel), 7);
        }
        publisher.join().unwrap();
        other.join().unwrap();
        // SAFETY: both threads have ended.
        drop(unsafe { Box::from_raw(shared.load(Relaxed)) });
    };
    let outcome = weak().run(fences);
    assert_eq!(kinds(&outcome), [], "{:?}", outcome.findings);
}

#[test]
fn an_atomic_that_a_thread_returns_was_created_before() {
    let outcome = weak().run(|| {
        let made = thread::spawn(|| Box::new(AtomicU32::new(1))).join().unwrap();
        let made = Arc::new(made);
        let threads = [0, 1].map(|_| {
            let made = made.clone();
            thread::spawn(move || made.fetch_add(1, Relaxed))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(made.load(Relaxed), 3);
    });
    assert_eq!(kinds(&outcome), [], "{:?}", outcome.findings);
}
