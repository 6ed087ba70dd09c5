//! What to search and how: the configuration of a [`Search`].

use std::fmt;
use std::time::Duration;

use crate::reduce::Reduction;
use crate::search::Search;

/// In which order states are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Level by level: findings are the shortest, a limit leaves a known depth covered.
    #[default]
    BreadthFirst,
    /// The newest state first: deep executions early, and little memory beside the store in graphs that are wide.
    DepthFirst,
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
    /// In which order states are expanded.
    pub order: Order,
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
            return refuse(format!("{} jobs are more than the {MOST_JOBS} that are possible: ask for fewer", self.jobs));
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
            return refuse("a limit of 0 states leaves nothing to search: allow 1 state or more, or drop the limit".into());
        }
        if self.limits.time == Some(Duration::ZERO) {
            return refuse("a limit of no time leaves nothing to search: allow some time, or drop the limit".into());
        }
        Ok(Search::new(self))
    }
}

/// More workers than anybody has cores: a slip of the finger.
const MOST_JOBS: usize = 1024;

/// The smallest bitstate array that makes any sense.
const LEAST_BITSTATE: usize = 1024;

/// A configuration that makes no sense or would be unsound, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
