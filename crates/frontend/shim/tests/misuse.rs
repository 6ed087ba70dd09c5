//! Misuse of the library: each message says what is wrong, where, and what to do.
//!
//! A test whose check ends the process, or prints while it still runs, starts this program again as
//! a child process that runs only the test named by the variable `MISUSE`.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex, Weak};
use preempt::{Check, FailureKind, Outcome, Reduction, check, thread};

#[track_caller]
fn text(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).expect_err("the check fails");
    payload.downcast::<String>().map_or_else(
        |payload| (*payload.downcast::<&str>().expect("a message")).into(),
        |text| *text,
    )
}

#[track_caller]
fn finding(outcome: &Outcome, kind: FailureKind, message: &str) {
    let [finding] = &outcome.findings[..] else {
        panic!("expected one finding, got {:?}", outcome.findings)
    };
    assert_eq!(finding.failure.kind, kind, "{finding:?}");
    assert!(finding.failure.message.contains(message), "{finding:?}");
}

/// Whether this process is the child that runs the body of the test `name`.
fn is_child(name: &str) -> bool {
    std::env::var("MISUSE").is_ok_and(|other| other == name)
}

fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", name]).env("MISUSE", name).env("RUST_BACKTRACE", "0");
    command
}

/// Runs the test `name` in a child process. Returns its output and its stderr.
fn output(name: &str) -> (Output, String) {
    let output = child(name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

/// A check that allows the body to start threads of std, so that only the objects they use matter.
fn lenient() -> Check {
    Check::new().allow_uncontrolled()
}

/// Starts a thread and waits for it, as a library may do.
#[inline(never)]
fn starts() -> u32 {
    std::thread::spawn(|| 7).join().unwrap()
}

/// A check fails where its code starts a thread of std, whatever that thread does.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn starting_a_thread_of_std_is_refused() {
    #[track_caller]
    fn refused(by: &str, body: impl Fn() + Sync + std::panic::RefUnwindSafe) {
        let why = Check::new().try_run(body).expect_err("the check is refused").to_string();
        assert!(why.contains(&format!("{by} starts a thread at ")), "{why}");
        assert!(why.contains("tests/misuse.rs:") && why.contains("of std/src/thread"), "{why}");
        assert!(why.contains("`preempt::thread`") && why.contains("allow_uncontrolled"), "{why}");
    }
    refused("main", || assert_eq!(starts(), 7));
    refused("main", || std::thread::scope(|scope| drop(scope.spawn(|| ()))));
    refused("main", || drop(std::thread::Builder::new().spawn(|| ()).unwrap()));
    // In only one of two schedules, among threads that share a mirrored atomic.
    refused("t1", || {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || {
                if n.load(SeqCst) == 1 {
                    starts();
                }
            }
        });
        n.store(1, SeqCst);
        t.join().unwrap();
    });
    // In a destructor, after a panic that fails the check by itself.
    struct Starts;
    impl Drop for Starts {
        fn drop(&mut self) {
            starts();
        }
    }
    refused("t1", || {
        let t = thread::spawn(|| {
            let _starts = Starts;
            std::panic::resume_unwind(Box::new("given up"));
        });
        let _ = t.join();
    });
    preempt::lazy_static! { static ref KEPT: Starts = Starts; }
    refused("main", || assert_eq!(size_of_val(&*KEPT), 0));
    // A check that allows uncontrolled threads gets the result.
    let outcome = lenient().run(|| assert_eq!(starts(), 7));
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
}

/// Threads that code outside the check starts at the same time do not concern the check.
#[test]
fn threads_started_outside_the_check_are_allowed() {
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut started = 0; // 7 for each thread
            while !over.load(SeqCst) {
                started += starts();
            }
            started
        });
        for _ in 0..200 {
            check(|| {
                let n = Arc::new(AtomicUsize::new(0));
                let t = thread::spawn({
                    let n = n.clone();
                    move || n.fetch_add(1, SeqCst)
                });
                n.fetch_add(1, SeqCst);
                t.join().unwrap();
            });
        }
        // Workers and the watchdog are threads of std as well.
        Check::new().jobs(2).check(|| {
            thread::spawn(|| AtomicUsize::new(0).load(SeqCst)).join().unwrap();
        });
        over.store(true, SeqCst);
        assert!(others.join().unwrap() > 0);
    });
}

#[test]
fn a_thread_of_std_that_uses_an_atomic_is_refused() {
    let text = text(|| {
        lenient().check(|| {
            let n = Arc::new(AtomicUsize::new(0));
            n.load(SeqCst);
            let foreign = std::thread::spawn({
                let n = n.clone();
                move || n.fetch_add(1, SeqCst)
            });
            let _ = foreign.join();
        });
    });
    assert!(
        text.contains("this check cannot be made")
            && text.contains("the check does not know this thread"),
        "{text}"
    );
    assert!(text.contains("misuse.rs:") && text.contains("`std::thread::spawn`"), "{text}");
}

#[test]
fn every_mirror_refuses_foreign_threads() {
    fn tried(use_it: impl Fn(&Shared) + Send + Sync + Copy + 'static) {
        let text = text(|| {
            lenient().check(|| {
                let shared = Arc::new(Shared::default());
                shared.touch();
                // A raw pointer, so that the foreign thread does not touch the `Arc` itself.
                let address = Arc::as_ptr(&shared).expose_provenance();
                let foreign = std::thread::spawn(move || {
                    // SAFETY: joined before the value is dropped.
                    use_it(unsafe { &*std::ptr::with_exposed_provenance::<Shared>(address) })
                });
                assert!(foreign.join().is_err());
            });
        });
        assert!(text.contains("the check does not know this thread"), "{text}");
    }
    #[derive(Default)]
    struct Shared {
        mutex: Mutex<()>,
        lock: preempt::sync::RwLock<()>,
        condvar: preempt::sync::Condvar,
        once: preempt::sync::OnceLock<u32>,
        cell: Racy,
        thread: std::sync::OnceLock<thread::Thread>,
    }
    impl Shared {
        fn touch(&self) {
            drop(self.mutex.lock());
            drop(self.lock.read());
            self.condvar.notify_all();
            self.once.get();
            self.cell.0.with(|_| ());
            self.thread.get_or_init(thread::current);
        }
    }
    tried(|shared| drop(shared.mutex.lock()));
    tried(|shared| drop(shared.mutex.try_lock()));
    tried(|shared| drop(shared.lock.read()));
    tried(|shared| drop(shared.lock.try_write()));
    tried(|shared| shared.condvar.notify_one());
    tried(|shared| assert!(shared.once.get().is_none()));
    tried(|shared| shared.cell.0.with(|_| ()));
    tried(|shared| shared.thread.get().unwrap().unpark());
}

#[derive(Default)]
struct Racy(UnsafeCell<usize>);
// SAFETY: the check reports unordered accesses.
unsafe impl Sync for Racy {}
// SAFETY: as above.
unsafe impl Send for Racy {}

#[test]
fn after_a_check_any_thread_may_use_its_objects() {
    let n = Arc::new(AtomicUsize::new(0));
    check(|| assert_eq!(n.load(SeqCst), 0));
    let n = std::thread::spawn(move || n.fetch_add(1, SeqCst)).join().unwrap();
    assert_eq!(n, 0);
}

#[test]
fn reading_a_reference_count_orders_nothing() {
    let race = |look: fn(&Arc<Racy>) -> bool| {
        Check::new().run(move || {
            let shared = Arc::new(Racy::default());
            let t = thread::spawn({
                let shared = shared.clone();
                move || shared.0.with_mut(|value| unsafe { *value += 1 })
            });
            if look(&shared) {
                shared.0.with(|value| assert_eq!(unsafe { *value }, 1));
            }
            t.join().unwrap();
        })
    };
    finding(
        &race(|shared| Arc::strong_count(shared) == 1),
        FailureKind::Race,
        "nothing orders these accesses",
    );
    // A thread that becomes the only owner is ordered after all former owners.
    let alone = Check::new().run(|| {
        let mut shared = Arc::new(Racy::default());
        let t = thread::spawn({
            let shared = shared.clone();
            move || shared.0.with_mut(|value| unsafe { *value += 1 })
        });
        if Arc::get_mut(&mut shared).is_some() {
            shared.0.with(|value| assert_eq!(unsafe { *value }, 1));
        }
        t.join().unwrap();
        assert_eq!(Arc::try_unwrap(shared).map(|racy| racy.0.into_inner()).ok(), Some(1));
    });
    assert!(alone.findings.is_empty() && alone.complete, "{:?}", alone.findings);
    // The weak count is explored too: some schedule shows each value.
    let seen = std::sync::Mutex::new(std::collections::BTreeSet::new());
    Check::new().check(|| {
        let shared = Arc::new(0);
        let weak: Weak<i32> = Arc::downgrade(&shared);
        let t = thread::spawn(move || drop(weak));
        let count = Arc::weak_count(&shared);
        seen.lock().unwrap().insert(count);
        t.join().unwrap();
    });
    assert_eq!(seen.into_inner().unwrap().into_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_double_panic_is_reported_before_the_process_aborts() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the second panic");
        }
    }
    let name = "a_double_panic_is_reported_before_the_process_aborts";
    if is_child(name) {
        return check(|| {
            let _panics = Panics;
            panic!("the first panic");
        });
    }
    let (output, text) = output(name);
    assert!(!output.status.success());
    let (first, second) = (text.find("the first panic"), text.find("the second panic"));
    assert!(first.is_some() && first < second, "{text}");
    assert!(
        text.contains(
            "preempt: main panicked while it was panicking, and the process has to abort: at "
        ),
        "{text}"
    );
    assert!(text.contains("misuse.rs:"), "{text}");
}

#[test]
fn destructors_of_an_abandoned_execution_run_while_panicking() {
    struct Asserts;
    impl Drop for Asserts {
        fn drop(&mut self) {
            assert!(thread::panicking(), "the value is dropped in the middle of an execution");
        }
    }
    let outcome = Check::new().run(|| {
        let m = Mutex::new(());
        let guard = m.lock().unwrap();
        let _asserts = Asserts;
        drop(m.lock());
        drop(guard);
    });
    finding(&outcome, FailureKind::Deadlock, "no thread can move: main waits forever");
}

#[test]
#[cfg(unix)]
fn a_stack_overflow_is_reported() {
    #[allow(unconditional_recursion)]
    fn deeper(n: &AtomicUsize, depth: [usize; 64]) -> usize {
        deeper(n, std::hint::black_box(depth.map(|word| word + 1))) + n.load(SeqCst)
    }
    let name = "a_stack_overflow_is_reported";
    if is_child(name) {
        return check(|| {
            let t = thread::spawn(|| assert_eq!(deeper(&AtomicUsize::new(0), [0; 64]), 0));
            t.join().unwrap();
        });
    }
    let (output, text) = output(name);
    assert!(!output.status.success());
    assert!(text.contains("preempt: a thread of a test has used up its stack"), "{text}");
    assert!(text.contains("PREEMPT_STACK_SIZE"), "{text}");
    // A bad access elsewhere is not taken for a stack overflow.
    let name = "a_bad_access_is_left_to_the_system";
    let (output, text) = self::output(name);
    assert!(!output.status.success() && !text.contains("stack"), "{text}");
}

#[test]
fn a_bad_access_is_left_to_the_system() {
    if is_child("a_bad_access_is_left_to_the_system") {
        // SAFETY: none; this access is meant to end the process.
        check(|| assert_eq!(unsafe { std::ptr::without_provenance::<u8>(8).read_volatile() }, 0));
    }
}

#[test]
fn an_unknown_environment_variable_is_refused() {
    let name = "an_unknown_environment_variable_is_refused";
    if is_child(name) {
        let refusal = Check::new().try_run(|| ()).err().map(|refusal| refusal.to_string());
        assert!(
            refusal.is_some_and(|text| text.contains("PREEMPT_BUOND")),
            "`try_run` does not panic"
        );
        return check(|| ());
    }
    let output = child(name).env("PREEMPT_BUOND", "3").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("PREEMPT_BUOND is not a setting: did you mean PREEMPT_BOUND?"), "{text}");
}

#[test]
fn types_of_std_that_are_left_in_a_test_are_refused() {
    let racy = text(|| {
        check(|| {
            let n = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || n.store(n.load(SeqCst) + 1, SeqCst)
            });
            n.store(n.load(SeqCst) + 1, SeqCst);
            t.join().unwrap();
        });
    });
    assert!(
        racy.contains("`std::sync::atomic::AtomicUsize` at crates/frontend/shim/tests/misuse.rs:"),
        "{racy}"
    );
    let lock = text(|| check(|| drop((std::sync::Mutex::new(0), thread::spawn(|| ())))));
    assert!(lock.contains("`std::sync::Mutex`") && lock.contains("only one schedule"), "{lock}");
    lenient().check(|| drop((std::sync::Mutex::new(0), thread::spawn(|| ()))));
    // One thread shares nothing.
    check(|| *std::sync::Mutex::new(0).lock().unwrap() += 1);
    // Types of std created outside the body are allowed, and threads need not share anything.
    let runs = std::sync::Mutex::new(0);
    check(|| {
        *runs.lock().unwrap() += 1;
        assert_eq!(thread::spawn(|| 1).join().unwrap(), 1);
    });
    assert_eq!(runs.into_inner().unwrap(), 1);
}

#[test]
fn a_foreign_thread_is_refused_even_if_it_uses_an_object_first() {
    let wait = |gate: &std::sync::atomic::AtomicBool| while !gate.load(SeqCst) {};
    for foreign_first in [true, false] {
        let text = text(|| {
            lenient().check(move || {
                let n = Arc::new(AtomicUsize::new(0));
                let gate = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(foreign_first));
                let address = Arc::as_ptr(&n).expose_provenance();
                let foreign = std::thread::spawn({
                    let gate = gate.clone();
                    move || {
                        wait(&gate);
                        // SAFETY: joined before the value is dropped.
                        unsafe { &*std::ptr::with_exposed_provenance::<AtomicUsize>(address) }
                            .fetch_add(1, SeqCst);
                    }
                });
                if foreign_first {
                    let _ = foreign.join();
                    n.fetch_add(1, SeqCst);
                } else {
                    n.fetch_add(1, SeqCst);
                    gate.store(true, SeqCst);
                    let _ = foreign.join();
                }
            });
        });
        assert!(
            text.contains("the check does not know this thread") && text.contains("misuse.rs:"),
            "{text}"
        );
    }
}

/// Asserts that the check fails because `thread` blocks in `function`, and that it names the line.
#[cfg(target_os = "linux")]
#[track_caller]
fn blocks(body: impl Fn() + Sync + std::panic::RefUnwindSafe, thread: &str, function: &str) {
    let text = text(|| check(body));
    assert!(text.contains(&format!("the thread {thread} blocks at ")), "{text}");
    assert!(text.contains("tests/misuse.rs:") && text.contains(function), "{text}");
    assert!(text.contains("allow_uncontrolled"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_blocks_in_a_lock_of_std_fails_the_check() {
    static STUCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let held_twice = || {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::Builder::new().name("reader".into()).spawn(move || {
            n.load(SeqCst);
            let _guard = STUCK.lock();
            drop(STUCK.lock());
        });
        t.unwrap().join().unwrap();
    };
    blocks(held_twice, "reader", "std/src/sync/poison/mutex");
    // The guard is held across a scheduling point, where the scheduler switches threads.
    let held_over_a_point = || {
        let shared = Arc::new((std::sync::Mutex::new(()), AtomicUsize::new(0)));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.lock().unwrap();
                shared.1.fetch_add(1, SeqCst);
            }
        });
        let guard = shared.0.lock().unwrap();
        shared.1.fetch_add(1, SeqCst);
        drop(guard);
        t.join().unwrap();
    };
    blocks(held_over_a_point, "t1", "std/src/sync/poison/mutex");
    // The next check on this OS thread works.
    check(|| thread::spawn(|| ()).join().unwrap());
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_blocks_in_a_channel_of_std_fails_the_check() {
    let receives = || {
        let (sender, receiver) = std::sync::mpsc::channel::<u32>();
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || {
                n.load(SeqCst);
                drop(sender);
            }
        });
        n.load(SeqCst);
        assert!(receiver.recv().is_err());
        t.join().unwrap();
    };
    // Which of std's two modules is named depends on inlining.
    blocks(receives, "main", "std/src/sync/mp");
}

#[test]
#[cfg(target_os = "linux")]
fn a_scope_that_blocks_ends_the_process_with_a_report() {
    let name = "a_scope_that_blocks_ends_the_process_with_a_report";
    if is_child(name) {
        let gate = std::sync::Mutex::new(());
        let _closed = gate.lock().unwrap();
        return check(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| drop(gate.lock()));
            });
            AtomicUsize::new(0).load(SeqCst);
        });
    }
    let (output, text) = output(name);
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(
        text.contains("preempt: the thread main blocks at ") && text.contains("misuse.rs:"),
        "{text}"
    );
    assert!(text.contains("the process has to end"), "{text}");
}

#[test]
fn a_loop_without_an_operation_ends_the_process_with_a_report() {
    let name = "a_loop_without_an_operation_ends_the_process_with_a_report";
    if is_child(name) {
        let never = std::sync::atomic::AtomicBool::new(false);
        return check(|| {
            AtomicUsize::new(0).load(SeqCst);
            while !never.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
    }
    let output = child(name).env("PREEMPT_MAX_TURN", "2").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(
        text.contains(
            "preempt: the thread main of a test has not reached its next operation; its \
                       last was at "
        ),
        "{text}"
    );
    assert!(text.contains("misuse.rs:") && text.contains("PREEMPT_MAX_TURN"), "{text}");
    #[cfg(target_os = "linux")]
    assert!(text.contains(". It is at ") && text.matches("misuse.rs:").count() == 2, "{text}");
}

/// The sender spins until the receiver is ready, without a system call that sleeps.
#[test]
#[cfg(target_os = "linux")]
fn a_rendezvous_channel_of_std_ends_the_process_with_the_place_where_it_blocks() {
    let name = "a_rendezvous_channel_of_std_ends_the_process_with_the_place_where_it_blocks";
    if is_child(name) {
        return check(|| {
            let (sender, receiver) = std::sync::mpsc::sync_channel(0);
            let t = thread::spawn(move || sender.send(1).unwrap());
            assert_eq!(receiver.recv(), Ok(1));
            t.join().unwrap();
        });
    }
    let (output, text) = output(name);
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("the thread main blocks at ") && text.contains("misuse.rs:"), "{text}");
    assert!(text.contains("the process has to end"), "{text}");
}

#[test]
fn an_execution_without_an_end_is_found() {
    for check in [Check::new(), Check::new().unbounded(), Check::new().reduce(Reduction::Source)] {
        let outcome = check.max_steps(500).run(|| {
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || n.store(0, SeqCst)
            });
            while n.fetch_add(1, SeqCst) != usize::MAX {}
            t.join().unwrap();
        });
        finding(&outcome, FailureKind::StepLimit, "an execution has not ended after 500 steps");
        assert!(
            outcome.findings[0].failure.message.contains("PREEMPT_MAX_STEPS"),
            "{:?}",
            outcome.findings
        );
    }
    // An execution of exactly `max_steps` steps is allowed.
    let steps = || assert_eq!((0..10).map(|_| AtomicUsize::new(0).load(SeqCst)).sum::<usize>(), 0);
    assert!(Check::new().max_steps(10).run(steps).findings.is_empty());
    assert!(!Check::new().max_steps(9).run(steps).findings.is_empty());
}

#[test]
fn a_value_that_outlives_executions_is_reported() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = AtomicUsize::new(0);
    for check in [Check::new(), Check::new().unbounded()] {
        let outcome = check.run(|| {
            let t = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
            COUNT.fetch_add(1, SeqCst);
            t.join().unwrap();
        });
        finding(
            &outcome,
            FailureKind::Nondeterminism,
            "outlives executions and does not begin each of them with the same",
        );
        let outcome = check.run(|| {
            thread::scope(|scope| {
                scope.spawn(|| n.fetch_add(1, SeqCst));
                scope.spawn(|| n.fetch_add(1, SeqCst));
            })
        });
        finding(&outcome, FailureKind::Nondeterminism, "misuse.rs");
    }
}

#[test]
fn a_replay_accepts_objects_with_initial_values() {
    let body = || {
        let n = Arc::new(AtomicUsize::new(5));
        let t = thread::spawn({
            let n = n.clone();
            move || n.store(n.load(SeqCst) + 1, SeqCst)
        });
        n.store(n.load(SeqCst) + 1, SeqCst);
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 7, "an update was lost");
    };
    let text = Check::new().report(body);
    let token = text.split("PREEMPT_REPLAY=").nth(1).unwrap().split_whitespace().next().unwrap();
    let again = Check::new().replay(token).run(body);
    finding(&again, FailureKind::Panic, "an update was lost");
}

#[test]
fn a_thread_of_another_execution_is_reported() {
    static LEFT: std::sync::Mutex<Option<thread::Thread>> = std::sync::Mutex::new(None);
    Check::new().check(|| *LEFT.lock().unwrap() = Some(thread::current()));
    let outcome = Check::new().run(|| {
        let left = LEFT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        left.unwrap().unpark();
    });
    finding(
        &outcome,
        FailureKind::Runtime,
        "the test uses a thread that was made in another execution",
    );
}
