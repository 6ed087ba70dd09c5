//! Requests of users: plans, strategies, and refusals.

mod cost;
pub mod coverage;
mod defaults;
pub mod growth;
pub mod property;
mod reduction;
mod refusal;
mod resolve;
pub mod strategies;
pub mod strategy;
pub mod tally;
pub mod terms;

use std::time::Duration;

use preempt_system::memory::MemoryModel;

pub use self::cost::Cost;
pub use self::defaults::Subject;
use self::growth::Sampling;
pub use self::reduction::{Dependence, Reading, Reduction};
pub use self::refusal::{Difference, InTerms, Refusal, Requirement, Unusable};
use self::strategies::Class;
pub use self::strategy::{ResolvedPlan, Strategy};
pub use self::terms::{Setting, Term, Terms};

/// In which order states are expanded, or executions are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Level by level: findings are the shortest, a limit leaves a known depth covered.
    #[default]
    BreadthFirst,
    /// The newest state first: deep executions early, and little memory in addition to the store in
    /// wide graphs.
    DepthFirst,
    /// Executions by their number of preemptions, from none up: iterative context bounding. A
    /// finding has the fewest preemptions of all; within a [bound](Plan::bound) everything is
    /// covered.
    Icb {
        /// The steps that are cached, so that they are not repeated.
        cache: Cache,
    },
    /// Executions by their number of [delays](preempt_system::delay), from none up: how often a
    /// thread was skipped that round robin would have run next. Without a delay there is one
    /// execution, whatever the number of threads. The [bound](Plan::bound) is one on delays.
    Delay {
        /// The steps that are cached, so that they are not repeated.
        cache: Cache,
    },
    /// All executions within a [bound](Plan::bound) on preemptions, depth first, without any
    /// memory: cb-dfs.
    ContextBounded,
    /// Depth first within a bound on preemptions, if there is one, but every happens-before graph
    /// once: dfs-hb.
    DfsHb,
    /// All executions, depth first, without any memory.
    Executions,
    /// All executions up to a number of steps, depth first: db:N.
    Depth {
        /// The most steps.
        steps: u32,
    },
    /// The same with more and more steps until no execution is cut: idfs.
    IterativeDepth {
        /// The increment, also the first number of steps.
        by: u32,
    },
    /// [Random executions](Plan::runs): at every step all enabled threads are equally likely.
    Random,
    /// Random executions in which threads have priorities that change at `depth` - 1 random steps:
    /// an error of this depth is found with a known probability.
    Pct {
        /// The number of steps whose order the error depends on, at least 1.
        depth: u32,
    },
    /// Random executions in which the probability of a thread grows with its remaining steps: where
    /// nothing blocks, all interleavings are equally likely.
    Urw,
}

impl Order {
    /// Whether executions are explored, not states.
    pub fn is_of_executions(self) -> bool {
        strategies::of_order(self).class != Class::States
    }

    /// The cache of an order that has one.
    pub fn cache(self) -> Option<Cache> {
        match self {
            Order::Icb { cache } | Order::Delay { cache } => Some(cache),
            _ => None,
        }
    }

    /// The same order with another cache, if it has one.
    pub fn with_cache(self, cache: Cache) -> Order {
        match self {
            Order::Icb { .. } => Order::Icb { cache },
            Order::Delay { .. } => Order::Delay { cache },
            other => other,
        }
    }

    /// Whether executions are drawn at random.
    pub fn samples(self) -> bool {
        strategies::of_order(self).class == Class::Sample
    }
}

/// The cache of a search by preemptions or delays: the steps that it does not repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cache {
    /// None: every execution is taken.
    None,
    /// Steps from the same state: every state is covered.
    State,
    /// Steps from the end of executions with the same happens-before graph: every such graph is
    /// covered.
    #[default]
    Hb,
}

impl Cache {
    /// Its name in every front end and report.
    pub fn name(self) -> &'static str {
        match self {
            Cache::None => "none",
            Cache::State => "state",
            Cache::Hb => "hb",
        }
    }
}

/// Scheduling points: where threads may be switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Points {
    /// Before every access to shared state.
    #[default]
    All,
    /// Before synchronisation only. A data race is a finding then, and a program without one loses
    /// nothing: [`points`](crate::engine::points).
    Sync,
}

impl Points {
    /// Its name in every front end and report.
    pub fn name(self) -> &'static str {
        match self {
            Points::All => "all",
            Points::Sync => "sync",
        }
    }
}

/// What a search over executions counts. Each contains those before it; each needs more time, and
/// the last two memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Count {
    /// Executions and steps.
    Executions,
    /// Also distinct traces, and states in which executions end.
    Traces,
    /// Also distinct states, and happens-before graphs of unfinished executions.
    #[default]
    States,
}

/// The store of visited states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// Whole states: exact.
    #[default]
    Exact,
    /// Whole states, cut into pieces that are kept once: exact, and about 8 bytes for a state of
    /// any size plus what the pieces need.
    Tree,
    /// Whole states in sorted runs: exact, one or two bytes for most states, and larger than memory
    /// if there is a [directory](crate::Search::spill_to). Breadth first only.
    Sorted,
    /// 64 bits of a hash for every state. Two states with the same hash count as one.
    Fingerprint,
    /// Three bits for every state in an array of fixed size. The fuller it is, the more states are
    /// missed.
    Bitstate {
        /// The size of the array.
        bytes: usize,
    },
}

impl StoreKind {
    /// Its name in every front end and report.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Exact => "exact",
            StoreKind::Tree => "tree",
            StoreKind::Sorted => "sorted",
            StoreKind::Fingerprint => "fingerprint",
            StoreKind::Bitstate { .. } => "bitstate",
        }
    }
}

/// The limits of a search. The default has none.
///
/// Limits are checked between batches of states, so a search may exceed them a little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most states.
    pub states: Option<u64>,
    /// The most executions, including those that are cut at a limit of steps. Never exceeded. Only
    /// for searches over executions.
    pub executions: Option<u64>,
    /// The most steps of an execution: no step is taken from a state at this depth.
    pub depth: Option<u32>,
    /// The most bytes of the store and the pending states. The path of a finding is searched for
    /// afterwards and may need as much again.
    pub memory: Option<usize>,
    /// The most resident bytes of the process: see [`memory`](crate::engine::memory). On Linux
    /// only.
    pub resident: Option<usize>,
    /// The most time.
    pub time: Option<Duration>,
}

/// A request: an order, a reduction, a store, a bound, limits. [`Plan::build`] refuses senseless
/// and unsound combinations, and [resolves](Plan::resolve) the others to a [`Strategy`].
///
/// ```
/// use preempt_explore::{Order, Plan, StoreKind};
///
/// let plan = Plan::new().order(Order::BreadthFirst).store(StoreKind::Tree).jobs(2);
/// let search = plan.keep_going().build();
/// assert!(search.is_ok());
/// let refusal = Plan::new().jobs(0).build().err().expect("there is no worker");
/// assert_eq!(refusal.to_string(), "`jobs` must be at least 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The order in which states are expanded or executions are taken.
    pub order: Order,
    /// The most preemptions of an execution; with [`Order::Delay`] the most delays.
    pub bound: Option<u32>,
    /// Executions, in all, up to which [`Order::Icb`] and [`Order::Delay`] continue past their
    /// [bound](Plan::bound). Whatever ends it there, the outcome is that of the greatest bound that
    /// was completed.
    pub past_bound: Option<u64>,
    /// Random seed.
    pub seed: u64,
    /// Number of random executions.
    pub runs: u64,
    /// What a search over executions counts.
    pub count: Count,
    /// After which executions coverage is sampled: see [`Outcome::growth`](crate::Outcome::growth).
    pub sampling: Sampling,
    /// Where threads may be switched.
    pub points: Points,
    /// The partial-order reduction.
    pub reduction: Reduction,
    /// The memory model of the program, which its front end provides.
    pub memory: MemoryModel,
    /// How visited states are stored.
    pub store: StoreKind,
    /// Number of workers.
    pub jobs: usize,
    /// Where the search stops.
    pub limits: Limits,
    /// Whether to continue after a finding. Every distinct failure is reported once.
    pub keep_going: bool,
    /// Whether the first finding of several workers is reported as it is. Without this, one worker
    /// searches again, so that the report is the same for every number of workers: see
    /// [`Outcome::rerun`](crate::Outcome::rerun).
    pub first: bool,
    /// After a data race, whether to search again with the variable treated as synchronisation.
    pub promote: bool,
    /// Whether deadlocks are findings: states in which no thread can step, and not all threads have
    /// ended or may rest.
    pub deadlock: bool,
    /// The budget for finding simpler schedules of the findings; none by default.
    pub shrink: Option<Shrink>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            order: Order::default(),
            bound: None,
            past_bound: None,
            seed: 0,
            runs: 1000,
            count: Count::default(),
            sampling: Sampling::default(),
            points: Points::default(),
            reduction: Reduction::default(),
            memory: MemoryModel::default(),
            store: StoreKind::default(),
            jobs: 1,
            limits: Limits::default(),
            keep_going: false,
            first: false,
            promote: false,
            deadlock: true,
            shrink: None,
        }
    }
}

impl Plan {
    /// A full search, breadth first, exact, with one worker and without limits, that stops at the
    /// first finding.
    pub fn new() -> Plan {
        Plan::default()
    }

    /// Expands states in this order.
    pub fn order(self, order: Order) -> Plan {
        Plan { order, ..self }
    }

    /// Explores executions with at most `bound` preemptions; with [`Order::Delay`], delays.
    pub fn bound(self, bound: u32) -> Plan {
        Plan { bound: Some(bound), ..self }
    }

    /// Continues past the bound, one more preemption or delay at a time, while there are at most
    /// `executions` in all.
    pub fn past_bound(self, executions: u64) -> Plan {
        Plan { past_bound: Some(executions), ..self }
    }

    /// Sets the random seed.
    pub fn seed(self, seed: u64) -> Plan {
        Plan { seed, ..self }
    }

    /// Sets the number of random executions.
    pub fn runs(self, runs: u64) -> Plan {
        Plan { runs, ..self }
    }

    /// Sets what a search over executions counts.
    pub fn count(self, count: Count) -> Plan {
        Plan { count, ..self }
    }

    /// Samples coverage after these executions.
    pub fn sampling(self, sampling: Sampling) -> Plan {
        Plan { sampling, ..self }
    }

    /// Samples coverage, equally often in every decade, if the search is one over executions with
    /// one worker.
    pub fn with_growth(self) -> Plan {
        if self.order.is_of_executions() && self.jobs == 1 {
            self.sampling(Sampling::Decades)
        } else {
            self
        }
    }

    /// Switches threads at these points.
    pub fn points(self, points: Points) -> Plan {
        Plan { points, ..self }
    }

    /// Skips the steps that this reduction finds redundant.
    pub fn reduction(self, reduction: Reduction) -> Plan {
        Plan { reduction, ..self }
    }

    /// Stores visited states in this way.
    pub fn store(self, store: StoreKind) -> Plan {
        Plan { store, ..self }
    }

    /// Searches with this many workers.
    pub fn jobs(self, jobs: usize) -> Plan {
        Plan { jobs, ..self }
    }

    /// Stops at these limits.
    pub fn limits(self, limits: Limits) -> Plan {
        Plan { limits, ..self }
    }

    /// Continues after a finding.
    pub fn keep_going(self) -> Plan {
        Plan { keep_going: true, ..self }
    }

    /// Reports the first finding of several workers, without another search by one worker.
    pub fn first(self) -> Plan {
        Plan { first: true, ..self }
    }

    /// After a data race, searches again with the variable treated as synchronisation, until there
    /// are no more races.
    pub fn promote(self) -> Plan {
        Plan { promote: true, ..self }
    }

    /// Does not look for deadlocks.
    pub fn ignore_deadlocks(self) -> Plan {
        Plan { deadlock: false, ..self }
    }

    /// Looks for simpler schedules of the findings.
    pub fn shrink(self, shrink: Shrink) -> Plan {
        Plan { shrink: Some(shrink), ..self }
    }
}

/// The budget for finding simpler schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrink {
    /// Executions for each pass over a schedule.
    pub executions: u64,
    /// The time for all findings together.
    pub time: Duration,
}

impl Default for Shrink {
    /// A few seconds.
    fn default() -> Shrink {
        Shrink { executions: 20_000, time: Duration::from_secs(5) }
    }
}

impl Shrink {
    /// The usual number of executions, and this time.
    pub fn within(time: Duration) -> Shrink {
        Shrink { time, ..Shrink::default() }
    }
}
