//! Strategies with their parameters, as the engine runs them.
//!
//! A [`Plan`](super::Plan) is a request in the terms of users, who choose an order, a reduction, a
//! store, a bound and scheduling points independently of each other. Most of these combinations
//! make no sense. [`Plan::resolve`](super::Plan::resolve) turns those that do into a [`Strategy`],
//! in which the others do not exist.

use preempt_system::memory::MemoryModel;

use super::growth::Sampling;
use super::{Cache, Count, Dependence, Limits, Points, Reading, Shrink, StoreKind};

/// A strategy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All states.
    States {
        /// The order in which they are expanded.
        order: StateOrder,
        /// The store of visited states.
        store: StoreKind,
    },
    /// States that are reached by [cartesian](crate::reduce::cartesian) vectors.
    Cartesian {
        /// The reading of the paper's figure.
        reading: Reading,
        /// The order in which states are expanded.
        order: StateOrder,
        /// The store of visited states.
        store: StoreKind,
    },
    /// States that are reached by [transactions](crate::reduce::cpc), depth first, in an exact
    /// table.
    Transactions(Transactions),
    /// Executions, systematically.
    Executions {
        /// The explored executions and their order.
        search: ExecutionSearch,
        /// The scheduling points.
        points: Points,
    },
    /// One execution of each [PO graph of blocks](crate::reduce::blocks).
    Blocks(Dependence),
    /// Random executions.
    Sample {
        /// The choice of threads.
        chooser: Chooser,
        /// The number of executions.
        runs: u64,
        /// The random seed.
        seed: u64,
        /// The scheduling points.
        points: Points,
    },
}

/// The order in which states are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateOrder {
    /// Level by level.
    BreadthFirst,
    /// The newest state first.
    DepthFirst,
}

/// The rule that ends a transaction that could run forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transactions {
    /// Commit point completion.
    CommitPoints,
    /// Cycle detection.
    Cycles,
    /// Nothing: errors may be missed.
    Unsound,
}

/// The explored part of the tree of executions, and its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecutionSearch {
    /// By the number of preemptions: iterative context bounding.
    Icb {
        /// The cache of steps that are not repeated.
        cache: Cache,
        /// The most preemptions.
        bound: Option<u32>,
        /// Executions up to which the search continues past the bound.
        past_bound: Option<u64>,
    },
    /// All within a bound on preemptions: cb-dfs.
    Bounded {
        /// The most preemptions.
        bound: u32,
    },
    /// Within a bound, if there is one, happens-before graphs mostly once: dfs-hb.
    DfsHb {
        /// The most preemptions.
        bound: Option<u32>,
    },
    /// All.
    All,
    /// All up to a number of steps.
    Depth {
        /// The number of steps.
        steps: u32,
    },
    /// All up to an increasing number of steps: idfs.
    IterativeDepth {
        /// The increment.
        by: u32,
    },
    /// [Sleep sets](crate::reduce::sleep).
    Sleep,
    /// Flanagan and Godefroid's [reduction](crate::reduce::dpor).
    FlanaganGodefroid,
    /// [Source sets](crate::reduce::dpor).
    Source,
    /// [Optimal](crate::reduce::dpor) reduction.
    Optimal,
    /// Execution [graphs](crate::reduce::graphs).
    Graphs,
    /// [Budgeted sleep sets](crate::reduce::budgeted_sleep).
    BudgetedSleep {
        /// The most preemptions.
        bound: u32,
    },
    /// Algorithm 2 of [cb-por](crate::reduce::cb_por).
    CbPor {
        /// The most preemptions.
        bound: u32,
    },
    /// Algorithm 1 of [cb-por](crate::reduce::cb_por).
    CbPorStates {
        /// The most preemptions.
        bound: u32,
    },
}

/// The choice of threads in a random execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chooser {
    /// Every enabled thread is equally likely.
    Random,
    /// By priorities that change at random steps.
    Pct {
        /// The depth of the errors that are looked for.
        depth: u32,
    },
    /// By the number of remaining steps.
    Urw,
}

impl Strategy {
    /// Whether it explores executions, systematically or at random.
    pub fn is_of_executions(&self) -> bool {
        match self {
            Strategy::States { .. } | Strategy::Cartesian { .. } | Strategy::Transactions(_) => {
                false
            }
            Strategy::Executions { .. } | Strategy::Blocks(_) | Strategy::Sample { .. } => true,
        }
    }

    /// Whether it explores a random sample.
    pub fn is_sample(&self) -> bool {
        matches!(self, Strategy::Sample { .. })
    }

    /// The scheduling points.
    pub fn points(&self) -> Points {
        match *self {
            Strategy::Executions { points, .. } | Strategy::Sample { points, .. } => points,
            _ => Points::All,
        }
    }

    /// The systematic search over executions, if it is one.
    pub fn executions(&self) -> Option<ExecutionSearch> {
        match *self {
            Strategy::Executions { search, .. } => Some(search),
            _ => None,
        }
    }

    /// The most preemptions of an execution.
    pub fn bound(&self) -> Option<u32> {
        match self.executions()? {
            ExecutionSearch::Icb { bound, .. } | ExecutionSearch::DfsHb { bound } => bound,
            ExecutionSearch::Bounded { bound }
            | ExecutionSearch::BudgetedSleep { bound }
            | ExecutionSearch::CbPor { bound }
            | ExecutionSearch::CbPorStates { bound } => Some(bound),
            _ => None,
        }
    }

    /// The store of visited states; the exact one if the strategy has its own table or none.
    pub fn store(&self) -> StoreKind {
        match *self {
            Strategy::States { store, .. } | Strategy::Cartesian { store, .. } => store,
            _ => StoreKind::Exact,
        }
    }

    /// Whether it skips executions that a reduction finds redundant.
    pub fn is_reduced(&self) -> bool {
        match self {
            Strategy::Blocks(_) => true,
            Strategy::Executions { search, .. } => search.is_reduced(),
            _ => false,
        }
    }

    /// Whether every step of every thread is taken in every state that is reached.
    pub fn is_full_search_of_states(&self) -> bool {
        matches!(self, Strategy::States { .. })
    }

    /// Whether a completed search reports every step that fails.
    pub(crate) fn is_sound(&self) -> bool {
        *self != Strategy::Transactions(Transactions::Unsound)
    }

    /// Whether it takes one execution of each happens-before graph, the one that it reaches first.
    pub(crate) fn compares_graphs(&self) -> bool {
        matches!(
            self.executions(),
            Some(ExecutionSearch::Icb { cache: Cache::Hb, .. } | ExecutionSearch::DfsHb { .. })
        )
    }

    /// Whether it explores each state at most once.
    pub(crate) fn compares_states(&self) -> bool {
        !self.is_of_executions()
            || matches!(self.executions(), Some(ExecutionSearch::Icb { cache: Cache::State, .. }))
    }

    /// Whether threads of a model that spin are held back. Where states are compared a spin ends by
    /// itself. Reductions compare parts of executions, and whether a thread spins does not follow
    /// from a part.
    pub fn is_fair(&self) -> bool {
        !self.is_reduced() && !self.compares_states()
    }

    /// The same with another store.
    pub(crate) fn with_store(self, store: StoreKind) -> Strategy {
        match self {
            Strategy::States { order, .. } => Strategy::States { order, store },
            Strategy::Cartesian { reading, order, .. } => {
                Strategy::Cartesian { reading, order, store }
            }
            other => other,
        }
    }
}

impl ExecutionSearch {
    fn is_reduced(self) -> bool {
        match self {
            ExecutionSearch::Icb { .. }
            | ExecutionSearch::Bounded { .. }
            | ExecutionSearch::DfsHb { .. }
            | ExecutionSearch::All
            | ExecutionSearch::Depth { .. }
            | ExecutionSearch::IterativeDepth { .. } => false,
            ExecutionSearch::Sleep
            | ExecutionSearch::FlanaganGodefroid
            | ExecutionSearch::Source
            | ExecutionSearch::Optimal
            | ExecutionSearch::Graphs
            | ExecutionSearch::BudgetedSleep { .. }
            | ExecutionSearch::CbPor { .. }
            | ExecutionSearch::CbPorStates { .. } => true,
        }
    }
}

/// A validated plan: what the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedPlan {
    /// The strategy.
    pub strategy: Strategy,
    /// The memory model of the program.
    pub memory: MemoryModel,
    /// The counts of a search over executions.
    pub count: Count,
    /// After which executions coverage is sampled.
    pub sampling: Sampling,
    /// The number of workers.
    pub jobs: usize,
    /// The limits of the search.
    pub limits: Limits,
    /// Whether the search continues after a finding.
    pub keep_going: bool,
    /// See [`Plan::first`](super::Plan::first).
    pub first: bool,
    /// Whether to search again after a data race.
    pub promote: bool,
    /// Whether deadlocks are findings.
    pub deadlock: bool,
    /// Whether simpler schedules are looked for.
    pub shrink: Option<Shrink>,
}

impl ResolvedPlan {
    /// Whether the search compares happens-before graphs or looks for races, so that locations must
    /// keep their names.
    pub(crate) fn needs_stable_names(&self) -> bool {
        let strategy = &self.strategy;
        strategy.compares_graphs()
            || strategy.is_reduced()
            || matches!(strategy, Strategy::Cartesian { .. })
            || strategy.points() == Points::Sync
            || self.memory == MemoryModel::Weak
            // The search for simpler schedules compares graphs then.
            || (self.shrink.is_some() && strategy.is_fair())
    }
}
