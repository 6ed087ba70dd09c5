//! A flag is set without the lock of its condition variable: the notification can be lost.

use super::{sync, thread};
use sync::atomic::{AtomicUsize, Ordering::SeqCst};
use sync::{Arc, Condvar, Mutex};

pub fn run() {
    let shared = Arc::new((AtomicUsize::new(0), Mutex::new(()), Condvar::new()));
    let setter = thread::spawn({
        let shared = shared.clone();
        move || {
            let (ready, _, changed) = &*shared;
            ready.store(1, SeqCst);
            changed.notify_one();
        }
    });
    let (ready, lock, changed) = &*shared;
    let mut guard = lock.lock().unwrap();
    while ready.load(SeqCst) == 0 {
        guard = changed.wait(guard).unwrap();
    }
    drop(guard);
    setter.join().unwrap();
}
