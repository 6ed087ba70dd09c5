//! flume 0.10.3, fixed in 0.12.0 (changelog of 0.10.4).
//!
//! A receive future that is polled again finds the queue empty; the last sender sends and goes away;
//! the future sees a disconnected channel and reports an error although a message waits.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use common::{block_on, poll_once};

fn scenario() {
    let (sender, receiver) = flume::unbounded::<u32>();
    let mut receiving = Box::pin(receiver.into_recv_async());
    assert!(poll_once(receiving.as_mut()).is_pending());
    let sending = spawn(move || sender.send(7).unwrap());
    let receiving = spawn(move || block_on(receiving).ok());
    sending.join().unwrap();
    assert_eq!(receiving.join().unwrap(), Some(7), "a message that was sent is received");
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
