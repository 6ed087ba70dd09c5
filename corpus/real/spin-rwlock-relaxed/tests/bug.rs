//! spin 0.5.1, fixed in 0.5.2 (RUSTSEC-2019-0013).
//!
//! The write guard is released by a relaxed store, so the next reader does not synchronise with the
//! writer: it may find the lock free and still read what was there before.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use spin::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

fn scenario() {
    let shared = Arc::new((RwLock::new(AtomicU32::new(0)), AtomicU32::new(0)));
    let (written, read) = (shared.clone(), shared);
    let writing = spawn(move || {
        let guard = written.0.write();
        written.1.store(1, Relaxed);
        guard.store(1, Relaxed);
    });
    let reading = spawn(move || {
        let guard = read.0.read();
        let inside = guard.load(Relaxed);
        (inside, read.1.load(Relaxed))
    });
    writing.join().unwrap();
    assert_ne!(reading.join().unwrap(), (1, 0), "both were written under the lock");
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
