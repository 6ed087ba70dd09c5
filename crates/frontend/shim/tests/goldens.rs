//! Every kind of finding of a Rust test as text and as JSON, compared with the files in
//! `tests/golden`.
//!
//! `BLESS=1 cargo test -p preempt --test goldens` rewrites them: review the diff. Times
//! are masked.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::AtomicUsize as Uncontrolled;
use std::time::Duration;

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use preempt::sync::{Arc, Condvar, Mutex, mpsc};
use preempt::{Check, Order, thread};

/// A long time limit for shrinking, so that a busy machine does not change the schedules.
fn patient() -> Check {
    Check::new().shrink(Duration::from_secs(600))
}

/// The text with times and memory sizes masked.
fn masked(text: &str) -> String {
    let mask = |line: &str| {
        let measured = ["  \"seconds\": ", "  \"store_bytes\": "];
        let masked = match measured.into_iter().find(|start| line.starts_with(start)) {
            // Still JSON.
            Some(start) => format!("{start}0{}", if line.ends_with(',') { "," } else { "" }),
            None if line.starts_with("  cost      ") => "  cost      …".to_owned(),
            None => line.to_owned(),
        };
        masked + "\n"
    };
    text.lines().map(mask).collect()
}

/// Compares a report with its golden files, or rewrites them.
#[track_caller]
fn golden(name: &str, check: &Check, body: impl Fn() + Sync) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = masked(&check.report(&body));
    let fits = |line: &str| line.chars().count() <= 80 || line.contains("PREEMPT_REPLAY=");
    assert!(text.lines().skip(1).all(fits), "{name} does not fit 80 columns:\n{text}");
    for (file, now) in
        [(format!("{name}.txt"), text), (format!("{name}.json"), masked(&check.json(&body)))]
    {
        let path = folder.join(&file);
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, now).unwrap();
            continue;
        }
        let then = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(then == now, "{file}: expected\n{then}\nfound\n{now}");
    }
}

fn lost_update() {
    let n = Arc::new(AtomicUsize::new(0));
    let add = |n: &AtomicUsize| {
        let old = n.load(SeqCst);
        n.store(old + 1, SeqCst);
    };
    let t = thread::spawn({
        let n = n.clone();
        move || add(&n)
    });
    add(&n);
    t.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "an update was lost");
}

#[test]
fn panic() {
    golden("panic", &patient(), lost_update);
}

#[test]
fn panic_found_at_random() {
    let check = patient().order(Order::Random).seed(3).runs(1000);
    golden("panic-random", &check, lost_update);
}

#[test]
fn panic_about_what_a_mutex_protects() {
    golden("panic-mutex", &patient(), || {
        let total = Arc::new(Mutex::new(0));
        let t = thread::spawn({
            let total = total.clone();
            move || {
                let seen = *total.lock().unwrap();
                *total.lock().unwrap() = seen + 1;
            }
        });
        let seen = *total.lock().unwrap();
        *total.lock().unwrap() = seen + 1;
        t.join().unwrap();
        assert_eq!(*total.lock().unwrap(), 2);
    });
}

#[test]
fn panic_of_another_thread() {
    golden("panic-thread", &patient(), || {
        let (sender, receiver) = mpsc::channel();
        let t = thread::Builder::new().name("worker".into()).spawn(move || {
            let number: u32 = receiver.recv().unwrap();
            assert!(number < 2, "{number} is too large");
        });
        sender.send(2).unwrap();
        t.unwrap().join().unwrap();
    });
}

#[test]
fn deadlock() {
    golden("deadlock", &patient(), || {
        let left = Arc::new(Mutex::new(0));
        let right = Arc::new(Mutex::new(0));
        let t = thread::spawn({
            let (left, right) = (left.clone(), right.clone());
            move || {
                let _right = right.lock().unwrap();
                let _left = left.lock().unwrap();
            }
        });
        let first = left.lock().unwrap();
        let second = right.lock().unwrap();
        drop((first, second));
        t.join().unwrap();
    });
}

#[test]
fn lost_wakeup() {
    golden("lost-wakeup", &patient(), || {
        struct Gate {
            open: AtomicBool,
            lock: Mutex<()>,
            opened: Condvar,
        }
        let gate = Arc::new(Gate {
            open: AtomicBool::new(false),
            lock: Mutex::new(()),
            opened: Condvar::new(),
        });
        let t = thread::spawn({
            let gate = gate.clone();
            move || {
                gate.open.store(true, SeqCst);
                gate.opened.notify_one();
            }
        });
        let mut guard = gate.lock.lock().unwrap();
        while !gate.open.load(SeqCst) {
            guard = gate.opened.wait(guard).unwrap();
        }
        drop(guard);
        t.join().unwrap();
    });
}

#[test]
fn race() {
    struct Slot {
        value: UnsafeCell<u32>,
        full: AtomicBool,
    }
    // SAFETY: a false claim, which the check refutes.
    unsafe impl Sync for Slot {}
    golden("race", &patient(), || {
        let slot = Arc::new(Slot { value: UnsafeCell::new(0), full: AtomicBool::new(false) });
        let t = thread::spawn({
            let slot = slot.clone();
            move || {
                // SAFETY: no thread seems to read before the slot is full; the check disagrees.
                slot.value.with_mut(|value| unsafe { *value = 42 });
                slot.full.store(true, Relaxed);
            }
        });
        if slot.full.load(Relaxed) {
            // SAFETY: the slot seems to be full; the check disagrees.
            assert_eq!(slot.value.with(|value| unsafe { *value }), 42);
        }
        t.join().unwrap();
    });
}

#[test]
fn livelock() {
    golden("livelock", &patient(), || {
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
        while !flags.1.load(SeqCst) {
            thread::yield_now();
        }
        flags.0.store(true, SeqCst);
        t.join().unwrap();
    });
}

#[test]
fn leak() {
    golden("leak", &patient(), || {
        struct Node(Mutex<Option<Arc<Node>>>);
        let node = Arc::new(Node(Mutex::new(None)));
        *node.0.lock().unwrap() = Some(node.clone());
    });
}

#[test]
fn nondeterminism() {
    let runs = Uncontrolled::new(0);
    golden("nondeterminism", &patient().order(Order::Executions), || {
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
}
