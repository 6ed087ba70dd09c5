//! A thread waits for a cell that another one initialises and announces without the mutex: the
//! notification is lost if it comes between looking and waiting.

use std::sync::{Condvar, Mutex, OnceLock};
use std::thread;

static CELL: OnceLock<u32> = OnceLock::new();
static LOCK: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();

fn main() {
    let waiting = thread::spawn(|| {
        let mut guard = LOCK.lock().unwrap();
        while CELL.get().is_none() {
            guard = CHANGED.wait(guard).unwrap();
        }
    });
    CELL.get_or_init(|| 3);
    CHANGED.notify_all();
    waiting.join().unwrap();
}
