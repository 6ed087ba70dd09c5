//! spin 0.9.7, fixed in 0.9.8 (RUSTSEC-2023-0031).
//!
//! A thread that waits for a running initialiser assumes that it succeeds. If it fails, the waiting
//! thread returns a reference to memory that was never initialised.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use spin::Once;
use std::sync::Arc;

fn scenario() {
    let once: Arc<Once<Box<u64>>> = Arc::new(Once::new());
    let (first, second) = (once.clone(), once);
    let failing = spawn(move || drop(first.try_call_once(|| Err::<Box<u64>, ()>(())).is_err()));
    let succeeding =
        spawn(move || second.try_call_once(|| Ok::<_, ()>(Box::new(7))).map(|value| **value));
    failing.join().unwrap();
    assert_eq!(succeeding.join().unwrap(), Ok(7));
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
