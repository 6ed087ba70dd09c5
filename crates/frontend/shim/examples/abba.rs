//! Two threads take two locks in different orders.
//!
//! `cargo run -p preempt --example abba`

use preempt::sync::{Arc, Mutex};
use preempt::thread;

fn main() {
    preempt::check(|| {
        let accounts = Arc::new((Mutex::new(100), Mutex::new(100)));
        let t = thread::spawn({
            let accounts = accounts.clone();
            move || {
                let mut to = accounts.1.lock().unwrap();
                let mut from = accounts.0.lock().unwrap();
                *from -= 10;
                *to += 10;
            }
        });
        let mut from = accounts.0.lock().unwrap();
        let mut to = accounts.1.lock().unwrap();
        *to -= 20;
        *from += 20;
        drop((from, to));
        t.join().unwrap();
    });
}
