//! Memory that is used after it was freed is a finding with who freed it, and never a crash;
//! correct programs of the same shape pass.
#![cfg(feature = "allocator")]
// Tests send what is not `Sync` on purpose.
#![allow(clippy::arc_with_non_send_sync)]

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use preempt::sync::{Arc, Condvar, Mutex};
use preempt::{Check, FailureKind, Outcome, thread};

/// A pointer that a test gives to threads.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0)
    }
}

// SAFETY: the tests say who frees it when; that they do so correctly is what is checked.
unsafe impl<T> Send for Shared<T> {}

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
        let texts: Vec<_> =
            outcome.findings.iter().map(|finding| &finding.failure.message).collect();
        assert!(
            texts.len() == 1 && texts[0].starts_with("use after free: "),
            "{texts:?} {}",
            outcome.guarantee()
        );
        assert_eq!(outcome.findings[0].failure.kind, FailureKind::Runtime);
    }
}

#[track_caller]
fn passes(test: impl Fn() + Sync) -> Outcome {
    let outcome = Check::new().unbounded().run(&test);
    assert!(
        outcome.complete && outcome.findings.is_empty(),
        "{:?} {}",
        outcome.findings,
        outcome.guarantee()
    );
    outcome
}

/// One thread publishes that it is done and then uses the memory again; the other waits for it and
/// frees.
fn publishes<T: Send + 'static>(value: fn() -> T, uses: fn(&T), again: bool) -> impl Fn() + Sync {
    move || {
        let (memory, done) =
            (Shared::new((value(), UnsafeCell::new(0))), Arc::new(AtomicUsize::new(0)));
        let t = thread::spawn({
            let (memory, done) = (memory.clone(), done.clone());
            move || {
                uses(&memory.get().0);
                done.store(1, Release);
                if again {
                    uses(&memory.get().0);
                }
            }
        });
        while done.load(Acquire) == 0 {
            thread::yield_now();
        }
        memory.free();
        t.join().unwrap();
    }
}

#[test]
fn objects_that_are_used_after_they_were_published() {
    fn with<T: Send + 'static>(value: fn() -> T, uses: fn(&T)) {
        finds(publishes(value, uses, true));
        passes(publishes(value, uses, false));
    }
    with(|| AtomicUsize::new(0), |n| n.store(1, SeqCst));
    with(|| AtomicUsize::new(0), |n| assert_eq!(n.load(Relaxed), 0));
    with(|| Mutex::new(0), |lock| *lock.lock().unwrap() += 1);
    with(Condvar::new, Condvar::notify_all);
    with(|| Cell(UnsafeCell::new(0)), Cell::add);
}

struct Cell(UnsafeCell<usize>);

impl Cell {
    fn add(&self) {
        // SAFETY: for the check to find out.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// The sender of a channel for one value publishes that it is gone, and then drops the waker that
/// is in the channel. The receiver, who sees that, frees the channel.
#[test]
fn a_waker_that_is_dropped_after_the_channel_was_given_up() {
    const WAITING: usize = 1;
    const DISCONNECTED: usize = 2;
    struct Channel {
        state: AtomicUsize,
        waker: UnsafeCell<Option<Box<usize>>>,
    }
    let channel = |late: bool| {
        move || {
            let waker = UnsafeCell::new(Some(Box::new(0)));
            let channel = Shared::new(Channel { state: AtomicUsize::new(WAITING), waker });
            let sender = thread::spawn({
                let channel = channel.clone();
                move || {
                    // SAFETY: for the check to find out.
                    let take = |channel: &Channel| {
                        channel.waker.with_mut(|waker| unsafe { (*waker).take() })
                    };
                    let early = (!late).then(|| take(channel.get()));
                    fence(Acquire);
                    channel.get().state.swap(DISCONNECTED, AcqRel);
                    if late {
                        drop(take(channel.get()));
                    }
                    drop(early);
                }
            });
            while channel.get().state.load(Acquire) != DISCONNECTED {
                thread::yield_now();
            }
            channel.free();
            sender.join().unwrap();
        }
    };
    finds(channel(true));
    passes(channel(false));
}

/// What keeps the memory alive is not seen by the clocks: that is no error, only a reason to look.
#[test]
fn hidden_owners_are_no_false_alarm() {
    // References of std's are counted where no check sees it.
    passes(|| {
        let shared = std::sync::Arc::new((AtomicUsize::new(0), Cell(UnsafeCell::new(0))));
        let handles: Vec<_> = (0..2)
            .map(|_| {
                let shared = SendsCell(shared.clone());
                thread::spawn(move || {
                    let shared = shared;
                    shared.0.0.fetch_add(1, SeqCst);
                    // SAFETY: nobody writes.
                    shared.0.1.0.with(|value| unsafe { *value });
                })
            })
            .collect();
        drop(shared);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
    // The last of two threads frees, and the counter orders nothing.
    passes(|| {
        let shared = Shared::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let leave = |shared: &Shared<(AtomicUsize, AtomicUsize)>| {
            shared.get().1.store(1, Relaxed);
            if shared.get().0.fetch_add(1, Relaxed) == 1 {
                shared.free();
            }
        };
        let t = thread::spawn({
            let shared = shared.clone();
            move || leave(&shared)
        });
        leave(&shared);
        t.join().unwrap();
    });
}

struct SendsCell(std::sync::Arc<(AtomicUsize, Cell)>);

// SAFETY: for the check to find out.
unsafe impl Send for SendsCell {}

/// A pointer into an `Arc` that outlives it.
#[test]
fn a_pointer_that_keeps_nothing_alive() {
    for late in [false, true] {
        let outcome = Check::new().unbounded().run(move || {
            let shared = Arc::new(AtomicUsize::new(0));
            let pointer = Shared(Arc::as_ptr(&shared).cast_mut());
            let done = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let (pointer, done) = (pointer.clone(), done.clone());
                move || {
                    pointer.get().store(1, SeqCst);
                    done.store(1, SeqCst);
                    if late {
                        pointer.get().store(2, SeqCst);
                    }
                }
            });
            while done.load(SeqCst) == 0 {
                thread::yield_now();
            }
            drop(shared);
            t.join().unwrap();
        });
        assert_eq!(outcome.findings.len(), usize::from(late), "{:?}", outcome.findings);
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

/// Each of these checks ends in a deadlock and never frees its memory. The windows of all of them
/// have room for the last one.
#[test]
fn checks_that_leave_memory_behind_do_not_use_up_the_windows() {
    for _ in 0..1_500 {
        let deadlock = Check::new().run(|| {
            let lock = Arc::new(Mutex::new(0));
            let _twice = (lock.lock(), lock.lock());
        });
        assert_eq!(deadlock.findings.len(), 1);
    }
    finds(publishes(|| AtomicUsize::new(0), |atomic| atomic.store(1, SeqCst), true));
}

/// Memory of the program's own `alloc` and `dealloc`.
#[test]
fn memory_given_back_by_dealloc() {
    use preempt::alloc::{Layout, alloc, dealloc};
    let body = |again: bool| {
        move || {
            let layout = Layout::new::<AtomicUsize>();
            // SAFETY: the layout has a size, and the memory is that of such a value.
            let n = unsafe {
                let memory = alloc(layout).cast::<AtomicUsize>();
                memory.write(AtomicUsize::new(0));
                Shared(memory)
            };
            let done = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let (n, done) = (n.clone(), done.clone());
                move || {
                    n.get().store(1, SeqCst);
                    done.store(1, SeqCst);
                    if again {
                        n.get().store(2, SeqCst);
                    }
                }
            });
            while done.load(SeqCst) == 0 {
                thread::yield_now();
            }
            // SAFETY: for the check to find out.
            unsafe { dealloc(n.0.cast(), layout) };
            t.join().unwrap();
        }
    };
    finds(body(true));
    passes(body(false));
}
