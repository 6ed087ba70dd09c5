//! As mpsc_idle_lost, but the receiver says that it is idle before it looks.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

static IDLE: AtomicBool = AtomicBool::new(false);

fn main() {
    let (sender, receiver) = mpsc::channel();
    let receiving = thread::spawn(move || {
        loop {
            IDLE.store(true, SeqCst);
            if let Ok(message) = receiver.try_recv() {
                return message;
            }
            thread::park();
        }
    });
    sender.send(5).unwrap();
    if IDLE.load(SeqCst) {
        receiving.thread().unpark();
    }
    assert_eq!(receiving.join().unwrap(), 5);
}
