//! A gate that threads pass once it is open, and a counter.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};

/// A gate that is open or not.
#[derive(Default)]
pub struct Gate {
    open: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Gate {
    /// Waits until the gate is open.
    pub fn pass(&self) {
        let mut guard = self.lock.lock().unwrap();
        while !self.open.load(Ordering::SeqCst) {
            guard = self.changed.wait(guard).unwrap();
        }
    }

    /// Waits until the gate is open, unless it opens between the test and the wait.
    pub fn pass_carelessly(&self) {
        if !self.open.load(Ordering::SeqCst) {
            let guard = self.lock.lock().unwrap();
            drop(self.changed.wait(guard).unwrap());
        }
    }

    /// Opens the gate.
    pub fn open(&self) {
        let _guard = self.lock.lock().unwrap();
        self.open.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }
}

/// Adds 1, and loses additions of other threads.
pub fn add_carelessly(counter: &AtomicU32) {
    let seen = counter.load(Ordering::SeqCst);
    counter.store(seen + 1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn passes(pass: fn(&Gate)) {
        let gate = Arc::new(Gate::default());
        let other = gate.clone();
        let passing = thread::spawn(move || pass(&other));
        gate.open();
        passing.join().unwrap();
    }

    #[test]
    fn a_closed_gate_is_seen() {
        assert!(!Gate::default().open.load(Ordering::SeqCst));
    }

    #[test]
    fn the_gate_is_passed() {
        passes(Gate::pass);
    }

    #[test]
    fn the_gate_is_passed_carelessly() {
        passes(Gate::pass_carelessly);
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn a_panic_is_expected() {
        panic!("on purpose");
    }

    #[test]
    #[ignore]
    fn no_addition_is_lost() {
        let counter = Arc::new(AtomicU32::new(0));
        let other = counter.clone();
        let adding = thread::spawn(move || add_carelessly(&other));
        add_carelessly(&counter);
        adding.join().unwrap();
        assert_eq!(counter.load(Ordering::SeqCst), 2);
    }
}
