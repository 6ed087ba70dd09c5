//! A flag is set under the lock of its condition variable: the waiting thread wakes up.

use super::{sync, thread};
use sync::atomic::{AtomicUsize, Ordering::SeqCst};
use sync::{Arc, Condvar, Mutex};

pub fn run() {
    let shared = Arc::new((AtomicUsize::new(0), Mutex::new(()), Condvar::new()));
    let setter = thread::spawn({
        let shared = shared.clone();
        move || {
            let (ready, lock, changed) = &*shared;
            let guard = lock.lock().unwrap();
            ready.store(1, SeqCst);
            drop(guard);
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
