//! Estimates of the remaining executions of a tree, from the part that was explored.
//!
//! **Paper.** Knuth, "Estimating the efficiency of backtrack programs" (1975), weighs a path
//! through a tree by the branches that it passes; Kilby, Slaney, Thiébaux and Walsh, "Estimating
//! search tree size" (2006), do so along a depth-first search instead of random paths. The weights
//! for bounded trees are ours.
//!
//! **Guarantees.** None: the shape of the unexplored part is not known. If all branches of a node
//! are equally large, the estimate is exact at any time. On interleavings of threads of equal
//! length it is within a factor of 3 once a hundredth of the tree was seen, and within a quarter
//! once a tenth was; within a bound on preemptions within a factor of 10, and of 2. Where the first
//! branches are the smallest or the largest it is worse: for threads of 5 and of 20 steps it is too
//! low by a factor of 15, and of 3; for threads of 20 and of 5 steps too high by a factor of 150,
//! and of 60. `tests/suite/estimates.rs` has the trees, and how often the spread contains the
//! truth.
//!
//! **Map.** The weight of a node → [`Share`]; the sum of the weights of the leaves that were seen →
//! `weight`; its ratio to their number → [`Estimator::total`].
//!
//! **Deviations.**
//!
//! 1. Within a bound a branch that costs a preemption has fewer executions than one that costs
//!    none. Its weight is less in the ratio that Theorem 1 of icb suggests: with r preemptions left
//!    and L steps to go there are about Σ C(L, i)·(n - 1)ⁱ, i ≤ r, interleavings.
//! 2. The spread is not a variance: successive estimates of one walk depend on each other. It is
//!    how much the estimate has changed while the number of executions grew by [`WINDOW`], to the
//!    power [`CAUTION`].
//! 3. The items of a level of icb are branches of one node.
//!
//! **Cost.** 24 bytes for each step of the present execution, and a division for each step.

use crate::codec::{save_fields, save_variants};

/// The part of a tree below one node, as a share of the whole.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The weight of the node, as a share of the whole tree.
    weight: f64,
    /// The sum of the relative weights of its branches.
    branches: f64,
    /// The steps that are expected to follow.
    steps: u32,
}

save_fields!(Share { weight, branches, steps });

/// The weight of a branch relative to its siblings, with `preemptions` left and `steps` to go.
pub fn branch(preemptions: u32, steps: u32, threads: usize) -> f64 {
    let (mut choices, mut sum) = (1.0, 1.0);
    for chosen in 1..=preemptions.min(steps) {
        choices *= f64::from(steps - chosen + 1) / f64::from(chosen) * (threads as f64 - 1.0);
        sum += choices;
    }
    sum
}

impl Share {
    /// A node of weight `weight`, whose branches weigh `branches` together when `steps` are
    /// expected to follow.
    pub fn new(weight: f64, branches: f64, steps: u32) -> Share {
        Share { weight, branches, steps }
    }

    /// The weight of the node, as a share of the whole.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The weight of a branch after which `preemptions` are left.
    pub fn of_branch(&self, preemptions: u32, threads: usize) -> f64 {
        self.weight * branch(preemptions, self.steps, threads) / self.branches
    }
}

/// The estimated number of remaining executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Executions so far, of the current bound where there are several.
    pub done: u64,
    /// Remaining executions of it.
    pub remaining: u64,
    /// Lower bound of `remaining`; equal to `most` if the number is known.
    pub least: u64,
    /// Upper bound of `remaining`.
    pub most: u64,
    /// Executions of the next bound, estimated from the steps that wait for it.
    pub next: Option<u64>,
}

impl Estimate {
    /// Limits the estimate to `executions`.
    pub(crate) fn at_most(self, executions: u64) -> Estimate {
        let [remaining, least, most] =
            [self.remaining, self.least, self.most].map(|n| n.min(executions));
        Estimate { remaining, least, most, next: self.next.filter(|_| most < executions), ..self }
    }
}

/// A part of a search, as far as it is known before it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Round {
    /// Nothing is known.
    #[default]
    Unknown,
    /// A tree, or one for each item, within a bound if there is one.
    Tree {
        /// The bound.
        bound: Option<u32>,
        /// The items.
        items: u64,
    },
    /// This many random executions.
    Draws(u64),
}

save_variants!(Round { 0 => Unknown, 1 => Tree { bound, items }, 2 => Draws(runs) });

/// The spread covers the estimates since there were a 16th of the executions.
const WINDOW: u64 = 16;
/// The spread is the change of the estimate to this power.
const CAUTION: f64 = 1.5;
/// The fewest executions from which an estimate is made.
const LEAST: u64 = 16;

/// Updates the estimate while a search runs.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    round: Round,
    executions: u64,
    weight: f64,
    /// Steps that wait for the next round.
    waiting: u64,
    /// The estimates so far: executions, and the estimated total. Each has at least an eighth more
    /// executions than the one before.
    history: Vec<(u64, f64)>,
    /// The executions per item of the previous round.
    each_before: Option<f64>,
}

save_fields!(Estimator { round, executions, weight, waiting, history, each_before });

impl Estimator {
    /// A part of the search starts.
    pub fn begin(&mut self, round: Round) {
        let each = match self.round {
            Round::Tree { items, .. } if self.executions > 0 => {
                Some(self.executions as f64 / items.max(1) as f64)
            }
            _ => None,
        };
        *self = Estimator { round, each_before: each, ..Estimator::default() };
    }

    /// The current part.
    pub fn round(&self) -> Round {
        self.round
    }

    /// Records `executions` that covered `weight` of the tree and deferred `waiting` steps to the
    /// next round.
    pub fn record(&mut self, executions: u64, weight: f64, waiting: u64) {
        self.executions += executions;
        self.weight += weight;
        self.waiting += waiting;
        let due = self.history.last().is_none_or(|&(last, _)| self.executions > last + last / 8);
        if let Some(total) = self.total().filter(|_| due) {
            self.history.push((self.executions, total));
        }
    }

    /// The estimated number of executions in all.
    fn total(&self) -> Option<f64> {
        let total = self.executions as f64 / self.weight.min(1.0);
        (self.executions >= LEAST && total.is_finite()).then_some(total)
    }

    /// The estimate, if there is one.
    pub fn estimate(&self) -> Option<Estimate> {
        if let Round::Draws(runs) = self.round {
            let remaining = runs.saturating_sub(self.executions);
            return Some(Estimate {
                done: self.executions,
                remaining,
                least: remaining,
                most: remaining,
                next: None,
            });
        }
        let Round::Tree { items, .. } = self.round else { return None };
        let total = self.total()?;
        let recent =
            self.history.iter().filter(|&&(executions, _)| executions >= self.executions / WINDOW);
        let (low, high) =
            recent.fold((total, total), |(low, high), &(_, then)| (low.min(then), high.max(then)));
        let spread = (high / low).powf(CAUTION);
        let remaining = total - self.executions as f64;
        let next = (self.waiting > 0).then(|| {
            let each = total / items.max(1) as f64;
            // The executions per item change from bound to bound; the last change is extrapolated.
            let trend = self.each_before.filter(|_| items > 1).map_or(1.0, |before| each / before);
            (self.waiting as f64 / self.weight.min(1.0) * each * trend) as u64
        });
        Some(Estimate {
            done: self.executions,
            remaining: remaining.round() as u64,
            least: (remaining / spread).round() as u64,
            most: (remaining * spread).round() as u64,
            next,
        })
    }
}
