//! The parts of every strategy: models as programs, cursors over executions, stores, counts,
//! limits, checkpoints.

pub(crate) mod cache;
pub mod checkpoint;
pub(crate) mod control;
pub mod cursor;
pub(crate) mod cycle_detection;
pub(crate) mod depth_first;
pub(crate) mod distinct_failures;
pub mod estimate;
pub mod exchange;
pub mod execution;
pub(crate) mod expand;
pub(crate) mod explored;
pub(crate) mod long_steps;
pub mod memory;
pub mod model;
pub mod mutants;
pub(crate) mod names;
pub mod observer;
pub(crate) mod parallel;
pub mod pcg;
pub mod points;
pub(crate) mod queue;
pub mod race;
pub(crate) mod retrace;
pub(crate) mod rounds;
pub(crate) mod runs;
pub(crate) mod sampler;
pub(crate) mod sharded;
pub(crate) mod spin_cycle;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod tree;
pub mod waits;
mod weak_model;
pub(crate) mod weights;
pub(crate) mod workers;

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex. A worker that panics ends the whole search, so no worker continues with a
/// poisoned mutex.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("mutex poisoned")
}
