//! crossbeam-channel 0.5.7, fixed in 0.5.8 (#972).
//!
//! Dropping the last receiver discards messages from the head block on. The head is still null while
//! the first sender has installed its block only as the tail, and a second sender has already sent.

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
