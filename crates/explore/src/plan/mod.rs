//! What to search and how: the configuration of a [`Search`](crate::Search).

pub mod coverage;
pub mod growth;
mod reduction;
mod refusal;
pub mod tally;

use std::time::Duration;

use self::growth::Sampling;
pub use self::reduction::{Dependence, Reading, Reduction};
pub use self::refusal::Refusal;

/// In which order states are expanded, or executions are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Level by level: findings are the shortest, a limit leaves a known depth covered.
    #[default]
    BreadthFirst,
    /// The newest state first: deep executions early, and little memory beside the store in graphs
    /// that are wide.
    DepthFirst,
    /// Executions by their number of preemptions, from none up: iterative context bounding. A
    /// finding has the fewest that any has; within a [bound](Plan::bound) everything is covered.
    Icb {
        /// Which steps are remembered so as not to be taken again.
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
        /// The number.
        steps: u32,
    },
    /// The same with more and more steps until no execution is cut: idfs.
    IterativeDepth {
        /// How many steps more each time, and the first time.
        by: u32,
    },
    /// [Random executions](Plan::runs): at every step each enabled thread is as likely as any
    /// other.
    Random,
    /// Random executions in which threads have priorities that change at `depth` - 1 random steps:
    /// an error that needs so many steps in a certain order is found with a known probability.
    Pct {
        /// The depth of the errors that are looked for, at least 1.
        depth: u32,
    },
    /// Random executions in which a thread is the likelier the more steps it has left: where
    /// nothing blocks, every interleaving is as likely as any other.
    Urw,
}

impl Order {
    /// Whether executions are explored, not states.
    pub fn is_of_executions(self) -> bool {
        !matches!(self, Order::BreadthFirst | Order::DepthFirst)
    }

    /// Whether executions are drawn at random.
    pub fn samples(self) -> bool {
        matches!(self, Order::Random | Order::Pct { .. } | Order::Urw)
    }
}

/// Which steps a search over executions does not take again.
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

/// Where threads may be switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Points {
    /// Before every access to shared state.
    #[default]
    All,
    /// Before synchronisation only. A data race is a finding then, and a program without one loses
    /// nothing: [`points`](crate::engine::points).
    Sync,
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

/// How visited states are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// Whole states: exact.
    #[default]
    Exact,
    /// Whole states, cut into pieces that are kept once: exact, and about 8 bytes for a state of
    /// any size plus what the pieces need.
    Tree,
    /// 64 bits of a hash for every state. Two states with the same hash are taken for one.
    Fingerprint,
    /// Three bits for every state in an array of fixed size. The fuller it is, the more states are
    /// missed.
    Bitstate {
        /// The size of the array.
        bytes: usize,
    },
}

/// Where a search gives up. The default has no limit.
///
/// Limits are looked at between batches of states, so that a search may go a little beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Stop when more states than these were found.
    pub states: Option<u64>,
    /// Stop when there are more executions than these: before the first step beyond them, so that
    /// never more are counted. Those count too that are cut at the greatest number of steps. Only
    /// for searches over executions.
    pub executions: Option<u64>,
    /// Take no step from a state that was reached by this many steps.
    pub depth: Option<u32>,
    /// Stop when the store and the states that wait need more bytes than these. The path of a
    /// finding is searched for after the search proper and may need as much again.
    pub memory: Option<usize>,
    /// Stop when more bytes of this process than these are in main memory, whoever uses them: see
    /// [`memory`](crate::engine::memory). Only where the operating system tells, which is Linux.
    pub resident: Option<usize>,
    /// Stop after this time.
    pub time: Option<Duration>,
}

/// The configuration of a search. [`Plan::build`] checks it.
///
/// ```
/// use preempt_explore::{Order, Plan, StoreKind};
///
/// let search = Plan::new().order(Order::BreadthFirst).store(StoreKind::Tree).jobs(2).keep_going().build();
/// assert!(search.is_ok());
/// let refusal = Plan::new().jobs(0).build().err().expect("nobody would search");
/// assert!(refusal.to_string().contains("at least 1"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In which order states are expanded or executions are taken.
    pub order: Order,
    /// The most preemptions of an execution.
    pub bound: Option<u32>,
    /// Executions, in all, up to which iterative context bounding continues past its
    /// [bound](Plan::bound). Whatever ends it there, the outcome is that of the greatest bound that
    /// was completed.
    pub past_bound: Option<u64>,
    /// What random executions depend on, and nothing else does.
    pub seed: u64,
    /// How many random executions there shall be.
    pub runs: u64,
    /// What a search over executions counts.
    pub count: Count,
    /// After which executions to look at what was covered: see
    /// [`Outcome::growth`](crate::Outcome::growth).
    pub sampling: Sampling,
    /// Where threads may be switched.
    pub points: Points,
    /// Which steps are left out.
    pub reduction: Reduction,
    /// How visited states are remembered.
    pub store: StoreKind,
    /// How many workers search.
    pub jobs: usize,
    /// Where the search gives up.
    pub limits: Limits,
    /// Search on after a finding. Every distinct failure is reported once.
    pub keep_going: bool,
    /// Whether the finding that several workers come to first is reported as it is. Without this
    /// one worker searches again, so that the report is the same for every number of workers: see
    /// [`Outcome::rerun`](crate::Outcome::rerun).
    pub first: bool,
    /// After a data race, whether to search again with the variable treated as synchronisation.
    pub promote: bool,
    /// Whether a state in which nobody can move is a finding unless all threads have ended or may
    /// rest there.
    pub deadlock: bool,
    /// Whether simpler schedules of the findings are looked for, and how long. Not unless asked
    /// for.
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

    /// Takes no execution with more preemptions than these.
    pub fn bound(self, bound: u32) -> Plan {
        Plan { bound: Some(bound), ..self }
    }

    /// Continues past the bound, one more preemption at a time, while there are at most
    /// `executions` in all.
    pub fn past_bound(self, executions: u64) -> Plan {
        Plan { past_bound: Some(executions), ..self }
    }

    /// Draws random executions from this seed.
    pub fn seed(self, seed: u64) -> Plan {
        Plan { seed, ..self }
    }

    /// Draws this many random executions.
    pub fn runs(self, runs: u64) -> Plan {
        Plan { runs, ..self }
    }

    /// Counts this.
    pub fn count(self, count: Count) -> Plan {
        Plan { count, ..self }
    }

    /// Looks at what was covered after these executions.
    pub fn sampling(self, sampling: Sampling) -> Plan {
        Plan { sampling, ..self }
    }

    /// Also tells how coverage grew, as often in every decade, if the search is one whose growth
    /// can be told: of executions, with one worker.
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

    /// Leaves out the steps that this reduction finds superfluous.
    pub fn reduction(self, reduction: Reduction) -> Plan {
        Plan { reduction, ..self }
    }

    /// Remembers visited states in this way.
    pub fn store(self, store: StoreKind) -> Plan {
        Plan { store, ..self }
    }

    /// Searches with this many workers.
    pub fn jobs(self, jobs: usize) -> Plan {
        Plan { jobs, ..self }
    }

    /// Gives up at these limits.
    pub fn limits(self, limits: Limits) -> Plan {
        Plan { limits, ..self }
    }

    /// Goes on after a finding.
    pub fn keep_going(self) -> Plan {
        Plan { keep_going: true, ..self }
    }

    /// Reports the finding that several workers come to first, without a search by one worker after
    /// it.
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

    /// Whether the search compares happens-before graphs or looks for races, so that locations must
    /// keep their names.
    pub(crate) fn needs_stable_names(&self) -> bool {
        matches!(self.order, Order::Icb { cache: Cache::Hb } | Order::DfsHb)
            || (self.reduction != Reduction::None && !self.reduction.is_by_transactions())
            || self.points == Points::Sync
            // A look for simpler schedules compares them then.
            || (self.shrink.is_some() && self.is_fair())
    }

    /// Whether threads of a model that spin are held back. Where states are compared a spin ends by
    /// itself. Reductions compare parts of executions, and whether a thread spins does not follow
    /// from a part.
    pub fn is_fair(&self) -> bool {
        let compares_states =
            !self.order.is_of_executions() || self.order == (Order::Icb { cache: Cache::State });
        self.reduction == Reduction::None && !compares_states
    }
}

/// How much may be spent on looking for simpler schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrink {
    /// Executions each time that a schedule is looked at, from above or from below.
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
