//! crossbeam-channel 0.5.14, fixed in 0.5.15 (RUSTSEC-2025-0024).
//!
//! While a sender is between installing the first block as the tail and publishing it as the head,
//! another one delivers a message. Dropping the last receiver waits for the head block and frees it, but
//! leaves the pointer in place, and dropping the channel frees it again.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use crossbeam_channel::unbounded;

fn scenario() {
    let (first, receiver) = unbounded::<Box<u64>>();
    let second = first.clone();
    let threads = [
        spawn(move || drop(first.send(Box::new(1)))),
        spawn(move || drop(second.send(Box::new(2)))),
        spawn(move || drop(receiver)),
    ];
    threads.map(|thread| thread.join().unwrap());
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
