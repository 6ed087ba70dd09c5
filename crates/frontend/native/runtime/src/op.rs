//! The operations and outcomes of a thread in the form that [`crate::spin`] expects.

use crate::site::SiteId;

/// Stands for the index of an object that an operation does not have.
pub const NO_OBJECT: u32 = u32::MAX;

/// An operation that a thread has performed.
#[derive(Clone, Copy)]
pub struct Op {
    /// A [`crate::block::Op`].
    pub kind: u8,
    /// The index of its object in the table of objects, or [`NO_OBJECT`].
    pub object: u32,
    /// The index of a second object, or [`NO_OBJECT`].
    pub other: u32,
    pub site: SiteId,
    /// The same as `site` if it is a yield.
    pub yielded: Option<SiteId>,
}

impl Op {
    /// The operation as performed by an alternative. Here every alternative accesses all objects of
    /// its operation: a wait that times out and the lock after it are two operations.
    pub fn performed(self, _alternative: u32) -> Op {
        self
    }

    /// Its objects, each with its position in [`Outcome::versions`].
    pub fn objects(&self) -> impl Iterator<Item = (usize, u32)> + use<> {
        [(0, self.object), (1, self.other)].into_iter().filter(|&(_, object)| object != NO_OBJECT)
    }

    /// Whether `other` is the same operation at the same place.
    pub fn is_again(&self, other: &Op) -> bool {
        self.site == other.site && self.object == other.object && self.kind == other.kind
    }

    /// Whether both yield, at the same place.
    pub fn yields_as(&self, other: &Op) -> bool {
        self.yielded.is_some() && self.yielded == other.yielded
    }
}

/// The versions of an object before and after an operation.
#[derive(Clone, Copy)]
pub struct Versions {
    pub before: u32,
    pub after: u32,
}

/// The result of an operation.
#[derive(Clone, Copy)]
pub struct Outcome {
    pub alternative: u32,
    /// Whether it, or the code after it, may have changed something.
    pub progress: bool,
    /// The result of the operation, or the value that it found.
    pub value: u64,
    pub versions: [Versions; 2],
}
