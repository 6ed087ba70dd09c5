//! Sleep sets.
//!
//! **Paper.** Godefroid, *Partial-Order Methods for the Verification of Concurrent Systems* (1996),
//! chapter 5; the unbounded search that cb-por and icb are compared with.
//!
//! **Guarantees.** Exactly one complete execution of every trace: assertions, deadlocks and
//! terminal states all survive. Every happens-before prefix is one node of the search, so that an
//! invariant is checked in every reachable state. With a bound on preemptions it is unsound
//! (program X of the zoo, at bound 0): use [`budgeted_sleep`](super::budgeted_sleep). With points
//! at synchronisation only, [`points`](crate::engine::points) argues why footprints are complete.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | transition | [`Choice`]: a thread and its alternative |
//! | Sleep(s) | `Node::sleep` |
//! | enabled(s) \ Sleep(s) | `Policy::begin`: all threads that are awake |
//!
//! **Alternatives.** What sleeps is a step with its alternative: it stays asleep after steps that
//! are independent of *its* footprint, whatever the other alternatives of its thread touch, and
//! covers none of them. All threads that are awake are tried everywhere, so the first step of every
//! execution is taken or sleeps. The argument does not use races, in which alternatives could be
//! confused.
//!
//! **Deviations.** 1. Persistent sets are not used; see [`dpor`](super::dpor). 2. An execution
//! whose enabled steps all sleep is reported as
//! [`Cut::Covered`](crate::engine::execution::Cut::Covered).
//!
//! **Cost.** No table. Time: happens-before states times threads; there can be several times as
//! many executions that end asleep as traces.

use preempt_system::{Choice, System, ThreadSet};

use super::backtrack::{Backtrack, Backtracking};
use super::policy::ReducedSearch;
use super::trace::{ReductionStats, Trace};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::plan::Dependence;

/// Explores every trace once, with sleep sets alone.
pub fn sleep_sets<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    dependence: Dependence,
) -> Result<ReductionStats, Stop<S::Need>> {
    strategy(cursor, dependence).run(visitor)
}

/// The search as a strategy.
pub(crate) fn strategy<S: System>(
    cursor: &mut Cursor<S>,
    dependence: Dependence,
) -> ReducedSearch<'_, S, Backtrack<AllThreads>> {
    ReducedSearch::new(cursor, dependence, Backtrack(AllThreads))
}

/// Tries every thread.
pub(crate) struct AllThreads;

impl<S: System> Backtracking<S> for AllThreads {
    const SLEEP: bool = true;

    fn begin(&mut self, _: &Trace<'_, S>, awake: ThreadSet, _: &[Choice]) -> ThreadSet {
        awake
    }
}
