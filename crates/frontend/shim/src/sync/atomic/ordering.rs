//! Memory orderings that an operation cannot have: the mirrors panic where std's types do, with the
//! same messages. rustc's lint about them knows only std's types.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

/// Panics if a load cannot have this ordering.
#[inline]
#[track_caller]
pub(super) fn check_load(order: Ordering) {
    match order {
        Release => panic!("there is no such thing as a release load"),
        AcqRel => panic!("there is no such thing as an acquire-release load"),
        _ => {}
    }
}

/// Panics if a store cannot have this ordering.
#[inline]
#[track_caller]
pub(super) fn check_store(order: Ordering) {
    match order {
        Acquire => panic!("there is no such thing as an acquire store"),
        AcqRel => panic!("there is no such thing as an acquire-release store"),
        _ => {}
    }
}

/// Panics if an exchange that fails cannot have this ordering.
#[inline]
#[track_caller]
pub(super) fn check_failure(order: Ordering) {
    match order {
        Release => panic!("there is no such thing as a release failure ordering"),
        AcqRel => panic!("there is no such thing as an acquire-release failure ordering"),
        _ => {}
    }
}

/// Panics if a fence cannot have this ordering.
#[inline]
#[track_caller]
pub(super) fn check_fence(order: Ordering) {
    assert!(order != Relaxed, "there is no such thing as a relaxed fence");
}
