//! Small programs of the kinds for which verdicts were wrong once, each with its correct verdict:
//! guards, destructors, `catch_unwind`, loops that yield and write, futures that wake themselves,
//! reused memory, and threads that fail early.
//!
//! Every program runs under the default check, optimal reduction without a bound, all
//! executions within two preemptions, and sleep sets. All of them must agree. Programs without
//! orderings weaker than `SeqCst` have as many execution graphs under weak memory as traces.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize as StdAtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use preempt::cell::UnsafeCell;
use preempt::future::block_on;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use preempt::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use preempt::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use preempt::{Check, FailureKind, Order, Outcome, Reduction, hint, thread};

use crate::seq_cst;

fn searches() -> [(&'static str, Check); 4] {
    [
        ("default", Check::new()),
        ("optimal", Check::new().unbounded()),
        ("bounded", Check::new().order(Order::ContextBounded).bound(2)),
        ("sleep", Check::new().reduce(Reduction::Sleep)),
    ]
}

fn kinds(outcome: &Outcome) -> Vec<FailureKind> {
    outcome.findings.iter().map(|finding| finding.failure.kind).collect()
}

#[track_caller]
pub(super) fn passes(body: impl Fn() + Sync) {
    passes_with(|check| check, body);
}

/// Like the function above, for checks with a setting.
#[track_caller]
pub(super) fn passes_with(set: fn(Check) -> Check, body: impl Fn() + Sync) {
    for (name, check) in searches() {
        let outcome = set(check).run(&body);
        assert!(outcome.findings.is_empty(), "{name}: {:?}", outcome.findings);
    }
    seq_cst::compare_with(set, body);
}

#[track_caller]
pub(super) fn fails(kind: FailureKind, body: impl Fn() + Sync) {
    fails_with(|check| check, kind, body);
}

/// Like the function above, for checks with a setting.
#[track_caller]
pub(super) fn fails_with(set: fn(Check) -> Check, kind: FailureKind, body: impl Fn() + Sync) {
    fails_in_searches(set, kind, &body);
    seq_cst::compare_with(set, body);
}

/// The same for bodies that race in memory which no mirror observes.
#[track_caller]
fn fails_in_searches(set: fn(Check) -> Check, kind: FailureKind, body: impl Fn() + Sync) {
    for (name, check) in searches() {
        let outcome = set(check).run(&body);
        assert_eq!(kinds(&outcome), [kind], "{name}: {:?}", outcome.findings);
    }
}

/// A lock that consists of a flag. Its guard unlocks in its destructor and then drops its pointer.
struct Flag {
    locked: AtomicBool,
    value: UnsafeCell<usize>,
}

// SAFETY: the flag protects the value.
unsafe impl Sync for Flag {}
// SAFETY: as above.
unsafe impl Send for Flag {}

struct Guard<'f>(&'f Flag);

impl Flag {
    fn new() -> Flag {
        Flag { locked: AtomicBool::new(false), value: UnsafeCell::new(0) }
    }

    fn lock(&self) -> Guard<'_> {
        while self.locked.swap(true, Acquire) {
            hint::spin_loop();
        }
        Guard(self)
    }
}

impl Guard<'_> {
    fn add(&self) {
        // SAFETY: the flag is held.
        self.0.value.with_mut(|value| unsafe { *value += 1 });
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.locked.store(false, Release);
    }
}

#[test]
fn a_caught_panic_drops_the_guard() {
    passes(|| {
        let flag = Arc::new(Flag::new());
        let t = thread::spawn({
            let flag = flag.clone();
            move || {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    let guard = flag.lock();
                    guard.add();
                    std::panic::resume_unwind(Box::new("given up"));
                }));
                assert!(caught.is_err());
            }
        });
        flag.lock().add();
        t.join().unwrap();
        // SAFETY: the other thread has ended.
        flag.value.with(|value| assert_eq!(unsafe { *value }, 2));
    });
}

/// Sleep sets do not support threads that only spin, so this check is refused.
#[test]
fn a_forgotten_guard_keeps_other_threads_spinning() {
    let body = || {
        let flag = Arc::new(Flag::new());
        let t = thread::spawn({
            let flag = flag.clone();
            move || std::mem::forget(flag.lock())
        });
        drop(flag.lock());
        t.join().unwrap();
    };
    for (name, check) in searches() {
        match check.try_run(body) {
            Ok(outcome) => assert_eq!(kinds(&outcome), [FailureKind::Livelock], "{name}"),
            Err(refusal) => {
                assert!(name == "sleep" && refusal.to_string().contains("spins"), "{refusal}");
            }
        }
    }
}

#[test]
fn a_guard_that_unlocks_too_early_races() {
    fails(FailureKind::Race, || {
        let flag = Arc::new(Flag::new());
        let t = thread::spawn({
            let flag = flag.clone();
            move || {
                let guard = flag.lock();
                flag.locked.store(false, Release);
                guard.add();
            }
        });
        flag.lock().add();
        t.join().unwrap();
    });
}

/// Decrements a counter when it is dropped, and asserts that this happens once per value.
struct Last(Arc<AtomicUsize>);

impl Drop for Last {
    fn drop(&mut self) {
        assert_ne!(self.0.fetch_sub(1, AcqRel), 0, "dropped twice");
    }
}

#[test]
fn destructors_run_once_on_every_path_through_a_channel() {
    passes(|| {
        let alive = Arc::new(AtomicUsize::new(2));
        let (sender, receiver) = mpsc::channel();
        let t = thread::spawn({
            let alive = alive.clone();
            move || {
                sender.send(Last(alive.clone())).ok();
                sender.send(Last(alive)).ok();
            }
        });
        drop(receiver.recv());
        drop(receiver);
        t.join().unwrap();
        assert_eq!(alive.load(SeqCst), 0);
    });
}

#[test]
fn a_destructor_that_locks_a_mutex_held_by_its_thread_deadlocks() {
    struct Locks(Arc<Mutex<usize>>);
    impl Drop for Locks {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    fails(FailureKind::Deadlock, || {
        let lock = Arc::new(Mutex::new(0));
        let value = Locks(lock.clone());
        let t = thread::spawn({
            let lock = lock.clone();
            move || *lock.lock().unwrap() += 1
        });
        let guard = lock.lock().unwrap();
        drop(value);
        drop(guard);
        t.join().unwrap();
    });
}

#[test]
fn a_panic_in_a_destructor_of_a_spawned_thread_is_found() {
    struct Fails(Arc<AtomicUsize>);
    impl Drop for Fails {
        fn drop(&mut self) {
            assert_eq!(self.0.load(SeqCst), 0, "too late");
        }
    }
    fails(FailureKind::Panic, || {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || drop(Fails(n))
        });
        n.store(1, SeqCst);
        t.join().unwrap();
    });
}

#[test]
fn threads_that_fail_before_their_first_operation() {
    fails(FailureKind::Panic, || {
        let n = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn({
            let n = n.clone();
            move || n.fetch_add(1, SeqCst)
        });
        let failing = thread::spawn(|| panic!("at once"));
        other.join().unwrap();
        failing.join().unwrap();
    });
}

#[test]
fn a_main_thread_that_fails_before_the_others_start() {
    fails(FailureKind::Panic, || {
        let n = Arc::new(AtomicUsize::new(0));
        thread::spawn({
            let n = n.clone();
            move || n.fetch_add(1, SeqCst)
        });
        panic!("before the first operation of main");
    });
}

#[test]
fn a_ticket_lock_waits_by_yielding_and_counting() {
    passes(|| {
        let lock = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
        let enter = |lock: &(AtomicUsize, AtomicUsize, AtomicUsize)| {
            let ticket = lock.0.fetch_add(1, SeqCst);
            while lock.1.load(Acquire) != ticket {
                lock.2.fetch_add(1, SeqCst);
                thread::yield_now();
            }
            lock.1.store(ticket + 1, Release);
        };
        let t = thread::spawn({
            let lock = lock.clone();
            move || enter(&lock)
        });
        enter(&lock);
        t.join().unwrap();
        assert_eq!(lock.1.load(SeqCst), 2);
    });
}

#[test]
fn an_error_after_a_loop_that_yields_and_writes_is_found() {
    fails(FailureKind::Panic, || {
        let shared = Arc::new((AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0)));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                while !shared.0.load(SeqCst) {
                    shared.1.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
                assert_eq!(shared.2.load(SeqCst), 0, "set between the flag and here");
            }
        });
        shared.0.store(true, SeqCst);
        shared.2.store(1, SeqCst);
        t.join().unwrap();
    });
}

#[test]
fn a_future_that_wakes_itself_sees_writes_of_other_threads() {
    passes(|| {
        let ready = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || ready.store(true, SeqCst)
        });
        block_on(poll_fn(|context| {
            if ready.load(SeqCst) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        t.join().unwrap();
    });
}

#[test]
fn a_future_that_nothing_wakes_is_a_deadlock() {
    fails(FailureKind::Deadlock, || {
        let ready = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || ready.store(true, SeqCst)
        });
        block_on(poll_fn(|_| if ready.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }));
        t.join().unwrap();
    });
}

/// A stack that frees each node as soon as it is popped.
struct Stack(AtomicPtr<Node>);

struct Node {
    next: *mut Node,
    value: usize,
}

impl Stack {
    fn push(&self, node: *mut Node) {
        loop {
            let top = self.0.load(SeqCst);
            // SAFETY: the node is not shared yet.
            unsafe { (*node).next = top };
            if self.0.compare_exchange(top, node, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    /// Reads the next pointer before the exchange, so that it may be that of a node which another
    /// thread has popped, freed and pushed again in between.
    fn pop(&self) -> Option<*mut Node> {
        loop {
            let top = self.0.load(SeqCst);
            if top.is_null() {
                return None;
            }
            // SAFETY: nodes of the test below are freed after all threads have ended.
            let next = unsafe { (*top).next };
            if self.0.compare_exchange(top, next, SeqCst, SeqCst).is_ok() {
                return Some(top);
            }
        }
    }
}

/// The ABA problem of a stack without counters: pop, pop, push while another thread has read the
/// top and its successor.
#[test]
fn a_stack_has_the_aba_problem() {
    let usual: fn(Check) -> Check = |check| check;
    fails_in_searches(usual, FailureKind::Panic, || {
        let nodes: Vec<*mut Node> = (0..2)
            .map(|value| Box::into_raw(Box::new(Node { next: std::ptr::null_mut(), value })))
            .collect();
        let stack = Arc::new(Stack(AtomicPtr::new(std::ptr::null_mut())));
        nodes.iter().for_each(|&node| stack.push(node));
        let taken = Arc::new(AtomicUsize::new(0));
        let take = |stack: &Stack, taken: &AtomicUsize| {
            let node = stack.pop()?;
            // SAFETY: as above.
            let bit = 1 << unsafe { (*node).value };
            assert_eq!(taken.fetch_or(bit, SeqCst) & bit, 0, "taken twice");
            Some(node)
        };
        let t = thread::spawn({
            let (stack, taken) = (stack.clone(), taken.clone());
            move || {
                take(&stack, &taken);
            }
        });
        let first = take(&stack, &taken);
        take(&stack, &taken);
        if let Some(first) = first {
            // SAFETY: as above.
            taken.fetch_and(!(1 << unsafe { (*first).value }), SeqCst);
            stack.push(first);
        }
        t.join().unwrap();
        while take(&stack, &taken).is_some() {}
        // SAFETY: all threads have ended.
        nodes.into_iter().for_each(|node| drop(unsafe { Box::from_raw(node) }));
    });
}

#[test]
fn a_reader_that_holds_its_lock_while_it_joins_a_writer_deadlocks() {
    fails(FailureKind::Deadlock, || {
        let lock = Arc::new(RwLock::new(0));
        let t = thread::spawn({
            let lock = lock.clone();
            move || *lock.write().unwrap() += 1
        });
        let guard = lock.read().unwrap();
        t.join().unwrap();
        drop(guard);
    });
}

#[test]
fn a_notification_under_the_lock_is_never_lost() {
    passes(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                *shared.0.lock().unwrap() = true;
                shared.1.notify_all();
            }
        });
        let mut ready = shared.0.lock().unwrap();
        while !*ready {
            ready = shared.1.wait(ready).unwrap();
        }
        drop(ready);
        t.join().unwrap();
    });
}

/// A loop with a fixed number of iterations is not a wait, however long it is, whatever it reads.
#[test]
fn bounded_loops_of_loads_are_not_livelocks() {
    for rounds in [3, 99, 100, 101, 205, 1000] {
        let outcome = Check::new().bound(1).run(|| {
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || n.store(1, SeqCst)
            });
            let seen = (0..rounds).filter(|_| n.load(SeqCst) == 1).count();
            assert!(seen <= rounds);
            t.join().unwrap();
        });
        assert!(outcome.findings.is_empty(), "{rounds}: {:?}", outcome.findings);
    }
}

/// `catch_unwind` around a scheduling point catches only panics of the program, also in abandoned
/// executions.
#[test]
fn only_panics_of_the_program_unwind() {
    let unwound = StdAtomicUsize::new(0);
    for (_, check) in searches() {
        let outcome = check.run(|| {
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || {
                    let cell = UnsafeCell::new(0);
                    n.fetch_add(1, SeqCst);
                    // SAFETY: only this thread has the cell.
                    cell.with_mut(|value| unsafe { *value = 1 });
                    n.fetch_add(1, SeqCst)
                }
            });
            let caught = catch_unwind(AssertUnwindSafe(|| {
                while n.load(SeqCst) < 2 {
                    thread::yield_now();
                }
            }));
            unwound.fetch_add(usize::from(caught.is_err()), Relaxed);
            t.join().unwrap();
        });
        assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    }
    assert_eq!(unwound.into_inner(), 0);
}
