//! Abandoned executions: the search ignores how they end, but code outside the check can observe
//! them. So they stay within the bound, their values are dropped, and no destructor runs in a state
//! that the program cannot reach.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, FailureKind, Order, thread};

/// All orders of additions by three threads, two each, that code outside the check observes; and
/// how often the closure was started.
fn orders(check: &Check) -> (BTreeSet<Vec<usize>>, usize) {
    let (seen, starts) = (StdMutex::new(BTreeSet::new()), std::sync::atomic::AtomicUsize::new(0));
    let outcome = check.run(|| {
        starts.fetch_add(1, Relaxed);
        let (n, order) =
            (Arc::new(AtomicUsize::new(0)), std::sync::Arc::new(StdMutex::new(Vec::new())));
        let add = |thread: usize| {
            let (n, order) = (n.clone(), order.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    n.fetch_add(1, SeqCst);
                    order.lock().unwrap().push(thread);
                }
            })
        };
        let threads: Vec<_> = (0..3).map(add).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        seen.lock().unwrap().insert(order.lock().unwrap().clone());
    });
    assert!(outcome.findings.is_empty());
    (seen.into_inner().unwrap(), starts.into_inner())
}

#[test]
fn abandoned_executions_stay_within_the_bound() {
    for bound in 0..=2 {
        let (all, _) = orders(&Check::new().order(Order::ContextBounded).bound(bound));
        let (seen, starts) = orders(&Check::new().bound(bound));
        assert_eq!(seen, all, "bound {bound}");
        assert!(
            bound == 0 || starts > seen.len(),
            "no execution was abandoned: {starts} were started"
        );
    }
}

/// Counts the instances that exist.
struct Counted<'c>(&'c AtomicIsize);

impl<'c> Counted<'c> {
    fn new(alive: &'c AtomicIsize) -> Counted<'c> {
        alive.fetch_add(1, Relaxed);
        Counted(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The values of an abandoned execution are dropped, however long it still runs. The values of
/// threads that wait forever are never dropped, as in a real run: their destructors rely on
/// invariants of the program.
#[test]
fn values_are_dropped_if_the_execution_can_end() {
    static ALIVE: AtomicIsize = AtomicIsize::new(0);
    for times in [1, 3, 40] {
        for waits in [false, true] {
            let outcome = Check::new().bound(1).keep_going().run(|| {
                assert!(waits || ALIVE.load(Relaxed) == 0, "an earlier execution left a value");
                let (n, lock) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
                let _main = Counted::new(&ALIVE);
                let add = |_| {
                    let (n, lock) = (n.clone(), lock.clone());
                    thread::spawn(move || {
                        let _own = Counted::new(&ALIVE);
                        for _ in 0..times {
                            n.fetch_add(1, SeqCst);
                        }
                        let _held = lock.lock().unwrap();
                        // The second thread locks twice and so waits forever.
                        let _again =
                            (waits && n.load(SeqCst) == 2 * times).then(|| lock.lock().unwrap());
                    })
                };
                let threads: Vec<_> = (0..2).map(add).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
            assert_eq!(outcome.findings.is_empty(), !waits, "{times} times, waits: {waits}");
            assert_eq!(ALIVE.load(Relaxed) == 0, !waits, "{times} times, waits: {waits}");
            ALIVE.store(0, Relaxed);
        }
    }
}

/// A value whose destructor asserts an invariant that holds in every reachable state.
struct Invariant(Arc<AtomicUsize>);

impl Invariant {
    fn new() -> Invariant {
        Invariant(Arc::new(AtomicUsize::new(0)))
    }

    /// Breaks the invariant, calls `something`, and restores it.
    fn during(self, something: impl FnOnce()) {
        self.0.store(1, SeqCst);
        something();
        self.0.store(2, SeqCst);
    }
}

impl Drop for Invariant {
    fn drop(&mut self) {
        match self.0.swap(9, SeqCst) {
            0 | 2 => {}
            other => unreachable!("state {other}"),
        }
    }
}

fn passes(check: &Check, test: impl Fn() + Sync) {
    let outcome = check.run(test);
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

/// Every reason for which the search abandons an execution of a correct program.
#[test]
fn destructors_see_only_reachable_states() {
    let spawns = |something: fn(&AtomicUsize)| {
        let x = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let (x, invariant) = (x.clone(), Invariant::new());
            move || invariant.during(|| something(&x))
        });
        x.fetch_add(1, SeqCst);
        x.fetch_add(1, SeqCst);
        t.join().unwrap();
    };
    let add = |x: &AtomicUsize| {
        x.fetch_add(1, SeqCst);
        x.fetch_add(1, SeqCst);
    };
    let cell = |_: &AtomicUsize| {
        // SAFETY: no other thread has access.
        preempt::cell::UnsafeCell::new(0).with_mut(|value| unsafe { *value = 1 });
    };
    let spin = |x: &AtomicUsize| {
        while x.load(SeqCst) == 0 {
            thread::yield_now();
        }
    };
    let counts = |_: &AtomicUsize| assert_eq!(Arc::strong_count(&Arc::new(0)), 1);
    let spawn_many = |_: &AtomicUsize| {
        let all: Vec<_> = (0..6).map(|_| thread::spawn(|| ())).collect();
        all.into_iter().for_each(|thread| thread.join().unwrap());
    };
    for something in [add as fn(&AtomicUsize), cell, spin, counts, spawn_many] {
        passes(&Check::new().bound(64), || spawns(something));
        passes(&Check::new().unbounded(), || spawns(something));
    }
    // A bound, a step limit and the end of a search.
    assert!(Check::new().bound(1).run(|| spawns(add)).findings.is_empty());
    assert!(Check::new().steps(4).run(|| spawns(add)).findings.is_empty());
    assert!(Check::new().order(Order::Random).runs(20).run(|| spawns(add)).findings.is_empty());
}

/// A panic or a deadlock in one thread while the invariant is broken in another.
#[test]
fn destructors_do_not_hide_failures_of_other_threads() {
    let fails = |fault: fn(&Arc<(AtomicUsize, Mutex<()>)>)| {
        let outcome = Check::new().run(move || {
            let shared = Arc::new((AtomicUsize::new(0), Mutex::new(())));
            let t = thread::spawn({
                let (shared, invariant) = (shared.clone(), Invariant::new());
                move || {
                    invariant.during(|| {
                        shared.0.fetch_add(1, SeqCst);
                        drop(shared.1.lock().unwrap());
                    });
                }
            });
            fault(&shared);
            t.join().unwrap();
        });
        let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
        kinds
    };
    assert_eq!(fails(|shared| assert_eq!(shared.0.load(SeqCst), 0)), [FailureKind::Panic]);
    assert_eq!(
        fails(|shared| {
            let _guard = shared.1.lock().unwrap();
            if shared.0.load(SeqCst) == 1 {
                drop(shared.1.lock());
            }
        }),
        [FailureKind::Deadlock]
    );
}

#[test]
fn catch_unwind_catches_only_panics_of_the_program() {
    passes(&Check::new().bound(64), || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.fetch_add(1, SeqCst);
                shared.0.fetch_add(1, SeqCst);
                shared.1.store(1, SeqCst);
            }
        });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            shared.0.fetch_add(1, SeqCst);
            shared.0.fetch_add(1, SeqCst);
            preempt::cell::UnsafeCell::new(0).with(|_| ());
        }));
        assert!(caught.is_ok());
        while shared.1.load(SeqCst) == 0 {
            thread::yield_now();
        }
        t.join().unwrap();
    });
}

/// A thread that unwinds waits forever in a destructor. The next check on the same OS thread works.
#[test]
fn a_deadlock_while_a_thread_unwinds_is_found() {
    struct Locks(Arc<Mutex<()>>);
    impl Drop for Locks {
        fn drop(&mut self) {
            drop(self.0.lock());
        }
    }
    let outcome = Check::new().run(|| {
        let lock = Arc::new(Mutex::new(()));
        let _guard = lock.lock().unwrap();
        let t = thread::spawn({
            let lock = lock.clone();
            move || {
                let _locks = Locks(lock);
                panic!("and then a destructor that waits");
            }
        });
        let _ = t.join();
    });
    assert!(!outcome.findings.is_empty());
    assert!(!std::thread::panicking());
    passes(&Check::new(), || drop(thread::spawn(|| ()).join()));
}

/// A test may hold a lock of std across a step. A thread that requests a restart or finds a race
/// continues and releases it.
#[test]
fn a_lock_of_std_is_released() {
    static REAL: StdMutex<usize> = StdMutex::new(0);
    passes(&Check::new(), || {
        let mut guard = REAL.lock().unwrap();
        *guard += 1;
        preempt::cell::UnsafeCell::new(0).with(|_| ());
    });
    let outcome = Check::new().run(|| {
        let cell = Arc::new(Shared(preempt::cell::UnsafeCell::new(0)));
        let t = thread::spawn({
            let cell = cell.clone();
            move || cell.add()
        });
        cell.add();
        t.join().unwrap();
    });
    assert_eq!(outcome.findings[0].failure.kind, FailureKind::Race);
    drop(REAL.lock().unwrap());
}

struct Shared(preempt::cell::UnsafeCell<usize>);

// SAFETY: the check reports the race.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn add(&self) {
        static REAL: StdMutex<()> = StdMutex::new(());
        let _guard = REAL.lock().unwrap();
        // SAFETY: one thread runs at a time.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// Thread locals and `lazy_static!` values are not dropped in a state that the program cannot
/// reach.
#[test]
fn thread_locals_and_statics_are_not_dropped_in_unreachable_states() {
    struct Done(std::cell::Cell<bool>);
    impl Drop for Done {
        fn drop(&mut self) {
            assert!(self.0.get(), "dropped in an unreachable state");
        }
    }
    preempt::thread_local! {
        static LOCAL: Done = Done(std::cell::Cell::new(true));
    }
    let outcome = Check::new().keep_going().run(|| {
        let lock = Arc::new((Mutex::new(()), AtomicUsize::new(0)));
        let t = thread::spawn({
            let lock = lock.clone();
            move || {
                LOCAL.with(|done| done.0.set(false));
                lock.1.fetch_add(1, SeqCst);
                drop(lock.0.lock().unwrap());
                LOCAL.with(|done| done.0.set(true));
            }
        });
        let guard = lock.0.lock().unwrap();
        if lock.1.load(SeqCst) == 1 {
            t.join().unwrap();
        }
        drop(guard);
    });
    let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Deadlock], "{:?}", outcome.findings);
}
