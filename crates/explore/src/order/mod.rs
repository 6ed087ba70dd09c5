//! In which order states or executions are explored, and by how many workers.
//!
//! Each order of states is one file and a loop over the same parts: [`expand`](crate::expand) says what a state leads to,
//! a [store](crate::store) says which of that is new, a [`Watch`] says when to stop.
//!
//! Each order of [executions](self::executions) is one file too. It moves a [cursor](crate::cursor) and tells a
//! [`Census`](crate::census::Census) what it sees. The systematic ones share the loop of [`tree`], the random ones that of
//! [`walk`]; both are done by the workers of a [`crew`].

mod alone;
mod bfs;
mod bounded;
mod cache;
mod crew;
mod depth;
mod dfs;
mod executions;
mod frontier;
mod icb;
mod pct;
mod pool;
mod random;
mod retrace;
mod scales;
mod tree;
mod urw;
mod walk;

use preempt_system::{Failure, Model, Schedule};

use crate::expand::Checks;
use crate::growth::Growth;
use crate::outcome::{Coverage, Limit, Omission};
use crate::plan::{Order, Plan};
use crate::reduce::{Reduction, cartesian, cpc};
use crate::save::{Damaged, Reader, Save, Writer};
use crate::store;
use crate::tally::{BoundCoverage, Tally};
use crate::watch::{Stop, Watch};

/// Successors that are looked up together, at least.
const BATCH: usize = 64;

/// What a search has seen.
#[derive(Default)]
pub(crate) struct Explored {
    pub(crate) seen: Coverage,
    /// Every distinct failure, with a schedule that shows it.
    pub(crate) failures: Vec<(Failure, Schedule)>,
    pub(crate) omission: Omission,
    pub(crate) store_bytes: usize,
    pub(crate) frontier_bytes: usize,
    /// What only searches over executions count.
    pub(crate) tally: Option<Tally>,
    pub(crate) bounds: Vec<BoundCoverage>,
    pub(crate) growth: Option<Growth>,
    /// Whether it ended at a finding in the middle of an execution.
    pub(crate) unfinished: bool,
}

/// What a search over executions has seen: its tables omit nothing.
impl Save for Explored {
    fn save(&self, to: &mut Writer<'_>) {
        debug_assert_eq!(self.omission, Omission::Never, "it is a search over executions");
        to.put(&self.seen);
        to.put(&self.failures);
        to.put(&(self.store_bytes, self.frontier_bytes));
        to.put(&(self.tally, self.bounds.clone()));
        to.put(&self.growth);
        to.put(&self.unfinished);
    }

    fn load(from: &mut Reader) -> Result<Explored, Damaged> {
        let (seen, failures) = (from.get()?, from.get()?);
        let (store_bytes, frontier_bytes) = from.get()?;
        let ((tally, bounds), growth, unfinished) = (from.get()?, from.get()?, from.get()?);
        Ok(Explored {
            seen,
            failures,
            omission: Omission::Never,
            store_bytes,
            frontier_bytes,
            tally,
            bounds,
            growth,
            unfinished,
        })
    }
}

pub(crate) use self::executions::explore as explore_executions;

/// Searches the states of `model` as `plan` says. [`Watch::reason`] tells afterwards whether the search came to its end.
pub(crate) fn explore_states<M: Model>(plan: &Plan, model: &M, watch: &Watch) -> Explored {
    if plan.reduction.is_by_transactions() {
        return cpc::explore(plan, model, watch);
    }
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
    let mut explored = Explored::default();
    let Ok(store) = store::build(plan.store, model.shape().words, plan.jobs) else {
        watch.stop(Stop::Limit(Limit::Memory));
        return explored;
    };
    if let Reduction::Cartesian { reading } = plan.reduction {
        cartesian::explore(plan, model, watch, reading, store, &mut explored);
        return explored;
    }
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
        other => unreachable!("{other:?} is no order of states"),
    }
    (explored.store_bytes, explored.omission) = (store.bytes(), store.omission(explored.seen.states));
    explored
}

/// What a plan asks to be checked.
fn checks(plan: &Plan) -> Checks {
    Checks { deadlock: plan.deadlock, keep_going: plan.keep_going }
}
