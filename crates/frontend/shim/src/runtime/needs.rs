//! What a program turns out to need: a search begins with little, and begins anew when a run asks
//! for more.

use std::collections::BTreeSet;

use preempt_replay::{LoopRounds, SiteId};

use super::coroutine::suspend;
use super::with;

/// What the runs so far needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Places whose objects have to be told apart by the order of their first uses.
    pub(crate) ordered: BTreeSet<SiteId>,
    /// Places where `Arc`s are made whose counts matter.
    pub(crate) counted: BTreeSet<SiteId>,
    /// Plain cells are used: races have to be looked for.
    pub(crate) races: bool,
    /// How often loops go round that end by themselves, by a place in them: so long they do not
    /// spin.
    pub(crate) rounds: LoopRounds,
}

/// Something more that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// So many threads.
    Slots(usize),
    /// To order the first uses of objects made at a place.
    Ordered(SiteId),
    /// To see the counts of `Arc`s made at a place.
    Counted(SiteId),
    /// To look for races.
    Races,
    /// To follow threads that only spin.
    Fairness,
    /// To begin anew with what was learned about memory that outlives executions.
    Addresses,
    /// To let the loop at a place go round so often.
    Rounds(SiteId, usize),
    /// To go on without a thread that blocks: nothing can be done about that.
    Stuck,
}

/// Notes that the search has to begin anew with more. The running thread goes on, so that the
/// present run can come to its end: who stops a thread for good keeps what it holds, and that may
/// be a lock of std's.
#[cold]
pub(crate) fn need(need: Need) {
    with(|runtime| {
        runtime.full.get_or_insert(need);
    });
}

/// Stops the running thread for good: it would use memory that is gone.
#[cold]
pub(crate) fn stop_for_good() -> ! {
    loop {
        suspend();
    }
}
