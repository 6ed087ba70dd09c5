//! A log of what a step does to shared state, detailed enough to find its mover class.
//!
//! A [footprint](crate::footprint) says which steps depend on each other. How a step *moves*
//! depends on more: on the action that it performs on an object ([`Kind::mover`]), and on the locks
//! that its thread holds while it accesses a variable. The log records both. It does not record the
//! class: only an analysis of the whole program knows which lock protects a variable.

use smallvec::SmallVec;

use crate::footprint::{Access, Location};
use crate::object::{Action, Kind};

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectAccess {
    /// An access to something that has no rules of its own: a variable, the pool of threads. A
    /// blocked thread has read what it waits for.
    Access(Place, Access),
    /// An action on an object.
    Act(Place, Kind, Action),
    /// An allocation from a shared pool, such as memory. Threads cannot observe which thread
    /// allocated first unless the pool is exhausted.
    Take(Location, Allocation),
}

/// The place of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The part of the name that is the same in every state. Records that change their names share
    /// the locations of one record of their type.
    pub location: Location,
    /// The record, where it can change its name.
    pub record: Option<Record>,
}

impl From<Location> for Place {
    #[inline]
    fn from(location: Location) -> Place {
        Place { location, record: None }
    }
}

/// A record whose name changes from step to step, by its name in one state. Only the model that
/// made the number can interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record(pub u32);

/// The log of one step, in the order of its accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLog(SmallVec<[ObjectAccess; 4]>);

impl StepLog {
    /// The log of a step that touches nothing shared.
    pub fn new() -> StepLog {
        StepLog::default()
    }

    /// Removes all entries and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, entry: ObjectAccess) {
        self.0.push(entry);
    }

    /// The entries in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = ObjectAccess> + '_ {
        self.0.iter().copied()
    }
}

/// The result of an allocation from a shared pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The allocation succeeded.
    Succeeded,
    /// The pool was empty.
    Exhausted,
}
