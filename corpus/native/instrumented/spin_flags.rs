//! Two threads wait for each other by loops of several operations, one of which yields.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::{hint, thread};

static READY: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU32 = AtomicU32::new(0);

fn main() {
    let other = thread::spawn(|| {
        while !READY.load(SeqCst) && !STOP.load(SeqCst) {
            thread::yield_now();
        }
        COUNT.fetch_add(1, SeqCst);
    });
    READY.store(true, SeqCst);
    while COUNT.load(SeqCst) == 0 {
        hint::spin_loop();
    }
    other.join().expect("the thread does not panic");
    assert!(READY.load(SeqCst));
}
