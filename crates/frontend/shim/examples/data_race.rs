//! A value is handed over by a flag with relaxed orderings: nothing orders the accesses to the
//! value.
//!
//! `cargo run -p preempt --example data_race`
#![allow(clippy::unwrap_used)]

use preempt::cell::UnsafeCell;
use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicBool, Ordering::Relaxed};
use preempt::thread;

struct Slot {
    value: UnsafeCell<u32>,
    full: AtomicBool,
}

// SAFETY: claimed, and wrong: that is what the check shows.
unsafe impl Sync for Slot {}

fn main() {
    preempt::check(|| {
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
            // SAFETY: the slot is full; or so it seems.
            assert_eq!(slot.value.with(|value| unsafe { *value }), 42);
        }
        t.join().unwrap();
    });
}
