//! Searches over states: from a plan to a store and a strategy.

use preempt_system::Model;

use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::store;
use crate::order::{bfs, dfs, retrace};
use crate::plan::coverage::Limit;
use crate::plan::{Order, Plan, Reduction};
use crate::reduce::{cartesian, cpc};

/// Searches the states of `model` as `plan` says. [`SearchControl::reason`] tells afterwards whether the
/// search came to its end.
pub(crate) fn explore<M: Model>(plan: &Plan, model: &M, control: &SearchControl) -> Explored {
    if plan.reduction.is_by_transactions() {
        return cpc::explore(plan, model, control);
    }
    match model.shape().words {
        0 => unreachable!("a state has at least one word"),
        1 => explore_words::<M, 1>(plan, model, control),
        2 => explore_words::<M, 2>(plan, model, control),
        3 => explore_words::<M, 3>(plan, model, control),
        4 => explore_words::<M, 4>(plan, model, control),
        _ => explore_words::<M, 0>(plan, model, control),
    }
}

/// The same for states of `W` words; of any number of words if `W` is 0.
fn explore_words<M: Model, const W: usize>(
    plan: &Plan,
    model: &M,
    control: &SearchControl,
) -> Explored {
    let mut explored = Explored::default();
    let Ok(store) = store::build(plan.store, model.shape().words, plan.jobs) else {
        control.stop(Stop::Limit(Limit::Memory));
        return explored;
    };
    if let Reduction::Cartesian { reading } = plan.reduction {
        cartesian::explore(plan, model, control, reading, store, &mut explored);
        return explored;
    }
    match plan.order {
        Order::BreadthFirst => {
            let classes = bfs::search::<M, W>(plan, model, control, &*store, &mut explored);
            if !classes.is_empty() && !matches!(control.reason(), Some(Stop::Restart(_))) {
                // The paths are searched for with a new store: this one makes room for it.
                (explored.store_bytes, explored.omission) =
                    (store.bytes(), store.omission(explored.seen.states));
                drop(store);
                explored.failures = retrace::retrace(plan, model, &classes, control);
                return explored;
            }
        }
        Order::DepthFirst => dfs::search::<M, W>(plan, model, control, &*store, &mut explored),
        other => unreachable!("{other:?} is no order of states"),
    }
    (explored.store_bytes, explored.omission) =
        (store.bytes(), store.omission(explored.seen.states));
    explored
}
