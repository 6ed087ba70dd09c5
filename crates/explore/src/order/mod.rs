//! In which order states are expanded, and by how many workers.
//!
//! Each order is one file and a loop over the same parts: [`expand`](crate::expand) says what a state leads to,
//! a [store](crate::store) says which of that is new, a [`Watch`] says when to stop.

mod bfs;
mod dfs;
mod frontier;
mod pool;
mod retrace;

use preempt_system::{Failure, Model, Schedule};

use crate::expand::Checks;
use crate::outcome::{Coverage, Limit, Omission};
use crate::plan::{Order, Plan};
use crate::store;
use crate::watch::{Stop, Watch};

/// Successors that are looked up together, at least.
const BATCH: usize = 64;

/// What a search has seen.
pub(crate) struct Explored {
    pub(crate) seen: Coverage,
    /// Every distinct failure, with a schedule that shows it.
    pub(crate) failures: Vec<(Failure, Schedule)>,
    pub(crate) omission: Omission,
    pub(crate) store_bytes: usize,
    pub(crate) frontier_bytes: usize,
}

/// Searches `model` as `plan` says. [`Watch::reason`] tells afterwards whether the search came to its end.
pub(crate) fn explore<M: Model>(plan: &Plan, model: &M, watch: &Watch) -> Explored {
    match model.shape().words {
        0 => unreachable!("a state has at least one word"),
        1 => explore_words::<M, 1>(plan, model, watch),
        2 => explore_words::<M, 2>(plan, model, watch),
        3 => explore_words::<M, 3>(plan, model, watch),
        4 => explore_words::<M, 4>(plan, model, watch),
        _ => explore_words::<M, 0>(plan, model, watch),
    }
}

/// The same for states of `W` words; of any number of words if `W` is 0.
fn explore_words<M: Model, const W: usize>(plan: &Plan, model: &M, watch: &Watch) -> Explored {
    let mut explored = Explored {
        seen: Coverage::default(),
        failures: Vec::new(),
        omission: Omission::Never,
        store_bytes: 0,
        frontier_bytes: 0,
    };
    let Ok(store) = store::build(plan.store, model.shape().words, plan.jobs) else {
        watch.stop(Stop::Limit(Limit::Memory));
        return explored;
    };
    match plan.order {
        Order::BreadthFirst => {
            let classes = bfs::search::<M, W>(plan, model, watch, &*store, &mut explored);
            if !classes.is_empty() && !matches!(watch.reason(), Some(Stop::Full(_))) {
                // The paths are searched for with a new store: this one makes room for it.
                (explored.store_bytes, explored.omission) = (store.bytes(), store.omission(explored.seen.states));
                drop(store);
                explored.failures = retrace::retrace(plan, model, &classes, watch);
                return explored;
            }
        }
        Order::DepthFirst => dfs::search::<M, W>(plan, model, watch, &*store, &mut explored),
    }
    (explored.store_bytes, explored.omission) = (store.bytes(), store.omission(explored.seen.states));
    explored
}

/// What a plan asks to be checked.
fn checks(plan: &Plan) -> Checks {
    Checks { deadlock: plan.deadlock, keep_going: plan.keep_going }
}
