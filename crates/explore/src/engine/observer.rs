//! Observers of a search, which may end it.

use std::time::Duration;

use preempt_system::Choice;

use crate::engine::estimate::Estimate;

/// The progress of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// States found.
    pub states: u64,
    /// Executions that ended or were cut; 0 in a search over states.
    pub executions: u64,
    /// Steps executed.
    pub transitions: u64,
    /// The depth of the current level (breadth first) or the greatest depth so far (depth first).
    pub depth: u32,
    /// The bound that is being explored, where there are bounds.
    pub bound: Option<u32>,
    /// The estimated remaining work, where there is an estimate.
    pub estimate: Option<Estimate>,
    /// States found that wait to be expanded, or steps that wait to be taken.
    pub frontier: u64,
    /// Distinct failures so far.
    pub failures: u64,
    /// The memory of the store.
    pub store_bytes: usize,
    /// The time since the search began.
    pub elapsed: Duration,
    /// How many times the search has started again because the model's states were too small.
    pub restarts: u32,
}

/// Observes a search. Every worker calls it every few thousand states, so calls may be concurrent.
pub trait Observer: Sync {
    /// Reports progress. The numbers never fall, except that a restart begins with 0 again.
    fn progress(&self, progress: &Progress);

    /// Whether to estimate the remaining work. It makes every step slightly slower.
    fn wants_estimates(&self) -> bool {
        false
    }

    /// The follower that sees every step, if there is one.
    fn follower(&self) -> Option<&dyn Follower> {
        None
    }

    /// Whether to end the search now, incomplete.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Sees every step of a search, for programs that are small enough to be drawn.
pub trait Follower: Sync {
    /// The search takes these steps in order, from state `from` or, without one, from the
    /// beginning. It may have taken some of them before.
    fn run(&self, from: Option<&[u64]>, steps: &[Choice]);

    /// The search starts again: the steps so far do not count.
    fn restart(&self);
}

/// Observes nothing and never interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&self, _: &Progress) {}
}

impl Observer for () {
    fn progress(&self, _: &Progress) {}
}
