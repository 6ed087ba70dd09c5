//! Counts the work in long steps, so that limits are polled in time.
//!
//! Searches poll their limits (time, memory, an interrupt) after a number of steps, because most
//! steps take about equally long. A step of a model with scheduling points at synchronisation only
//! is an exception: it can consist of ten thousand steps of the model. So the steps inside long
//! steps are counted per OS thread, which is also the thread that polls, and a poll is due after a
//! number of them too. Only the time of polls depends on this count.

use std::cell::Cell;

/// Steps that consist of fewer others are not counted.
const SHORT: usize = 64;

/// The number of counted steps after which a poll is due: a few milliseconds.
const DUE: usize = 1 << 14;

thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// A step was taken that consists of `steps` others.
#[inline]
pub(crate) fn note(steps: usize) {
    if steps >= SHORT {
        TAKEN.set(TAKEN.get() + steps);
    }
}

/// Whether this OS thread has taken enough of them since its last [poll](polled).
#[inline(always)]
pub(crate) fn is_due() -> bool {
    TAKEN.get() >= DUE
}

/// Resets the count of this OS thread, which polls now.
pub(crate) fn polled() {
    TAKEN.set(0);
}
