//! Small tests with known results, which show where a tool is wrong.
//!
//! They assert nothing. Each reports with `saw` what one execution observed.

use std::time::Duration;

use super::Arc;
use super::cell::UnsafeCell;
use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use super::sync::{Arc as Watched, Condvar, Mutex};
use super::thread;
use crate::peers::rust::meter::saw;

/// A thread loads before it stores. Another one may load before the store or after it.
pub fn redundant_load() {
    let x = Arc::new(AtomicUsize::new(0));
    let thread = thread::spawn({
        let x = x.clone();
        move || {
            x.load(SeqCst);
            x.store(1, SeqCst);
        }
    });
    saw(x.load(SeqCst));
    thread.join().expect("no thread panics");
}

/// Store buffering: two threads store, then load what the other stores; one of them sees it.
pub fn store_buffering() {
    let x = Arc::new(AtomicUsize::new(0));
    let y = Arc::new(AtomicUsize::new(0));
    let thread = thread::spawn({
        let (x, y) = (x.clone(), y.clone());
        move || {
            x.store(1, SeqCst);
            y.load(SeqCst)
        }
    });
    y.store(1, SeqCst);
    let main = x.load(SeqCst);
    saw(format_args!("{main}{}", thread.join().expect("no thread panics")));
}

/// A swap reads what it replaces: 1 and leaves 0, or 0 and the store of 1 comes later.
pub fn swap_and_store() {
    let x = Arc::new(AtomicUsize::new(0));
    let thread = thread::spawn({
        let x = x.clone();
        move || x.swap(0, SeqCst)
    });
    x.store(1, SeqCst);
    let swapped = thread.join().expect("no thread panics");
    saw(format_args!("{swapped}{}", x.load(SeqCst)));
}

/// Three threads of one step each: in any order, and no order needs a preemption.
pub fn orders() {
    let n = Arc::new(AtomicUsize::new(1));
    let threads: [_; 3] = std::array::from_fn(|_| {
        let n = n.clone();
        thread::spawn(move || n.fetch_add(1, SeqCst))
    });
    let [a, b, c] = threads.map(|thread| thread.join().expect("no thread panics"));
    saw(format_args!("{a}{b}{c}"));
}

/// There is no notification: the wait times out.
pub fn wait_timeout() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let guard = mutex.lock().expect("mutex poisoned");
    let waited = condvar.wait_timeout(guard, Duration::from_millis(1));
    let (_guard, result) = waited.expect("mutex poisoned");
    saw(if result.timed_out() { "timeout" } else { "notified" });
}

/// A loop that waits for another thread without a yield.
pub fn spin() {
    let flag = Arc::new(AtomicBool::new(false));
    let thread = thread::spawn({
        let flag = flag.clone();
        move || flag.store(true, SeqCst)
    });
    while !flag.load(SeqCst) {}
    saw("ends");
    thread.join().expect("no thread panics");
}

/// More threads than loom supports by default.
pub fn six_threads() {
    let threads: Vec<_> = (0..6).map(|_| thread::spawn(|| ())).collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    saw("ends");
}

/// A thread panics: the thread that joins it gets an error.
pub fn panic_and_join() {
    let thread = thread::spawn(|| panic!("as is meant"));
    saw(if thread.join().is_err() { "Err" } else { "Ok" });
}

struct Shared(UnsafeCell<usize>);

// SAFETY: the pointers that the cell returns are not used, so nothing is accessed; the tools see
// only the calls.
#[allow(unsafe_code)]
unsafe impl Sync for Shared {}

/// Two threads write a cell without synchronisation.
pub fn race() {
    let cell = Arc::new(Shared(UnsafeCell::new(0)));
    let thread = thread::spawn({
        let cell = cell.clone();
        move || cell.0.with_mut(|_| ())
    });
    cell.0.with_mut(|_| ());
    thread.join().expect("no thread panics");
    saw("ends");
}

/// An `Arc` that is never dropped.
pub fn leak() {
    std::mem::forget(Watched::new(0));
    saw("ends");
}
