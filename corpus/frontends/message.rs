//! A message and its flag, in this order: a reader that sees the flag sees the message.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let x = Arc::new(AtomicUsize::new(0)); // the message
    let y = Arc::new(AtomicUsize::new(0)); // its flag
    let a = thread::spawn({
        let (x, y) = (x.clone(), y.clone());
        move || {
            x.store(1, SeqCst);
            y.store(1, SeqCst);
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
