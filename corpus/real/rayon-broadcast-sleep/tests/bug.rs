//! rayon-core 1.10.0, fixed in 1.10.1 (release notes of 1.10.1).
//!
//! A worker on its way to sleep checks the global queue again, but not its own broadcast queue, and
//! sleeps on top of a broadcast job.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use rayon_core::ThreadPoolBuilder;

fn scenario() {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for _ in 0..2 {
        assert_eq!(pool.broadcast(|context| context.index()), [0]);
    }
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
