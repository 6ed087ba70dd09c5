//! Programs as a new user writes them, each with the verdict that std's documentation implies:
//! poisoned locks and `Once`s, reference counts, channels that lose an end, timeouts, barriers,
//! park tokens, thread locals, lazy statics and scoped threads.
//!
//! Every program runs under the searches of [`kinds`](super::kinds). All of them must agree.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use preempt::cell::UnsafeCell;
use preempt::future::block_on;
use preempt::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use preempt::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, Weak, mpsc};
use preempt::{Check, FailureKind, thread};

use super::kinds::{fails, fails_with, passes, passes_with};

/// Panics without a message on stderr.
fn give_up() {
    std::panic::resume_unwind(Box::new("given up"));
}

/// Runs `f`, which panics, and catches the panic.
fn caught(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

// ---- locks ----

#[test]
fn a_poisoned_lock_can_be_recovered() {
    passes(|| {
        let balance = Arc::new(Mutex::new(10));
        let t = thread::spawn({
            let balance = balance.clone();
            move || {
                caught(|| {
                    let mut balance = balance.lock().unwrap_or_else(|poison| poison.into_inner());
                    *balance -= 1;
                    give_up();
                });
            }
        });
        let seen = match balance.lock() {
            Ok(balance) => *balance,
            Err(poison) => *poison.into_inner() + 100,
        };
        assert!(seen == 10 || seen == 109, "{seen}");
        t.join().unwrap();
        assert!(balance.is_poisoned());
        balance.clear_poison();
        assert_eq!(*balance.lock().unwrap(), 9);
    });
}

#[test]
fn a_poisoned_lock_that_is_unwrapped_panics_in_some_schedules_only() {
    let body = || {
        let balance = Arc::new(Mutex::new(10));
        let t = thread::spawn({
            let balance = balance.clone();
            move || {
                caught(|| {
                    let _balance = balance.lock();
                    give_up();
                });
            }
        });
        assert_eq!(*balance.lock().unwrap(), 10);
        t.join().unwrap();
    };
    fails(FailureKind::Panic, body);
}

/// A guard in the condition of `if let` lives until the end of the body.
#[test]
fn a_guard_in_the_condition_of_an_if_let_is_held_in_the_body() {
    let queue = |again: bool| {
        move || {
            let queue = Arc::new(Mutex::new(vec![1]));
            let t = thread::spawn({
                let queue = queue.clone();
                move || queue.lock().unwrap().push(2)
            });
            if let Some(item) = queue.lock().unwrap().pop() {
                let items: &[i32] = if again { &[item + 10] } else { &[] };
                items.iter().for_each(|&item| queue.lock().unwrap().push(item));
            }
            t.join().unwrap();
        }
    };
    passes(queue(false));
    fails(FailureKind::Deadlock, queue(true));
}

#[test]
fn a_read_lock_cannot_be_upgraded() {
    fails(FailureKind::Deadlock, || {
        let cache = Arc::new(RwLock::new(None));
        let t = thread::spawn({
            let cache = cache.clone();
            move || *cache.write().unwrap() = Some(1)
        });
        let cached = cache.read().unwrap();
        if cached.is_none() {
            *cache.write().unwrap() = Some(2);
        }
        drop(cached);
        t.join().unwrap();
    });
}

/// `resume_unwind` calls no panic hook. Destructors lock while other threads run, and those threads
/// do not count as unwinding.
#[test]
fn a_thread_that_resumes_a_panic_unwinds_alone() {
    struct Unwinds(Arc<Mutex<usize>>);
    impl Drop for Unwinds {
        fn drop(&mut self) {
            assert!(thread::panicking());
            *self.0.lock().unwrap() += 1;
            assert!(thread::panicking());
        }
    }
    passes(|| {
        let count = Arc::new(Mutex::new(0));
        let t = thread::spawn({
            let count = count.clone();
            move || {
                caught(|| {
                    let _unwinds = Unwinds(count.clone());
                    give_up();
                });
                assert!(!thread::panicking());
            }
        });
        *count.lock().unwrap() += 1;
        assert!(!thread::panicking());
        t.join().unwrap();
        assert_eq!(*count.lock().unwrap(), 2, "no guard was dropped by a panic");
    });
}

/// Abandoning the execution must restore the panic count of the OS thread.
#[test]
fn a_deadlock_while_unwinding_leaves_the_os_thread_clean() {
    struct Locks(Arc<Mutex<()>>);
    impl Drop for Locks {
        fn drop(&mut self) {
            let _guard = self.0.lock();
        }
    }
    for _ in 0..2 {
        fails(FailureKind::Deadlock, || {
            let lock = Arc::new(Mutex::new(()));
            let t = thread::spawn({
                let lock = lock.clone();
                move || {
                    caught(|| {
                        let _locks = Locks(lock);
                        give_up();
                    });
                }
            });
            let _guard = lock.lock();
            t.join().unwrap();
        });
        assert!(!std::thread::panicking());
    }
}

// ---- Once, OnceLock, LazyLock ----

#[test]
fn a_once_that_panicked_is_poisoned_until_it_is_forced() {
    passes(|| {
        let (once, runs) = (Arc::new(Once::new()), Arc::new(AtomicUsize::new(0)));
        let t = thread::spawn({
            let once = once.clone();
            move || {
                // The other thread may have completed it by now.
                let _ = catch_unwind(AssertUnwindSafe(|| once.call_once(give_up)));
            }
        });
        once.call_once_force(|state| {
            runs.fetch_add(1 + usize::from(state.is_poisoned()), SeqCst);
        });
        assert!(once.is_completed() && [1, 2].contains(&runs.load(SeqCst)));
        t.join().unwrap();
        once.call_once(|| unreachable!("already completed"));
    });
}

#[test]
fn a_poisoned_once_that_is_not_forced_panics() {
    fails(FailureKind::Panic, || {
        let once = Arc::new(Once::new());
        let t = thread::spawn({
            let once = once.clone();
            move || {
                let _ = catch_unwind(AssertUnwindSafe(|| once.call_once(give_up)));
            }
        });
        once.call_once(|| ());
        t.join().unwrap();
    });
}

#[test]
fn a_value_is_initialised_once_and_seen_whole() {
    passes(|| {
        let (made, cell) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceLock::new()));
        let get = |made: &AtomicUsize, cell: &OnceLock<[usize; 2]>| {
            let value = cell.get_or_init(|| [made.fetch_add(1, Relaxed), 7]);
            assert_eq!(*value, [0, 7]);
        };
        let t = thread::spawn({
            let (made, cell) = (made.clone(), cell.clone());
            move || get(&made, &cell)
        });
        get(&made, &cell);
        assert_eq!(cell.set([1, 1]), Err([1, 1]));
        t.join().unwrap();
        assert_eq!(made.load(Relaxed), 1);
    });
}

#[test]
fn a_lazy_lock_whose_initialiser_panics_stays_poisoned() {
    passes(|| {
        let lazy: Arc<LazyLock<usize>> = Arc::new(LazyLock::new(|| {
            give_up();
            1
        }));
        let t = thread::spawn({
            let lazy = lazy.clone();
            move || {
                caught(|| {
                    let _ = **lazy;
                });
            }
        });
        caught(|| {
            let _ = **lazy;
        });
        t.join().unwrap();
    });
}

preempt::lazy_static! {
    static ref REGISTRY: Mutex<Vec<usize>> = Mutex::new(Vec::new());
}

/// A `lazy_static!` is uninitialised at the start of every execution.
#[test]
fn a_lazy_static_is_initialised_in_every_execution() {
    passes(|| {
        let t = thread::spawn(|| REGISTRY.lock().unwrap().push(1));
        REGISTRY.lock().unwrap().push(2);
        t.join().unwrap();
        let mut registered = REGISTRY.lock().unwrap().clone();
        registered.sort_unstable();
        assert_eq!(registered, [1, 2]);
    });
}

// ---- reference counts ----

/// Both threads may see the other's reference, and then neither gets the value.
#[test]
fn try_unwrap_may_fail_for_both_owners_and_into_inner_does_not() {
    let body = |take: fn(Arc<Mutex<usize>>) -> Option<Mutex<usize>>| {
        move || {
            let value = Arc::new(Mutex::new(5));
            let t = thread::spawn({
                let value = value.clone();
                move || take(value).is_some()
            });
            let here = take(value).is_some();
            let there = t.join().unwrap();
            assert!(here != there, "one of the two gets the value");
        }
    };
    fails(FailureKind::Panic, body(|value| Arc::try_unwrap(value).ok()));
    passes(body(Arc::into_inner));
}

#[test]
fn get_mut_succeeds_only_after_the_other_owner_dropped_its_reference() {
    passes(|| {
        let mut value = Arc::new(1);
        let t = thread::spawn({
            let value = value.clone();
            move || *value
        });
        if let Some(value) = Arc::get_mut(&mut value) {
            *value = 2;
        }
        assert_eq!(t.join().unwrap(), 1);
        *Arc::get_mut(&mut value).unwrap() += 1;
        assert!([2, 3].contains(&*value));
    });
}

#[test]
fn an_upgrade_may_come_too_late() {
    let body = |must: bool| {
        move || {
            let node = Arc::new(AtomicUsize::new(1));
            let weak: Weak<AtomicUsize> = Arc::downgrade(&node);
            let t = thread::spawn(move || drop(node));
            match weak.upgrade() {
                Some(node) => assert_eq!(node.load(SeqCst), 1),
                None => assert!(!must, "the node was dropped"),
            }
            t.join().unwrap();
            assert!(weak.upgrade().is_none());
        }
    };
    passes(body(false));
    fails(FailureKind::Panic, body(true));
}

/// A parent owns its child, and the child refers to its parent.
struct Parent(Mutex<Option<Arc<Child>>>);

enum Child {
    Owns(#[allow(dead_code)] Arc<Parent>),
    Refers(Weak<Parent>),
}

#[test]
fn a_reference_cycle_leaks_unless_one_reference_is_weak() {
    fails(FailureKind::Leak, || {
        let parent = Arc::new(Parent(Mutex::new(None)));
        let t = thread::spawn({
            let parent = parent.clone();
            move || {
                let child = Arc::new(Child::Owns(parent.clone()));
                *parent.0.lock().unwrap() = Some(child);
            }
        });
        t.join().unwrap();
    });
    passes(|| {
        let parent = Arc::new(Parent(Mutex::new(None)));
        let t = thread::spawn({
            let parent = parent.clone();
            move || {
                let child = Arc::new(Child::Refers(Arc::downgrade(&parent)));
                *parent.0.lock().unwrap() = Some(child);
            }
        });
        t.join().unwrap();
        let child = parent.0.lock().unwrap().clone().unwrap();
        let Child::Refers(of) = &*child else { unreachable!("created as `Refers`") };
        assert!(Arc::ptr_eq(&of.upgrade().unwrap(), &parent));
    });
}

/// The thread that drops the last reference runs the destructor; its panic is a finding.
struct Fragile(AtomicBool);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.0.load(SeqCst), "dropped while it is in use");
    }
}

#[test]
fn a_panic_in_the_destructor_of_an_arc_is_found_in_either_thread() {
    let body = |in_use: bool| {
        move || {
            let fragile = Arc::new(Fragile(AtomicBool::new(false)));
            let t = thread::spawn({
                let fragile = fragile.clone();
                move || {
                    fragile.0.store(true, SeqCst);
                    fragile.0.store(in_use, SeqCst);
                }
            });
            drop(fragile);
            t.join().unwrap();
        }
    };
    passes(body(false));
    fails(FailureKind::Panic, body(true));
}

#[test]
fn make_mut_does_not_change_the_value_of_other_owners() {
    passes(|| {
        let mut list = Arc::new(vec![1]);
        let t = thread::spawn({
            let list = list.clone();
            move || list.iter().sum::<usize>()
        });
        Arc::make_mut(&mut list).push(10);
        assert_eq!(t.join().unwrap(), 1);
        assert_eq!(*list, [1, 10]);
    });
}

// ---- channels ----

/// Decrements a counter when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, SeqCst);
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn a_blocked_sender_fails_when_the_receiver_is_dropped() {
    for bound in [0, 1] {
        passes(move || {
            let alive = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = mpsc::sync_channel(bound);
            let t = thread::spawn({
                let alive = alive.clone();
                move || {
                    let sent = (0..2).filter(|_| sender.send(Counted::new(&alive)).is_ok());
                    sent.count()
                }
            });
            drop(receiver);
            assert!(t.join().unwrap() <= bound);
            assert_eq!(alive.load(SeqCst), 0, "values that were not received are dropped");
        });
    }
}

/// The receiver's loop ends when the last sender is dropped, and blocks while one is kept.
#[test]
fn a_blocked_receiver_fails_when_all_senders_are_dropped() {
    let body = |keeps: bool| {
        move || {
            let (sender, receiver) = mpsc::channel();
            let threads = [1, 2].map(|item| {
                let sender = sender.clone();
                thread::spawn(move || sender.send(item).unwrap())
            });
            let kept = keeps.then_some(sender);
            let sum: usize = receiver.iter().sum();
            assert_eq!(sum, 3);
            drop(kept);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    };
    passes(body(false));
    fails(FailureKind::Deadlock, body(true));
}

#[test]
fn a_request_carries_the_channel_for_its_answer() {
    passes(|| {
        let (requests, server) = mpsc::channel::<(usize, mpsc::Sender<usize>)>();
        let t = thread::spawn(move || {
            for (number, answer) in server {
                // The client may have dropped its receiver.
                let _ = answer.send(number * number);
            }
        });
        let (answer, answers) = mpsc::channel();
        requests.send((3, answer.clone())).unwrap();
        let (impatient, _) = mpsc::channel();
        requests.send((4, impatient)).unwrap();
        drop((requests, answer));
        assert_eq!(answers.iter().collect::<Vec<_>>(), [9]);
        t.join().unwrap();
    });
}

// ---- waiting ----

#[test]
fn a_wait_with_a_timeout_may_end_either_way() {
    let body = |trusts: bool| {
        move || {
            let shared = Arc::new((Mutex::new(false), Condvar::new()));
            let t = thread::spawn({
                let shared = shared.clone();
                move || {
                    *shared.0.lock().unwrap() = true;
                    shared.1.notify_one();
                }
            });
            let ready = shared.0.lock().unwrap();
            let (ready, timeout) = shared
                .1
                .wait_timeout_while(ready, Duration::from_secs(1), |ready| !*ready)
                .unwrap();
            assert_eq!(timeout.timed_out(), !*ready);
            assert!(*ready || !trusts, "the flag is set before the timeout");
            drop(ready);
            t.join().unwrap();
        }
    };
    passes(body(false));
    fails(FailureKind::Panic, body(true));
}

#[test]
fn a_barrier_has_one_leader_in_each_round() {
    passes(|| {
        let (barrier, leaders) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        let rounds = |barrier: &Barrier, leaders: &AtomicUsize| {
            for round in 1..=2 {
                if barrier.wait().is_leader() {
                    leaders.fetch_add(1, SeqCst);
                }
                let led = leaders.load(SeqCst);
                assert!((round - 1..=round).contains(&led), "{led} leaders in round {round}");
            }
        };
        let t = thread::spawn({
            let (barrier, leaders) = (barrier.clone(), leaders.clone());
            move || rounds(&barrier, &leaders)
        });
        rounds(&barrier, &leaders);
        t.join().unwrap();
        assert_eq!(leaders.load(SeqCst), 2);
    });
}

#[test]
fn park_tokens_do_not_accumulate() {
    let body = |parks: usize| {
        move || {
            let waiter = thread::spawn(move || (0..parks).for_each(|_| thread::park()));
            waiter.thread().unpark();
            waiter.thread().unpark();
            waiter.join().unwrap();
        }
    };
    passes(body(1));
    fails(FailureKind::Deadlock, body(2));
}

/// `park` may return without a token, so its condition is checked in a loop.
#[test]
fn a_park_without_a_loop_fails_with_spurious_wakeups_only() {
    let body = |again: bool| {
        move || {
            let ready = Arc::new(AtomicBool::new(false));
            let waiter = thread::spawn({
                let ready = ready.clone();
                move || {
                    thread::park();
                    while again && !ready.load(Acquire) {
                        thread::park();
                    }
                    assert!(ready.load(Acquire), "woken too early");
                }
            });
            ready.store(true, Release);
            waiter.thread().unpark();
            waiter.join().unwrap();
        }
    };
    passes(body(false));
    passes_with(Check::spurious_wakeups, body(true));
    fails_with(Check::spurious_wakeups, FailureKind::Panic, body(false));
}

#[test]
fn a_thread_is_polled_until_it_has_finished() {
    passes(|| {
        let t = thread::spawn(|| thread::yield_now());
        while !t.is_finished() {
            thread::yield_now();
        }
        t.join().unwrap();
    });
}

// ---- loops that write, futures ----

/// Peterson's lock. The loop reads and yields; a counter makes every iteration write.
#[test]
fn petersons_lock_works_whether_or_not_its_loop_counts() {
    struct Peterson {
        wants: [AtomicBool; 2],
        turn: AtomicUsize,
        rounds: AtomicUsize,
        value: UnsafeCell<usize>,
    }
    // SAFETY: the lock protects the value.
    unsafe impl Sync for Peterson {}
    // SAFETY: as above.
    unsafe impl Send for Peterson {}
    impl Peterson {
        fn add(&self, me: usize, polite: bool) {
            self.wants[me].store(true, SeqCst);
            self.turn.store(if polite { 1 - me } else { me }, SeqCst);
            while self.wants[1 - me].load(SeqCst) && self.turn.load(SeqCst) == 1 - me {
                self.rounds.fetch_add(1, SeqCst);
                thread::yield_now();
            }
            // SAFETY: the lock is held.
            self.value.with_mut(|value| unsafe { *value += 1 });
            self.wants[me].store(false, SeqCst);
        }
    }
    let body = |polite: bool| {
        move || {
            let lock = Arc::new(Peterson {
                wants: [AtomicBool::new(false), AtomicBool::new(false)],
                turn: AtomicUsize::new(0),
                rounds: AtomicUsize::new(0),
                value: UnsafeCell::new(0),
            });
            let t = thread::spawn({
                let lock = lock.clone();
                move || lock.add(0, polite)
            });
            lock.add(1, polite);
            t.join().unwrap();
        }
    };
    passes(body(true));
    fails(FailureKind::Race, body(false));
}

/// A future that is ready at its third poll and wakes itself until then.
struct Third(Cell<usize>);

impl Future for Third {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.set(self.0.get() + 1);
        if self.0.get() == 3 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls two futures in turn until both are ready.
async fn join(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_done, mut second_done) = (false, false);
    std::future::poll_fn(|context| {
        first_done = first_done || first.as_mut().poll(context).is_ready();
        second_done = second_done || second.as_mut().poll(context).is_ready();
        if first_done && second_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn a_future_that_wakes_itself_beside_one_that_another_thread_sets() {
    passes(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || flag.store(true, SeqCst)
        });
        let set = std::future::poll_fn(|context: &mut Context<'_>| {
            if flag.load(SeqCst) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        block_on(join(Third(Cell::new(0)), set));
        t.join().unwrap();
    });
}

// ---- memory ----

#[test]
fn a_box_passed_on_is_dropped_once_and_a_shared_one_is_used_after_free() {
    let body = |takes: bool| {
        move || {
            let node = Box::into_raw(Box::new(AtomicUsize::new(1)));
            let slot = Arc::new(AtomicPtr::new(node));
            let t = thread::spawn({
                let slot = slot.clone();
                move || {
                    let node = slot.swap(std::ptr::null_mut(), SeqCst);
                    if !node.is_null() {
                        // SAFETY: it was taken out of the slot.
                        drop(unsafe { Box::from_raw(node) });
                    }
                }
            });
            let null = std::ptr::null_mut();
            let node = if takes { slot.swap(null, SeqCst) } else { slot.load(SeqCst) };
            // SAFETY: not freed if it was taken; if it was not, this is the bug.
            if let Some(value) = unsafe { node.as_ref() } {
                assert_eq!(value.load(SeqCst), 1);
            }
            if takes && !node.is_null() {
                // SAFETY: it was taken out of the slot.
                drop(unsafe { Box::from_raw(node) });
            }
            t.join().unwrap();
        }
    };
    passes(body(true));
    fails(FailureKind::Runtime, body(false));
}

#[test]
fn a_double_checked_flag_must_be_stored_with_release() {
    struct Once {
        ready: AtomicBool,
        lock: Mutex<()>,
        value: UnsafeCell<usize>,
    }
    // SAFETY: the value is written under the lock, before the flag is set.
    unsafe impl Sync for Once {}
    // SAFETY: as above.
    unsafe impl Send for Once {}
    let body = |order| {
        move || {
            let once = Arc::new(Once {
                ready: AtomicBool::new(false),
                lock: Mutex::new(()),
                value: UnsafeCell::new(0),
            });
            let get = move |once: &Once| {
                if !once.ready.load(Acquire) {
                    let _guard = once.lock.lock().unwrap();
                    if !once.ready.load(Relaxed) {
                        // SAFETY: the lock is held, and the flag is not set.
                        once.value.with_mut(|value| unsafe { *value = 5 });
                        once.ready.store(true, order);
                    }
                }
                // SAFETY: the flag is set, after which the value does not change.
                once.value.with(|value| assert_eq!(unsafe { *value }, 5));
            };
            let t = thread::spawn({
                let once = once.clone();
                move || get(&once)
            });
            get(&once);
            t.join().unwrap();
        }
    };
    passes(body(Release));
    fails(FailureKind::Race, body(Relaxed));
}

// ---- threads ----

preempt::thread_local! {
    static SEEN: Cell<usize> = const { Cell::new(0) };
    static LAST: Report = Report(Cell::new(None));
}

/// Sends its value when its thread ends.
struct Report(Cell<Option<mpsc::Sender<usize>>>);

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.send(SEEN.get()).unwrap();
        }
    }
}

#[test]
fn thread_locals_are_dropped_at_the_end_of_their_threads() {
    passes(|| {
        let (sender, reports) = mpsc::channel();
        let threads = [1, 2].map(|times| {
            let sender = sender.clone();
            thread::spawn(move || {
                LAST.with(|last| last.0.set(Some(sender)));
                (0..times).for_each(|_| SEEN.set(SEEN.get() + 1));
            })
        });
        drop(sender);
        let mut seen: Vec<usize> = reports.iter().collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
        assert_eq!(SEEN.get(), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_panic_in_the_destructor_of_a_thread_local_is_found() {
    struct Unused(Cell<bool>);
    impl Drop for Unused {
        fn drop(&mut self) {
            assert!(!self.0.get(), "the thread local was not used");
        }
    }
    preempt::thread_local! {
        static FIRST: Unused = const { Unused(Cell::new(false)) };
        static SECOND: Unused = const { Unused(Cell::new(false)) };
    }
    let body = |wrong: bool| {
        move || {
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || {
                    let late = n.fetch_add(1, SeqCst) == 1;
                    FIRST.with(|first| first.0.set(late && wrong));
                    SECOND.with(|second| second.0.set(late && wrong));
                }
            });
            n.fetch_add(1, SeqCst);
            t.join().unwrap();
        }
    };
    passes(body(false));
    fails(FailureKind::Panic, body(true));
}

#[test]
fn scoped_threads_borrow_and_are_joined_at_the_end() {
    let body = |together: bool| {
        move || {
            let (mut own, shared) = ([0, 0], AtomicUsize::new(0));
            thread::scope(|scope| {
                for own in &mut own {
                    let shared = &shared;
                    scope.spawn(move || {
                        *own += 1;
                        if together {
                            shared.fetch_add(1, SeqCst);
                        } else {
                            shared.store(shared.load(SeqCst) + 1, SeqCst);
                        }
                    });
                }
            });
            assert_eq!((own, shared.into_inner()), ([1, 1], 2));
        }
    };
    passes(body(true));
    fails(FailureKind::Panic, body(false));
}

#[test]
fn a_panic_of_a_scoped_thread_fails_even_if_its_handle_is_dropped() {
    fails(FailureKind::Panic, || {
        let n = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                if n.load(SeqCst) == 1 {
                    give_up();
                }
            });
            n.fetch_add(1, SeqCst);
        });
    });
}

/// The first thread ends before the other thread, which continues.
#[test]
fn a_thread_that_is_not_joined_runs_to_its_end() {
    let body = |wrong: bool| {
        move || {
            let n = Arc::new(AtomicUsize::new(0));
            drop(thread::spawn({
                let n = n.clone();
                move || {
                    let before = n.fetch_add(1, SeqCst);
                    assert!(!(wrong && before == 1), "after the end of the first thread");
                }
            }));
            n.fetch_add(1, SeqCst);
        }
    };
    passes(body(false));
    fails(FailureKind::Panic, body(true));
}
