//! The flag is set before the message is written: a reader can come in between.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let x = Arc::new(AtomicUsize::new(0)); // the message
    let y = Arc::new(AtomicUsize::new(0)); // its flag
    let a = thread::spawn({
        let (x, y) = (x.clone(), y.clone());
        move || {
            y.store(1, SeqCst);
            x.store(1, SeqCst);
        }
    });
    let b = thread::spawn({
        let (x, y) = (x.clone(), y.clone());
        move || {
            if y.load(SeqCst) == 1 {
                assert_eq!(x.load(SeqCst), 1, "the message is there");
            }
        }
    });
    a.join().unwrap();
    b.join().unwrap();
}
