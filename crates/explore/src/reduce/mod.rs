//! Reductions: which steps need not be taken because others show the same.
//!
//! Two executions show the same if one can be got from the other by swapping adjacent independent steps: they are of the same
//! *trace*. Every reduction here is a function over a [`Cursor`](crate::cursor::Cursor) that tells a
//! [`Visitor`](crate::execution::Visitor) about the steps it takes, and returns its counts:
//!
//! | function | explores | bound on preemptions |
//! | --- | --- | --- |
//! | [`sleep::sleep_sets`] | every trace once; every prefix of a trace once | no |
//! | [`dpor::source`] | every trace once, few of the prefixes | no |
//! | [`dpor::optimal`] | every trace once, and nothing else | no |
//! | [`dpor::flanagan_godefroid`] | the papers' baseline | no |
//! | [`budgeted_sleep::budgeted_sleep_sets`] | every trace within the bound, some more than once | yes |
//! | [`cb_por::states`] | every state within the bound once | yes |
//! | [`cb_por::terminals`] | every trace within the bound once | yes |
//! | [`blocks::explore`] | every trace of straight-line threads, known before any is run | no |
//!
//! [`cartesian`] is a search over states, with a loop of its own.
//!
//! The reductions by [transactions](cpc) are over states, and keep a table of their own.
//!
//! `trace` is what the others have in common: an execution with its happens-before graph under a chosen [`Dependence`]; `walk` is
//! the depth-first loop of those that keep no table.

pub mod blocks;
pub mod budgeted_sleep;
pub mod cartesian;
pub mod cb_por;
pub mod cpc;
pub mod dpor;
pub mod sleep;
mod trace;
mod walk;

pub use trace::{Dependence, Tally};

/// Which steps a search leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// None: every step of every thread is taken in every state.
    #[default]
    None,
    /// [Sleep sets](sleep).
    Sleep,
    /// Flanagan and Godefroid's [dynamic reduction](dpor), without sleep sets: together with them it is incomplete.
    FlanaganGodefroid,
    /// [Source sets](dpor) with sleep sets.
    Source,
    /// [Optimal](dpor) dynamic reduction: source sets with wakeup trees.
    Optimal,
    /// [Budgeted sleep sets](budgeted_sleep), within a bound on preemptions.
    BudgetedSleep,
    /// Algorithm 2 of [cb-por](cb_por), within a bound on preemptions.
    CbPor,
    /// Algorithm 1 of [cb-por](cb_por), within a bound on preemptions.
    CbPorStates,
    /// [PO graphs of blocks](blocks), for programs whose threads are straight lines.
    Blocks,
    /// The same with the paper's orders, in which reads of a variable do not commute.
    BlocksPaper,
    /// [Cartesian](cartesian) vectors, over states.
    Cartesian {
        /// How the paper's figure is read.
        reading: cartesian::Reading,
    },
    /// Transactions with [commit point completion](cpc). Of states, like the next two, not of executions.
    Transactions,
    /// Transactions with [cycle detection](cpc).
    TransactionsCycle,
    /// Transactions that may [never end](cpc): errors are missed.
    TransactionsUnsound,
}

impl Reduction {
    /// Whether it works within a bound on preemptions. The others lose executions there.
    pub fn is_bounded(self) -> bool {
        matches!(self, Reduction::BudgetedSleep | Reduction::CbPor | Reduction::CbPorStates)
    }

    /// Whether all that will be run is known beforehand, and which steps depend on each other there.
    pub(crate) fn blocks(self) -> Option<Dependence> {
        match self {
            Reduction::Blocks => Some(Dependence::ReadWrite),
            Reduction::BlocksPaper => Some(Dependence::All),
            _ => None,
        }
    }

    /// Whether it runs threads by transactions: depth first, over states.
    pub fn is_by_transactions(self) -> bool {
        cpc::Config::of(self).is_some()
    }

    /// Whether a search that comes to its end has missed no error of those it looks for.
    pub fn is_sound(self) -> bool {
        self != Reduction::TransactionsUnsound
    }

    /// Whether every reachable state is visited, so that what must hold in all states is checked in all.
    pub fn visits_all_states(self) -> bool {
        matches!(self, Reduction::None | Reduction::Sleep | Reduction::CbPorStates)
    }

    /// Whether a broken invariant is found, because every state is visited or because somebody observes what it reads.
    pub fn checks_invariants(self) -> bool {
        self.visits_all_states() || matches!(self, Reduction::Cartesian { .. })
    }
}
