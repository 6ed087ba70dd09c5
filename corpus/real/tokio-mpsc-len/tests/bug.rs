//! tokio 1.52.2, fixed in 1.52.3 (#8062).
//!
//! `Receiver::len` loads the position of the tail and then the flag that says whether the channel is
//! closed. If the last sender goes away in between, the subtraction underflows.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

fn scenario() {
    let (sender, receiver) = tokio::sync::mpsc::channel::<u32>(4);
    let dropping = spawn(move || drop(sender));
    let counting = spawn(move || receiver.len());
    dropping.join().unwrap();
    assert_eq!(counting.join().unwrap(), 0, "nothing was ever sent");
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
