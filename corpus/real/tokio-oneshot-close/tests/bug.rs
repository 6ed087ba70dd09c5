//! tokio 1.13.0, fixed in 1.13.1 (RUSTSEC-2021-0124).
//!
//! After `Receiver::close`, a concurrent send marks the value as sent although the channel is closed.
//! Sender and receiver then both take the value, and one of them finds none.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use tokio::sync::oneshot;

fn scenario() {
    let (sender, mut receiver) = oneshot::channel::<Box<u64>>();
    receiver.close();
    let sending = spawn(move || sender.send(Box::new(5)).is_err());
    let receiving = spawn(move || receiver.try_recv().is_ok());
    let (returned, received) = (sending.join().unwrap(), receiving.join().unwrap());
    assert_ne!(returned, received, "the value is in exactly one place");
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
