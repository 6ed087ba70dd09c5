//! Programs that other checkers of Rust code once got wrong.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Condvar, Mutex};
use preempt::{Cache, Check, Order, Reduction, hint, thread};

/// Every strategy that explores all schedules.
fn complete() -> [Check; 6] {
    [
        Check::new().order(Order::Executions),
        Check::new().unbounded(),
        Check::new().reduce(Reduction::Source),
        Check::new().reduce(Reduction::Sleep),
        Check::new().order(Order::Icb { cache: Cache::Hb }).bound(64),
        Check::new().reduce(Reduction::CbPor).bound(64),
    ]
}

/// The results of a test, which must be the same under every complete strategy.
#[track_caller]
fn results<T: Ord + Clone + std::fmt::Debug + Send>(body: impl Fn() -> T + Sync) -> BTreeSet<T> {
    let mut all: Option<BTreeSet<T>> = None;
    for check in complete() {
        let seen = StdMutex::new(BTreeSet::new());
        let outcome = check.run(|| {
            let result = body();
            seen.lock().unwrap().insert(result);
        });
        assert!(
            outcome.findings.is_empty() && outcome.complete,
            "{check:?}: {:?}",
            outcome.findings
        );
        let seen = seen.into_inner().unwrap();
        assert_eq!(all.get_or_insert(seen.clone()), &seen, "{check:?}");
    }
    all.expect("there is a strategy")
}

#[test]
fn a_redundant_load_before_a_store_hides_nothing() {
    let seen = results(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || {
                flag.load(SeqCst);
                flag.store(true, SeqCst);
            }
        });
        let seen = flag.load(SeqCst);
        t.join().unwrap();
        seen
    });
    assert_eq!(seen, BTreeSet::from([false, true]));
}

#[test]
fn store_buffering_is_sequentially_consistent() {
    let seen = results(|| {
        let [x, y] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let t = thread::spawn({
            let (x, y) = (x.clone(), y.clone());
            move || {
                x.store(1, SeqCst);
                y.load(SeqCst)
            }
        });
        y.store(1, SeqCst);
        let ours = x.load(SeqCst);
        (ours, t.join().unwrap())
    });
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0), (1, 1)]));
}

#[test]
fn a_swap_against_a_store_sees_one_of_them() {
    let seen = results(|| {
        let (x, y) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let t = thread::spawn({
            let (x, y) = (x.clone(), y.clone());
            move || {
                x.store(true, SeqCst);
                y.load(SeqCst)
            }
        });
        y.store(true, SeqCst);
        let ours = x.swap(false, SeqCst);
        (ours, t.join().unwrap())
    });
    assert!(!seen.contains(&(false, false)), "{seen:?}");
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_switch_from_a_blocked_thread_is_free() {
    // The order 2, 1, 0 of the critical sections needs no preemption: main waits, and a switch
    // away from a waiting thread is free.
    let seen = StdMutex::new(BTreeSet::new());
    let outcome = Check::new().bound(0).run(|| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let handles: Vec<_> = (0..3)
            .map(|at| {
                let log = log.clone();
                thread::spawn(move || log.lock().unwrap().push(at))
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        seen.lock().unwrap().insert(log.lock().unwrap().clone());
    });
    assert_eq!(seen.lock().unwrap().len(), 6, "{}", outcome.guarantee());
}

#[test]
fn a_wait_with_a_timeout_returns_without_a_notification() {
    let seen = results(|| {
        let pair = (Mutex::new(()), Condvar::new());
        let guard = pair.0.lock().unwrap();
        let (_guard, over) = pair.1.wait_timeout(guard, Duration::from_millis(1)).unwrap();
        over.timed_out()
    });
    assert_eq!(seen, BTreeSet::from([true]));
}

#[test]
fn a_wait_with_a_timeout_may_be_notified_or_not() {
    let seen = results(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                *pair.0.lock().unwrap() = true;
                pair.1.notify_one();
            }
        });
        let guard = pair.0.lock().unwrap();
        let (guard, over) = pair.1.wait_timeout(guard, Duration::from_millis(1)).unwrap();
        let seen = (*guard, over.timed_out());
        drop(guard);
        t.join().unwrap();
        seen
    });
    assert_eq!(seen, BTreeSet::from([(false, true), (true, false), (true, true)]));
}

/// A timeout may fire while the notifier holds the mutex. The waiting thread then finds the flag
/// set although it timed out.
#[test]
fn a_timeout_does_not_need_the_mutex() {
    let seen = results(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                let mut flag = pair.0.lock().unwrap();
                *flag = true;
                pair.1.notify_one();
                drop(flag);
            }
        });
        let flag = pair.0.lock().unwrap();
        let waits = !*flag;
        let (flag, timed_out) = if waits {
            let (flag, over) = pair.1.wait_timeout(flag, Duration::from_millis(1)).unwrap();
            (flag, over.timed_out())
        } else {
            (flag, false)
        };
        let seen = (waits, *flag, timed_out);
        drop(flag);
        t.join().unwrap();
        seen
    });
    let waits = [(true, false, true), (true, true, false), (true, true, true)];
    assert_eq!(seen, BTreeSet::from_iter(waits.into_iter().chain([(false, true, false)])));
}

/// A thread waits for a flag and calls `pause` in its loop.
fn spins(pause: impl Fn() + Send + Sync + Copy + 'static) {
    for check in complete() {
        let outcome = check.run(|| {
            let flag = Arc::new(AtomicBool::new(false));
            let t = thread::spawn({
                let flag = flag.clone();
                move || {
                    while !flag.load(SeqCst) {
                        pause();
                    }
                }
            });
            flag.store(true, SeqCst);
            t.join().unwrap();
        });
        assert!(
            outcome.complete && outcome.findings.is_empty(),
            "{check:?}: {:?}",
            outcome.findings
        );
        assert!(outcome.executions() < Some(20), "{}", outcome.guarantee());
    }
}

#[test]
fn spin_loops_end() {
    spins(|| ());
    spins(hint::spin_loop);
    spins(thread::yield_now);
    spins(|| thread::sleep(Duration::from_secs(1)));
}

#[test]
fn six_threads_work() {
    let outcome = Check::new().unbounded().run(|| {
        let handles: Vec<_> = (0..6).map(|at| thread::spawn(move || at)).collect();
        assert_eq!(handles.into_iter().map(|handle| handle.join().unwrap()).sum::<usize>(), 15);
    });
    assert_eq!((outcome.executions(), outcome.complete), (Some(1), true));
}

#[test]
fn join_returns_the_panic_of_the_thread() {
    let outcome = Check::new().unbounded().allow_panics().run(|| {
        let t = thread::spawn(|| -> usize { panic!("expected") });
        let payload = t.join().expect_err("it panics");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"expected"));
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

#[test]
fn more_threads_than_are_supported_are_refused() {
    let panic = std::panic::catch_unwind(|| {
        Check::new().run(|| {
            let handles: Vec<_> = (0..70).map(|at| thread::spawn(move || at)).collect();
            handles.into_iter().for_each(|handle| assert!(handle.join().is_ok()));
        })
    });
    let text = panic.expect_err("too many").downcast::<String>().expect("a message");
    assert!(text.contains("more than 64 threads"), "{text}");
    let outcome = Check::new().unbounded().run(|| {
        let handles: Vec<_> = (0..63).map(|at| thread::spawn(move || at)).collect();
        handles.into_iter().for_each(|handle| assert!(handle.join().is_ok()));
    });
    assert_eq!((outcome.executions(), outcome.complete), (Some(1), true));
}
