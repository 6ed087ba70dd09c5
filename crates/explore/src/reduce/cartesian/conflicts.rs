//! The conflict table: which prefixes touch which locations, so that CalcCV finds dependence
//! without comparing transitions.
//!
//! For every location it has the threads whose prefixes read or write it, separately for the *last*
//! transition of a prefix and for its *body*, all transitions before the last. A transition is
//! checked against all other prefixes in as many look-ups as it has accesses, however long they
//! are: that makes CalcCV linear in the size of the vector (cartesian, section 5).

use preempt_system::{Access, Footprint, Location, ThreadId, ThreadSet};

/// Threads that read a location, and threads that write it.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    reads: u64,
    writes: u64,
}

impl Users {
    #[inline(always)]
    fn add(&mut self, thread: u64, access: Access) {
        match access {
            Access::Read => self.reads |= thread,
            Access::Write => self.writes |= thread,
        }
    }

    /// The threads whose accesses do not commute with this one.
    #[inline(always)]
    fn against(self, access: Access) -> u64 {
        match access {
            Access::Read => self.writes,
            Access::Write => self.writes | self.reads,
        }
    }
}

/// The accesses to one location.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The vector that it belongs to. The entry is stale in any other.
    vector: u64,
    body: Users,
    last: Users,
    /// Whether the observer of the invariants reads it.
    observed: bool,
}

/// The table of one vector at a time.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    entries: Vec<Entry>,
    vector: u64,
}

/// The prefixes that a transition depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dependent {
    /// Threads with a dependent transition in the body of their prefix.
    pub(super) body: ThreadSet,
    /// Threads whose last transition is dependent.
    pub(super) last: ThreadSet,
    /// Whether the observer's transition is dependent.
    pub(super) observer: bool,
}

impl Conflicts {
    /// Clears the table in constant time.
    pub(super) fn clear(&mut self) {
        self.vector += 1;
    }

    /// Records the accesses of the observer.
    pub(super) fn observe(&mut self, footprint: &Footprint) {
        for &(location, _) in footprint.accesses() {
            self.entry(location).observed = true;
        }
    }

    /// The prefixes that a transition of `thread` depends on.
    #[inline(always)]
    pub(super) fn of(&self, thread: ThreadId, footprint: &Footprint) -> Dependent {
        let (mut body, mut last, mut observer) = (0, 0, false);
        for &(location, access) in footprint.accesses() {
            if let Some(entry) =
                self.entries.get(location.0 as usize).filter(|entry| entry.vector == self.vector)
            {
                body |= entry.body.against(access);
                last |= entry.last.against(access);
                observer |= entry.observed && access == Access::Write;
            }
        }
        let others = !bit(thread);
        Dependent {
            body: ThreadSet::from_bits(body & others),
            last: ThreadSet::from_bits(last & others),
            observer,
        }
    }

    /// Adds the last transition of `thread`'s prefix, which has this footprint.
    #[inline(always)]
    pub(super) fn add_last(&mut self, thread: ThreadId, footprint: &Footprint) {
        for &(location, access) in footprint.accesses() {
            self.entry(location).last.add(bit(thread), access);
        }
    }

    /// Moves the last transition of `thread`'s prefix, which has this footprint, to the body.
    #[inline(always)]
    pub(super) fn move_to_body(&mut self, thread: ThreadId, footprint: &Footprint) {
        for &(location, access) in footprint.accesses() {
            let entry = self.entry(location);
            entry.last.reads &= !bit(thread);
            entry.last.writes &= !bit(thread);
            entry.body.add(bit(thread), access);
        }
    }

    #[inline(always)]
    fn entry(&mut self, location: Location) -> &mut Entry {
        let at = location.0 as usize;
        if at >= self.entries.len() {
            self.entries.resize((at + 1).next_power_of_two(), Entry::default());
        }
        let entry = &mut self.entries[at];
        if entry.vector != self.vector {
            *entry = Entry { vector: self.vector, ..Entry::default() };
        }
        entry
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

#[inline(always)]
fn bit(thread: ThreadId) -> u64 {
    1 << thread.index()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{Read, Write};

    fn of(accesses: &[(u32, Access)]) -> Footprint {
        accesses.iter().map(|&(location, access)| (Location(location), access)).collect()
    }

    #[test]
    fn the_table_says_what_comparing_all_transitions_would() {
        let (a, b) = (ThreadId::new(0), ThreadId::new(1));
        let mut table = Conflicts::default();
        for round in 0..3 {
            table.clear();
            table.observe(&of(&[(9, Read)]));
            let first = of(&[(3, Read), (5, Write)]);
            table.add_last(a, &first);
            assert!(
                table.of(b, &of(&[(3, Read)])).last.is_empty(),
                "two reads commute, round {round}"
            );
            assert_eq!(table.of(b, &of(&[(3, Write)])).last, ThreadSet::EMPTY.with(a));
            assert!(
                table.of(a, &of(&[(3, Write), (5, Write)])).last.is_empty(),
                "one's own transitions do not count"
            );
            table.move_to_body(a, &first);
            table.add_last(a, &of(&[(3, Write)]));
            let found = table.of(b, &of(&[(5, Read)]));
            assert_eq!((found.body, found.last), (ThreadSet::EMPTY.with(a), ThreadSet::EMPTY));
            let found = table.of(b, &of(&[(3, Read)]));
            assert_eq!((found.body, found.last), (ThreadSet::EMPTY, ThreadSet::EMPTY.with(a)));
            assert!(
                table.of(b, &of(&[(9, Write)])).observer
                    && !table.of(b, &of(&[(9, Read)])).observer
            );
        }
    }
}
