//! Depth first over executions of at most N steps, and iterative deepening: db:N and idfs.
//!
//! **Paper.** icb, section 4: the searches that its Figures 2 to 4 compare with.
//!
//! **Guarantees.** Every execution is followed to its end or to its N-th step, where it is cut. No
//! failure that shows within N steps is lost. Iterative deepening ends when nothing was cut, and is
//! then complete; it does not end on programs that can run forever, unless a limit of depth is
//! given.
//!
//! **Map.** db:N is [`Order::Depth`](crate::Order::Depth), idfs is
//! [`Order::IterativeDepth`](crate::Order::IterativeDepth).
//!
//! **Deviations.** 1. Executions that end and those that are cut are counted separately, unlike in
//! the paper. 2. idfs begins with its own increment.
//!
//! **Cost.** Nothing is kept but the current execution. Every round takes the steps of those before
//! again.

use preempt_system::System;

use crate::engine::cache::Table;
use crate::engine::rounds::Rounds;
use crate::engine::stats::ExecutionStats;
use crate::engine::tree::{Discard, Extent, PausedWorker};

/// All executions up to a number of steps, in rounds with more and more steps. A round is its
/// number of steps.
pub(crate) struct Depth {
    /// The steps of the first round.
    first: u32,
    /// The number of steps by which each round exceeds the one before.
    by: u32,
    /// The steps of the last round.
    most: u32,
}

impl Depth {
    /// All executions up to `steps` steps.
    pub(crate) fn up_to(steps: u32) -> Depth {
        Depth { first: steps, by: 0, most: steps }
    }

    /// All executions up to `by` steps, then up to `by` more, and so on until none is cut or `most`
    /// is reached.
    pub(crate) fn iterated(by: u32, most: Option<u32>) -> Depth {
        let most = most.unwrap_or(u32::MAX);
        Depth { first: by.min(most), by, most }
    }
}

impl<S: System> Rounds<S> for Depth {
    type Round = u32;
    type Kept = Discard;
    type OverBound<'r> = Discard;

    fn first(&self) -> u32 {
        self.first
    }

    fn extent(&self, &steps: &u32) -> Extent {
        Extent { cost: None, steps: Some(steps) }
    }

    fn over_bound(&self, _: &u32, _: usize, kept: Discard) -> Discard {
        kept
    }

    fn next(
        &self,
        steps: u32,
        _: &Table,
        done: Vec<PausedWorker<Discard>>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Option<u32> {
        let cut = done.iter().any(|worker| worker.cut);
        stats.complete_bound(steps, cut);
        (cut && steps < self.most).then(|| steps.saturating_add(self.by).min(self.most))
    }
}
