//! Depth first over executions within a bound: cb-dfs, dfs-hb, and the search of all executions.
//!
//! **Paper.** cb-por, section 4: cb-dfs, the search that its Table 1 compares with. dfs-hb is ours.
//!
//! **Guarantees.** cb-dfs takes every execution with at most `bound` preemptions, each once;
//! without a bound, every execution. dfs-hb takes every happens-before graph of these at least
//! once, so that no failure and no end of an execution is lost. Both are complete if the bound left
//! nothing out. Schedules are not the simplest: icb's are.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | csb | `Extent::cost` |
//! | table\[fp(s)\]\[t\] | [`Table`] |
//!
//! **Deviations.**
//!
//! 1. A thread that may choose has several steps in a state. They cost the same.
//! 2. Without a bound every path to a state is as good as any other, so dfs-hb then does not
//!    compare preemptions.
//!
//! Which path to a happens-before graph is taken first matters only within a bound, where a later
//! one may have fewer preemptions. So several workers can be used for all these searches except
//! dfs-hb within a bound.
//!
//! **Cost.** cb-dfs keeps nothing but the current execution. dfs-hb keeps 27 bytes for every step
//! with at most `bound` preemptions, and takes some of them again when it reaches them with fewer:
//! some 3 % of them in the work-stealing queue.

use preempt_system::System;

use crate::engine::cache::Table;
use crate::engine::rounds::Rounds;
use crate::engine::stats::ExecutionStats;
use crate::engine::tree::{Discard, Extent, PausedWorker};

/// All executions within an extent, in one round.
pub(crate) struct Bounded(pub(crate) Extent);

impl<S: System> Rounds<S> for Bounded {
    type Round = ();
    type Kept = Discard;
    type OverBound<'r> = Discard;

    fn first(&self) {}

    fn extent(&self, (): &()) -> Extent {
        self.0
    }

    fn over_bound(&self, (): &(), _: usize, kept: Discard) -> Discard {
        kept
    }

    fn next(
        &self,
        (): (),
        _: &Table,
        done: Vec<PausedWorker<Discard>>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Option<()> {
        if let Some(bound) = self.0.cost {
            stats.complete_bound(bound, done.iter().any(|worker| worker.over_bound.any));
        }
        None
    }
}
