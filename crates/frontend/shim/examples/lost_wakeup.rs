//! A flag that is set without the mutex: the notification may come between the load of the flag and
//! the wait.
//!
//! `cargo run -p preempt --example lost_wakeup`
#![allow(clippy::unwrap_used)]

use preempt::sync::atomic::{AtomicBool, Ordering::SeqCst};
use preempt::sync::{Arc, Condvar, Mutex};
use preempt::thread;

fn main() {
    preempt::check(|| {
        let shared = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.store(true, SeqCst);
                shared.2.notify_one();
            }
        });
        let mut guard = shared.1.lock().unwrap();
        while !shared.0.load(SeqCst) {
            guard = shared.2.wait(guard).unwrap();
        }
        drop(guard);
        t.join().unwrap();
    });
}
