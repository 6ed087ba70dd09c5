//! Every kind of finding, and the text of its report.

use std::panic::catch_unwind;
use std::sync::atomic::AtomicUsize as Uncontrolled;

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering, Ordering::SeqCst};
use preempt::sync::{Arc, Condvar, Mutex, RwLock};
use preempt::{Cache, Check, FailureKind, Order, Outcome, Reduction, check, thread};

use crate::seq_cst;

/// The message with which the check panics.
#[track_caller]
fn text(body: impl Fn() + Sync + std::panic::RefUnwindSafe + std::panic::UnwindSafe) -> String {
    *catch_unwind(|| check(body))
        .expect_err("the check fails")
        .downcast::<String>()
        .expect("a message")
}

#[track_caller]
fn finding(outcome: &Outcome, kind: FailureKind, message: &str) {
    let [finding] = &outcome.findings[..] else {
        panic!("expected one finding, got {:?}", outcome.findings)
    };
    assert_eq!(finding.failure.kind, kind, "{finding:?}");
    assert!(finding.failure.message.contains(message), "{finding:?}");
}

/// Every search that finds all errors.
fn strategies() -> [Check; 7] {
    [
        Check::new(),
        Check::new().order(Order::Icb { cache: Cache::None }),
        Check::new().order(Order::Executions),
        Check::new().unbounded(),
        Check::new().reduce(Reduction::Source),
        Check::new().reduce(Reduction::Sleep),
        Check::new().reduce(Reduction::CbPor),
    ]
}

#[track_caller]
fn found_by_all(kind: FailureKind, message: &str, body: impl Fn() + Sync) {
    found_by_searches(kind, message, &body);
    seq_cst::compare(body);
}

/// The same for bodies that have more execution graphs under weak memory than traces.
#[track_caller]
fn found_by_searches(kind: FailureKind, message: &str, body: impl Fn() + Sync) {
    strategies().iter().for_each(|check| finding(&check.run(&body), kind, message));
    finding(&Check::new().order(Order::Random).runs(10_000).run(&body), kind, message);
    finding(&Check::new().order(Order::Pct { depth: 3 }).runs(10_000).run(&body), kind, message);
}

fn lost_update() {
    let n = Arc::new(AtomicUsize::new(0));
    let t = thread::spawn({
        let n = n.clone();
        move || n.store(n.load(SeqCst) + 1, SeqCst)
    });
    n.store(n.load(SeqCst) + 1, SeqCst);
    t.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "an update was lost");
}

#[test]
fn a_lost_update() {
    found_by_all(FailureKind::Panic, "an update was lost", lost_update);
    let text = text(lost_update);
    for part in [
        "panic: main panicked at",
        "an update was lost",
        "── preemption: main could have continued",
        ".load() = 0",
        ".store(1), was 0",
        "7 steps, 1 preemption",
        "PREEMPT_REPLAY=p1-",
        "no error needs fewer than",
        "sequentially consistent",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

fn abba() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let t = thread::spawn({
        let locks = locks.clone();
        move || {
            let _b = locks.1.lock().unwrap();
            let _a = locks.0.lock().unwrap();
        }
    });
    let a = locks.0.lock().unwrap();
    let b = locks.1.lock().unwrap();
    drop((a, b));
    t.join().unwrap();
}

#[test]
fn a_deadlock_names_the_waiting_threads_and_their_locks() {
    found_by_all(FailureKind::Deadlock, "no thread can move", abba);
    let text = text(abba);
    assert!(text.contains("main waits at line") && text.contains("t1   waits at line"), "{text}");
    assert_eq!(Check::new().run(abba).findings[0].preemptions, 1);
}

#[test]
fn a_lost_wakeup_is_a_deadlock() {
    found_by_searches(FailureKind::Deadlock, "no thread can move", || {
        let pair = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                pair.0.store(true, SeqCst);
                pair.2.notify_one();
            }
        });
        // The mutex does not protect the flag: the notification may come between the load and the
        // wait.
        let mut guard = pair.1.lock().unwrap();
        while !pair.0.load(SeqCst) {
            guard = pair.2.wait(guard).unwrap();
        }
        drop(guard);
        t.join().unwrap();
    });
}

struct Racy(UnsafeCell<usize>);
// SAFETY: the check reports unordered accesses.
unsafe impl Sync for Racy {}
// SAFETY: as above.
unsafe impl Send for Racy {}

impl Racy {
    fn get(&self) -> usize {
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self) {
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

fn flagged(store: Ordering, load: Ordering) {
    let shared = Arc::new((Racy(UnsafeCell::new(0)), AtomicBool::new(false)));
    let t = thread::spawn({
        let shared = shared.clone();
        move || {
            shared.0.add();
            shared.1.store(true, store);
        }
    });
    if shared.1.load(load) {
        assert_eq!(shared.0.get(), 1);
    }
    t.join().unwrap();
    assert_eq!(shared.0.get(), 1);
}

#[test]
fn a_data_race_names_both_accesses() {
    found_by_all(FailureKind::Race, "data race on the cell made at", || {
        let cell = Arc::new(Racy(UnsafeCell::new(0)));
        let t = thread::spawn({
            let cell = cell.clone();
            move || cell.add()
        });
        cell.get();
        t.join().unwrap();
    });
    for (store, load) in
        [(Ordering::Relaxed, Ordering::Acquire), (Ordering::Release, Ordering::Relaxed)]
    {
        let outcome = Check::new().run(|| flagged(store, load));
        finding(&outcome, FailureKind::Race, "findings.rs");
        let message = &outcome.findings[0].failure.message;
        assert!(
            message.contains("main reads it at") && message.contains("t1 writes it at"),
            "{message}"
        );
    }
    assert!(
        Check::new()
            .unbounded()
            .run(|| flagged(Ordering::Release, Ordering::Acquire))
            .findings
            .is_empty()
    );
}

#[test]
fn locks_joins_and_the_last_arc_order_accesses() {
    let outcome = Check::new().unbounded().run(|| {
        struct OnDrop(Racy);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.add();
            }
        }
        let shared = Arc::new((Mutex::new(()), OnDrop(Racy(UnsafeCell::new(0)))));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.lock().unwrap();
                shared.1.0.add();
            }
        });
        let guard = shared.0.lock().unwrap();
        shared.1.0.add();
        drop(guard);
        drop(shared);
        drop(t);
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

#[test]
fn readers_of_a_lock_do_not_order_each_other() {
    found_by_all(FailureKind::Race, "writes it at", || {
        let shared = Arc::new((RwLock::new(()), Racy(UnsafeCell::new(0))));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.read().unwrap();
                shared.1.add();
            }
        });
        let guard = shared.0.read().unwrap();
        shared.1.add();
        drop(guard);
        t.join().unwrap();
    });
}

#[test]
fn threads_that_spin_forever_are_a_livelock() {
    let body = || {
        let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let t = thread::spawn({
            let flags = flags.clone();
            move || {
                while !flags.0.load(SeqCst) {
                    thread::yield_now();
                }
                flags.1.store(true, SeqCst);
            }
        });
        while !flags.1.load(SeqCst) {}
        flags.0.store(true, SeqCst);
        t.join().unwrap();
    };
    let words = "the program runs forever: main (";
    for check in strategies()[..4].iter().chain([&Check::new().order(Order::Random)]) {
        let outcome = check.run(body);
        finding(&outcome, FailureKind::Livelock, words);
        let message = &outcome.findings[0].failure.message;
        assert!(
            message.matches("findings.rs:2").count() == 2 && message.contains(" and t1 ("),
            "{message}"
        );
        assert!(message.contains("repeat the same 2 steps"), "{message}");
    }
    for check in &strategies()[4..] {
        let panic = catch_unwind(|| check.run(body)).expect_err("refused");
        assert!(
            panic
                .downcast::<String>()
                .is_ok_and(|text| text.contains("every thread that can move spins"))
        );
    }
}

#[test]
fn a_bounded_number_of_attempts_is_not_a_livelock() {
    for check in &strategies()[..4] {
        let outcome = check.run(|| {
            let m = Mutex::new(());
            let _guard = m.lock().unwrap();
            for _ in 0..50 {
                if m.try_lock().is_ok() {
                    unreachable!("it is taken");
                }
                thread::yield_now();
            }
        });
        assert!(outcome.complete && outcome.findings.is_empty(), "{check:?} {:?}", outcome);
    }
}

#[test]
fn a_forgotten_arc_is_a_leak() {
    found_by_all(FailureKind::Leak, "the `Arc` made at", || std::mem::forget(Arc::new(1)));
}

#[test]
fn a_panic_of_a_thread_that_is_not_joined_is_a_finding() {
    found_by_all(FailureKind::Panic, "t1 panicked at", || drop(thread::spawn(|| panic!("alone"))));
    // Main would wait forever; the panic is reported, because it is the cause.
    found_by_all(FailureKind::Panic, "before it could notify", || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                let pair = &*pair;
                if pair.0.try_lock().is_ok() {
                    panic!("before it could notify");
                }
                pair.1.notify_all();
            }
        });
        let mut guard = pair.0.lock().unwrap_or_else(|e| e.into_inner());
        while !*guard {
            guard = pair.1.wait(guard).unwrap_or_else(|e| e.into_inner());
        }
        drop(guard);
        t.join().unwrap();
    });
}

#[test]
fn a_panic_of_a_thread_fails_the_check_even_if_it_is_joined() {
    found_by_all(FailureKind::Panic, "t1 panicked at", || {
        drop(thread::spawn(|| panic!("ignored")).join())
    });
    found_by_all(FailureKind::Panic, "t1 panicked at", || {
        assert!(thread::spawn(|| panic!("looked at")).join().is_err());
    });
    found_by_all(FailureKind::Panic, "t1 panicked at", || {
        thread::scope(|scope| drop(scope.spawn(|| panic!("in a scope")).join()));
    });
    let text = text(|| drop(thread::spawn(|| panic!("ignored")).join()));
    assert!(
        text.contains("a panic of a spawned thread fails a check")
            && text.contains("`Check::allow_panics`"),
        "{text}"
    );
    let own = self::text(|| panic!("of the first thread"));
    assert!(!own.contains("allow_panics"), "{own}");
    // A panic that the thread catches is not a finding.
    check(|| thread::spawn(|| assert!(catch_unwind(|| panic!("caught")).is_err())).join().unwrap());
}

#[test]
fn allowed_panics_are_results_of_join() {
    let allowed = Check::new().allow_panics();
    allowed.check(|| assert!(thread::spawn(|| panic!("expected")).join().is_err()));
    allowed.check(|| match thread::spawn(|| panic!("expected")).join() {
        Ok(()) => unreachable!("it panicked"),
        Err(payload) => assert_eq!(payload.downcast_ref::<&str>(), Some(&"expected")),
    });
    finding(
        &allowed.run(|| drop(thread::spawn(|| panic!("alone")))),
        FailureKind::Panic,
        "t1 panicked at",
    );
    finding(&allowed.run(|| panic!("of the first thread")), FailureKind::Panic, "main panicked at");
}

#[test]
fn a_panic_is_reported_before_the_failed_join() {
    let echoes = || {
        Check::new().allow_panics().check(|| thread::spawn(|| panic!("the cause")).join().unwrap())
    };
    let text = *catch_unwind(echoes)
        .expect_err("the check fails")
        .downcast::<String>()
        .expect("a message");
    let (cause, echo) = (text.find("the cause"), text.find("called `Result::unwrap()`"));
    assert!(cause.is_some() && cause < echo, "{text}");
}

#[test]
fn a_panic_poisons_and_releases_the_mutexes_that_its_thread_holds() {
    let outcome = Check::new().unbounded().allow_panics().run(|| {
        let m = Arc::new(Mutex::new(0));
        let t = thread::spawn({
            let m = m.clone();
            move || {
                let _guard = m.lock().unwrap();
                panic!("while it holds the mutex");
            }
        });
        let free = m.lock().is_ok();
        assert!(t.join().is_err());
        assert!(m.is_poisoned() && m.lock().is_err());
        m.clear_poison();
        assert!(m.lock().is_ok() || !free);
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert_eq!(outcome.executions(), Some(2));
}

#[test]
fn a_test_that_is_not_deterministic_is_reported() {
    let runs = Uncontrolled::new(0);
    let outcome = Check::new().order(Order::Executions).run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || n.store(1, SeqCst)
        });
        if runs.fetch_add(1, SeqCst).is_multiple_of(2) {
            n.load(SeqCst);
        } else {
            n.swap(2, SeqCst);
        }
        t.join().unwrap();
    });
    finding(&outcome, FailureKind::Nondeterminism, "not deterministic");
    assert!(
        outcome.findings[0].failure.message.contains("operation 1 of main"),
        "{:?}",
        outcome.findings
    );
    // The spawned thread has stepped in between.
    assert_eq!(outcome.findings[0].preemptions, 1, "{:?}", outcome.findings);
}

#[test]
fn a_failure_that_does_not_reproduce_is_nondeterminism() {
    let failed = Uncontrolled::new(0);
    let outcome = Check::new().order(Order::Executions).run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || n.store(1, SeqCst)
        });
        let seen = n.load(SeqCst);
        t.join().unwrap();
        assert!(seen == 0 || failed.fetch_add(1, SeqCst) > 0, "only once");
    });
    finding(&outcome, FailureKind::Nondeterminism, "it ended once with \"");
    assert_eq!(outcome.findings[0].preemptions, 1, "{:?}", outcome.findings);
}

#[test]
fn an_arc_of_another_execution_is_reported() {
    static LEFT: std::sync::Mutex<Option<Arc<AtomicUsize>>> = std::sync::Mutex::new(None);
    Check::new().run(|| *LEFT.lock().unwrap() = Some(Arc::new(AtomicUsize::new(0))));
    let outcome = Check::new().run(|| {
        // The thread is stopped while it holds this lock, which poisons it.
        let left = LEFT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let own = left.as_ref().expect("the first check stored it").clone();
        own.load(SeqCst);
    });
    finding(&outcome, FailureKind::Runtime, "another execution");
}

#[test]
fn a_search_stopped_by_a_limit_does_not_pass() {
    let limited = Check::new().executions(1);
    let body = || drop([(); 2].map(|()| thread::spawn(|| drop(Mutex::new(()).lock()))));
    let panic = catch_unwind(|| limited.check(body)).expect_err("incomplete");
    let text = panic.downcast::<String>().expect("a message");
    assert!(text.contains("INCOMPLETE") && text.contains("execution limit"), "{text}");
    limited.clone().allow_incomplete().check(body);
}

#[test]
fn a_check_inside_a_check_is_refused() {
    let text = text(|| check(|| ()));
    assert!(text.contains("a check cannot run inside of another check"), "{text}");
}

#[test]
fn an_unsound_combination_is_refused() {
    let panic = catch_unwind(|| Check::new().bound(2).reduce(Reduction::Optimal).run(|| ()))
        .expect_err("unsound");
    let text = panic.downcast::<String>().expect("a message");
    assert!(
        text.contains("`Reduction::Optimal` with `bound` misses errors")
            && text.contains("zoo/x.pre"),
        "{text}"
    );
}

#[test]
fn all_findings_are_reported_with_keep_going() {
    let outcome = Check::new().keep_going().run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || n.store(1, SeqCst)
        });
        let seen = n.load(SeqCst);
        t.join().unwrap();
        assert_ne!(seen, 0, "zero");
        assert_ne!(seen, 1, "one");
    });
    let mut texts: Vec<_> =
        outcome.findings.iter().map(|finding| finding.failure.message.clone()).collect();
    texts.sort();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("zero") && texts[1].contains("one"), "{texts:?}");
}

#[test]
fn a_test_without_anything_to_explore_says_so() {
    let unseen = || {
        let n = std::sync::Arc::new(Uncontrolled::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || n.fetch_add(1, SeqCst)
        });
        n.fetch_add(1, SeqCst);
        t.join().unwrap();
    };
    let refused = *catch_unwind(|| Check::new().report(unseen))
        .expect_err("refused")
        .downcast::<String>()
        .unwrap();
    assert!(
        refused.contains("there is only one schedule") && refused.contains("findings.rs:"),
        "{refused}"
    );
    assert!(
        refused.contains("`std::sync::atomic::AtomicUsize`")
            && refused.contains("allow_uncontrolled"),
        "{refused}"
    );
    let text = Check::new().allow_uncontrolled().report(unseen);
    assert!(text.contains("ok: no error") && text.contains("there is only one schedule"), "{text}");
    // Threads that share nothing are not a mistake.
    let apart = Check::new().report(|| thread::spawn(|| ()).join().unwrap());
    assert!(apart.contains("ok: no error"), "{apart}");
    assert!(!Check::new().bound(0).report(lost_update).contains("only one schedule"));
}

#[test]
fn a_panic_does_not_poison_the_mutexes_of_other_threads() {
    // One thread unwinds and stops before it releases its mutex; meanwhile the other releases its
    // own.
    let outcome = Check::new().order(Order::Executions).allow_panics().run(|| {
        let shared = Arc::new((Mutex::new(()), Mutex::new(())));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.lock().unwrap();
                panic!("while it holds the first mutex");
            }
        });
        drop(shared.1.lock().unwrap());
        assert!(!thread::panicking());
        assert!(t.join().is_err());
        assert!(shared.0.is_poisoned() && !shared.1.is_poisoned());
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

#[test]
fn a_static_that_keeps_its_value_is_nondeterminism() {
    static ONCE: preempt::sync::OnceLock<u32> = preempt::sync::OnceLock::new();
    let outcome = Check::new().run(|| {
        let t = thread::spawn(|| *ONCE.get_or_init(|| 1));
        let mine = *ONCE.get_or_init(|| 1);
        assert_eq!(mine, t.join().unwrap());
    });
    let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Nondeterminism], "{}", outcome.guarantee());
}
