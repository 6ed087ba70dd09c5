//! As park_twice, but the thread parks until the flag is set.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

static FLAG: AtomicBool = AtomicBool::new(false);

fn main() {
    let parks = thread::spawn(|| {
        thread::current().unpark();
        while !FLAG.load(SeqCst) {
            thread::park();
        }
    });
    FLAG.store(true, SeqCst);
    parks.thread().unpark();
    parks.join().unwrap();
}
