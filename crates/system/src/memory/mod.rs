//! Memory: which stores a load of an atomic may read, and what accesses with a memory ordering do.
//!
//! Front ends for real code do not take the values of atomics from the hardware. They ask a
//! [`Memory`], which implements one [model](MemoryModel), so that a search can make a load read an
//! older store, or put a store before another one, where the model allows it. That is an
//! alternative of the step: for a load the number of stores that are newer than the one it reads,
//! for a store the number of stores that come after it. Alternative 0 always exists and is what
//! sequentially consistent memory does.
//!
//! Every access carries the ordering that the program gives it. [`Sc`] ignores orderings, as its
//! model says. They matter for data races under every model; see [`crate::race`].
//!
//! # Example
//!
//! ```
//! use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
//!
//! use preempt_system::memory::{Memory, MemoryAccess, Sc, Weak};
//! use preempt_system::{SyncClocks, ThreadId};
//!
//! let ([data, flag], [writer, reader]) = ([0, 1], [0, 1].map(ThreadId::new));
//!
//! /// The values of `data` that the reader may read after it has seen the flag.
//! fn values(mut memory: impl Memory + Clone, order: std::sync::atomic::Ordering) -> Vec<u64> {
//!     # let ([data, flag], [writer, reader]) = ([0, 1], [0, 1].map(ThreadId::new));
//!     let mut clocks = SyncClocks::new();
//!     memory.initialise(data, 0);
//!     memory.initialise(flag, 0);
//!     memory.store(&mut clocks, writer, data, 7, Relaxed, 0);
//!     memory.store(&mut clocks, writer, flag, 1, Release, 0);
//!     assert_eq!(memory.load(&mut clocks, reader, flag, order, 0), 1);
//!     let alternatives = memory.alternatives(&clocks, reader, data, MemoryAccess::Load(Relaxed));
//!     let read = |nth| memory.clone().load(&mut clocks.clone(), reader, data, Relaxed, nth);
//!     alternatives.into_iter().map(read).collect()
//! }
//!
//! assert_eq!(values(Sc::default(), Relaxed), [7]);
//! assert_eq!(values(Weak::default(), Relaxed), [7, 0], "nothing orders the two stores");
//! assert_eq!(values(Weak::default(), Acquire), [7]);
//! ```

pub mod explain;
mod graph_step;
mod log;
mod sc;
mod seq_cst;
mod weak;

use std::fmt;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use crate::sync_clocks::SyncClocks;
use crate::thread::ThreadId;

pub use graph_step::GraphStep;
pub use log::{MemoryEvent, MemoryLog};
pub use sc::Sc;
pub use weak::{EventId, Stored, Weak};

/// A memory model, by name. A strategy declares the models under which it is sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemoryModel {
    /// Sequential consistency: all accesses have one total order, and a load reads the last store
    /// before it, whatever the memory orderings in the program say.
    #[default]
    Sc,
    /// The memory model of Rust and C++20, except load buffering: see [`Weak`].
    Weak,
}

impl MemoryModel {
    /// Every model, weakest last.
    pub const ALL: [MemoryModel; 2] = [MemoryModel::Sc, MemoryModel::Weak];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
            MemoryModel::Weak => "weak",
        }
    }
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An access that a thread is about to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess {
    /// Reads.
    Load(Ordering),
    /// Writes without reading.
    Store(Ordering),
    /// Reads and writes, whatever it reads.
    Update(Ordering),
    /// Reads, and writes if the value is the expected one.
    Exchange {
        /// The value with which it writes.
        expected: u64,
        /// The ordering if it writes.
        success: Ordering,
        /// The ordering if it only reads.
        failure: Ordering,
    },
}

/// The alternatives of an access, increasing. The first one is 0.
pub type Alternatives = SmallVec<[u32; 4]>;

/// The atomics of one execution. A value is up to 64 bits; what they mean is for the front end to
/// say. Locations are numbered by the front end, densely.
///
/// A model in which orderings matter reads and advances the clocks of the execution. [`Sc`] does
/// not: a front end that looks for data races under it reports accesses to the clocks itself.
pub trait Memory: Default {
    /// The model that this memory implements.
    const MODEL: MemoryModel;

    /// Forgets everything: an execution begins.
    fn clear(&mut self);

    /// The location gets a value by a plain write: it is created, or the program writes through an
    /// exclusive reference. Such a write is ordered after every access so far, so no load can read
    /// an older store any more.
    fn initialise(&mut self, location: u32, value: u64);

    /// The value of the last store of a location in modification order; `None` if it has none.
    fn latest(&self, location: u32) -> Option<u64>;

    /// The alternatives of an access that `thread` is about to perform.
    fn alternatives(
        &self,
        clocks: &SyncClocks,
        thread: ThreadId,
        location: u32,
        access: MemoryAccess,
    ) -> Alternatives;

    /// `thread` reads the store that `alternative` stores follow in modification order.
    fn load(
        &mut self,
        clocks: &mut SyncClocks,
        thread: ThreadId,
        location: u32,
        order: Ordering,
        alternative: u32,
    ) -> u64;

    /// `thread` writes a value without reading, before the last `alternative` stores.
    fn store(
        &mut self,
        clocks: &mut SyncClocks,
        thread: ThreadId,
        location: u32,
        value: u64,
        order: Ordering,
        alternative: u32,
    );

    /// `thread` reads a store as [`Memory::load`] does and writes what `new` returns for it, as one
    /// indivisible access. If `new` returns `None`, it only reads. The orderings are those of a
    /// write and of a mere read. Returns the value read.
    fn update(
        &mut self,
        clocks: &mut SyncClocks,
        thread: ThreadId,
        location: u32,
        orders: (Ordering, Ordering),
        alternative: u32,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> u64;

    /// `thread` performs a fence.
    fn fence(&mut self, clocks: &mut SyncClocks, thread: ThreadId, order: Ordering);
}
