//! The mirrors behave as std's types: inside a check under every schedule, and outside.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use preempt::sync::atomic::{
    AtomicBool, AtomicI8, AtomicPtr, AtomicU64, AtomicUsize, Ordering::SeqCst, fence,
};
use preempt::sync::mpsc::{
    RecvTimeoutError, SendError, TryRecvError, TrySendError, channel, sync_channel,
};
use preempt::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, Weak};
use preempt::{Check, Outcome, Reduction, thread};

use crate::seq_cst;

/// Explores all schedules, and runs once outside a check.
#[track_caller]
fn both(body: impl Fn() + Sync) -> Outcome {
    body();
    inside(body)
}

#[track_caller]
fn inside(body: impl Fn() + Sync) -> Outcome {
    let outcome = Check::new().unbounded().run(&body);
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
    seq_cst::compare(body);
    outcome
}

/// The results under all schedules.
#[track_caller]
fn results<T: Ord + Send>(body: impl Fn() -> T + Sync) -> BTreeSet<T> {
    let seen = StdMutex::new(BTreeSet::new());
    both(|| {
        let result = body();
        seen.lock().unwrap().insert(result);
    });
    seen.into_inner().unwrap()
}

#[test]
fn atomics_compute() {
    both(|| {
        let n = AtomicI8::new(100);
        assert_eq!((n.fetch_add(100, SeqCst), n.load(SeqCst)), (100, -56));
        assert_eq!(
            (n.fetch_max(3, SeqCst), n.fetch_min(1, SeqCst), n.swap(6, SeqCst)),
            (-56, 3, 1)
        );
        assert_eq!(
            (n.fetch_nand(3, SeqCst), n.fetch_xor(1, SeqCst), n.load(SeqCst)),
            (6, !2, !2 ^ 1)
        );
        assert_eq!(n.compare_exchange(1, 2, SeqCst, SeqCst), Err(!2 ^ 1));
        assert_eq!(n.fetch_update(SeqCst, SeqCst, |_| None), Err(!2 ^ 1));
        let b = AtomicBool::default();
        assert_eq!(
            (b.fetch_not(SeqCst), b.fetch_nand(true, SeqCst), b.into_inner()),
            (false, true, false)
        );
        let (mut x, mut y) = (1, 2);
        let p = AtomicPtr::new(&raw mut x);
        assert_eq!(p.swap(&raw mut y, SeqCst), &raw mut x);
        assert_eq!(p.load(SeqCst), &raw mut y);
        fence(SeqCst);
        assert_eq!(AtomicU64::from(7).into_inner(), 7);
    });
}

#[test]
fn weak_compare_and_exchange_may_fail_if_asked() {
    let seen = StdMutex::new(BTreeSet::new());
    let body = || {
        let n = AtomicUsize::new(0);
        let result = n.compare_exchange_weak(0, 1, SeqCst, SeqCst);
        seen.lock().unwrap().insert(result);
    };
    Check::new().unbounded().check(body);
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from([Ok(0)]));
    Check::new().unbounded().weak_cas_failures().check(body);
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from([Ok(0), Err(0)]));
}

#[test]
fn spurious_wakeups_happen_if_asked() {
    let waits = StdMutex::new(BTreeSet::new());
    let body = || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                *pair.0.lock().unwrap() = true;
                pair.1.notify_one();
            }
        });
        let (mut guard, mut count) = (pair.0.lock().unwrap(), 0);
        while !*guard {
            guard = pair.1.wait(guard).unwrap();
            count += 1;
        }
        drop(guard);
        t.join().unwrap();
        waits.lock().unwrap().insert(count);
    };
    Check::new().unbounded().check(body);
    assert_eq!(*waits.lock().unwrap(), BTreeSet::from([0, 1]));
    Check::new().unbounded().spurious_wakeups().check(body);
    assert!(waits.lock().unwrap().contains(&2));
}

#[test]
fn readers_of_a_rwlock_share_it() {
    let together = results(|| {
        let lock = Arc::new((RwLock::new(0), AtomicUsize::new(0)));
        let t = thread::spawn({
            let lock = lock.clone();
            move || {
                let value = lock.0.read().unwrap();
                lock.1.fetch_add(1, SeqCst);
                drop(value);
                lock.1.fetch_sub(1, SeqCst);
            }
        });
        let value = lock.0.read().unwrap();
        let seen = lock.1.load(SeqCst);
        drop(value);
        *lock.0.write().unwrap() += 1;
        t.join().unwrap();
        assert_eq!(*lock.0.read().unwrap(), 1);
        seen
    });
    assert!(together.contains(&0) && together.contains(&1), "{together:?}");
    inside(|| {
        let lock = RwLock::new(());
        let reading = lock.read().unwrap();
        assert!(lock.try_write().is_err());
        drop(reading);
        let writing = lock.write().unwrap();
        assert!(lock.try_read().is_err() && lock.try_write().is_err());
        drop(writing);
        assert!(lock.try_read().is_ok());
    });
}

#[test]
fn call_once_runs_once() {
    let outcome = both(|| {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0), OnceLock::new()));
        let handles: Vec<_> = (0..2)
            .map(|at| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.0.call_once(|| shared.1.store(shared.1.load(SeqCst) + 1, SeqCst));
                    assert_eq!(shared.1.load(SeqCst), 1);
                    *shared.2.get_or_init(|| at)
                })
            })
            .collect();
        let seen: Vec<usize> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
        assert_eq!(seen[0], seen[1]);
        assert_eq!(shared.2.set(9), Err(9));
        assert_eq!(shared.2.get(), Some(&seen[0]));
    });
    assert!(outcome.executions() > Some(2));
}

#[test]
fn the_first_thread_initialises_a_lazy_value() {
    let makers = results(|| {
        let lazy = Arc::new(LazyLock::new(|| thread::current().id() == thread::current().id()));
        let first = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let (lazy, first) = (lazy.clone(), first.clone());
            move || {
                let _ = first.compare_exchange(0, 1, SeqCst, SeqCst);
                **lazy
            }
        });
        let _ = first.compare_exchange(0, 2, SeqCst, SeqCst);
        assert!(**lazy);
        assert!(t.join().unwrap());
        first.load(SeqCst)
    });
    assert!(makers.len() == 2 && !makers.contains(&0), "{makers:?}");
}

#[test]
fn a_barrier_has_one_leader_each_round() {
    both(|| {
        let barrier = Arc::new(Barrier::new(2));
        let t = thread::spawn({
            let barrier = barrier.clone();
            move || [barrier.wait().is_leader(), barrier.wait().is_leader()]
        });
        let ours = [barrier.wait().is_leader(), barrier.wait().is_leader()];
        let theirs = t.join().unwrap();
        assert!((0..2).all(|round| ours[round] != theirs[round]));
    });
}

#[test]
fn parking_needs_a_token() {
    let outcome = both(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || {
                while !flag.load(SeqCst) {
                    thread::park();
                }
            }
        });
        flag.store(true, SeqCst);
        t.thread().unpark();
        t.join().unwrap();
    });
    assert!(outcome.executions() > Some(1));
    inside(|| {
        thread::current().unpark();
        thread::park();
        thread::park_timeout(Duration::from_secs(1));
    });
}

#[test]
fn scoped_threads_borrow() {
    let outcome = both(|| {
        let n = AtomicUsize::new(0);
        let mut values = [1, 2, 3];
        let (first, rest) = values.split_at_mut(1);
        let sum = thread::scope(|scope| {
            scope.spawn(|| {
                first[0] = 7;
                n.fetch_add(1, SeqCst);
            });
            let sum = scope.spawn(|| {
                n.fetch_add(1, SeqCst);
                rest.iter().sum::<i32>()
            });
            sum.join().unwrap()
        });
        assert_eq!((sum, n.load(SeqCst), values), (5, 2, [7, 2, 3]));
    });
    assert_eq!(outcome.executions(), Some(2));
}

/// A scope that panicked at the first panic would drop values that other threads still borrow.
#[test]
fn a_scope_joins_all_threads_before_it_panics() {
    let outcome = Check::new().allow_panics().unbounded().run(|| {
        let ended = AtomicUsize::new(0);
        let scope = || {
            thread::scope(|scope| {
                scope.spawn(|| panic!("the first thread"));
                scope.spawn(|| ended.fetch_add(1, SeqCst));
            });
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(scope)).is_err());
        assert_eq!(ended.load(SeqCst), 1);
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

#[test]
fn the_panic_of_a_scoped_thread_is_found() {
    let outcome = Check::new()
        .run(|| thread::scope(|scope| drop(scope.spawn(|| panic!("inside the scope")))));
    assert!(
        outcome.findings[0].failure.message.contains("inside the scope"),
        "{:?}",
        outcome.findings
    );
}

#[test]
fn threads_have_names_and_thread_locals() {
    preempt::thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(1) };
        static NAMES: RefCell<Vec<String>> = RefCell::new(Vec::new());
    }
    both(|| {
        COUNT.set(COUNT.get() + 1);
        let mine = COUNT.get();
        let t = thread::Builder::new().name("worker".into()).spawn(|| {
            NAMES.with_borrow_mut(|names| {
                names.push(thread::current().name().unwrap_or_default().to_owned())
            });
            COUNT.set(COUNT.get() + 10);
            (COUNT.get(), NAMES.with_borrow(|names| names.join(",")))
        });
        assert_eq!(t.unwrap().join().unwrap(), (11, "worker".to_owned()));
        assert_eq!(COUNT.get(), mine);
    });
}

#[test]
fn thread_locals_are_dropped_when_the_thread_ends() {
    struct Tell(Arc<AtomicUsize>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    preempt::thread_local! {
        static TELL: RefCell<Option<Tell>> = RefCell::new(None);
    }
    inside(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || TELL.with_borrow_mut(|tell| *tell = Some(Tell(n)))
        });
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 1);
    });
}

#[test]
fn channels_keep_the_order_of_each_sender() {
    let outcome = both(|| {
        let (sender, receiver) = channel();
        let other = sender.clone();
        let t = thread::spawn(move || {
            other.send(1).unwrap();
            other.send(2).unwrap();
        });
        sender.send(3).unwrap();
        drop(sender);
        let values: Vec<i32> = receiver.iter().collect();
        t.join().unwrap();
        assert_eq!(values.len(), 3);
        let at = |value| values.iter().position(|&other| other == value);
        assert!(at(1) < at(2) && at(3).is_some());
    });
    assert!(outcome.executions() > Some(3));
}

#[test]
fn bounded_channels_wait_for_room() {
    both(|| {
        for capacity in [0, 1] {
            let (sender, receiver) = sync_channel(capacity);
            let t = thread::spawn(move || (1..=2).for_each(|value| sender.send(value).unwrap()));
            assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(2)));
            t.join().unwrap();
            assert!(receiver.recv().is_err());
        }
    });
    inside(|| {
        let (sender, receiver) = sync_channel(1);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(1)), Err(RecvTimeoutError::Timeout));
        sender.try_send(1).unwrap();
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        drop(receiver);
        assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
        assert!(sender.send(4).is_err());
    });
}

#[test]
fn both_values_of_a_reference_count_are_explored() {
    let seen = results(|| {
        let value = Arc::new(1);
        let t = thread::spawn({
            let value = value.clone();
            move || *value
        });
        let count = Arc::strong_count(&value);
        assert_eq!(t.join().unwrap(), 1);
        let weak = Arc::downgrade(&value);
        assert_eq!(Arc::try_unwrap(value), Ok(1));
        assert!(weak.upgrade().is_none() && Weak::<u32>::new().upgrade().is_none());
        count
    });
    assert_eq!(seen, BTreeSet::from([1, 2]));
}

#[test]
fn the_last_drop_is_explored_in_either_thread() {
    struct Last(Arc<Mutex<Vec<thread::ThreadId>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(thread::current().id());
        }
    }
    let seen = results(|| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Last(log.clone()));
        let main = thread::current().id();
        let t = thread::spawn({
            let shared = shared.clone();
            move || drop(shared)
        });
        drop(shared);
        t.join().unwrap();
        let log = log.lock().unwrap();
        assert_eq!(log.len(), 1);
        log[0] == main
    });
    assert_eq!(seen, BTreeSet::from([false, true]));
}

#[test]
fn objects_in_a_vector_are_distinct() {
    // With the allocator, the locks are identified by where they were allocated. Otherwise they
    // are numbered by first use, and both orders of first use are explored.
    let outcome = inside(|| {
        let locks = Arc::new((0..2).map(Mutex::new).collect::<Vec<_>>());
        let handles: Vec<_> = (0..2)
            .map(|at| {
                let locks = locks.clone();
                thread::spawn(move || *locks[at].lock().unwrap() += 1)
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        assert!((0..2).all(|at| *locks[at].lock().unwrap() == at + 1));
    });
    let orders = if cfg!(feature = "allocator") { 1 } else { 2 };
    assert_eq!(outcome.executions(), Some(orders), "the orders of the first uses");
}

#[test]
fn statics_work() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    static LOCK: Mutex<u32> = Mutex::new(0);
    let outcome = inside(|| {
        let t = thread::spawn(|| {
            *LOCK.lock().unwrap() = 1;
            TURN.store(0, SeqCst);
        });
        TURN.load(SeqCst);
        t.join().unwrap();
        *LOCK.lock().unwrap() = 0;
    });
    assert_eq!(outcome.executions(), Some(2));
}

#[test]
fn a_rendezvous_channel_returns_a_value_that_is_not_received() {
    both(|| {
        let (tx, rx) = sync_channel::<u32>(0);
        let t = thread::spawn(move || tx.send(1));
        drop(rx);
        assert_eq!(t.join().unwrap(), Err(SendError(1)));
    });
    both(|| {
        let (tx, rx) = sync_channel::<u32>(0);
        let t = thread::spawn(move || (tx.send(1), tx.send(2)));
        assert_eq!(rx.recv(), Ok(1));
        drop(rx);
        assert_eq!(t.join().unwrap(), (Ok(()), Err(SendError(2))));
    });
}

/// `try_send` succeeds on a channel without capacity exactly while the receiver waits.
#[test]
fn a_value_is_handed_to_a_receiver_that_waits() {
    both(|| {
        let (tx, rx) = sync_channel::<u32>(0);
        assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
        let t = thread::spawn(move || rx.recv());
        while tx.try_send(2).is_err() {
            thread::yield_now();
        }
        assert_eq!(t.join().unwrap(), Ok(2));
        assert_eq!(tx.try_send(3), Err(TrySendError::Disconnected(3)));
    });
    // One receive takes one value.
    inside(|| {
        let (tx, rx) = sync_channel::<usize>(0);
        let t = thread::spawn({
            let tx = tx.clone();
            move || usize::from(tx.try_send(1).is_ok())
        });
        let u = thread::spawn(move || usize::from(tx.try_send(2).is_ok()));
        let received = usize::from(rx.recv().is_ok());
        let more = usize::from(rx.recv().is_ok());
        assert_eq!(received + more, t.join().unwrap() + u.join().unwrap());
    });
}

#[test]
fn plain_writes_to_atomics_are_seen_by_later_accesses() {
    both(|| {
        let mut number = AtomicUsize::new(1);
        assert_eq!(number.load(SeqCst), 1);
        *number.get_mut() = 5;
        assert_eq!(number.load(SeqCst), 5);
        number.with_mut(|value| *value += 1);
        assert_eq!(number.fetch_add(1, SeqCst), 6);
        assert_eq!(format!("{number:?}"), "7", "the copy has the latest value");
        assert_eq!(number.into_inner(), 7);
        let (mut one, mut other) = (1, 2);
        let mut pointer = AtomicPtr::new(&raw mut one);
        pointer.store(&raw mut other, SeqCst);
        // SAFETY: the pointer refers to a variable that nothing else uses meanwhile.
        unsafe { *pointer.load(SeqCst) += 10 };
        assert_eq!(other, 12);
        *pointer.get_mut() = std::ptr::null_mut();
        assert!(pointer.load(SeqCst).is_null());
        // Another atomic at the same address.
        let cell = Mutex::new(AtomicUsize::new(1));
        let get = || cell.lock().expect("mutex poisoned").load(SeqCst);
        assert_eq!(get(), 1);
        *cell.lock().expect("mutex poisoned") = AtomicUsize::new(9);
        assert_eq!(get(), 9);
    });
}

#[test]
fn a_spurious_failure_returns_the_value_and_writes_nothing() {
    let outcome = Check::new().weak_cas_failures().run(|| {
        let number = AtomicUsize::new(1);
        match number.compare_exchange_weak(1, 2, SeqCst, SeqCst) {
            Ok(found) => assert_eq!((found, number.load(SeqCst)), (1, 2)),
            Err(found) => assert_eq!((found, number.load(SeqCst)), (1, 1)),
        }
    });
    assert_eq!(outcome.executions(), Some(2));
}

#[test]
fn a_loop_around_a_weak_exchange_that_may_fail_spuriously_is_explored() {
    let most = StdMutex::new(0);
    let checks = [Check::new(), Check::new().unbounded(), Check::new().reduce(Reduction::Source)];
    for check in checks {
        let outcome = check.weak_cas_failures().run(|| {
            let n = Arc::new(AtomicUsize::new(0));
            let add = |n: &AtomicUsize| {
                let (mut old, mut tries) = (n.load(SeqCst), 0);
                while let Err(now) = n.compare_exchange_weak(old, old + 1, SeqCst, SeqCst) {
                    tries = if now == old { tries + 1 } else { 0 };
                    let mut most = most.lock().expect("mutex poisoned");
                    *most = tries.max(*most);
                    old = now;
                }
            };
            let t = thread::spawn({
                let n = n.clone();
                move || n.fetch_update(SeqCst, SeqCst, |n| Some(n + 10))
            });
            add(&n);
            assert!(t.join().expect("the thread does not panic").is_ok());
            assert_eq!(n.load(SeqCst), 11);
        });
        assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
        let assumed = outcome.assumptions.join("; ");
        assert!(assumed.contains("fails spuriously at most twice in a row"), "{assumed}");
        assert_eq!(*most.lock().expect("mutex poisoned"), 2);
    }
}
