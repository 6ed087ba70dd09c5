//! The vocabulary of a front end: how its users write a setting or a strategy.
//!
//! The engine does not know which front end made a plan. A [`Refusal`](super::Refusal) names
//! settings and strategies as data, and each front end provides the [`Terms`] in which its users
//! wrote them: flags on the command line, methods in the library.

use std::fmt;

use super::strategies::{self, Value};
use super::{Cache, Points};

/// A setting of a [`Plan`](super::Plan), or one that a front end maps onto a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// [`Plan::order`](super::Plan::order).
    Order,
    /// [`Plan::reduction`](super::Plan::reduction).
    Reduction,
    /// [`Plan::bound`](super::Plan::bound).
    Bound,
    /// [`Plan::past_bound`](super::Plan::past_bound).
    PastBound,
    /// The cache of iterative context bounding.
    Cache,
    /// [`Plan::points`](super::Plan::points).
    Points,
    /// [`Plan::promote`](super::Plan::promote).
    Promote,
    /// [`Plan::store`](super::Plan::store).
    Store,
    /// The size of the bitstate array.
    BitstateSize,
    /// [`Search::spill_to`](crate::Search::spill_to).
    Spill,
    /// [`Plan::jobs`](super::Plan::jobs).
    Jobs,
    /// [`Plan::first`](super::Plan::first).
    First,
    /// [`Plan::keep_going`](super::Plan::keep_going).
    KeepGoing,
    /// [`Plan::ignore_deadlocks`](super::Plan::ignore_deadlocks).
    IgnoreDeadlocks,
    /// [`Plan::runs`](super::Plan::runs).
    Runs,
    /// [`Plan::seed`](super::Plan::seed).
    Seed,
    /// The depth of the errors that pct looks for.
    PctDepth,
    /// [`Plan::sampling`](super::Plan::sampling).
    Sampling,
    /// [`Limits::states`](super::Limits::states).
    States,
    /// [`Limits::executions`](super::Limits::executions).
    Executions,
    /// [`Limits::depth`](super::Limits::depth), and the steps of the orders depth and idfs.
    Depth,
    /// [`Limits::memory`](super::Limits::memory).
    Memory,
    /// [`Limits::time`](super::Limits::time).
    Time,
    /// A checkpoint to write.
    Checkpoint,
}

/// Something that a user writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Term {
    /// The name of a setting.
    Setting(Setting),
    /// The choice of the strategy with this [name](strategies::Entry::name).
    Strategy(&'static str),
    /// The choice of a cache.
    Cache(Cache),
    /// The choice of scheduling points.
    Points(Points),
    /// The choice of a bitstate store.
    Bitstate,
    /// The choice of a sorted store.
    Sorted,
}

impl From<Setting> for Term {
    fn from(setting: Setting) -> Term {
        Term::Setting(setting)
    }
}

/// The words of a front end for each [`Term`].
pub trait Terms {
    /// The term as part of a sentence, quoted if the front end quotes such terms.
    fn write(&self, term: Term, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Whether the front end has a strategy. A refusal suggests no other one.
    fn has(&self, _strategy: &str) -> bool {
        true
    }
}

/// The terms of this crate: methods of [`Plan`](super::Plan) and variants of its types.
#[derive(Clone, Copy, Debug)]
pub struct PlanTerms;

impl Terms for PlanTerms {
    fn write(&self, term: Term, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match term {
            Term::Setting(setting) => write!(f, "`{}`", method(setting)),
            Term::Strategy(name) => write_variant(name, f),
            Term::Cache(cache) => write!(f, "`Cache::{cache:?}`"),
            Term::Points(points) => write!(f, "`Points::{points:?}`"),
            Term::Bitstate => f.write_str("`StoreKind::Bitstate`"),
            Term::Sorted => f.write_str("`StoreKind::Sorted`"),
        }
    }
}

/// Writes the enum variant of a strategy, such as `` `Order::Icb` ``, without its fields.
pub fn write_variant(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (kind, value) = match strategies::named(name).map(|entry| entry.value) {
        Some(Value::Order(order)) => ("Order", format!("{order:?}")),
        Some(Value::Reduction(reduction)) => ("Reduction", format!("{reduction:?}")),
        None => unreachable!("no strategy is called {name}"),
    };
    let variant = value.split(' ').next().unwrap_or_default();
    write!(f, "`{kind}::{variant}`")
}

fn method(setting: Setting) -> &'static str {
    match setting {
        Setting::Order => "order",
        Setting::Reduction => "reduction",
        Setting::Bound => "bound",
        Setting::PastBound => "past_bound",
        Setting::Cache => "Order::Icb::cache",
        Setting::Points => "points",
        Setting::Promote => "promote",
        Setting::Store => "store",
        Setting::BitstateSize => "StoreKind::Bitstate::bytes",
        Setting::Spill => "spill_to",
        Setting::Jobs => "jobs",
        Setting::First => "first",
        Setting::KeepGoing => "keep_going",
        Setting::IgnoreDeadlocks => "ignore_deadlocks",
        Setting::Runs => "runs",
        Setting::Seed => "seed",
        Setting::PctDepth => "Order::Pct::depth",
        Setting::Sampling => "sampling",
        Setting::States => "limits.states",
        Setting::Executions => "limits.executions",
        Setting::Depth => "limits.depth",
        Setting::Memory => "limits.memory",
        Setting::Time => "limits.time",
        Setting::Checkpoint => "Checkpoints",
    }
}
