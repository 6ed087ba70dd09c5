//! tokio 1.52.2, fixed in 1.52.3 (#8075).
//!
//! `OwnedPermit::release` gives the permit back without waking the receiver. A receiver that has
//! closed the channel and waits for the outstanding permit sleeps forever.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use common::block_on;

fn scenario() {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<u32>(1);
    let permit = sender.try_reserve_owned().unwrap();
    let releasing = spawn(move || permit.release());
    let receiving = spawn(move || {
        receiver.close();
        block_on(receiver.recv())
    });
    let _sender = releasing.join().unwrap();
    assert_eq!(receiving.join().unwrap(), None);
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
