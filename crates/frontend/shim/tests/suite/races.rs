//! Which synchronisation operations order plain accesses, tested one pair at a time.
//!
//! In each pair the first thread writes a cell and then operates on an object; the second thread
//! operates on the object and then writes the cell. The writes race unless the first operation
//! releases and the second acquires.

use std::time::Duration;

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use preempt::sync::atomic::{AtomicUsize, fence};
use preempt::sync::{Arc, Barrier, Condvar, Mutex, RwLock, RwLockWriteGuard};
use preempt::{Check, FailureKind, Reduction, thread};

#[derive(Default)]
struct Shared {
    cell: UnsafeCell<u32>,
    lock: RwLock<u32>,
    mutex: Mutex<u32>,
    condvar: Condvar,
    atomic: AtomicUsize,
}

// SAFETY: inside a check one thread runs at a time, and the value is never used: the accesses only
// notify the race detector.
unsafe impl Sync for Shared {}

impl Shared {
    fn write(&self) {
        self.cell.with_mut(|_| ());
    }

    fn read(&self) {
        self.cell.with(|_| ());
    }
}

/// Whether a data race is found if one thread runs `first` and another `second`. Asserts that
/// nothing else is found.
fn races(first: fn(&Shared), second: fn(&Shared)) -> bool {
    let outcome = Check::new().unbounded().keep_going().run(|| {
        let shared = Arc::new(Shared::default());
        let other = thread::spawn({
            let shared = shared.clone();
            move || first(&shared)
        });
        second(&shared);
        other.join().unwrap();
    });
    assert!(
        outcome.findings.iter().all(|finding| finding.failure.kind == FailureKind::Race),
        "{:?}",
        outcome.findings
    );
    !outcome.findings.is_empty()
}

/// A pair of racing accesses is one error, whichever access comes first. The schedule in which the
/// child's write comes second needs one preemption less than the other, and a search that finds the
/// other first still reports the simpler one.
#[test]
fn a_race_is_shown_with_the_fewest_preemptions_of_either_order() {
    for check in [
        Check::new().reduce(Reduction::CbPor).bound(2),
        Check::new().bound(2),
        Check::new().unbounded(),
    ] {
        let outcome = check.keep_going().run(|| {
            let shared = Arc::new(Shared::default());
            let other = thread::spawn({
                let shared = shared.clone();
                move || {
                    drop(shared.mutex.lock().unwrap());
                    let _guard = shared.lock.read().unwrap();
                    shared.write();
                }
            });
            let guard = shared.mutex.lock().unwrap();
            shared.write();
            drop(guard);
            other.join().unwrap();
        });
        assert_eq!(outcome.findings.len(), 1, "{:?}", outcome.findings);
        assert_eq!(
            (outcome.findings[0].failure.kind, outcome.findings[0].preemptions),
            (FailureKind::Race, 1)
        );
    }
}

/// A reader of a lock, then a writer: the reader's unlock is ordered before the writer's lock.
#[test]
fn a_read_unlock_orders_the_next_writer() {
    let reads = |shared: &Shared| {
        let _guard = shared.lock.read().unwrap();
        shared.read();
    };
    let writes = |shared: &Shared| {
        let _guard = shared.lock.write().unwrap();
        shared.write();
    };
    let tries = |shared: &Shared| {
        if let Ok(_guard) = shared.lock.try_write() {
            shared.write();
        }
    };
    assert!(!races(reads, writes));
    assert!(!races(writes, reads));
    assert!(!races(reads, tries));
    let tries_to_read = |shared: &Shared| {
        if let Ok(_guard) = shared.lock.try_read() {
            shared.read();
        }
    };
    assert!(!races(writes, tries_to_read));
    assert!(!races(tries, tries));
    assert!(!races(writes, writes));
}

#[test]
fn readers_do_not_order_each_other() {
    let write_as_reader = |shared: &Shared| {
        let _guard = shared.lock.read().unwrap();
        shared.write();
    };
    let try_as_reader = |shared: &Shared| {
        if let Ok(_guard) = shared.lock.try_read() {
            shared.write();
        }
    };
    assert!(races(write_as_reader, write_as_reader));
    assert!(races(write_as_reader, try_as_reader));
}

#[test]
fn a_downgrade_orders_earlier_writes() {
    let downgrades = |shared: &Shared| {
        let guard = shared.lock.write().unwrap();
        shared.write();
        let _guard = RwLockWriteGuard::downgrade(guard);
        shared.read();
    };
    let reads = |shared: &Shared| {
        let _guard = shared.lock.read().unwrap();
        shared.read();
    };
    let writes = |shared: &Shared| {
        let _guard = shared.lock.write().unwrap();
        shared.write();
    };
    assert!(!races(downgrades, reads));
    assert!(!races(downgrades, writes));
}

#[test]
fn accesses_after_a_read_unlock_are_not_ordered() {
    let late = |shared: &Shared| {
        drop(shared.lock.read().unwrap());
        shared.read();
    };
    let writes = |shared: &Shared| {
        let _guard = shared.lock.write().unwrap();
        shared.write();
    };
    assert!(races(late, writes));
}

#[test]
fn a_mutex_orders_only_accesses_inside_its_critical_sections() {
    let inside = |shared: &Shared| {
        let _guard = shared.mutex.lock().unwrap();
        shared.write();
    };
    let tries = |shared: &Shared| {
        if let Ok(_guard) = shared.mutex.try_lock() {
            shared.write();
        }
    };
    let after = |shared: &Shared| {
        drop(shared.mutex.lock().unwrap());
        shared.write();
    };
    let despite = |shared: &Shared| {
        let guard = shared.mutex.try_lock();
        shared.write();
        drop(guard);
    };
    assert!(!races(inside, inside));
    assert!(!races(inside, tries));
    assert!(races(inside, after));
    assert!(races(inside, despite));
}

/// A waiting thread releases the mutex and acquires it again.
#[test]
fn a_wait_orders_through_its_mutex() {
    let waits = |shared: &Shared| {
        let guard = shared.mutex.lock().unwrap();
        shared.write();
        let waited = shared.condvar.wait_timeout(guard, Duration::from_secs(1)).unwrap();
        shared.write();
        drop(waited);
    };
    let notifies = |shared: &Shared| {
        let guard = shared.mutex.lock().unwrap();
        shared.write();
        shared.condvar.notify_one();
        drop(guard);
    };
    assert!(!races(waits, notifies));
    let only_notifies = |shared: &Shared| {
        shared.write();
        shared.condvar.notify_one();
    };
    assert!(races(waits, only_notifies), "a notification alone orders nothing");
}

fn publish(shared: &Shared, order: preempt::sync::atomic::Ordering) {
    shared.write();
    shared.atomic.store(1, order);
}

fn consume(shared: &Shared, order: preempt::sync::atomic::Ordering) {
    if shared.atomic.load(order) == 1 {
        shared.write();
    }
}

#[test]
fn a_release_synchronises_with_an_acquire_that_reads_it() {
    assert!(!races(|shared| publish(shared, Release), |shared| consume(shared, Acquire)));
    assert!(races(|shared| publish(shared, Relaxed), |shared| consume(shared, Acquire)));
    assert!(races(|shared| publish(shared, Release), |shared| consume(shared, Relaxed)));
    let update = |shared: &Shared| {
        shared.write();
        shared.atomic.fetch_add(1, Release);
    };
    assert!(!races(update, |shared| consume(shared, Acquire)), "an update releases too");
    let late = |shared: &Shared| {
        shared.atomic.store(1, Release);
        shared.write();
    };
    assert!(
        races(late, |shared| consume(shared, Acquire)),
        "accesses after a release are not ordered"
    );
}

#[test]
fn fences_make_relaxed_accesses_synchronise() {
    let fenced_store = |shared: &Shared| {
        shared.write();
        fence(Release);
        shared.atomic.store(1, Relaxed);
    };
    let fenced_load = |shared: &Shared| {
        let ready = shared.atomic.load(Relaxed) == 1;
        fence(Acquire);
        if ready {
            shared.write();
        }
    };
    assert!(!races(fenced_store, fenced_load));
    assert!(!races(fenced_store, |shared| consume(shared, Acquire)));
    assert!(!races(|shared| publish(shared, Release), fenced_load));
    let late_write = |shared: &Shared| {
        fence(Release);
        shared.write();
        shared.atomic.store(1, Relaxed);
    };
    assert!(races(late_write, fenced_load), "a release fence covers only earlier accesses");
    let late_fence = |shared: &Shared| {
        fence(Acquire);
        consume(shared, Relaxed);
    };
    assert!(
        races(|shared| publish(shared, Release), late_fence),
        "an acquire fence covers only earlier loads"
    );
}

/// Whether a third thread acquires a release through a relaxed operation of a second thread.
fn synchronises_through(by: fn(&AtomicUsize)) -> bool {
    let outcome = Check::new().unbounded().keep_going().run(|| {
        let shared = Arc::new(Shared::default());
        let spawn = |f: Box<dyn FnOnce(&Shared) + Send>| {
            let shared = shared.clone();
            thread::spawn(move || f(&shared))
        };
        let first = spawn(Box::new(|shared: &Shared| publish(shared, Release)));
        let second = spawn(Box::new(move |shared: &Shared| {
            if shared.atomic.load(Relaxed) == 1 {
                by(&shared.atomic);
            }
        }));
        if shared.atomic.load(Acquire) == 2 {
            shared.write();
        }
        first.join().unwrap();
        second.join().unwrap();
    });
    assert!(
        outcome.findings.iter().all(|finding| finding.failure.kind == FailureKind::Race),
        "{:?}",
        outcome.findings
    );
    outcome.findings.is_empty()
}

#[test]
fn a_release_sequence_continues_through_updates_and_ends_at_a_store() {
    assert!(synchronises_through(|atomic| _ = atomic.fetch_add(1, Relaxed)));
    assert!(synchronises_through(|atomic| _ = atomic.swap(2, Relaxed)));
    assert!(!synchronises_through(|atomic| atomic.store(2, Relaxed)));
}

#[test]
fn a_failed_exchange_acquires_by_its_failure_ordering() {
    assert!(!races(
        |shared| publish(shared, Release),
        |shared| {
            if shared.atomic.compare_exchange(7, 8, AcqRel, Acquire) == Err(1) {
                shared.write();
            }
        }
    ));
    assert!(races(
        |shared| publish(shared, Release),
        |shared| {
            if shared.atomic.compare_exchange(7, 8, AcqRel, Relaxed) == Err(1) {
                shared.write();
            }
        }
    ));
}

#[test]
fn a_barrier_orders_earlier_accesses() {
    let outcome = Check::new().unbounded().run(|| {
        let shared = Arc::new((Shared::default(), Barrier::new(2)));
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.write();
                shared.1.wait();
            }
        });
        shared.1.wait();
        shared.0.write();
        other.join().unwrap();
    });
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
}

#[test]
fn unpark_is_ordered_before_the_park_it_wakes() {
    let outcome = Check::new().unbounded().run(|| {
        let shared = Arc::new(Shared::default());
        let main = thread::current();
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.write();
                main.unpark();
            }
        });
        thread::park();
        shared.write();
        other.join().unwrap();
    });
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert!(races(
        |shared| shared.write(),
        |shared| {
            thread::park_timeout(Duration::from_secs(1));
            shared.write();
        }
    ));
}

/// Accesses of the parent between `spawn` and `join` are not ordered with accesses of the child.
#[test]
fn only_spawn_and_join_order_parent_and_child() {
    let outcome = Check::new().unbounded().run(|| {
        let shared = Arc::new(Shared::default());
        shared.write();
        let other = thread::spawn({
            let shared = shared.clone();
            move || shared.write()
        });
        other.join().unwrap();
        shared.write();
    });
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert!(races(|shared| shared.write(), |shared| shared.write()));
    assert!(races(|shared| shared.write(), |shared| shared.read()));
    assert!(races(|shared| shared.read(), |shared| shared.write()));
    assert!(!races(|shared| shared.read(), |shared| shared.read()));
}

fn raise(shared: &Shared) {
    shared.atomic.store(1, Release);
}

/// A thread that publishes inside the closure of an access can still use the pointer afterwards.
#[test]
fn an_access_lasts_until_its_closure_ends() {
    let late: [fn(&Shared); 5] = [
        |shared| shared.cell.with(|_| raise(shared)),
        |shared| shared.cell.with_mut(|_| raise(shared)),
        |shared| shared.cell.get().with(|_| raise(shared)),
        |shared| shared.cell.get_mut().with(|_| raise(shared)),
        |shared| {
            let unwinds = || {
                shared.cell.with(|_| {
                    raise(shared);
                    std::panic::resume_unwind(Box::new(()));
                })
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(unwinds)).unwrap_err();
        },
    ];
    for (nth, first) in late.into_iter().enumerate() {
        assert!(races(first, |shared| consume(shared, Acquire)), "{nth}");
    }
    assert!(!races(
        |shared| {
            shared.read();
            raise(shared);
        },
        |shared| consume(shared, Acquire)
    ));
    // Reads do not conflict, however long they last.
    assert!(!races(
        |shared| shared.cell.with(|_| raise(shared)),
        |shared| shared.cell.with(|_| drop(shared.mutex.lock().unwrap()))
    ));
}

/// The start and the end of an access are both ordered with a write, and what lies between them is
/// not.
#[test]
fn an_access_races_with_one_in_the_middle_of_it() {
    assert!(races(
        |shared| {
            shared.cell.with(|_| {
                raise(shared);
                while shared.atomic.load(Acquire) < 2 {
                    thread::yield_now();
                }
            });
        },
        |shared| {
            while shared.atomic.load(Acquire) < 1 {
                thread::yield_now();
            }
            shared.write();
            shared.atomic.store(2, Release);
        }
    ));
}

/// A thread that is started inside the closure of an access is not ordered after the access, though
/// the parent performs no operation until the closure ends.
#[test]
fn an_access_lasts_beyond_the_start_of_a_thread_inside_it() {
    for is_write in [false, true] {
        let outcome = Check::new().unbounded().run(move || {
            let shared = Arc::new(Shared::default());
            let other = shared.clone();
            let child = shared.cell.with(|_| {
                thread::spawn(move || if is_write { other.write() } else { other.read() })
            });
            child.join().unwrap();
        });
        assert_eq!(outcome.findings.len(), usize::from(is_write), "{:?}", outcome.findings);
    }
}

/// Accesses of one thread nest, and a guard that unlocks may be dropped while they last.
#[test]
fn accesses_to_several_cells_nest() {
    let swaps: fn(&Shared) = |shared| {
        let guard = shared.mutex.lock().unwrap();
        let own = UnsafeCell::new(0);
        own.with_mut(|_| {
            shared.cell.with_mut(|_| shared.cell.with(|_| ()));
            let _pointer = shared.cell.get_mut();
            drop(guard);
            raise(shared);
        });
    };
    assert!(!races(swaps, swaps));
}
