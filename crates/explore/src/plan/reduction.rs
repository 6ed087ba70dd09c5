//! The reductions by name, and their static properties.

use std::borrow::Cow;

use preempt_system::{Access, Footprint};

use super::property::Soundness;
use super::strategies::of_reduction;

/// The reductions: each skips steps that others make redundant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// None: every step of every thread is taken in every state.
    #[default]
    None,
    /// [Sleep sets](crate::reduce::sleep).
    Sleep,
    /// Flanagan and Godefroid's [dynamic reduction](crate::reduce::dpor), without sleep sets:
    /// together with them it is incomplete.
    FlanaganGodefroid,
    /// [Source sets](crate::reduce::dpor) with sleep sets.
    Source,
    /// [Optimal](crate::reduce::dpor) dynamic reduction: source sets with wakeup trees.
    Optimal,
    /// [Budgeted sleep sets](crate::reduce::budgeted_sleep), within a bound on preemptions.
    BudgetedSleep,
    /// Algorithm 2 of [cb-por](crate::reduce::cb_por), within a bound on preemptions.
    CbPor,
    /// Algorithm 1 of [cb-por](crate::reduce::cb_por), within a bound on preemptions.
    CbPorStates,
    /// Execution [graphs](crate::reduce::graphs), under weak memory.
    Graphs,
    /// [PO graphs of blocks](crate::reduce::blocks), for programs whose threads are straight lines.
    Blocks,
    /// The same with the paper's orders, in which reads of a variable do not commute.
    BlocksPaper,
    /// [Cartesian](crate::reduce::cartesian) vectors, over states.
    Cartesian {
        /// The reading of the paper's figure.
        reading: Reading,
    },
    /// Transactions with [commit point completion](crate::reduce::cpc). Of states, like the next
    /// two, not of executions.
    Transactions,
    /// Transactions with [cycle detection](crate::reduce::cpc).
    TransactionsCycle,
    /// Transactions that may [never end](crate::reduce::cpc): errors are missed.
    TransactionsUnsound,
}

impl Reduction {
    /// Whether it works within a bound on preemptions. The others lose executions there.
    pub fn is_bounded(self) -> bool {
        of_reduction(self).is_some_and(|entry| entry.needs_bound.is_some())
    }

    /// Whether it runs threads by transactions: depth first, over states.
    pub fn is_by_transactions(self) -> bool {
        matches!(
            self,
            Reduction::Transactions | Reduction::TransactionsCycle | Reduction::TransactionsUnsound
        )
    }

    /// Whether a completed search finds every step that fails.
    pub fn is_sound(self) -> bool {
        of_reduction(self).is_none_or(|entry| entry.properties.step == Soundness::Sound)
    }
}

/// The dependence relation between steps of different threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dependence {
    /// Those that touch a common location which one of them writes.
    #[default]
    ReadWrite,
    /// Those that touch a common location: the relation of icb, and of the published figures of
    /// cb-por.
    All,
}

impl Dependence {
    /// The footprint under this dependence: where all accesses depend on each other, a read counts
    /// as a write.
    pub(crate) fn apply(self, footprint: &Footprint) -> Cow<'_, Footprint> {
        match self {
            Dependence::ReadWrite => Cow::Borrowed(footprint),
            Dependence::All => Cow::Owned(
                footprint
                    .accesses()
                    .iter()
                    .map(|&(location, _)| (location, Access::Write))
                    .collect(),
            ),
        }
    }
}

/// The readings of Figure 6. Both are sound; they differ in the length of prefixes of threads that
/// run in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reading {
    /// A cycle is noticed when a state is reached that the prefix was extended from: one round of
    /// the cycle later. Transitions that are executed and then not added count. It gives the
    /// figures that the paper reports.
    #[default]
    Late,
    /// A cycle is noticed when any state of the prefix is reached again, as the figure says. Only
    /// transitions of the vector count.
    Literal,
}
