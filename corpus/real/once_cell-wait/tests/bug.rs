//! once_cell 1.21.3, fixed in 1.21.4 (#295).
//!
//! With the feature parking_lot, `OnceCell::wait` parks only once. An initialisation that fails wakes
//! it, and it hands out a reference to a value that is not there.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use once_cell::sync::OnceCell;
use std::sync::Arc;

fn scenario() {
    let cell: Arc<OnceCell<Box<u64>>> = Arc::default();
    let (seen, set) = (cell.clone(), cell);
    let waiting = spawn(move || **seen.wait());
    let initialising = spawn(move || {
        let _ = set.get_or_try_init(|| Err::<Box<u64>, ()>(()));
        let _ = set.set(Box::new(7));
    });
    assert_eq!(waiting.join().unwrap(), 7);
    initialising.join().unwrap();
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
