//! A receiver finds its channel empty, says that it is idle, and parks. The sender wakes it only if
//! it is idle: a message that comes between the two is not noticed.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

static IDLE: AtomicBool = AtomicBool::new(false);

fn main() {
    let (sender, receiver) = mpsc::channel();
    let receiving = thread::spawn(move || {
        loop {
            if let Ok(message) = receiver.try_recv() {
                return message;
            }
            IDLE.store(true, SeqCst);
            thread::park();
        }
    });
    sender.send(5).unwrap();
    if IDLE.load(SeqCst) {
        receiving.thread().unpark();
    }
    assert_eq!(receiving.join().unwrap(), 5);
}
