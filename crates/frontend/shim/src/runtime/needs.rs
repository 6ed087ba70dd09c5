//! What a program turns out to need: a search begins with little, and begins anew when a run asks for more.

use std::collections::{BTreeMap, BTreeSet};

use preempt_system::Capacity;

use super::coroutine::suspend;
use super::with;

/// What the runs so far needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Places whose objects have to be told apart by the order of their first uses.
    pub(crate) ordered: BTreeSet<usize>,
    /// Places where `Arc`s are made whose counts matter.
    pub(crate) counted: BTreeSet<usize>,
    /// Plain cells are used: races have to be looked for.
    pub(crate) races: bool,
    /// How often loops go round that end by themselves, by a place in them: so long they do not spin.
    pub(crate) rounds: BTreeMap<usize, usize>,
}

/// Something more that is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// So many threads.
    Slots(usize),
    /// To order the first uses of objects made at a place.
    Ordered(usize),
    /// To see the counts of `Arc`s made at a place.
    Counted(usize),
    /// To look for races.
    Races,
    /// To follow threads that only spin.
    Fairness,
    /// To begin anew with what was learned about memory that outlives executions.
    Addresses,
    /// To let the loop at a place go round so often.
    Rounds(usize, usize),
    /// To go on without a thread that blocks: nothing can be done about that.
    Stuck,
}

/// The bits of the number of rounds in a capacity; the place has the others.
const ROUND_BITS: u32 = 12;

/// The most rounds that a loop is let go before it counts as a wait.
pub(crate) const MOST_ROUNDS: usize = (1 << ROUND_BITS) - 1;

impl Need {
    /// As a search passes it on.
    pub(crate) fn capacity(self) -> Capacity {
        let (part, value) = match self {
            Need::Slots(slots) => (0, slots),
            Need::Ordered(site) => (1, site),
            Need::Counted(site) => (2, site),
            Need::Races => (3, 0),
            Need::Fairness => (4, 0),
            Need::Addresses => (6, 0),
            Need::Rounds(site, rounds) => (5, site << ROUND_BITS | rounds),
            Need::Stuck => (7, 0),
        };
        Capacity { part, value: value as i64 }
    }

    pub(crate) fn from(capacity: Capacity) -> Need {
        let value = capacity.value as usize;
        match capacity.part {
            0 => Need::Slots(value),
            1 => Need::Ordered(value),
            2 => Need::Counted(value),
            3 => Need::Races,
            4 => Need::Fairness,
            6 => Need::Addresses,
            7 => Need::Stuck,
            _ => Need::Rounds(value >> ROUND_BITS, value & MOST_ROUNDS),
        }
    }
}

/// Notes that the search has to begin anew with more. The running thread goes on, so that the present run can come to its end: who stops a
/// thread for good keeps what it holds, and that may be a lock of std's.
#[cold]
pub(crate) fn need(need: Need) {
    with(|runtime| {
        runtime.full.get_or_insert(need.capacity());
    });
}

/// Stops the running thread for good: it would use memory that is gone.
#[cold]
pub(crate) fn stop_for_good() -> ! {
    loop {
        suspend();
    }
}
