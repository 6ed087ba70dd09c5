//! A program whose global allocator is not wrapped, so that a check cannot observe the heap:
//! `cargo test -p preempt --no-default-features --features check --test unwrapped`.
#![cfg(all(feature = "check", not(feature = "allocator")))]
#![allow(clippy::unwrap_used)]

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use preempt::{Check, FailureKind, thread};

/// Heap objects are distinguished by the order of their first uses, which costs executions. The
/// report says so.
#[test]
fn objects_that_cannot_be_identified_are_reported() {
    let text = Check::new().unbounded().report(|| {
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let add = |at: usize| {
            let counts = counts.clone();
            thread::spawn(move || counts[at].fetch_add(1, SeqCst))
        };
        let handles: Vec<_> = (0..3).map(add).collect();
        handles.into_iter().for_each(|handle| drop(handle.join()));
    });
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "objects that 1 line of the program made on the heap could not be identified"
        ),
        "{text}"
    );
    assert!(words.contains("enable the feature `allocator`, or wrap your allocator in"), "{text}");
    assert!(!words.contains("the only trace"), "{text}");
}

/// A thread spins on a flag; main stores `sets` in it.
fn waits(sets: bool) -> impl Fn() + Sync {
    move || {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || while !flag.load(SeqCst) {}
        });
        flag.store(sets, SeqCst);
        t.join().unwrap();
    }
}

/// A loop may count its iterations on the heap, so no cycle of states can be proved.
#[test]
fn no_cycle_is_proved_without_observing_the_heap() {
    let outcome = Check::new().max_steps(300).run(waits(false));
    assert_eq!(
        outcome.findings[0].failure.kind,
        FailureKind::StepLimit,
        "{:?}",
        outcome.findings[0].failure
    );
    let outcome = Check::new().unbounded().run(waits(true));
    assert!(outcome.findings.is_empty() && !outcome.complete, "{}", outcome.guarantee());
    assert!(outcome.guarantee().contains("assuming that the loop at "), "{}", outcome.guarantee());
}
