//! The next step of a thread as a part of an execution graph.
//!
//! A search over execution graphs has to know more about a step than its alternatives: which steps
//! write, where a write goes in modification order, and which stores the read of a
//! read-modify-write may read although another one has read them already. Everything else that it
//! needs follows from footprints, or from trying the step.

use smallvec::SmallVec;

use crate::footprint::Footprint;

/// The next step of a thread as a part of an execution graph. Stores are counted from the end of
/// the modification order, as in alternatives: 0 is the newest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphStep {
    /// Reads a location of the memory. Its alternative says which store.
    Load,
    /// Writes a location without reading it. Its alternative is the number of stores after it.
    Store,
    /// Reads a location, and may write it right behind the store that it reads: the stores that
    /// its read may read, if its write is disregarded, and whether it then writes. Those after
    /// which it cannot write now, because another read-modify-write did, are included.
    Update(SmallVec<[(u32, bool); 4]>),
    /// Accesses no location of the memory. It is ordered with the steps that its footprint depends
    /// on, and may have to wait: this is the footprint of its first alternative when it need not.
    Other(Footprint),
}
