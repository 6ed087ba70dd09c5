//! Observations that std documents, or that its operations allow because they do not synchronise:
//! poison flags, reference counts, the end of a thread, `Debug` of atomics. Each is a step that
//! every search orders with what it observes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use preempt::sync::{Arc, Mutex, Once, RwLock, Weak, mpsc};
use preempt::{Check, FailureKind, Memory, Outcome, Reduction, thread};

/// The default search, all executions, and all traces.
fn checks() -> [Check; 3] {
    [Check::new(), Check::new().unbounded(), Check::new().reduce(Reduction::Source).unbounded()]
}

/// Every search finds a panic whose message contains `message`.
#[track_caller]
fn finds(message: &str, configure: fn(Check) -> Check, test: impl Fn() + Sync) {
    for check in checks() {
        let outcome = configure(check).run(&test);
        let found = outcome.findings.iter().any(|finding| {
            finding.failure.kind == FailureKind::Panic && finding.failure.message.contains(message)
        });
        assert!(found, "{}: {:?}", outcome.guarantee(), outcome.findings);
    }
}

/// Every search passes and is complete.
#[track_caller]
fn passes(configure: fn(Check) -> Check, test: impl Fn() + Sync) -> Vec<Outcome> {
    checks()
        .into_iter()
        .map(|check| {
            let outcome = configure(check).run(&test);
            assert!(outcome.complete, "{}", outcome.guarantee());
            assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
            outcome
        })
        .collect()
}

fn as_it_is(check: Check) -> Check {
    check
}

fn poisons(mutex: &Arc<Mutex<i32>>) -> thread::JoinHandle<()> {
    let mutex = mutex.clone();
    thread::spawn(move || {
        let _guard = mutex.lock();
        panic!("poisons");
    })
}

#[test]
fn a_lock_is_poisoned_at_any_time() {
    finds("not yet", Check::allow_panics, || {
        let mutex = Arc::new(Mutex::new(0));
        let t = poisons(&mutex);
        assert!(!mutex.is_poisoned(), "not yet");
        let _ = t.join();
    });
    finds("both times", Check::allow_panics, || {
        let mutex = Arc::new(Mutex::new(0));
        let t = poisons(&mutex);
        let seen = [mutex.is_poisoned(), mutex.is_poisoned()];
        assert_eq!(seen[0], seen[1], "both times");
        let _ = t.join();
    });
}

#[test]
fn poison_is_cleared_at_any_time() {
    let cleared = |expected: bool| {
        move || {
            let mutex = Arc::new(Mutex::new(0));
            let _ = poisons(&mutex).join();
            let other = mutex.clone();
            let t = thread::spawn(move || other.lock().is_err());
            mutex.clear_poison();
            let was_poisoned = t.join().is_ok_and(|it| it);
            assert_ne!(was_poisoned, expected, "order");
        }
    };
    finds("order", Check::allow_panics, cleared(true));
    finds("order", Check::allow_panics, cleared(false));
}

/// The thread that drops the last reference runs the destructor.
#[test]
fn destructors_may_depend_on_their_thread() {
    struct Named;
    impl Drop for Named {
        fn drop(&mut self) {
            assert_ne!(thread::current().name(), Some("one"), "dropped by one");
        }
    }
    finds("dropped by one", as_it_is, || {
        let named = Arc::new(Named);
        let threads = ["one", "two"].map(|name| {
            let (named, own) = (named.clone(), AtomicUsize::new(0));
            let run = move || {
                own.store(1, SeqCst);
                drop(named);
                own.store(2, SeqCst);
            };
            thread::Builder::new().name(name.into()).spawn(run).expect("there is room")
        });
        drop(named);
        threads.into_iter().for_each(|t| t.join().expect("the check reports panics"));
    });
}

#[test]
fn the_text_of_an_atomic_is_a_load() {
    finds("text", as_it_is, || {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let t = thread::spawn(move || other.store(1, SeqCst));
        assert_eq!(format!("{x:?}"), "0", "text");
        t.join().expect("nothing in it panics");
    });
}

/// They are relaxed loads in std: what a thread did before its end or its drop need not be visible.
#[test]
fn observations_that_do_not_synchronise() {
    fn finds_by_default(test: impl Fn() + Sync) {
        let outcome = Check::new().run(test);
        let [finding] = &outcome.findings[..] else { panic!("{}", outcome.guarantee()) };
        assert!(finding.failure.message.contains("stale"), "{finding:?}");
    }
    finds_by_default(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let t = thread::spawn(move || other.store(1, SeqCst));
        if t.is_finished() {
            assert_eq!(x.load(SeqCst), 1, "stale");
        }
        t.join().expect("nothing in it panics");
    });
    finds_by_default(|| {
        let (x, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let (other, counted_too) = (x.clone(), counted.clone());
        let t = thread::spawn(move || {
            other.store(1, SeqCst);
            drop(counted_too);
        });
        if Arc::strong_count(&counted) == 1 {
            assert_eq!(x.load(SeqCst), 1, "stale");
        }
        t.join().expect("nothing in it panics");
    });
    finds_by_default(|| {
        let (x, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let (other, weak): (_, Weak<()>) = (x.clone(), Arc::downgrade(&counted));
        let t = thread::spawn(move || {
            other.store(1, SeqCst);
            drop(counted);
        });
        if weak.upgrade().is_none() {
            assert_eq!(x.load(SeqCst), 1, "stale");
        }
        t.join().expect("nothing in it panics");
    });
    finds_by_default(|| {
        let (x, lock) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
        let (other, lock_too) = (x.clone(), lock.clone());
        let t = thread::spawn(move || {
            other.store(1, SeqCst);
            let _guard = lock_too.lock();
        });
        if lock.try_lock().is_err() {
            assert_eq!(x.load(SeqCst), 1, "stale");
        }
        t.join().expect("nothing in it panics");
    });
}

/// std lets a waiting writer block new readers. Then this test would wait forever: the search
/// assumes that it does not, and says so.
#[test]
fn readers_that_overtake_a_writer_are_an_assumption() {
    let test = |writes: bool| {
        move || {
            let (lock, (sender, receiver)) = (Arc::new(RwLock::new(0)), mpsc::channel());
            let (write, read) = (lock.clone(), lock.clone());
            let w = thread::spawn(move || {
                if writes {
                    *write.write().expect("nothing panics") += 1;
                }
            });
            let r = thread::spawn(move || {
                let _guard = read.read();
                sender.send(()).expect("the receiver waits");
            });
            let guard = lock.read();
            receiver.recv().expect("the sender sends");
            drop(guard);
            w.join().expect("nothing in it panics");
            r.join().expect("nothing in it panics");
        }
    };
    let words = "does not wait for a writer that waits";
    for outcome in passes(as_it_is, test(true)) {
        assert!(outcome.assumptions.iter().any(|it| it.contains(words)), "{outcome:?}");
        assert!(outcome.guarantee().contains(words), "{}", outcome.guarantee());
    }
    for outcome in passes(as_it_is, test(false)) {
        assert_eq!(outcome.assumptions, Vec::<String>::new());
    }
}

#[test]
fn orderings_that_do_not_exist_panic_as_in_std() {
    type Case = (&'static str, fn(&AtomicUsize));
    let cases: [Case; 9] = [
        ("a release load", |x| _ = x.load(Release)),
        ("an acquire-release load", |x| _ = x.load(AcqRel)),
        ("an acquire store", |x| x.store(1, Acquire)),
        ("an acquire-release store", |x| x.store(1, AcqRel)),
        ("a release failure ordering", |x| _ = x.compare_exchange(0, 1, SeqCst, Release)),
        ("an acquire-release failure ordering", |x| {
            _ = x.compare_exchange_weak(0, 1, SeqCst, AcqRel);
        }),
        ("a release load", |x| _ = x.fetch_update(SeqCst, Release, |_| None)),
        ("a relaxed fence", |_| fence(Relaxed)),
        ("a release load", |_| {
            _ = AtomicPtr::<u8>::new(std::ptr::null_mut()).load(Release);
        }),
    ];
    for (what, case) in cases {
        // Outside and inside a check.
        let outside = catch_unwind(AssertUnwindSafe(|| case(&AtomicUsize::new(0))));
        assert!(outside.is_err(), "{what}");
        let outcome = Check::new().run(|| case(&AtomicUsize::new(0)));
        let [finding] = &outcome.findings[..] else { panic!("{what}: {}", outcome.guarantee()) };
        let message = format!("there is no such thing as {what}");
        assert!(finding.failure.message.contains(&message), "{finding:?}");
    }
}

/// A value that threads write in turn; a race if nothing orders them.
struct Value(UnsafeCell<i32>);

// SAFETY: the check reports races.
unsafe impl Sync for Value {}

impl Value {
    fn set(&self, value: i32) {
        // SAFETY: the check reports races.
        self.0.with_mut(|place| unsafe { *place = value });
    }
}

/// The caller that gets the value is ordered after all owners that did not.
#[test]
fn into_inner_orders_the_owners() {
    let test = || {
        let value = Arc::new(Value(UnsafeCell::new(0)));
        let other = value.clone();
        let t = thread::spawn(move || {
            other.set(1);
            if let Some(value) = Arc::into_inner(other) {
                value.set(2);
            }
        });
        if let Some(value) = Arc::into_inner(value) {
            value.set(3);
        }
        t.join().expect("nothing in it panics");
    };
    passes(as_it_is, test);
    let weak = Check::new().memory(Memory::Weak).unbounded().run(test);
    assert!(weak.findings.is_empty(), "{:?}", weak.findings);
}

/// With only weak references left, `make_mut` moves the value.
#[test]
fn make_mut_without_other_owners_moves_the_value() {
    struct Moved(u32);
    impl Clone for Moved {
        fn clone(&self) -> Moved {
            panic!("cloned");
        }
    }
    passes(as_it_is, || {
        let mut value = Arc::new(Moved(1));
        let weak = Arc::downgrade(&value);
        Arc::make_mut(&mut value).0 = 2;
        assert!(weak.upgrade().is_none());
        assert_eq!((value.0, Arc::strong_count(&value), Arc::weak_count(&value)), (2, 1, 0));
        let again = Arc::downgrade(&value);
        assert_eq!(again.upgrade().map(|value| value.0), Some(2));
    });
}

/// An attempt that is repeated after a panic is running, not poisoned.
#[test]
fn wait_waits_for_a_forced_attempt() {
    let outcome = Check::new().allow_panics().run(|| {
        let once = Arc::new(Once::new());
        let _ = catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("first attempt"))));
        let (waits, mut handle) = (once.clone(), None);
        once.call_once_force(|state| {
            assert!(state.is_poisoned());
            handle = Some(thread::spawn(move || waits.wait()));
        });
        let waits = handle.take().expect("the attempt has started it");
        waits.join().expect("the wait ends without a panic");
    });
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
}
