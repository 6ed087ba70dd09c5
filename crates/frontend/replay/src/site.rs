//! Places in the program under test.

use std::num::NonZeroU64;

/// A place in the program under test, as a number that the front end assigns and can resolve: the
/// address of a `Location`, a program counter, an index into a table.
///
/// Equal numbers mean the same place. Different numbers may mean the same place, because a compiler
/// may duplicate code. A number is only used within one process; names that survive it come from
/// resolved places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(NonZeroU64);

impl SiteId {
    /// The place with this number.
    #[inline]
    pub const fn new(id: NonZeroU64) -> SiteId {
        SiteId(id)
    }

    /// The number of the place.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}
