//! A flag that is set and notified without the mutex: the notification can come between reading the
//! flag and waiting, and is lost.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread;

static FLAG: AtomicBool = AtomicBool::new(false);
static LOCK: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();

fn main() {
    let waiting = thread::spawn(|| {
        let mut guard = LOCK.lock().unwrap();
        while !FLAG.load(SeqCst) {
            guard = CHANGED.wait(guard).unwrap();
        }
    });
    FLAG.store(true, SeqCst);
    CHANGED.notify_one();
    waiting.join().unwrap();
}
