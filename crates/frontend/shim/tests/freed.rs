//! Memory that is used after it was freed is a finding with who freed it, and never a crash; correct programs of the same shape pass.
#![cfg(feature = "allocator")]
#![allow(clippy::unwrap_used)]

use preempt::sync::Arc;
use preempt::sync::atomic::Ordering::SeqCst;
use preempt::sync::atomic::{AtomicPtr, AtomicUsize};
use preempt::{Check, FailureKind, thread};

/// A pointer that a test gives to threads.
struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn new(value: T) -> Shared<T> {
        Shared(Box::into_raw(Box::new(value)))
    }

    fn get(&self) -> &T {
        // SAFETY: for the check to find out.
        unsafe { &*self.0 }
    }

    fn free(&self) {
        // SAFETY: for the check to find out.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

#[track_caller]
fn finds(test: impl Fn() + Sync) {
    for check in [Check::new(), Check::new().unbounded()] {
        let outcome = check.run(&test);
        let texts: Vec<_> = outcome.findings.iter().map(|finding| &finding.failure.message).collect();
        assert!(texts.len() == 1 && texts[0].starts_with("use after free: "), "{texts:?} {}", outcome.guarantee());
        assert_eq!(outcome.findings[0].failure.kind, FailureKind::Runtime);
    }
}

#[test]
fn memory_that_is_freed_twice() {
    let outcome = Check::new().run(|| {
        let head = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(1))));
        let take = |head: &AtomicPtr<i32>| {
            let first = head.load(SeqCst);
            if !first.is_null() {
                head.store(std::ptr::null_mut(), SeqCst);
                // SAFETY: for the check to find out.
                drop(unsafe { Box::from_raw(first) });
            }
        };
        let t = thread::spawn({
            let head = head.clone();
            move || take(&head)
        });
        take(&head);
        t.join().unwrap();
    });
    let text = &outcome.findings[0].failure.message;
    assert!(text.starts_with("double free: "), "{text}");
}

/// Where the memory comes from one allocator and is used again at once.
#[test]
fn memory_that_holds_something_else() {
    finds(|| {
        let n = Shared::new(AtomicUsize::new(0));
        n.get().store(1, SeqCst);
        n.free();
        let _other: Box<[usize; 3]> = Box::new([1, 2, 3]);
        n.get().store(2, SeqCst);
    });
}
