//! Destructors of thread-local values run after a thread's function has returned: `join` waits for
//! them, and neither scopes nor `is_finished` do.

use std::cell::RefCell;

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::AtomicBool;
use preempt::sync::atomic::Ordering::SeqCst;
use preempt::sync::{Arc, Mutex};
use preempt::{Check, FailureKind, Order, Outcome, Reduction, thread};

/// Calls a function when it is dropped.
struct OnDrop(Box<dyn Fn()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        (self.0)();
    }
}

preempt::thread_local! {
    static LAST: RefCell<Option<OnDrop>> = RefCell::new(None);
}

/// Calls `f` at the end of the running thread.
fn at_exit(f: impl Fn() + 'static) {
    LAST.with(|last| *last.borrow_mut() = Some(OnDrop(Box::new(f))));
}

fn kind(outcome: &Outcome) -> Option<FailureKind> {
    outcome.findings.first().map(|finding| finding.failure.kind)
}

/// The failure of a test whose thread sets a flag in a destructor, and which asserts the flag after
/// `wait`.
fn fails(wait: fn(Arc<AtomicBool>)) -> Option<FailureKind> {
    let test = || {
        let flag = Arc::new(AtomicBool::new(false));
        wait(flag.clone());
        assert!(flag.load(SeqCst));
    };
    let kinds = [Check::new(), Check::new().unbounded()].map(|check| kind(&check.run(test)));
    assert_eq!(kinds[0], kinds[1]);
    kinds[0]
}

fn set_at_exit(flag: Arc<AtomicBool>) {
    at_exit(move || flag.store(true, SeqCst));
}

#[test]
fn a_scope_does_not_wait_for_thread_local_destructors() {
    let scope = |flag| {
        thread::scope(|scope| {
            scope.spawn(|| set_at_exit(flag));
        });
    };
    assert_eq!(fails(scope), Some(FailureKind::Panic));
}

#[test]
fn a_finished_thread_may_not_have_dropped_its_locals() {
    let finished = |flag| {
        let t = thread::spawn(|| set_at_exit(flag));
        while !t.is_finished() {
            thread::yield_now();
        }
    };
    assert_eq!(fails(finished), Some(FailureKind::Panic));
}

#[test]
fn join_waits_for_thread_local_destructors() {
    assert_eq!(fails(|flag| thread::spawn(|| set_at_exit(flag)).join().unwrap()), None);
    let scoped = |flag| thread::scope(|scope| scope.spawn(|| set_at_exit(flag)).join().unwrap());
    assert_eq!(fails(scoped), None);
    let both = |flag| {
        let t = thread::spawn(|| set_at_exit(flag));
        while !t.is_finished() {
            thread::yield_now();
        }
        t.join().unwrap();
    };
    assert_eq!(fails(both), None);
}

/// The thread cannot end before the scope, and need not.
#[test]
fn a_scope_may_hold_what_a_destructor_waits_for() {
    let outcome = Check::new().unbounded().run(|| {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.lock().unwrap();
        thread::scope(|scope| {
            let mutex = mutex.clone();
            scope.spawn(move || at_exit(move || *mutex.lock().unwrap() += 1));
        });
        drop(guard);
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

/// What the function of a thread did happens before the end of the scope; what its destructors do
/// does not.
#[test]
fn a_scope_orders_what_comes_before_the_destructors() {
    struct Shared(UnsafeCell<u32>);
    // SAFETY: inside a check one thread runs at a time, and the value is never used.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}
    let run = |late: bool| {
        Check::new().unbounded().run(move || {
            let shared = Arc::new(Shared(UnsafeCell::new(0)));
            thread::scope(|scope| {
                let (early, flag) = (shared.clone(), Arc::new(AtomicBool::new(false)));
                scope.spawn(move || {
                    early.0.with_mut(|_| ());
                    at_exit(move || {
                        flag.store(true, SeqCst);
                        if late {
                            early.0.with_mut(|_| ());
                        }
                    });
                });
            });
            shared.0.with_mut(|_| ());
        })
    };
    assert_eq!(kind(&run(true)), Some(FailureKind::Race));
    assert_eq!(kind(&run(false)), None);
}

/// Destructors without an effect cost nothing.
#[test]
fn destructors_without_operations_add_no_executions() {
    let run = |has_locals: bool| {
        let check = Check::new().order(Order::Executions).reduce(Reduction::None).unbounded();
        let outcome = check.run(move || {
            let flag = AtomicBool::new(false);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        if has_locals {
                            at_exit(|| ());
                        }
                        flag.store(true, SeqCst);
                    });
                }
            });
        });
        assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
        outcome.executions()
    };
    // The store, the end and the first join of one thread, interleaved with the store and the end
    // of the other.
    assert_eq!(run(true), Some(10));
    assert_eq!(run(false), Some(10));
}
