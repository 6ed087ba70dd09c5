//! Searches over states: from a plan to a store and a strategy.

use preempt_system::Model;

use crate::engine::control::SearchControl;
use crate::engine::exchange::Exchange;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::{memory, store};
use crate::order::{bfs, dfs, distributed, retrace, sorted};
use crate::plan::coverage::Limit;
use crate::plan::strategy::{StateOrder, Strategy};
use crate::plan::{ResolvedPlan, StoreKind};
use crate::reduce::{cartesian, cpc};

/// Searches the states of `model` as `plan` says. [`SearchControl::reason`] says afterwards what
/// stopped the search, if anything did.
pub(crate) fn explore_states<M: Model>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
) -> Explored {
    if let Strategy::Transactions(transactions) = plan.strategy {
        return cpc::explore_transactions(plan, transactions, model, control);
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

/// Searches the states of `model` together with the other processes of `exchange`.
pub(crate) fn explore_distributed<M: Model>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    exchange: &dyn Exchange,
) -> Explored {
    let search = match model.shape().words {
        0 => unreachable!("a state has at least one word"),
        1 => distributed::search::<M, 1>,
        2 => distributed::search::<M, 2>,
        3 => distributed::search::<M, 3>,
        4 => distributed::search::<M, 4>,
        _ => distributed::search::<M, 0>,
    };
    search(plan, model, control, exchange)
}

/// Searches states of `W` words; of any number of words if `W` is 0.
fn explore_words<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
) -> Explored {
    let mut explored = Explored::default();
    if plan.strategy.store() == StoreKind::Sorted {
        sorted::search::<M, W>(plan, model, control, &mut explored);
        return explored;
    }
    let Ok(store) = store::build(plan.strategy.store(), model.shape().words, plan.jobs) else {
        control.stop(Stop::Limit(Limit::Memory));
        return explored;
    };
    let order = match plan.strategy {
        Strategy::Cartesian { reading, .. } => {
            cartesian::explore_vectors(plan, model, control, reading, store, &mut explored);
            return explored;
        }
        Strategy::States { order, .. } => order,
        other => unreachable!("{other:?} does not search states of fixed size"),
    };
    match order {
        StateOrder::BreadthFirst => {
            let classes = bfs::search::<M, W>(plan, model, control, &*store, &mut explored);
            if control.spill.is_some() && control.reason() == Some(Stop::Limit(Limit::Memory)) {
                drop(store);
                return continue_in_files::<M, W>(plan, model, control);
            }
            if !classes.is_empty() && !matches!(control.reason(), Some(Stop::Restart(_))) {
                // The paths are searched for with a new store, so the memory of this one is freed
                // first.
                (explored.store_bytes, explored.omission) =
                    (store.bytes(), store.omission(explored.seen.states));
                drop(store);
                let bytes = explored.store_bytes + explored.frontier_bytes;
                explored.failures = retrace::retrace(plan, model, &classes, control, bytes);
                return explored;
            }
        }
        StateOrder::DepthFirst => dfs::search::<M, W>(plan, model, control, &*store, &mut explored),
    }
    (explored.store_bytes, explored.omission) =
        (store.bytes(), store.omission(explored.seen.states));
    explored
}

/// Searches again from the beginning, with sorted runs in memory and in files: the table of the
/// first attempt has filled the memory. Starting again costs at most the time that it took to fill
/// it, and needs no second way to make runs.
fn continue_in_files<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
) -> Explored {
    memory::release_free_blocks();
    let mut explored = Explored::default();
    let again = control.restarted();
    let plan = ResolvedPlan { strategy: plan.strategy.with_store(StoreKind::Sorted), ..*plan };
    sorted::search::<M, W>(&plan, model, &again, &mut explored);
    control.adopt_reason(&again);
    explored
}
