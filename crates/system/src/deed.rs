//! What a step does to shared state, one deed after the other, as far as its class as a mover depends on it.
//!
//! A [footprint](crate::footprint) says which steps depend on each other. How a step *moves* depends on more: which action it
//! performs on an object ([`Kind::mover`]), and which locks its thread holds while it accesses a variable. Both are told
//! here; the class is for an analysis of the program to find, because only the program as a whole protects a variable.

use smallvec::SmallVec;

use crate::footprint::{Access, Location};
use crate::object::{Action, Kind};

/// One thing that a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It accesses something that has no rules of its own: a variable, the supply of threads. A thread that has to wait has
    /// read what it waits for.
    Access(Place, Access),
    /// It performs an action on an object.
    Act(Place, Kind, Action),
    /// It takes something from a supply, such as memory. Nobody can tell who has taken first, until nothing is left.
    Take(Location, Supply),
}

/// Where a deed takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What is the same in every state. All records of a type that change their names have the locations of one of them.
    pub location: Location,
    /// Which of these records it is.
    pub record: Option<Record>,
}

impl From<Location> for Place {
    #[inline]
    fn from(location: Location) -> Place {
        Place { location, record: None }
    }
}

/// A record whose name changes from step to step, by its name in one state. Only the model itself understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record(pub u32);

/// The deeds of one step, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds(SmallVec<[Deed; 4]>);

impl Deeds {
    /// A step that touches nothing shared.
    pub fn new() -> Deeds {
        Deeds::default()
    }

    /// Forgets all deeds, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, deed: Deed) {
        self.0.push(deed);
    }

    /// The deeds.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Deed> + '_ {
        self.0.iter().copied()
    }
}

/// What a thread finds that takes something from a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// There was enough.
    Enough,
    /// Nothing is left.
    Exhausted,
}

/// How a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hold {
    /// With others: it reads.
    Shared,
    /// Alone.
    Exclusive,
}
