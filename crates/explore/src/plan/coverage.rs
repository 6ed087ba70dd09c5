//! The coverage of a search, and why it ended early.

use crate::codec::save_fields;

/// The coverage of a search.
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
    /// The threads that had ended or failed, summed over the expanded states. Vacant slots do not
    /// count.
    pub ended: u64,
    /// Failed steps, states that violate an invariant, and deadlocks.
    pub failed: u64,
    /// The greatest number of steps by which a state was reached: in breadth-first order the
    /// greatest distance. Of a cartesian search, the greatest number of prefixes.
    pub depth: u32,
    /// Every state within this many steps of the initial one was expanded. Known only in
    /// breadth-first order.
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
    /// Adds the coverage of another worker.
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
    /// More memory than allowed or available.
    Memory,
    /// The directory for states that do not fit into memory is full or cannot be written.
    Disk,
    /// A file with states that did not fit into memory could not be read back unchanged.
    Damage,
    /// More time than allowed.
    Time,
    /// The observer asked for it.
    Interrupt,
    /// An execution returned to an earlier state, in a search that compares no states.
    Round,
    /// An execution needs a larger state than the program can have.
    Size,
    /// Another process of the search ended or did not answer.
    Process,
}

/// The states that a store may have omitted, because it mistook them for visited ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Omission {
    /// Nothing.
    #[default]
    Never,
    /// States whose 64-bit fingerprints are equal.
    Collision {
        /// The expected number of omitted states if fingerprints are random: n² / 2⁶⁵.
        expected: f64,
    },
    /// States whose bits were all set by others.
    Bits {
        /// The probability of this for one more new state, with the array as full as at the end.
        probability: f64,
    },
}
