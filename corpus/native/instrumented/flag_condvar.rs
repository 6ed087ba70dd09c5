//! As flag_condvar_lost, but the flag is set while the mutex is held.

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
    let guard = LOCK.lock().unwrap();
    FLAG.store(true, SeqCst);
    drop(guard);
    CHANGED.notify_one();
    waiting.join().unwrap();
}
