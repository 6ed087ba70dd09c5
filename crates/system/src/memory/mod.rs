//! Memory: which stores a load of an atomic may read, and what accesses with a memory ordering do.
//!
//! Front ends for real code do not take the values of atomics from the hardware. They ask a
//! [`Memory`], which implements one [model](MemoryModel), so that a search can make a load read an
//! older store where the model allows it. Which store a load reads is an alternative of its step:
//! a number below [`Memory::candidates`], of which 0 is the newest store.
//!
//! Every access carries the ordering that the program gives it. [`Sc`] ignores orderings, as its
//! model says. They matter for data races under every model; see [`crate::race`].
//!
//! # Example
//!
//! ```
//! use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
//!
//! use preempt_system::ThreadId;
//! use preempt_system::memory::{Memory, Sc};
//!
//! let (flag, [writer, reader]) = (0, [0, 1].map(ThreadId::new));
//! let mut memory = Sc::default();
//! memory.initialise(flag, 0);
//! memory.store(writer, flag, 1, Release);
//! assert_eq!(memory.candidates(reader, flag, Acquire), 1, "no model forbids the newest store");
//! assert_eq!(memory.load(reader, flag, Acquire, 0), 1);
//! let add = |old: u64| Some(old + 1);
//! assert_eq!(memory.update(reader, flag, (Relaxed, Relaxed), 0, add), 1, "the old value");
//! assert_eq!(memory.latest(flag), Some(2));
//! ```

mod sc;

use std::fmt;
use std::sync::atomic::Ordering;

use crate::thread::ThreadId;

pub use sc::Sc;

/// A memory model, by name. A strategy declares the models under which it is sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemoryModel {
    /// Sequential consistency: all accesses have one total order, and a load reads the last store
    /// before it, whatever the memory orderings in the program say.
    #[default]
    Sc,
}

impl MemoryModel {
    /// Every model, weakest last.
    pub const ALL: [MemoryModel; 1] = [MemoryModel::Sc];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
        }
    }
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The atomics of one execution. A value is up to 64 bits; what they mean is for the front end to
/// say. Locations are numbered by the front end, densely.
pub trait Memory: Default {
    /// The model that this memory implements.
    const MODEL: MemoryModel;

    /// Forgets everything: an execution begins.
    fn clear(&mut self);

    /// The location gets a value by a plain write: it is created, or the program writes through an
    /// exclusive reference. Such a write is ordered after every access so far, so no load can read
    /// an older store any more.
    fn initialise(&mut self, location: u32, value: u64);

    /// The newest value of a location; `None` if it has none.
    fn latest(&self, location: u32) -> Option<u64>;

    /// The number of stores that a load of `thread` may read.
    fn candidates(&self, thread: ThreadId, location: u32, order: Ordering) -> u32;

    /// `thread` reads the value of a candidate.
    fn load(&mut self, thread: ThreadId, location: u32, order: Ordering, candidate: u32) -> u64;

    /// `thread` writes a value without reading.
    fn store(&mut self, thread: ThreadId, location: u32, value: u64, order: Ordering);

    /// `thread` reads the value of a candidate and writes what `new` returns for it, as one
    /// indivisible access. If `new` returns `None`, it only reads. The orderings are those of a
    /// write and of a mere read. Returns the value read.
    fn update(
        &mut self,
        thread: ThreadId,
        location: u32,
        orders: (Ordering, Ordering),
        candidate: u32,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> u64;

    /// `thread` performs a fence.
    fn fence(&mut self, thread: ThreadId, order: Ordering);
}
