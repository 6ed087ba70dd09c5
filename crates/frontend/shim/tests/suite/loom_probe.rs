//! Small tests in the style of loom's suites with known verdicts: correct programs pass, and
//! programs that are wrong even without weak memory fail for the right reason.
//!
//! They use loom's names and run under `model` or a `Builder`, as a ported test suite does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use preempt::{Check, FailureKind, loom};

use loom::cell::{MutPtr, UnsafeCell};
use loom::model::Builder;
use loom::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Asserts that the body fails with `reason` in the report.
#[track_caller]
fn fails(reason: &str, body: impl Fn() + Sync + Send + 'static) {
    let payload =
        catch_unwind(AssertUnwindSafe(|| loom::model(body))).expect_err("the model fails");
    let text = payload.downcast::<String>().expect("a report");
    assert!(text.contains(reason), "{reason} is missing in\n{text}");
}

fn bounded(preemptions: usize) -> Builder {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}

/// A value that is declared `Sync`, rightly or not.
struct Claimed<T>(T);
// SAFETY: the check reports violations.
unsafe impl<T> Send for Claimed<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Claimed<T> {}

/// Each of two threads stores, calls `between`, and loads what the other stores: at least one must
/// see the other's store.
fn store_buffering(order: Ordering, between: fn()) {
    loom::model(move || {
        let pair = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                pair.0.store(1, order);
                between();
                pair.1.load(order)
            }
        });
        pair.1.store(1, order);
        between();
        let seen = pair.0.load(order);
        assert_eq!(t.join().unwrap().max(seen), 1);
    });
}

#[test]
fn sequentially_consistent_stores_are_seen() {
    store_buffering(SeqCst, || ());
}

#[test]
fn stores_before_fences_are_seen() {
    store_buffering(Relaxed, || fence(SeqCst));
}

#[test]
fn no_store_comes_between_the_halves_of_a_swap() {
    loom::model(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let x = x.clone();
            move || x.swap(2, Relaxed)
        });
        x.store(1, Relaxed);
        let last = t.join().unwrap();
        assert!(last == 0 || x.load(Relaxed) == 2);
    });
}

#[test]
fn a_relaxed_flag_does_not_order_a_cell() {
    fails("nothing orders these accesses", || {
        let slot = Arc::new(Claimed((UnsafeCell::new(0), AtomicBool::new(false))));
        let t = thread::spawn({
            let slot = slot.clone();
            move || {
                // SAFETY: the check reports violations.
                slot.0.0.with_mut(|value| unsafe { *value = 1 });
                slot.0.1.store(true, Relaxed);
            }
        });
        if slot.0.1.load(Acquire) {
            // SAFETY: the check reports violations.
            assert_eq!(slot.0.0.with(|value| unsafe { *value }), 1);
        }
        t.join().unwrap();
    });
}

#[test]
fn a_pointer_that_outlives_its_lock_races() {
    fails("nothing orders these accesses", || {
        let shared = Arc::new(Claimed((Mutex::new(()), UnsafeCell::new(0))));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.0.lock().unwrap();
                // SAFETY: under the lock.
                shared.0.1.with_mut(|value| unsafe { *value += 1 });
            }
        });
        let guard = shared.0.0.lock().unwrap();
        let pointer = shared.0.1.get();
        drop(guard);
        // SAFETY: none: this is the error.
        let _value: i32 = unsafe { *pointer.deref() };
        t.join().unwrap();
    });
}

#[test]
fn an_ignored_panic_fails() {
    fails("too late", || {
        let x = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let x = x.clone();
            move || assert_eq!(x.load(SeqCst), 0, "too late")
        });
        x.store(1, SeqCst);
        let _ = t.join();
    });
}

#[test]
fn a_notification_before_the_wait_is_lost() {
    fails("no thread can move", || {
        let gate = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
        let t = thread::spawn({
            let gate = gate.clone();
            move || {
                gate.2.store(true, SeqCst);
                gate.1.notify_one();
            }
        });
        let mut guard = gate.0.lock().unwrap();
        while !gate.2.load(SeqCst) {
            guard = gate.1.wait(guard).unwrap();
        }
        drop(guard);
        t.join().unwrap();
    });
}

#[test]
fn a_leak_in_some_schedules_is_found() {
    fails("leak", || {
        let x = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let x = x.clone();
            move || x.fetch_add(1, SeqCst)
        });
        if x.fetch_add(1, SeqCst) == 1 {
            std::mem::forget(loom::alloc::Track::new(7));
        }
        t.join().unwrap();
    });
}

/// A lock whose guard unlocks when it is dropped, and drops its pointer after that.
struct SpinLock {
    locked: AtomicBool,
    data: Claimed<UnsafeCell<usize>>,
}

struct Guard<'a> {
    data: MutPtr<usize>,
    lock: &'a SpinLock,
}

impl SpinLock {
    fn lock(&self) -> Guard<'_> {
        while self.locked.compare_exchange(false, true, Acquire, Acquire).is_err() {
            loom::hint::spin_loop();
        }
        Guard { data: self.data.0.get_mut(), lock: self }
    }

    fn add(&self) {
        let guard = self.lock();
        // SAFETY: under the lock.
        unsafe { *guard.data.deref() += 1 };
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.lock.locked.store(false, Release);
    }
}

#[test]
fn a_guard_drops_its_pointer_after_it_unlocks() {
    loom::model(|| {
        let lock = Arc::new(SpinLock {
            locked: AtomicBool::new(false),
            data: Claimed(UnsafeCell::new(0)),
        });
        let t = thread::spawn({
            let lock = lock.clone();
            move || lock.add()
        });
        lock.add();
        t.join().unwrap();
    });
}

/// Panics if it is dropped while its owner's work is half done.
struct HalfDone(Arc<AtomicUsize>);

impl HalfDone {
    fn new() -> HalfDone {
        HalfDone(Arc::new(AtomicUsize::new(0)))
    }

    fn while_half_done(self, work: impl FnOnce()) {
        self.0.store(1, SeqCst);
        work();
        self.0.store(2, SeqCst);
    }
}

impl Drop for HalfDone {
    fn drop(&mut self) {
        let state = self.0.swap(9, SeqCst);
        assert!(matches!(state, 0 | 2), "the program never drops it in state {state}");
    }
}

fn add_twice(x: &AtomicUsize) {
    x.fetch_add(1, SeqCst);
    x.fetch_add(1, SeqCst);
}

#[test]
fn destructors_with_invariants_see_whole_executions() {
    for builder in [bounded(2), Builder::new()] {
        builder.check(|| {
            let (half_done, x) = (HalfDone::new(), Arc::new(AtomicUsize::new(0)));
            let t = thread::spawn({
                let x = x.clone();
                move || half_done.while_half_done(|| add_twice(&x))
            });
            add_twice(&x);
            t.join().unwrap();
        });
    }
    // The first use of a cell restarts the search, and so does the first loop that waits.
    loom::model(|| {
        let half_done = HalfDone::new();
        // SAFETY: no other thread has access.
        let write = || UnsafeCell::new(0).with_mut(|value| unsafe { *value = 1 });
        thread::spawn(move || half_done.while_half_done(write)).join().unwrap();
    });
    loom::model(|| {
        let (half_done, flag) = (HalfDone::new(), Arc::new(AtomicBool::new(false)));
        let t = thread::spawn({
            let flag = flag.clone();
            move || {
                half_done.while_half_done(|| {
                    while !flag.load(SeqCst) {
                        thread::yield_now();
                    }
                })
            }
        });
        flag.store(true, SeqCst);
        t.join().unwrap();
    });
}

/// A wait with a deadline by the real clock. A deadline that never passes has no effect. If it may
/// pass, the test depends on time: the only allowed finding is nondeterminism.
#[test]
fn destructors_with_invariants_see_whole_executions_with_deadlines() {
    let body = |timeout: Duration| {
        move || {
            let (half_done, flag) = (HalfDone::new(), Arc::new(AtomicBool::new(false)));
            let t = thread::spawn({
                let flag = flag.clone();
                move || {
                    let end = Instant::now() + timeout;
                    half_done.while_half_done(|| {
                        while !flag.load(SeqCst) && Instant::now() < end {
                            thread::yield_now();
                        }
                    })
                }
            });
            flag.store(true, SeqCst);
            t.join().unwrap();
        }
    };
    loom::model(body(Duration::from_secs(100_000)));
    let outcome = Check::new().unbounded().run(body(Duration::from_millis(1)));
    let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
    assert!(
        kinds.iter().all(|&kind| kind == FailureKind::Nondeterminism),
        "{:?}",
        outcome.findings
    );
}

#[test]
fn an_error_elsewhere_is_found_beside_such_a_destructor() {
    fails("the other thread came first", || {
        let (half_done, x) = (HalfDone::new(), Arc::new(AtomicUsize::new(0)));
        let t = thread::spawn({
            let x = x.clone();
            move || {
                half_done.while_half_done(|| {
                    x.fetch_add(1, SeqCst);
                })
            }
        });
        assert_eq!(x.load(SeqCst), 0, "the other thread came first");
        t.join().unwrap();
    });
}

#[test]
fn a_wait_after_catch_unwind_ends() {
    bounded(2).check(|| {
        let (flag, n) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let t = thread::spawn({
            let (flag, n) = (flag.clone(), n.clone());
            move || {
                add_twice(&n);
                flag.store(true, SeqCst);
            }
        });
        let caught = catch_unwind(AssertUnwindSafe(|| {
            add_twice(&n);
            UnsafeCell::new(0).with(|_| ());
        }));
        assert!(caught.is_ok(), "the closure does not panic");
        while !flag.load(SeqCst) {
            thread::yield_now();
        }
        t.join().unwrap();
    });
}

/// The main thread calls `wait`, which returns when the other thread has set the flag.
fn waits(wait: fn(&AtomicBool)) {
    loom::model(move || {
        let ready = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || ready.store(true, Release)
        });
        wait(&ready);
        t.join().unwrap();
    });
}

#[test]
fn waits_that_write_and_yield_end() {
    waits(|ready| {
        let lock = AtomicBool::new(false);
        loop {
            assert!(lock.compare_exchange(false, true, AcqRel, Acquire).is_ok());
            let seen = ready.load(Acquire);
            lock.store(false, Release);
            if seen {
                break;
            }
            thread::yield_now();
        }
    });
    waits(|ready| {
        let polls = AtomicUsize::new(0);
        while !ready.load(Acquire) {
            polls.fetch_add(1, Relaxed);
            thread::yield_now();
        }
    });
    waits(|ready| {
        loom::future::block_on(std::future::poll_fn(|context| {
            if ready.load(SeqCst) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        }));
    });
    loom::model(|| {
        let ready = Arc::new(Mutex::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || *ready.lock().unwrap() = true
        });
        while !*ready.lock().unwrap() {
            thread::yield_now();
        }
        t.join().unwrap();
    });
    // Each reader adds 2; the writer is the lowest bit.
    loom::model(|| {
        let lock = Arc::new(AtomicUsize::new(1));
        let t = thread::spawn({
            let lock = lock.clone();
            move || lock.fetch_sub(1, Release)
        });
        while lock.fetch_add(2, Acquire) & 1 == 1 {
            lock.fetch_sub(2, Release);
            loom::hint::spin_loop();
        }
        t.join().unwrap();
    });
}

/// Whether an exchange succeeds may depend on whether a freed address is reused: executions are
/// deterministic anyway.
#[cfg(feature = "allocator")]
mod reuse {
    use super::*;
    use loom::sync::atomic::AtomicPtr;

    fn free<T>(node: *mut T) {
        if !node.is_null() {
            // SAFETY: the thread that removed the node owns it.
            drop(unsafe { Box::from_raw(node) });
        }
    }

    #[test]
    fn a_freed_address_is_reused_while_another_thread_compares_it() {
        loom::model(|| {
            let head = Arc::new(AtomicPtr::<[usize; 4]>::new(std::ptr::null_mut()));
            let t = thread::spawn({
                let head = head.clone();
                move || {
                    (0..3).for_each(|at| free(head.swap(Box::into_raw(Box::new([at; 4])), AcqRel)))
                }
            });
            let (mine, mut seen) = (Box::into_raw(Box::new([9; 4])), head.load(Acquire));
            let old = loop {
                match head.compare_exchange(seen, mine, AcqRel, Acquire) {
                    Ok(old) => break old,
                    Err(now) => seen = now,
                }
            };
            free(old);
            t.join().unwrap();
            free(head.swap(std::ptr::null_mut(), AcqRel));
        });
    }

    fn exchanged<const SIZE: usize>() {
        bounded(3).check(|| {
            let head = Arc::new(AtomicPtr::<[u8; SIZE]>::new(std::ptr::null_mut()));
            let put = |head: &AtomicPtr<[u8; SIZE]>| {
                for _ in 0..3 {
                    let (node, mut seen) = (Box::into_raw(Box::new([0; SIZE])), head.load(Acquire));
                    while let Err(now) = head.compare_exchange(seen, node, AcqRel, Acquire) {
                        seen = now;
                    }
                    free(seen);
                }
            };
            let t = thread::spawn({
                let head = head.clone();
                move || put(&head)
            });
            put(&head);
            t.join().unwrap();
            free(head.load(Acquire));
        });
    }

    #[test]
    fn nodes_of_any_size_are_reused() {
        exchanged::<16>();
        exchanged::<40>();
        exchanged::<104>();
        exchanged::<520>();
    }
}
