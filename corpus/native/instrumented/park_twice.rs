//! A thread that finds a flag unset parks twice: once for a token that it has already, and once for
//! the one that comes with the flag. Both can become one token before it parks.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

static FLAG: AtomicBool = AtomicBool::new(false);

fn main() {
    let parks = thread::spawn(|| {
        thread::current().unpark();
        if !FLAG.load(SeqCst) {
            thread::park();
            thread::park();
        }
    });
    FLAG.store(true, SeqCst);
    parks.thread().unpark();
    parks.join().unwrap();
}
