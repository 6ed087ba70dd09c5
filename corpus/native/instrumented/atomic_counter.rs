//! Two threads increment a counter by a load and a store: an update can be lost.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

static COUNT: AtomicU32 = AtomicU32::new(0);

fn increment() {
    let old = COUNT.load(SeqCst);
    COUNT.store(old + 1, SeqCst);
}

fn main() {
    let one = thread::spawn(increment);
    let two = thread::spawn(increment);
    one.join().expect("the thread does not panic");
    two.join().expect("the thread does not panic");
    assert_eq!(COUNT.load(SeqCst), 2, "both threads have incremented");
}
