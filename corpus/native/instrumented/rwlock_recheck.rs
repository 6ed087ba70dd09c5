//! As rwlock_upgrade, but the counter is read again under the write lock.

use std::sync::RwLock;
use std::thread;

static COUNT: RwLock<u32> = RwLock::new(0);

fn increment() {
    let old = *COUNT.read().unwrap();
    let mut count = COUNT.write().unwrap();
    assert!(*count >= old, "the counter only grows");
    *count += 1;
}

fn main() {
    let other = thread::spawn(increment);
    increment();
    other.join().unwrap();
    assert_eq!(*COUNT.read().unwrap(), 2, "both threads have incremented");
}
