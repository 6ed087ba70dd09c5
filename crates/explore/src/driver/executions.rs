//! Searches over executions: from a plan to a cursor, a strategy and a stats.

use preempt_system::{Program, System};

use super::serial_rerun;
use crate::engine::control::SearchControl;
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::engine::explored::Explored;
use crate::engine::stats::{ExecutionStats, SharedStats};
use crate::order::tree::Extent;
use crate::order::workers::Workers;
use crate::order::{bounded, depth, icb, pct, random, urw, walk};
use crate::plan::{Cache, Order, Plan};
use crate::reduce::budgeted_sleep;
use crate::reduce::{Dependence, Reduction, blocks, cb_por, dpor, sleep};

/// Explores the executions of a program as `plan` says.
pub(crate) fn explore<P: Program>(
    plan: &Plan,
    program: &P,
    control: &SearchControl<'_, P::Need>,
) -> Explored {
    if plan.jobs == 1 {
        attempt(plan, program, control).0
    } else {
        serial_rerun::explore(plan, program, control)
    }
}

/// The same, but what several workers see may depend on who is faster: [`serial_rerun`] says when.
/// Also the most preemptions that the schedule of a failure has.
pub(super) fn attempt<P: Program>(
    plan: &Plan,
    program: &P,
    control: &SearchControl<'_, P::Need>,
) -> (Explored, Option<u32>) {
    let shared = SharedStats::new(plan.jobs);
    let mut explored =
        match Workers::new(plan, program, ExecutionStats::new(plan, control, &shared)) {
            Err(need) => {
                control.stop(Stop::Restart(need));
                ExecutionStats::new(plan, control, &shared).explored()
            }
            Ok(mut workers) => {
                let resumed = workers.stats.resume_counts();
                let begun = if resumed { Ok(()) } else { workers.stats.begin(&mut workers.cursor) };
                let done = begun.and_then(|()| run(plan, &mut workers));
                if let Err(Stop::Restart(need)) = done {
                    control.stop(Stop::Restart(need));
                }
                workers.stats.explored()
            }
        };
    let (failures, most) = shared.into_failures();
    explored.failures = failures;
    (explored, most)
}

fn run<P: Program>(plan: &Plan, workers: &mut Workers<'_, P>) -> Result<(), Stop<P::Need>> {
    if plan.reduction != Reduction::None {
        return reduce(plan, &mut workers.cursor, &mut workers.stats);
    }
    let extent = Extent { preemptions: plan.bound, steps: plan.limits.depth };
    let threads = workers.cursor.threads();
    match plan.order {
        Order::BreadthFirst | Order::DepthFirst => unreachable!("an order of states"),
        Order::Icb { cache } => icb::explore(workers, extent, cache),
        Order::ContextBounded | Order::Executions => bounded::explore(workers, extent, Cache::None),
        Order::DfsHb => bounded::explore(workers, extent, Cache::Hb),
        Order::Depth { steps } => depth::explore(workers, steps),
        Order::IterativeDepth { by } => depth::iterate(workers, by, plan.limits.depth),
        Order::Random => walk::explore(workers, plan, || random::Uniform),
        Order::Pct { depth } => {
            walk::explore(workers, plan, || pct::Priorities::new(depth, threads))
        }
        Order::Urw => walk::explore(workers, plan, || urw::Remaining::new(threads)),
    }
}

fn reduce<S: System>(
    plan: &Plan,
    cursor: &mut Cursor<S>,
    stats: &mut ExecutionStats<'_, S::Need>,
) -> Result<(), Stop<S::Need>> {
    let dependence = Dependence::ReadWrite;
    let bound = plan.bound.unwrap_or(0);
    let cut = match plan.reduction {
        Reduction::None => unreachable!("nothing is left out"),
        Reduction::Cartesian { .. }
        | Reduction::Transactions
        | Reduction::TransactionsCycle
        | Reduction::TransactionsUnsound => unreachable!("a reduction of states"),
        Reduction::Sleep => return sleep::sleep_sets(cursor, stats, dependence).map(drop),
        Reduction::FlanaganGodefroid => {
            return dpor::flanagan_godefroid(cursor, stats, dependence, dpor::Sleep::Never)
                .map(drop);
        }
        Reduction::Source => return dpor::source(cursor, stats, dependence).map(drop),
        Reduction::Optimal => return dpor::optimal(cursor, stats, dependence).map(drop),
        Reduction::BudgetedSleep => {
            let waits = cursor
                .system_mut()
                .waits(&mut |bytes| stats.goes_on(bytes))?
                .ok_or_else(|| stats.out_of_memory())?;
            let config = budgeted_sleep::Config { bound, dependence, waits };
            budgeted_sleep::budgeted_sleep_sets(cursor, stats, &config)?.bounded > 0
        }
        Reduction::CbPor | Reduction::CbPorStates => {
            let config = cb_por::Config { bound, dependence, ..cb_por::Config::default() };
            let algorithm =
                if plan.reduction == Reduction::CbPor { cb_por::terminals } else { cb_por::states };
            algorithm(cursor, stats, &config)?.bounded > 0
        }
        Reduction::Blocks | Reduction::BlocksPaper => {
            let lines = cursor.system().straight_lines().expect("the model suits the search");
            let dependence = plan.reduction.blocks().expect("it is one of these");
            let config = blocks::Config { dependence, ..blocks::Config::default() };
            return blocks::explore(&lines, cursor, stats, &config).map(drop);
        }
    };
    Visitor::<S>::bound(stats, bound, cut);
    Ok(())
}
