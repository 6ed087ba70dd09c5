//! What to search and how: the configuration of a [`Search`].

use std::fmt;
use std::time::Duration;

use crate::reduce::Reduction;
use crate::search::Search;

/// In which order states are expanded, or executions are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Level by level: findings are the shortest, a limit leaves a known depth covered.
    #[default]
    BreadthFirst,
    /// The newest state first: deep executions early, and little memory beside the store in graphs that are wide.
    DepthFirst,
    /// Executions by their number of preemptions, from none up: iterative context bounding. A finding has the fewest that any
    /// has; within a [bound](Plan::bound) everything is covered.
    Icb {
        /// Which steps are remembered so as not to be taken again.
        cache: Cache,
    },
    /// All executions within a [bound](Plan::bound) on preemptions, depth first, without any memory: cb-dfs.
    ContextBounded,
    /// Depth first within a bound on preemptions, if there is one, but every happens-before graph once: dfs-hb.
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
    /// [Random executions](Plan::runs): at every step each enabled thread is as likely as any other.
    Random,
    /// Random executions in which threads have priorities that change at `depth` - 1 random steps: an error that
    /// needs so many steps in a certain order is found with a known probability.
    Pct {
        /// The depth of the errors that are looked for, at least 1.
        depth: u32,
    },
    /// Random executions in which a thread is the likelier the more steps it has left: where nothing blocks, every
    /// interleaving is as likely as any other.
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
    /// Steps from the end of executions with the same happens-before graph: every such graph is covered.
    #[default]
    Hb,
}

/// Where threads may be switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Points {
    /// Before every access to shared state.
    #[default]
    All,
    /// Before synchronisation only. A data race is a finding then, and a program without one loses nothing:
    /// [`points`](crate::points).
    Sync,
}

/// What a search over executions counts. Each contains those before it; each needs more time, and the last two memory.
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
    /// Whole states, cut into pieces that are kept once: exact, and about 8 bytes for a state of any size plus what the
    /// pieces need.
    Tree,
    /// 64 bits of a hash for every state. Two states with the same hash are taken for one.
    Fingerprint,
    /// Three bits for every state in an array of fixed size. The fuller it is, the more states are missed.
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
    /// Stop when there are more executions than these: before the first step beyond them, so that never more are counted. Those count
    /// too that are cut at the greatest number of steps. Only for searches over executions.
    pub executions: Option<u64>,
    /// Take no step from a state that was reached by this many steps.
    pub depth: Option<u32>,
    /// Stop when the store and the states that wait need more bytes than these. The path of a finding is searched for
    /// after the search proper and may need as much again.
    pub memory: Option<usize>,
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
    /// What random executions depend on, and nothing else does.
    pub seed: u64,
    /// How many random executions there shall be.
    pub runs: u64,
    /// What a search over executions counts.
    pub count: Count,
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
    /// Whether a state in which nobody can move is a finding unless all threads have ended or may rest there.
    pub deadlock: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            order: Order::default(),
            bound: None,
            seed: 0,
            runs: 1000,
            count: Count::default(),
            points: Points::default(),
            reduction: Reduction::default(),
            store: StoreKind::default(),
            jobs: 1,
            limits: Limits::default(),
            keep_going: false,
            deadlock: true,
        }
    }
}

impl Plan {
    /// A full search, breadth first, exact, with one worker and without limits, that stops at the first finding.
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

    /// Does not look for deadlocks.
    pub fn ignore_deadlocks(self) -> Plan {
        Plan { deadlock: false, ..self }
    }

    /// The search, or why there can be none.
    pub fn build(self) -> Result<Search, Refusal> {
        let refuse = |message: String| Err(Refusal(message));
        if self.jobs == 0 {
            return refuse("a search needs at least 1 worker: ask for 1 job or more".into());
        }
        if self.jobs > MOST_JOBS {
            return refuse(format!(
                "{} jobs are more than the {MOST_JOBS} that are possible: ask for fewer",
                self.jobs
            ));
        }
        if let StoreKind::Bitstate { bytes } = self.store {
            if bytes < LEAST_BITSTATE {
                return refuse(format!(
                    "a bitstate array of {bytes} bytes is full at once: give it {LEAST_BITSTATE} bytes or more, about 4 for \
                     every state that you expect"
                ));
            }
            if self.limits.memory.is_some_and(|memory| memory <= bytes) {
                return refuse(format!(
                    "the bitstate array of {bytes} bytes does not fit the memory limit: raise the limit or make the array \
                     smaller"
                ));
            }
        }
        if self.limits.states == Some(0) {
            return refuse(
                "a limit of 0 states leaves nothing to search: allow 1 state or more, or drop the limit".into(),
            );
        }
        if self.limits.executions == Some(0) {
            return refuse(
                "a limit of 0 executions leaves nothing to search: allow 1 execution or more, or drop the limit".into(),
            );
        }
        if self.limits.executions.is_some() && !self.order.is_of_executions() {
            return refuse(
                "a search of states takes no executions that could be limited: drop the limit, or use icb or another order of \
                 executions"
                    .into(),
            );
        }
        if self.limits.time == Some(Duration::ZERO) {
            return refuse("a limit of no time leaves nothing to search: allow some time, or drop the limit".into());
        }
        let checked = self.check_reduction().and_then(|()| self.check_order()).and_then(|()| self.check_jobs());
        checked.map_err(Refusal)?;
        Ok(Search::new(self))
    }

    /// Whether the search compares happens-before graphs or looks for races, so that locations must keep their names.
    pub(crate) fn needs_stable_names(&self) -> bool {
        matches!(self.order, Order::Icb { cache: Cache::Hb } | Order::DfsHb)
            || self.reduction != Reduction::None
            || self.points == Points::Sync
    }

    /// Whether threads of a model that spin are held back. Where states are compared a spin ends by itself. Reductions compare
    /// parts of executions, and whether a thread spins does not follow from a part.
    pub(crate) fn is_fair(&self) -> bool {
        let compares_states = !self.order.is_of_executions() || self.order == (Order::Icb { cache: Cache::State });
        self.reduction == Reduction::None && !compares_states
    }

    /// Whether the reduction is sound together with the rest.
    fn check_reduction(&self) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        match (self.reduction, self.order) {
            (Reduction::None, _) => Ok(()),
            (_, _) if self.limits.depth.is_some() => {
                refuse("a reduction follows every execution to its end: drop the limit of depth, or the reduction")
            }
            (reduction, _) if self.bound.is_some() && reduction.blocks().is_some() => refuse(
                "blocks runs one execution of each PO graph, with as many preemptions as it comes to have: drop the bound, or use \
                 cb-por or budgeted sleep sets",
            ),
            (reduction, _) if self.points == Points::Sync && reduction.blocks().is_some() => refuse(
                "blocks has to know all steps beforehand, and points at synchronisation merge them as they are taken: drop the points, or \
                 use dpor",
            ),
            (reduction, _) if self.bound.is_some() && !reduction.is_bounded() => refuse(
                "sleep sets and dynamic reduction lose executions within a bound on preemptions: what covers the one left out \
                 may need a preemption more (smallest program: corpus/zoo/x.pre, bound 0); use cb-por or budgeted sleep sets, \
                 or drop the bound",
            ),
            (reduction, _) if self.bound.is_none() && reduction.is_bounded() => {
                refuse("this reduction works within a bound on preemptions: give one, or use dpor")
            }
            (reduction, Order::ContextBounded) if reduction.is_bounded() => Ok(()),
            (reduction, Order::Executions) if !reduction.is_bounded() => Ok(()),
            _ => refuse(
                "a reduction over executions has its own order: use `cb-dfs` with a bounded one, `executions` with the others, or \
                 leave the order out",
            ),
        }
    }

    /// Whether the order makes sense together with the rest.
    fn check_order(&self) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        match self.order {
            Order::BreadthFirst | Order::DepthFirst if self.bound.is_some() => refuse(
                "a set of visited states is unsound with a bound on preemptions: a state that was reached with the last \
                 preemption is not explored again when it is reached with fewer, and errors are lost (smallest program: \
                 `y = 1; assert x != 1` beside `x = 1; x = 0`, bound 1); use icb or dfs-hb, which compare preemptions, or \
                 drop the bound",
            ),
            Order::ContextBounded if self.bound.is_none() => {
                refuse("cb-dfs searches within a bound: give one, or use the order of all executions")
            }
            Order::Executions | Order::Depth { .. } | Order::IterativeDepth { .. } if self.bound.is_some() => {
                refuse("this order does not count preemptions: drop the bound, or use icb, cb-dfs or dfs-hb")
            }
            Order::Random | Order::Pct { .. } | Order::Urw if self.bound.is_some() => refuse(
                "random executions have as many preemptions as they come to have: drop the bound, or use icb (the depth of \
                 pct is no bound on preemptions)",
            ),
            Order::Depth { steps: 0 } | Order::IterativeDepth { by: 0 } => {
                refuse("executions of no steps show nothing: allow 1 step or more")
            }
            Order::Depth { .. } if self.limits.depth.is_some() => {
                refuse("this order has its own number of steps: drop the limit of depth")
            }
            Order::Pct { depth: 0 } => refuse("an error has a depth of at least 1: give pct a depth of 1 or more"),
            order if order.samples() && self.runs == 0 => refuse("no executions show nothing: ask for 1 run or more"),
            Order::BreadthFirst | Order::DepthFirst | Order::Icb { cache: Cache::State }
                if self.points == Points::Sync =>
            {
                refuse(
                    "points at synchronisation only are sound if there are no data races, and whether an execution has one \
                 depends on how its states were reached, not on the states: use icb with the cache `hb` or `none`, dfs-hb or \
                 another order of executions",
                )
            }
            order if order.is_of_executions() && self.store != StoreKind::Exact => {
                refuse("a search over executions keeps no set of states to be stored in another way: drop the store")
            }
            _ => Ok(()),
        }
    }

    /// Whether several workers would see what one sees.
    fn check_jobs(&self) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        match self.order {
            order if self.jobs == 1 || !order.is_of_executions() => Ok(()),
            _ if self.reduction != Reduction::None => refuse(
                "a reduction leaves out what the executions before it cover, so that workers would have to wait for each other: ask \
                 for 1 job, or use icb with the cache `hb`",
            ),
            Order::DfsHb if self.bound.is_some() => refuse(
                "within a bound dfs-hb takes a step again when it comes to it with fewer preemptions, so that several workers would take \
                 other executions than one: ask for 1 job, or use icb with the cache `hb`",
            ),
            Order::Icb { cache: Cache::Hb } | Order::DfsHb if self.points == Points::Sync => refuse(
                "which races an execution shows depends on the order of its reads too, and only the first execution of each \
                 happens-before graph is taken, so that several workers might show others than one: ask for 1 job, or use the cache \
                 `none`",
            ),
            Order::Icb { cache: Cache::State | Cache::Hb } | Order::DfsHb if self.limits.depth.is_some() => refuse(
                "how many steps lead to a state, and whether a thread spins there, depends on the way, so that several workers would cut \
                 other executions than one: ask for 1 job, drop the limit of depth, or use the cache `none`",
            ),
            Order::Pct { .. } | Order::Urw => {
                refuse("pct and urw learn from the executions before: ask for 1 job, or use random")
            }
            _ => Ok(()),
        }
    }
}

/// More workers than anybody has cores: a slip of the finger.
const MOST_JOBS: usize = 1024;

/// The smallest bitstate array that makes any sense.
const LEAST_BITSTATE: usize = 1024;

/// A configuration that makes no sense or would be unsound, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    pub(crate) fn because(message: &str) -> Refusal {
        Refusal(message.to_owned())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
