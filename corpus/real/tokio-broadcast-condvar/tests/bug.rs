//! tokio 0.2.10, fixed in 0.2.11 (#2135).
//!
//! A receiver releases its slot and notifies the condition variable without the mutex. A sender that
//! has seen the slot busy and does not wait yet misses that, and blocks forever.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use tokio::sync::broadcast;

fn scenario() {
    let (sender, mut receiver) = broadcast::channel::<u64>(2);
    let _ = sender.send(1);
    let receiving = spawn(move || {
        let _ = receiver.try_recv();
        receiver
    });
    let sending = spawn(move || {
        let _ = sender.send(2);
        let _ = sender.send(3);
    });
    // Kept: its destructor would wait for the slot in a loop.
    let _receiver = receiving.join().unwrap();
    sending.join().unwrap();
}

#[test]
fn bug() {
    scenario();
}

#[test]
#[ignore]
fn stress() {
    common::stress(scenario);
}
