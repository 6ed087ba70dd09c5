//! The weights of the parts of a tree of executions while it is explored depth first, for
//! [estimates](crate::engine::estimate) of the remaining work.
//!
//! The whole tree weighs 1. A node shares its weight among the steps that can be taken there,
//! except for those beyond the bound. How much a step within a bound weighs against its siblings
//! depends on how long executions are, which is not known before the first one has ended: then its
//! nodes are [weighed again](WeightTracker::weigh_again).

use crate::codec::save_fields;
use crate::engine::estimate::{Share, branch};

/// Weighs the steps of the current execution. Does nothing unless progress estimates are on.
pub(crate) struct WeightTracker {
    pub(crate) on: bool,
    threads: usize,
    /// The number of steps of the execution after which the current part of the tree starts.
    from: usize,
    /// The nodes of the execution from there on, as far as steps were taken from them.
    shares: Vec<Share>,
    /// The steps of the longest execution so far.
    longest: usize,
}

save_fields!(WeightTracker { on, threads, from, shares, longest });

impl WeightTracker {
    /// A tracker for `threads`.
    pub(crate) fn on(threads: usize) -> WeightTracker {
        WeightTracker { on: true, threads, from: 0, shares: Vec::new(), longest: 0 }
    }

    /// A tracker that is off.
    pub(crate) fn off() -> WeightTracker {
        WeightTracker { on: false, ..WeightTracker::on(0) }
    }

    /// A part of the tree begins after `len` steps.
    pub(crate) fn start(&mut self, len: usize) {
        self.from = len;
        self.shares.clear();
    }

    /// Enters a node after `len` steps, whose weight is `weight`. `left`: the preemptions that each
    /// of its steps leaves.
    pub(crate) fn enter(&mut self, len: usize, weight: f64, left: impl Iterator<Item = u32>) {
        let steps = self.longest.saturating_sub(len + 1) as u32;
        let branches = left.map(|left| branch(left, steps, self.threads)).sum();
        self.shares.truncate(len - self.from);
        self.shares.push(Share::new(weight, branches, steps));
    }

    /// The weight of a step that is taken after `len` steps and leaves `left` preemptions.
    #[inline]
    pub(crate) fn weigh(&self, len: usize, left: u32) -> f64 {
        if self.on { self.shares[len - self.from].of_branch(left, self.threads) } else { 0.0 }
    }

    /// Whether the execution that has just ended after `len` steps is the first, so that its nodes
    /// have to be weighed again.
    pub(crate) fn is_first(&mut self, len: usize) -> bool {
        let first = self.longest == 0;
        self.longest = self.longest.max(len);
        self.on && first
    }

    /// Weighs the nodes of an execution of `len` steps again and returns the weight of its end.
    /// `taken(at)`: the preemptions that the step after `at` steps leaves; `others(at)`: those that
    /// the other open steps there leave.
    pub(crate) fn weigh_again(
        &mut self,
        len: usize,
        taken: impl Fn(usize) -> u32,
        others: impl Fn(usize) -> Vec<u32>,
    ) -> f64 {
        let mut weight = self.shares.first().map_or(1.0, Share::weight);
        for at in self.from..len {
            self.enter(at, weight, std::iter::once(taken(at)).chain(others(at)));
            weight = self.weigh(at, taken(at));
        }
        weight
    }
}
