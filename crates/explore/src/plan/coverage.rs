//! How much a search has seen, and why it did not see more.

use crate::codec::save_fields;

/// How much a search has seen.
///
/// Papers count differently, so the parts are kept apart: an attempt to step a thread slot in an
/// expanded state either counts as one or more `transitions`, or as one `blocked`, or as one
/// `ended`, or the slot is vacant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct states found, the initial one among them.
    pub states: u64,
    /// States whose steps were taken. All of `states` in a complete search.
    pub expanded: u64,
    /// Steps executed that moved or failed; each alternative of a thread counts once.
    pub transitions: u64,
    /// The threads that were blocked in an expanded state, resting or not, summed over these
    /// states.
    pub blocked: u64,
    /// The threads that had ended or had gone wrong, summed over the expanded states. Vacant slots
    /// do not count.
    pub ended: u64,
    /// Failed steps, states that break an invariant, and deadlocks, all counted.
    pub failed: u64,
    /// The greatest number of steps by which a state was reached: in breadth-first order the
    /// greatest distance. Of a cartesian search, the greatest number of prefixes.
    pub depth: u32,
    /// Every state within this many steps of the initial one was expanded. Only breadth-first order
    /// can tell.
    pub settled: Option<u32>,
    /// The most states that waited to be expanded at one time.
    pub frontier: u64,
}

save_fields!(Coverage {
    states,
    expanded,
    transitions,
    blocked,
    ended,
    failed,
    depth,
    settled,
    frontier
});

impl Coverage {
    /// Adds what another worker has seen.
    pub(crate) fn add(&mut self, other: &Coverage) {
        self.states += other.states;
        self.expanded += other.expanded;
        self.transitions += other.transitions;
        self.blocked += other.blocked;
        self.ended += other.ended;
        self.failed += other.failed;
        self.depth = self.depth.max(other.depth);
        self.settled = self.settled.max(other.settled);
        self.frontier = self.frontier.max(other.frontier);
    }
}

/// Why a search ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// More states than allowed.
    States,
    /// As many executions as allowed, and there are more.
    Executions,
    /// States at the greatest depth allowed were not expanded.
    Depth,
    /// More memory than allowed, or than could be had.
    Memory,
    /// More time than allowed.
    Time,
    /// The observer asked for it.
    Interrupt,
    /// An execution came back to a state that it was in, and the search compares none.
    Round,
}

/// What a store may have got wrong: a new state taken for a visited one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Omission {
    /// Nothing.
    #[default]
    Never,
    /// States whose 64-bit fingerprints are equal.
    Collision {
        /// How many states are expected to be missed, were the fingerprints random: n² / 2⁶⁵.
        expected: f64,
    },
    /// States whose bits were all set by others.
    Bits {
        /// How probable that is for one more new state, with the array as full as it is at the end.
        probability: f64,
    },
}
