//! Work that the number of steps does not show: steps that consist of many others.
//!
//! Searches poll their limits (time, memory, an interrupt) after a number of steps, because a step
//! takes about as long as any other. A step of a model with scheduling points at synchronisation
//! only is an exception: it can consist of ten thousand steps of the model. So these are counted,
//! by the OS thread that takes them, which is also the one that polls. A poll is due after a number
//! of them too. Only the time of polls depends on it.

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

/// This OS thread polls.
pub(crate) fn polled() {
    TAKEN.set(0);
}
