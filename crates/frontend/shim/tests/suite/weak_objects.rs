//! Synchronisation by the objects of std under weak memory. One thread writes data, by a plain and
//! a relaxed store: a thread that synchronises with it sees the data, and any other may miss it.
//!
//! Every program runs under several searches, and all of them must agree.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use preempt::cell::UnsafeCell;
use preempt::future::{AtomicWaker, block_on};
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use preempt::sync::{
    Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError, mpsc,
};
use preempt::{Cache, Check, FailureKind, Memory, Order, thread};

/// Data that one thread passes to another.
#[derive(Default)]
struct Data {
    plain: UnsafeCell<usize>,
    relaxed: AtomicUsize,
}

// SAFETY: the threads of a check run one at a time, and racing accesses fail the check.
unsafe impl Sync for Data {}

impl Data {
    fn write(&self) {
        self.relaxed.store(1, Relaxed);
        // SAFETY: see above.
        self.plain.with_mut(|cell| unsafe { *cell = 1 });
    }

    /// Asserts that the write of the data happens before this read.
    fn read(&self) {
        assert_eq!(self.relaxed.load(Relaxed), 1, "a stale value");
        // SAFETY: see above.
        assert_eq!(self.plain.with(|cell| unsafe { *cell }), 1);
    }
}

/// The searches that explore all executions.
fn searches() -> Vec<Check> {
    let weak = || Check::new().memory(Memory::Weak).quiet().executions(200_000);
    vec![
        weak(),
        weak().unbounded(),
        weak().unbounded().jobs(2),
        weak().order(Order::Icb { cache: Cache::None }).bound(30),
        weak().order(Order::DfsHb).unbounded(),
        weak().order(Order::Executions).keep_going(),
    ]
}

fn passes(f: impl Fn() + Sync) {
    for check in searches() {
        let outcome = check.run(&f);
        let messages: Vec<_> =
            outcome.findings.iter().map(|finding| &finding.failure.message).collect();
        assert!(messages.is_empty() && outcome.complete, "{check:?}: {messages:?}");
    }
}

fn fails(kind: FailureKind, f: impl Fn() + Sync) {
    for check in searches() {
        let outcome = check.run(&f);
        let found = outcome.findings.iter().any(|finding| finding.failure.kind == kind);
        assert!(found, "{check:?}: {:?}", outcome.findings);
    }
}

/// Runs `first` in another thread and `second` in this one on shared objects.
fn two<T: Send + Sync + 'static>(
    shared: T,
    first: impl FnOnce(&T) + Send + 'static,
    second: impl FnOnce(&T),
) {
    let shared = Arc::new(shared);
    let t = thread::spawn({
        let shared = shared.clone();
        move || first(&shared)
    });
    second(&shared);
    t.join().unwrap();
}

#[test]
fn spawn_and_join_synchronise() {
    passes(|| {
        let data = Arc::new((Data::default(), Data::default()));
        data.0.write();
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.0.read();
                data.1.write();
            }
        });
        t.join().unwrap();
        data.1.read();
    });
    passes(|| {
        let (first, second) = (Data::default(), Data::default());
        thread::scope(|s| {
            s.spawn(|| first.write());
            s.spawn(|| second.write());
        });
        first.read();
        second.read();
    });
}

/// Only `join` synchronises; `is_finished` does not.
#[test]
fn is_finished_does_not_synchronise() {
    fails(FailureKind::Race, || {
        let data = Arc::new(Data::default());
        let t = thread::spawn({
            let data = data.clone();
            move || data.write()
        });
        if t.is_finished() {
            data.read();
        }
        t.join().unwrap();
    });
}

#[test]
fn a_mutex_synchronises() {
    passes(|| {
        let write = |(data, lock): &(Data, Mutex<bool>)| {
            let mut lock = lock.lock().unwrap();
            data.write();
            *lock = true;
        };
        two((Data::default(), Mutex::new(false)), write, |(data, lock)| {
            if *lock.lock().unwrap() {
                data.read();
            }
        });
    });
    passes(|| {
        let write = |(data, lock): &(Data, Mutex<bool>)| {
            data.write();
            *lock.lock().unwrap() = true;
        };
        two((Data::default(), Mutex::new(false)), write, |(data, lock)| match lock.try_lock() {
            Ok(guard) if *guard => data.read(),
            _ => {}
        });
    });
}

/// A failed `try_lock` shows that another thread holds the mutex, but does not synchronise.
#[test]
fn a_failed_try_lock_does_not_synchronise() {
    fails(FailureKind::Panic, || {
        let hold = |(data, lock): &(AtomicUsize, Mutex<()>)| {
            data.store(1, Relaxed);
            let _guard = lock.lock().unwrap();
            fence(SeqCst);
        };
        two((AtomicUsize::new(0), Mutex::new(())), hold, |(data, lock)| {
            let held = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if held {
                assert_eq!(data.load(Relaxed), 1);
            }
        });
    });
}

#[test]
fn a_reader_writer_lock_synchronises_writers_and_readers() {
    passes(|| {
        let write = |(data, lock): &(Data, RwLock<bool>)| {
            let mut lock = lock.write().unwrap();
            data.write();
            *lock = true;
        };
        two((Data::default(), RwLock::new(false)), write, |(data, lock)| {
            if *lock.read().unwrap() {
                data.read();
            }
        });
    });
    // A writer comes after the readers that have released the lock.
    passes(|| {
        let (data, seen) = (Data::default(), AtomicBool::new(false));
        data.write();
        let read = |(data, lock, seen): &(Data, RwLock<()>, AtomicBool)| {
            let _guard = lock.read().unwrap();
            data.read();
            seen.store(true, Relaxed);
        };
        two((data, RwLock::new(()), seen), read, |(data, lock, seen)| {
            let _guard = lock.write().unwrap();
            if seen.load(Relaxed) {
                data.write();
            }
        });
    });
}

/// Readers are not ordered with each other.
#[test]
fn two_readers_are_not_ordered() {
    fails(FailureKind::Race, || {
        let write = |(data, lock): &(Data, RwLock<()>)| {
            let _guard = lock.read().unwrap();
            data.write();
        };
        two((Data::default(), RwLock::new(())), write, |(data, lock)| {
            let _guard = lock.read().unwrap();
            if data.relaxed.load(Relaxed) == 1 {
                data.read();
            }
        });
    });
}

#[test]
fn a_condition_variable_synchronises_by_its_mutex() {
    passes(|| {
        let write = |(data, lock, condvar): &(Data, Mutex<bool>, Condvar)| {
            data.write();
            *lock.lock().unwrap() = true;
            condvar.notify_one();
        };
        let shared = (Data::default(), Mutex::new(false), Condvar::new());
        two(shared, write, |(data, lock, condvar)| {
            let guard = condvar.wait_while(lock.lock().unwrap(), |ready| !*ready).unwrap();
            drop(guard);
            data.read();
        });
    });
}

/// A flag outside the mutex, notified without it: the wait can begin after the notification.
#[test]
fn a_flag_outside_the_mutex_is_missed() {
    fails(FailureKind::Deadlock, || {
        let set = |(flag, _, condvar): &(AtomicBool, Mutex<()>, Condvar)| {
            flag.store(true, SeqCst);
            condvar.notify_one();
        };
        let shared = (AtomicBool::new(false), Mutex::new(()), Condvar::new());
        two(shared, set, |(flag, lock, condvar)| {
            let mut guard = lock.lock().unwrap();
            while !flag.load(SeqCst) {
                guard = condvar.wait(guard).unwrap();
            }
        });
    });
}

/// The mutex orders the store before the load only if the thread stores before it unlocks.
#[test]
fn a_relaxed_flag_before_the_mutex_is_seen_after_it() {
    passes(|| {
        let set = |(flag, lock, condvar): &(AtomicBool, Mutex<()>, Condvar)| {
            flag.store(true, Relaxed);
            drop(lock.lock().unwrap());
            condvar.notify_one();
        };
        let shared = (AtomicBool::new(false), Mutex::new(()), Condvar::new());
        two(shared, set, |(flag, lock, condvar)| {
            let mut guard = lock.lock().unwrap();
            while !flag.load(Relaxed) {
                guard = condvar.wait(guard).unwrap();
            }
        });
    });
}

#[test]
fn channels_synchronise_sender_and_receiver() {
    passes(|| {
        let data = Arc::new(Data::default());
        let (sender, receiver) = mpsc::channel();
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.write();
                sender.send(()).unwrap();
            }
        });
        receiver.recv().unwrap();
        data.read();
        t.join().unwrap();
    });
    // With capacity 0, a receive also happens before the return of the send.
    passes(|| {
        let data = Arc::new((Data::default(), Data::default()));
        let (sender, receiver) = mpsc::sync_channel(0);
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.0.write();
                sender.send(()).unwrap();
                data.1.read();
            }
        });
        data.1.write();
        receiver.recv().unwrap();
        data.0.read();
        t.join().unwrap();
    });
    // The receiver that sees the disconnect also sees earlier writes of the last sender.
    passes(|| {
        let data = Arc::new(Data::default());
        let (sender, receiver) = mpsc::channel::<()>();
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.write();
                drop(sender);
            }
        });
        assert!(receiver.recv().is_err());
        data.read();
        t.join().unwrap();
    });
}

#[test]
fn a_barrier_synchronises_all_threads() {
    passes(|| {
        let meet = |(first, second, barrier): &(Data, Data, Barrier)| {
            first.write();
            barrier.wait();
            second.read();
        };
        let shared = (Data::default(), Data::default(), Barrier::new(2));
        two(shared, meet, |(first, second, barrier)| {
            second.write();
            barrier.wait();
            first.read();
        });
    });
}

#[test]
fn initialisation_happens_before_every_use() {
    passes(|| {
        let run = |(data, once): &(Data, Once)| {
            once.call_once(|| data.write());
            data.read();
        };
        two((Data::default(), Once::new()), run, run);
    });
    passes(|| {
        let write = |(data, value): &(Data, OnceLock<usize>)| {
            data.write();
            value.set(1).unwrap();
        };
        two((Data::default(), OnceLock::new()), write, |(data, value)| {
            if value.get() == Some(&1) {
                data.read();
            }
        });
    });
    passes(|| {
        let lazy: Arc<LazyLock<Data>> = Arc::new(LazyLock::new(|| {
            let data = Data::default();
            data.write();
            data
        }));
        two(lazy, |lazy| lazy.read(), |lazy| lazy.read());
    });
}

/// std: the call of `unpark` happens before the return of the `park` that takes its token.
#[test]
fn unpark_synchronises_and_a_timeout_does_not() {
    passes(|| {
        let main = thread::current();
        let data = Arc::new((Data::default(), AtomicBool::new(false)));
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.0.write();
                data.1.store(true, Relaxed);
                main.unpark();
            }
        });
        while !data.1.load(Acquire) {
            thread::park();
        }
        drop(data);
        t.join().unwrap();
    });
    passes(|| {
        let main = thread::current();
        let data = Arc::new(Data::default());
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.write();
                main.unpark();
            }
        });
        // There are no spurious wakeups unless they are enabled.
        thread::park();
        data.read();
        t.join().unwrap();
    });
    fails(FailureKind::Race, || {
        let main = thread::current();
        let data = Arc::new(Data::default());
        let t = thread::spawn({
            let data = data.clone();
            move || {
                data.write();
                main.unpark();
            }
        });
        thread::park_timeout(Duration::from_millis(1));
        if data.relaxed.load(Relaxed) == 1 {
            data.read();
        }
        t.join().unwrap();
    });
}

#[test]
fn the_last_drop_of_an_arc_happens_after_all_others() {
    struct Checked(Data);
    impl Drop for Checked {
        fn drop(&mut self) {
            self.0.read();
        }
    }
    passes(|| {
        let checked = Arc::new(Checked(Data::default()));
        let t = thread::spawn({
            let checked = checked.clone();
            move || {
                checked.0.write();
                drop(checked);
            }
        });
        drop(checked);
        t.join().unwrap();
    });
}

#[test]
fn a_waker_synchronises() {
    passes(|| {
        let write = |(data, ready, waker): &(Data, AtomicBool, AtomicWaker)| {
            data.write();
            ready.store(true, Release);
            waker.wake();
        };
        let shared = (Data::default(), AtomicBool::new(false), AtomicWaker::new());
        two(shared, write, |(data, ready, waker)| {
            block_on(std::future::poll_fn(|context| {
                waker.register_by_ref(context.waker());
                if ready.load(Acquire) {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            }));
            data.read();
        });
    });
}

/// A release sequence contains the read-modify-writes of other threads.
#[test]
fn a_read_modify_write_continues_a_release_sequence() {
    let program = |publish| {
        move || {
            let shared = Arc::new((Data::default(), AtomicUsize::new(0)));
            let spawn = |f: fn(&(Data, AtomicUsize), _)| {
                let shared = shared.clone();
                thread::spawn(move || f(&shared, publish))
            };
            let threads = [
                spawn(|(data, count), publish| {
                    data.write();
                    count.store(1, publish);
                }),
                spawn(|(_, count), _| {
                    count.fetch_add(1, Relaxed);
                }),
            ];
            if shared.1.load(Acquire) == 2 {
                shared.0.read();
            }
            threads.into_iter().for_each(|t| t.join().unwrap());
        }
    };
    passes(program(Release));
    fails(FailureKind::Race, program(Relaxed));
}

/// Writes before a caught panic are visible as usual.
#[test]
fn a_caught_panic_changes_nothing() {
    passes(|| {
        let write = |(data, lock): &(Data, Mutex<bool>)| {
            let failed = catch_unwind(AssertUnwindSafe(|| {
                let mut guard = lock.lock().unwrap_or_else(|poison| poison.into_inner());
                data.write();
                *guard = true;
                std::panic::resume_unwind(Box::new("given up"));
            }));
            assert!(failed.is_err());
        };
        two((Data::default(), Mutex::new(false)), write, |(data, lock)| {
            if *lock.lock().unwrap_or_else(|poison| poison.into_inner()) {
                data.read();
            }
        });
    });
}

/// Loads of one location in one thread never go back, whatever the ordering.
#[test]
fn a_thread_never_sees_values_go_back() {
    passes(|| {
        let count = |count: &AtomicUsize| {
            count.store(1, Relaxed);
            count.store(2, Relaxed);
        };
        two(AtomicUsize::new(0), count, |count| {
            let (first, second) = (count.load(Relaxed), count.load(Relaxed));
            assert!(first <= second, "{first} {second}");
        });
    });
    // Loads of two locations may.
    fails(FailureKind::Panic, || {
        let count = |(a, b): &(AtomicUsize, AtomicUsize)| {
            a.store(1, Relaxed);
            b.store(1, Relaxed);
        };
        two((AtomicUsize::new(0), AtomicUsize::new(0)), count, |(a, b)| {
            let (b, a) = (b.load(Relaxed), a.load(Relaxed));
            assert!(b <= a);
        });
    });
}

/// Increments are never lost, and after the joins the sum is exact.
#[test]
fn relaxed_increments_are_exact() {
    passes(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let threads = [0, 1].map(|_| {
            let count = count.clone();
            thread::spawn(move || {
                count.fetch_add(1, Relaxed);
                let _ = count.fetch_update(Relaxed, Relaxed, |value| Some(value + 1));
            })
        });
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(count.load(Relaxed), 4);
    });
}

/// A pointer published with `Relaxed` may refer to data that is not visible yet.
#[test]
fn a_pointer_must_be_published() {
    let program = |publish| {
        move || {
            let write = move |(data, pointer): &(Data, AtomicPtr<Data>)| {
                data.write();
                pointer.store(std::ptr::from_ref(data).cast_mut(), publish);
            };
            let shared = (Data::default(), AtomicPtr::new(std::ptr::null_mut()));
            two(shared, write, |(_, pointer)| {
                // SAFETY: null, or the data of this execution, which is not freed yet.
                if let Some(data) = unsafe { pointer.load(Acquire).as_ref() } {
                    data.read();
                }
            });
        }
    };
    passes(program(Release));
    fails(FailureKind::Race, program(Relaxed));
}

/// A lock made of exchanges that acquire and release passes data in both directions.
#[test]
fn a_lock_made_of_exchanges_synchronises() {
    let program = |unlock| {
        move || {
            let enter = move |(count, flag): &(UnsafeCounter, AtomicBool)| {
                if flag.compare_exchange(false, true, AcqRel, Relaxed).is_ok() {
                    count.increment();
                    flag.store(false, unlock);
                }
            };
            two((UnsafeCounter::default(), AtomicBool::new(false)), enter, enter);
        }
    };
    passes(program(Release));
    fails(FailureKind::Race, program(Relaxed));
}

#[derive(Default)]
struct UnsafeCounter(UnsafeCell<usize>);

// SAFETY: as for `Data`.
unsafe impl Sync for UnsafeCounter {}
// SAFETY: as for `Data`.
unsafe impl Send for UnsafeCounter {}

impl UnsafeCounter {
    fn increment(&self) {
        // SAFETY: as for `Data`.
        self.0.with_mut(|cell| unsafe { *cell += 1 });
    }
}
