//! Footprints: the locations that a step accesses, and the dependence of steps.
//!
//! Two steps of different threads are *dependent* iff one of them writes a location that the other
//! reads or writes. Everything that a step can observe or change is a location: a variable, an
//! element, a synchronisation object, the end of a thread, the pool of heap cells. The semantics of
//! a synchronisation object ([`crate::object`]) determine which access an operation on it makes.
//! Values found at run time do so only where they are known in states that were never executed,
//! because strategies need the class of an operation there too.

use smallvec::SmallVec;

/// Something that steps read and write. The front end assigns the numbers, and they are the same in
/// every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub u32);

/// The kinds of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// The step observes the location. Two reads commute.
    Read,
    /// The step changes the location, or may change it. A compare-and-swap that is known to fail is
    /// a read; where that is not known, it is a write.
    Write,
}

impl Access {
    /// Whether two accesses to one location fail to commute.
    #[inline]
    pub fn conflicts(self, other: Access) -> bool {
        self == Access::Write || other == Access::Write
    }
}

/// The accesses of one step: every location once, in ascending order, [`Access::Write`] where it is
/// both read and written.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Footprint(SmallVec<[(Location, Access); 4]>);

impl Clone for Footprint {
    /// Like the derived implementation, but copies the slice at once: a search copies footprints at
    /// every step.
    #[inline]
    fn clone(&self) -> Footprint {
        Footprint(SmallVec::from_slice(&self.0))
    }
}

impl Footprint {
    /// The footprint of a step that touches nothing shared.
    pub fn new() -> Footprint {
        Footprint::default()
    }

    /// The footprint of a step with one access.
    #[inline]
    pub fn one(location: Location, access: Access) -> Footprint {
        Footprint(SmallVec::from_buf_and_len([(location, access); 4], 1))
    }

    /// Resets to the footprint of a step with one access.
    #[inline]
    pub fn set_one(&mut self, location: Location, access: Access) {
        match &mut self.0[..] {
            [only] => *only = (location, access),
            _ => *self = Footprint::one(location, access),
        }
    }

    /// Removes all accesses and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds an access; a write replaces a read of the same location.
    pub fn add(&mut self, location: Location, access: Access) {
        match self.0.binary_search_by_key(&location, |&(l, _)| l) {
            Ok(at) => self.0[at].1 = self.0[at].1.max(access),
            Err(at) => self.0.insert(at, (location, access)),
        }
    }

    /// Adds all accesses of `other`.
    pub fn extend(&mut self, other: &Footprint) {
        other.0.iter().for_each(|&(location, access)| self.add(location, access));
    }

    /// Drops the accesses to locations for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(Location) -> bool) {
        self.0.retain(|&mut (location, _)| keep(location));
    }

    /// Whether this footprint touches every location that `other` touches.
    pub fn includes(&self, other: &Footprint) -> bool {
        other
            .0
            .iter()
            .all(|(location, _)| self.0.binary_search_by_key(location, |&(l, _)| l).is_ok())
    }

    /// The accesses, in ascending order of their locations.
    pub fn accesses(&self) -> &[(Location, Access)] {
        &self.0
    }

    /// Whether two steps of different threads with these footprints are dependent.
    #[inline]
    pub fn depends(&self, other: &Footprint) -> bool {
        // Fast path: most steps touch one location.
        if let ([(a, x)], [(b, y)]) = (&self.0[..], &other.0[..]) {
            return a == b && x.conflicts(*y);
        }
        self.depends_somewhere(other)
    }

    fn depends_somewhere(&self, other: &Footprint) -> bool {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(a, x)), Some(&&(b, y))) = (ours.peek(), theirs.peek()) {
            if a == b && x.conflicts(y) {
                return true;
            }
            if a <= b {
                ours.next();
            }
            if b <= a {
                theirs.next();
            }
        }
        false
    }
}

impl FromIterator<(Location, Access)> for Footprint {
    fn from_iter<I: IntoIterator<Item = (Location, Access)>>(accesses: I) -> Footprint {
        let mut footprint = Footprint::new();
        for (location, access) in accesses {
            footprint.add(location, access);
        }
        footprint
    }
}

#[cfg(test)]
mod tests {
    use super::{Access::*, *};

    fn of(accesses: &[(u32, Access)]) -> Footprint {
        accesses.iter().map(|&(l, a)| (Location(l), a)).collect()
    }

    #[test]
    fn a_write_absorbs_a_read() {
        let both = of(&[(7, Write), (3, Read), (7, Read)]);
        assert_eq!(both.accesses(), &[(Location(3), Read), (Location(7), Write)]);
    }

    #[test]
    fn dependence_needs_a_common_location_and_a_write() {
        let cases: [(&[_], &[_], bool); 6] = [
            (&[(1, Read)], &[(1, Read)], false),
            (&[(1, Read)], &[(1, Write)], true),
            (&[(1, Write)], &[(2, Write)], false),
            (&[(1, Read), (4, Write)], &[(1, Read), (2, Write), (4, Read)], true),
            (&[], &[(1, Write)], false),
            (&[(1, Read), (2, Read), (9, Read)], &[(0, Write), (3, Write), (9, Read)], false),
        ];
        for (a, b, expected) in cases {
            assert_eq!(of(a).depends(&of(b)), expected, "{a:?} {b:?}");
            assert_eq!(of(b).depends(&of(a)), expected, "{b:?} {a:?}");
        }
    }
}
