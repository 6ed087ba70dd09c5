//! Locks: two of them in both orders, a spin lock, and one with condition variables.

use super::Arc;
use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use super::sync::{Condvar, Mutex};
use super::thread;

/// Two threads take two locks in opposite orders: a deadlock.
pub fn abba() {
    let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let thread = thread::spawn({
        let (a, b) = (a.clone(), b.clone());
        move || {
            let _b = b.lock().expect("no thread panics");
            let _a = a.lock().expect("no thread panics");
        }
    });
    {
        let _a = a.lock().expect("no thread panics");
        let _b = b.lock().expect("no thread panics");
    }
    thread.join().expect("no thread panics");
}

/// Two threads count under a spin lock that yields.
pub fn spin() {
    let shared = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
    let count = |(lock, n): &(AtomicBool, AtomicUsize)| {
        while lock.compare_exchange(false, true, SeqCst, SeqCst).is_err() {
            thread::yield_now();
        }
        n.store(n.load(SeqCst) + 1, SeqCst);
        lock.store(false, SeqCst);
    };
    let thread = thread::spawn({
        let shared = shared.clone();
        move || count(&shared)
    });
    count(&shared);
    thread.join().expect("no thread panics");
    assert_eq!(shared.1.load(SeqCst), 2);
}

struct Buffer {
    item: Mutex<Option<usize>>,
    full: Condvar,
    empty: Condvar,
}

impl Buffer {
    fn put(&self, item: usize) {
        let mut place = self.item.lock().expect("no thread panics");
        while place.is_some() {
            place = self.empty.wait(place).expect("no thread panics");
        }
        *place = Some(item);
        self.full.notify_one();
    }

    fn take(&self) -> usize {
        let mut place = self.item.lock().expect("no thread panics");
        loop {
            if let Some(item) = place.take() {
                self.empty.notify_one();
                return item;
            }
            place = self.full.wait(place).expect("no thread panics");
        }
    }
}

/// A buffer of capacity one: the items come out in the order in which they went in.
pub fn buffer(items: usize) {
    let buffer =
        Arc::new(Buffer { item: Mutex::new(None), full: Condvar::new(), empty: Condvar::new() });
    let producer = thread::spawn({
        let buffer = buffer.clone();
        move || (0..items).for_each(|item| buffer.put(item))
    });
    for item in 0..items {
        assert_eq!(buffer.take(), item);
    }
    producer.join().expect("the producer does not panic");
}
