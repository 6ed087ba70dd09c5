//! Three threads store to one variable: six orders, and any of them can be the last.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let x = Arc::new(AtomicUsize::new(0));
    let writer = |value: usize| {
        let x = x.clone();
        move || x.store(value, SeqCst)
    };
    let a = thread::spawn(writer(1));
    let b = thread::spawn(writer(2));
    let c = thread::spawn(writer(3));
    a.join().unwrap();
    b.join().unwrap();
    c.join().unwrap();
    assert!(x.load(SeqCst) > 0, "a value was stored");
}
