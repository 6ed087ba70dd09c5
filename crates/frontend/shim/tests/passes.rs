//! The output of checks that pass, and how far the default search explores.
//!
//! To capture the output, a test starts this program again as a child process that runs only the
//! test named by the variable `PASSES`, without `--nocapture`.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

use std::process::Command;

use preempt::sync::atomic::{AtomicUsize, Ordering, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, FailureKind, Reduction, check, thread};

/// Runs the test `name` in a child process. Returns its stderr, or `None` in the child process.
fn printed(name: &str, settings: &[(&str, &str)]) -> Option<String> {
    if std::env::var("PASSES").is_ok_and(|other| other == name) {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env("PASSES", name).envs(settings.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
    Some(text)
}

/// A work-stealing deque.
struct Deque {
    top: AtomicUsize,
    bottom: AtomicUsize,
    items: [AtomicUsize; 2],
    /// Takes the last item on behalf of the owner; returns whether the owner got it.
    last: fn(&AtomicUsize, usize) -> bool,
}

impl Deque {
    fn new(last: fn(&AtomicUsize, usize) -> bool) -> Deque {
        let zero = || AtomicUsize::new(0);
        Deque { top: zero(), bottom: zero(), items: [zero(), zero()], last }
    }

    fn push(&self, item: usize) {
        let bottom = self.bottom.load(SeqCst);
        self.items[bottom % 2].store(item, SeqCst);
        self.bottom.store(bottom + 1, SeqCst);
    }

    fn take(&self) -> Option<usize> {
        let bottom = self.bottom.load(SeqCst) - 1;
        self.bottom.store(bottom, SeqCst);
        let top = self.top.load(SeqCst);
        if top > bottom {
            self.bottom.store(top, SeqCst);
            return None;
        }
        let item = self.items[bottom % 2].load(SeqCst);
        if top < bottom {
            return Some(item);
        }
        let won = (self.last)(&self.top, top);
        self.bottom.store(top + 1, SeqCst);
        won.then_some(item)
    }

    fn steal(&self) -> Option<usize> {
        let top = self.top.load(SeqCst);
        if top >= self.bottom.load(SeqCst) {
            return None;
        }
        let item = self.items[top % 2].load(SeqCst);
        self.top.compare_exchange(top, top + 1, SeqCst, SeqCst).is_ok().then_some(item)
    }
}

/// The owner and a thief contend for the same item.
fn contended(last: fn(&AtomicUsize, usize) -> bool) {
    let deque = Arc::new(Deque::new(last));
    deque.push(1);
    let thief = thread::spawn({
        let deque = deque.clone();
        move || deque.steal()
    });
    let (taken, stolen) = (deque.take(), thief.join().unwrap());
    assert!(taken.is_none() || stolen.is_none(), "the item was taken twice");
}

fn stores(top: &AtomicUsize, at: usize) -> bool {
    top.store(at + 1, SeqCst);
    true
}

fn exchanges(top: &AtomicUsize, at: usize) -> bool {
    top.compare_exchange(at, at + 1, SeqCst, SeqCst).is_ok()
}

#[test]
fn an_error_that_needs_three_preemptions_fails_the_default_check() {
    let bounded = Check::new().bound(2).run(|| contended(stores));
    assert!(
        bounded.findings.is_empty() && !bounded.complete,
        "an explicit bound is not raised: {}",
        bounded.guarantee()
    );
    let outcome = Check::new().run(|| contended(stores));
    let [finding] = &outcome.findings[..] else { panic!("{}", outcome.guarantee()) };
    assert_eq!(finding.failure.kind, FailureKind::Panic);
    assert!(
        finding.preemptions >= 3 && finding.failure.message.contains("taken twice"),
        "{finding:?}"
    );
    let correct = Check::new().run(|| contended(exchanges));
    assert!(correct.complete && correct.findings.is_empty(), "{}", correct.guarantee());
}

/// Two threads with `operations` conflicting operations each.
fn adds(operations: usize) {
    let n = Arc::new(AtomicUsize::new(0));
    let add = move |n: &AtomicUsize| {
        for _ in 0..operations {
            n.fetch_add(1, SeqCst);
        }
    };
    let t = thread::spawn({
        let n = n.clone();
        move || add(&n)
    });
    add(&n);
    t.join().unwrap();
}

#[test]
fn the_default_ends_after_a_budget_of_executions() {
    // C(18, 9) = 48,620 traces.
    let outcome = Check::new().run(|| adds(9));
    assert!(!outcome.complete && outcome.findings.is_empty(), "{}", outcome.guarantee());
    let last = outcome.bounds.last().unwrap();
    assert!(last.bound > 2 && last.all.executions <= 10_000, "{}", outcome.guarantee());
    let needs = format!("any error needs at least {} preemptions", last.bound + 1);
    assert!(outcome.guarantee().ends_with(&needs), "{}", outcome.guarantee());
    assert_eq!(outcome.guarantee(), Check::new().bound(last.bound).run(|| adds(9)).guarantee());
}

#[test]
fn an_exhaustive_pass_prints_nothing() {
    let name = "an_exhaustive_pass_prints_nothing";
    let Some(text) = printed(name, &[]) else {
        check(|| contended(exchanges));
        return check(|| {
            let n = Arc::new(Mutex::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || *n.lock().unwrap() += 1
            });
            *n.lock().unwrap() += 1;
            t.join().unwrap();
        });
    };
    assert!(!text.contains("preempt:"), "{text}");
}

#[test]
fn a_pass_that_is_not_exhaustive_says_so_once() {
    let name = "a_pass_that_is_not_exhaustive_says_so_once";
    let Some(text) = printed(name, &[]) else {
        for _ in 0..5 {
            Check::new().bound(1).check(|| contended(stores));
        }
        return;
    };
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("preempt: ")).collect();
    let [line] = lines[..] else { panic!("expected one line, got\n{text}") };
    assert!(line.contains(&format!("{name} passed (")) && line.contains("passes.rs:"), "{line}");
    for part in [
        "not exhaustive: all ",
        " with at most 1 preemption (",
        "any error needs at least 2 preemptions",
        "PREEMPT_BOUND=2 explores the next bound, PREEMPT_BOUND=none all schedules",
    ] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
    let text = printed(name, &[("PREEMPT_QUIET", "1")]).unwrap();
    assert!(!text.contains("preempt:"), "{text}");
}

/// Store buffering: under sequential consistency one thread sees the store of the other.
fn store_buffering(order: Ordering) {
    let pair = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let t = thread::spawn({
        let pair = pair.clone();
        move || {
            pair.0.store(1, order);
            pair.1.load(if order == Ordering::Release { Ordering::Acquire } else { order })
        }
    });
    pair.1.store(1, SeqCst);
    let seen = pair.0.load(SeqCst);
    assert!(t.join().unwrap() + seen > 0, "both missed the store of the other");
}

#[test]
fn a_pass_with_unexplored_weak_orderings_says_so() {
    let name = "a_pass_with_unexplored_weak_orderings_says_so";
    let Some(text) = printed(name, &[]) else {
        let chosen = Check::new().reduce(Reduction::Optimal).unbounded();
        return chosen.check(|| store_buffering(Ordering::Relaxed));
    };
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("preempt: ")).collect();
    let [line] = lines[..] else { panic!("expected one line, got\n{text}") };
    let said = "passed (";
    assert!(line.contains(said) && !line.contains("not exhaustive"), "{line}");
    for part in [
        "weak orderings were used but not explored: `Relaxed` at ",
        "passes.rs:",
        "and dpor-optimal explores only these",
    ] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
    // A check that chooses sequential consistency does not print the line.
    let text = printed(name, &[("PREEMPT_MEMORY", "sc")]).unwrap();
    assert!(!text.contains("preempt:"), "{text}");
}

#[test]
fn weak_orderings_on_one_atomic_allow_nothing_more() {
    let name = "weak_orderings_on_one_atomic_allow_nothing_more";
    let Some(text) = printed(name, &[]) else {
        return check(|| {
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || n.fetch_add(1, Ordering::Relaxed)
            });
            n.fetch_add(1, Ordering::Relaxed);
            t.join().unwrap();
        });
    };
    assert!(!text.contains("preempt:"), "{text}");
}

/// Acquire and release do not order a store before a load of another atomic.
#[test]
#[should_panic(expected = "both missed the store of the other")]
fn release_and_acquire_allow_store_buffering() {
    check(|| store_buffering(Ordering::Release));
}

#[test]
fn a_test_whose_main_thread_joins_at_once_prints_nothing() {
    let name = "a_test_whose_main_thread_joins_at_once_prints_nothing";
    let Some(text) = printed(name, &[]) else {
        return check(|| {
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || n.fetch_add(1, SeqCst)
            });
            t.join().unwrap();
            assert_eq!(n.load(SeqCst), 1);
        });
    };
    assert!(!text.contains("preempt:"), "{text}");
}

/// The threads share an atomic of preempt, which has several schedules, and one of std, whose race
/// no schedule shows.
#[test]
fn a_pass_with_types_of_std_says_so() {
    let name = "a_pass_with_types_of_std_says_so";
    let Some(text) = printed(name, &[]) else {
        return check(|| {
            let ready = Arc::new(AtomicUsize::new(0));
            let n = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let t = thread::spawn({
                let (ready, n) = (ready.clone(), n.clone());
                move || {
                    ready.store(1, SeqCst);
                    n.store(n.load(SeqCst) + 1, SeqCst);
                }
            });
            n.store(n.load(SeqCst) + 1, SeqCst);
            ready.load(SeqCst);
            t.join().unwrap();
        });
    };
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("preempt: ")).collect();
    let [line] = lines[..] else { panic!("expected one line, got\n{text}") };
    assert!(
        line.contains("no switch was explored at `std::sync::atomic::AtomicUsize` at "),
        "{line}"
    );
    assert!(line.contains("passes.rs:") && line.contains("`Check::allow_uncontrolled`"), "{line}");
    for silent in ["PREEMPT_ALLOW_UNCONTROLLED", "PREEMPT_QUIET"] {
        let text = printed(name, &[(silent, "1")]).unwrap();
        assert!(!text.contains("preempt:"), "{silent}: {text}");
    }
}
