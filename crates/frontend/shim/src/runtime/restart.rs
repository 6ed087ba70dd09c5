//! Reasons to restart a search. A search starts with little, and starts over when a run turns out
//! to require more.

use std::collections::BTreeSet;

use preempt_replay::{LoopRounds, SiteId};

use super::coroutine::suspend;
use super::with;

/// The requirements of the runs so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requirements {
    /// Places whose objects are distinguished by the order of their first uses.
    pub(crate) ordered: BTreeSet<SiteId>,
    /// Places where `Arc`s are made whose reference counts matter.
    pub(crate) counted: BTreeSet<SiteId>,
    /// The test uses plain cells, so races are detected.
    pub(crate) races: bool,
    /// The test has compare-exchanges, so the values of atomics are recorded: an exchange that
    /// fails only reads.
    pub(crate) exchanges: bool,
    /// Places where atomics are made whose values change between steps: by plain writes through the
    /// only reference, or because another atomic replaces them. Their exchanges count as writes.
    pub(crate) replaced: BTreeSet<SiteId>,
    /// How often addresses changed while values, which may be addresses, were recorded.
    pub(crate) moved: u32,
    /// Threads use weak orderings, so executions are watched for accesses that could be stale.
    pub(crate) stale_watch: bool,
    /// Loops that end by themselves.
    pub(crate) rounds: LoopRounds,
    /// Destructors of thread-local values perform operations after what scopes and `is_finished`
    /// wait for: see [`exits`](super::exits).
    pub(crate) exits: bool,
}

/// Why a search starts over, or ends because that would not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartReason {
    /// The test starts this many threads.
    Slots(usize),
    /// Objects made at this place have to be distinguished by the order of their first uses.
    Ordered(SiteId),
    /// The reference counts of `Arc`s made at this place matter.
    Counted(SiteId),
    /// The test uses plain cells.
    Races,
    /// The test has compare-exchanges.
    Exchanges,
    /// The value of an atomic made at this place does not follow from the steps.
    Replaced(SiteId),
    /// Several threads, and an ordering weaker than `SeqCst`.
    WeakOrdering,
    /// Weak memory might allow an access to be stale. This search ends, and the check starts over
    /// under weak memory.
    WeakMemory,
    /// All threads that can step spin, and the reduction cannot handle that. Refused.
    Fairness,
    /// A search over execution graphs does not handle the operation of this name at this place.
    /// Refused.
    NoGraphs(Obstacle, &'static str, SiteId),
    /// Memory was found to outlive executions, which changes addresses.
    Addresses,
    /// The same, and recorded values may be such addresses. Counts how often: a need that is
    /// reported twice ends a search.
    Moved(u32),
    /// The loop at this place ends by itself after this many rounds.
    Rounds(SiteId, usize),
    /// The function of a thread returns before its thread-local values are dropped, and that can
    /// be observed.
    Exits,
    /// A thread blocks in code that is not controlled. Refused.
    Stuck,
}

/// What a search over execution graphs does not handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A kind of operation.
    Operation,
    /// An access to an atomic that was written through an exclusive reference.
    PlainWrite,
    /// A loop that repeats without an effect.
    Loop,
}

/// Records that the search has to start over. The running thread continues, so that the current run
/// can end: a thread that never continues keeps what it holds, which may be a lock of std.
#[cold]
pub(crate) fn restart(reason: RestartReason) {
    with(|runtime| {
        runtime.restart.get_or_insert(reason);
    });
}

/// Suspends the running thread forever, because it would use freed memory.
#[cold]
pub(crate) fn stop_for_good() -> ! {
    loop {
        suspend();
    }
}
