//! What a step of a model does, as far as weak memory is concerned.
//!
//! The states of a model hold one value per variable. Under weak memory, the value that a load
//! reads is chosen among the stores of a [`Weak`](super::Weak) memory, so whoever executes the
//! model writes that value into the state before the step and performs the access on the memory
//! after it. For that, a step reports what it accesses. A step of a model with weak memory accesses
//! at most one atomic variable, once.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::MemoryAccess;
use crate::footprint::{Access, Footprint, Location};
use crate::object::Action;
use crate::thread::ThreadId;

/// The event of a step in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEvent {
    /// An access to an atomic variable.
    Access {
        /// The variable.
        location: Location,
        /// The access, with its orderings.
        access: MemoryAccess,
        /// The value that was written, unless the access only reads or the step failed before.
        written: Option<i64>,
    },
    /// A fence.
    Fence(Ordering),
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    /// Its event in the memory, if it has one.
    pub event: Option<MemoryEvent>,
    /// Its actions on synchronisation objects and on threads, with the replies.
    pub actions: SmallVec<[(Location, Action, i64); 2]>,
    /// The threads that it started.
    pub started: SmallVec<[ThreadId; 1]>,
    /// The plain variables that it accessed.
    pub data: SmallVec<[(Location, Access); 2]>,
    /// Everything that orders it with other steps, except its event in the memory. If the thread
    /// has to wait: what it will access when it need not.
    pub footprint: Footprint,
}

impl MemoryLog {
    /// Empties the log.
    pub fn clear(&mut self) {
        *self = MemoryLog::default();
    }
}
