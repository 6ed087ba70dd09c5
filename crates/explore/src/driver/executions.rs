//! Searches over executions: from a plan to a cursor, a strategy and a stats.

use preempt_system::{Program, System};

use super::serial_rerun;
use crate::engine::control::SearchControl;
use crate::engine::cursor::Cursor;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::stats::{ExecutionStats, SharedStats};
use crate::engine::tree::Extent;
use crate::engine::workers::Workers;
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
        Reduction::Sleep => return stats.drive(sleep::strategy(cursor, dependence)).map(drop),
        Reduction::FlanaganGodefroid => {
            return stats.drive(dpor::flanagan_godefroid::strategy(cursor, dependence)).map(drop);
        }
        Reduction::Source => {
            return stats.drive(dpor::source::strategy(cursor, dependence)).map(drop);
        }
        Reduction::Optimal => {
            return stats.drive(dpor::optimal::strategy(cursor, dependence)).map(drop);
        }
        Reduction::BudgetedSleep => {
            let waits = cursor
                .system_mut()
                .waits(&mut |bytes| stats.goes_on(bytes))?
                .ok_or_else(|| stats.out_of_memory())?;
            let config = budgeted_sleep::Config { bound, dependence, waits };
            stats.drive(budgeted_sleep::strategy(cursor, config))?
        }
        Reduction::CbPor | Reduction::CbPorStates => {
            let config = cb_por::Config { bound, dependence, ..cb_por::Config::default() };
            let algorithm = match plan.reduction {
                Reduction::CbPor => cb_por::Algorithm::Terminals,
                _ => cb_por::Algorithm::States,
            };
            stats.drive(cb_por::strategy(cursor, &config, algorithm))?
        }
        Reduction::Blocks | Reduction::BlocksPaper => {
            let lines = cursor.system().straight_lines().expect("the model suits the search");
            let dependence = plan.reduction.blocks().expect("it is one of these");
            let blocks = blocks::Blocks::new(&lines, dependence);
            let search = blocks::Search::new(&lines, &blocks, cursor);
            return stats.drive(search).map(drop);
        }
    };
    stats.complete_bound(bound, cut);
    Ok(())
}
