//! How far back a search looks for the cycle of a thread that spins.
//!
//! A thread spins if its last steps lead back to where it was before them, and are independent of
//! the steps of other threads between them. The [cursor](super::cursor) asks the system whether
//! states are equal; under [weak memory](super::weak_model) the steps are repeated on a copy,
//! because the values that a thread may read are not part of the state. Both search backwards
//! within these limits. A longer cycle is not recognised: the thread counts as enabled, so nothing
//! is missed.

/// The most steps of the thread itself in a cycle.
pub(crate) const LONGEST_CYCLE: usize = 16;

/// The most steps, of all threads, over which the start of a cycle is searched for.
pub(crate) const FARTHEST_START: usize = 64;
