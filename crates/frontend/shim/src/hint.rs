//! Mirrors of the functions of [`std::hint`] that concern threads; the others are std's.

use crate::runtime::{inside, pause};

pub use std::hint::{assert_unchecked, black_box, unreachable_unchecked};

/// A mirror of [`std::hint::spin_loop`]: inside a check the thread yields.
#[track_caller]
pub fn spin_loop() {
    if inside() { pause("spin_loop") } else { std::hint::spin_loop() }
}
