//! The driver of the Bluetooth example: a user checks the flag, then uses the device.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let stopped = Arc::new(AtomicUsize::new(0));
    let a = thread::spawn({
        let stopped = stopped.clone();
        move || {
            if stopped.load(SeqCst) == 0 {
                let now = stopped.load(SeqCst);
                assert_eq!(now, 0, "the device is not used after it was stopped");
            }
        }
    });
    let b = thread::spawn({
        let stopped = stopped.clone();
        move || stopped.store(1, SeqCst)
    });
    a.join().unwrap();
    b.join().unwrap();
}
