//! A use after free is a finding that names the thread that freed the memory, and never a crash.
//! Correct programs of the same shape pass.
#![cfg(feature = "allocator")]
// The tests deliberately send values that are not `Sync`.
#![allow(clippy::arc_with_non_send_sync)]

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use preempt::sync::{Arc, Condvar, Mutex};
use preempt::{Check, FailureKind, Outcome, thread};

/// A pointer that a test shares between threads.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0)
    }
}

// SAFETY: the tests decide which thread frees it; the check reports violations.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    fn new(value: T) -> Shared<T> {
        Shared(Box::into_raw(Box::new(value)))
    }

    fn get(&self) -> &T {
        // SAFETY: the check reports violations.
        unsafe { &*self.0 }
    }

    fn free(&self) {
        // SAFETY: the check reports violations.
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

/// One thread announces that it is done and, if `again`, uses the memory once more; the other
/// thread waits for the announcement and frees the memory.
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
fn objects_used_after_their_release_was_announced() {
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
        // SAFETY: the check reports violations.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// The sender of a oneshot channel announces that it is gone and then drops the waker inside the
/// channel. The receiver sees the announcement and frees the channel.
#[test]
fn a_waker_dropped_after_the_channel_was_released() {
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
                    // SAFETY: the check reports violations.
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

/// Both sides of a channel announce that they leave, and the later one frees the channel. A
/// receiver that loads the announcement may read its own.
#[test]
fn a_channel_freed_because_of_ones_own_announcement() {
    const DISCONNECTED: usize = 2;
    let channel = |reads_its_own: bool| {
        move || {
            let channel = Shared::new(AtomicUsize::new(0));
            let sender = thread::spawn({
                let channel = channel.clone();
                move || {
                    if channel.get().swap(DISCONNECTED, AcqRel) == DISCONNECTED {
                        channel.free();
                    }
                }
            });
            let before = channel.get().swap(DISCONNECTED, AcqRel);
            let seen = if reads_its_own { channel.get().load(Acquire) } else { before };
            if seen == DISCONNECTED {
                channel.free();
            }
            sender.join().unwrap();
        }
    };
    finds(channel(true));
    passes(channel(false));
}

/// The clocks do not observe what keeps the memory alive. That alone is not a use after free.
#[test]
fn hidden_owners_cause_no_false_alarm() {
    // The check does not observe the reference count of std's `Arc`.
    passes(|| {
        let shared = std::sync::Arc::new((AtomicUsize::new(0), Cell(UnsafeCell::new(0))));
        let handles: Vec<_> = (0..2)
            .map(|_| {
                let shared = SendsCell(shared.clone());
                thread::spawn(move || {
                    let shared = shared;
                    shared.0.0.fetch_add(1, SeqCst);
                    // SAFETY: no thread writes.
                    shared.0.1.0.with(|value| unsafe { *value });
                })
            })
            .collect();
        drop(shared);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
    // The last of two threads frees, but the relaxed counter orders nothing.
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

// SAFETY: the check reports violations.
unsafe impl Send for SendsCell {}

/// A raw pointer into an `Arc` outlives the `Arc`.
#[test]
fn a_raw_pointer_does_not_keep_an_arc_alive() {
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
fn a_double_free_is_found() {
    let outcome = Check::new().run(|| {
        let head = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(1))));
        let take = |head: &AtomicPtr<i32>| {
            let first = head.load(SeqCst);
            if !first.is_null() {
                head.store(std::ptr::null_mut(), SeqCst);
                // SAFETY: the check reports violations.
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

/// The freed memory is allocated again for another value before the use.
#[test]
fn a_use_of_reallocated_memory_is_found() {
    finds(|| {
        let n = Shared::new(AtomicUsize::new(0));
        n.get().store(1, SeqCst);
        n.free();
        let _other: Box<[usize; 3]> = Box::new([1, 2, 3]);
        n.get().store(2, SeqCst);
    });
}

/// Each of these checks ends in a deadlock and never frees its memory. The last check still finds
/// room in the windows.
#[test]
fn checks_that_leak_memory_do_not_exhaust_the_windows() {
    for _ in 0..1_500 {
        let deadlock = Check::new().run(|| {
            let lock = Arc::new(Mutex::new(0));
            let _twice = (lock.lock(), lock.lock());
        });
        assert_eq!(deadlock.findings.len(), 1);
    }
    finds(publishes(|| AtomicUsize::new(0), |atomic| atomic.store(1, SeqCst), true));
}

/// Memory that the program manages with `alloc` and `dealloc`.
#[test]
fn memory_freed_by_dealloc() {
    use preempt::alloc::{Layout, alloc, dealloc};
    let body = |again: bool| {
        move || {
            let layout = Layout::new::<AtomicUsize>();
            // SAFETY: the layout is not empty, and the memory has the layout of the value.
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
            // SAFETY: the check reports violations.
            unsafe { dealloc(n.0.cast(), layout) };
            t.join().unwrap();
        }
    };
    finds(body(true));
    passes(body(false));
}
