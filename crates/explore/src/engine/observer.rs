//! Who watches a search while it runs, and may end it.

use std::time::Duration;

use preempt_system::Choice;

use crate::engine::estimate::Estimate;

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// States found.
    pub states: u64,
    /// Executions that came to their end or were cut; 0 in a search of states.
    pub executions: u64,
    /// Steps executed.
    pub transitions: u64,
    /// The depth that is being expanded (breadth first) or the greatest depth so far (depth first).
    pub depth: u32,
    /// The bound that is being explored, where there are bounds.
    pub bound: Option<u32>,
    /// How much is left, where that can be told.
    pub estimate: Option<Estimate>,
    /// States found that wait to be expanded, or steps that wait to be taken.
    pub frontier: u64,
    /// Distinct failures so far.
    pub failures: u64,
    /// The memory of the store.
    pub store_bytes: usize,
    /// The time since the search began.
    pub elapsed: Duration,
    /// How many times the search began anew because the model's states were too small.
    pub restarts: u32,
}

/// Watches a search. Workers call it every some thousand states, several at once if there are
/// several.
pub trait Observer: Sync {
    /// Takes note of the progress. The numbers never fall, except that a restart begins with 0
    /// again.
    fn progress(&self, progress: &Progress);

    /// Whether somebody wants to know how much is left. It costs a little with every step.
    fn wants_estimates(&self) -> bool {
        false
    }

    /// Who wants to see every step, if somebody does.
    fn follower(&self) -> Option<&dyn Follower> {
        None
    }

    /// Whether the search shall end here, incomplete.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Sees every step of a search. For programs that are small enough to be looked at.
pub trait Follower: Sync {
    /// The search takes these steps one after the other, from this state or, without one, from the
    /// beginning. It may have taken some of them before.
    fn run(&self, from: Option<&[u64]>, steps: &[Choice]);

    /// The search begins anew: what it has taken so far does not count.
    fn anew(&self);
}

/// Watches nothing and never interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&self, _: &Progress) {}
}

impl Observer for () {
    fn progress(&self, _: &Progress) {}
}
