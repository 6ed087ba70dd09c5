//! Mirrors of [`std::hint`]: what concerns threads; the rest is std's.

use crate::runtime::{inside, pause};

pub use std::hint::{assert_unchecked, black_box, unreachable_unchecked};

/// Says that the thread waits in a loop: others get their turn.
#[track_caller]
pub fn spin_loop() {
    if inside() { pause("spin_loop") } else { std::hint::spin_loop() }
}
