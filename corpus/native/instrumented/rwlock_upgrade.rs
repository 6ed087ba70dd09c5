//! Two threads read a counter under a read lock and write it under a write lock: an update is lost.

use std::sync::RwLock;
use std::thread;

static COUNT: RwLock<u32> = RwLock::new(0);

fn increment() {
    let old = *COUNT.read().unwrap();
    *COUNT.write().unwrap() = old + 1;
}

fn main() {
    let other = thread::spawn(increment);
    increment();
    other.join().unwrap();
    assert_eq!(*COUNT.read().unwrap(), 2, "both threads have incremented");
}
