//! Searches over executions: from a plan to a cursor, a strategy and a census.

use preempt_system::{Program, System};

use super::serial_rerun;
use crate::engine::census::{Census, Common};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::engine::explored::Explored;
use crate::engine::watch::Watch;
use crate::order::crew::Crew;
use crate::order::tree::Extent;
use crate::order::{bounded, depth, icb, pct, random, urw, walk};
use crate::plan::{Cache, Order, Plan};
use crate::reduce::budgeted_sleep;
use crate::reduce::{Dependence, Reduction, blocks, cb_por, dpor, sleep};

/// Explores the executions of a program as `plan` says.
pub(crate) fn explore<P: Program>(
    plan: &Plan,
    program: &P,
    watch: &Watch<'_, P::Need>,
) -> Explored {
    if plan.jobs == 1 {
        attempt(plan, program, watch).0
    } else {
        serial_rerun::explore(plan, program, watch)
    }
}

/// The same, but what several workers see may depend on who is faster: [`serial_rerun`] says when.
/// Also the most preemptions that the schedule of a failure has.
pub(super) fn attempt<P: Program>(
    plan: &Plan,
    program: &P,
    watch: &Watch<'_, P::Need>,
) -> (Explored, Option<u32>) {
    let common = Common::new(plan.jobs);
    let mut explored = match Crew::new(plan, program, Census::new(plan, watch, &common)) {
        Err(need) => {
            watch.stop(Stop::Restart(need));
            Census::new(plan, watch, &common).explored()
        }
        Ok(mut crew) => {
            let resumed = crew.census.resume_counts();
            let begun = if resumed { Ok(()) } else { crew.census.begin(&mut crew.cursor) };
            let done = begun.and_then(|()| run(plan, &mut crew));
            if let Err(Stop::Restart(need)) = done {
                watch.stop(Stop::Restart(need));
            }
            crew.census.explored()
        }
    };
    let (failures, most) = common.into_failures();
    explored.failures = failures;
    (explored, most)
}

fn run<P: Program>(plan: &Plan, crew: &mut Crew<'_, P>) -> Result<(), Stop<P::Need>> {
    if plan.reduction != Reduction::None {
        return reduce(plan, &mut crew.cursor, &mut crew.census);
    }
    let extent = Extent { preemptions: plan.bound, steps: plan.limits.depth };
    let threads = crew.cursor.threads();
    match plan.order {
        Order::BreadthFirst | Order::DepthFirst => unreachable!("an order of states"),
        Order::Icb { cache } => icb::explore(crew, extent, cache),
        Order::ContextBounded | Order::Executions => bounded::explore(crew, extent, Cache::None),
        Order::DfsHb => bounded::explore(crew, extent, Cache::Hb),
        Order::Depth { steps } => depth::explore(crew, steps),
        Order::IterativeDepth { by } => depth::iterate(crew, by, plan.limits.depth),
        Order::Random => walk::explore(crew, plan, || random::Uniform),
        Order::Pct { depth } => walk::explore(crew, plan, || pct::Priorities::new(depth, threads)),
        Order::Urw => walk::explore(crew, plan, || urw::Remaining::new(threads)),
    }
}

fn reduce<S: System>(
    plan: &Plan,
    cursor: &mut Cursor<S>,
    census: &mut Census<'_, S::Need>,
) -> Result<(), Stop<S::Need>> {
    let dependence = Dependence::ReadWrite;
    let bound = plan.bound.unwrap_or(0);
    let cut = match plan.reduction {
        Reduction::None => unreachable!("nothing is left out"),
        Reduction::Cartesian { .. }
        | Reduction::Transactions
        | Reduction::TransactionsCycle
        | Reduction::TransactionsUnsound => unreachable!("a reduction of states"),
        Reduction::Sleep => return sleep::sleep_sets(cursor, census, dependence).map(drop),
        Reduction::FlanaganGodefroid => {
            return dpor::flanagan_godefroid(cursor, census, dependence, dpor::Sleep::Never)
                .map(drop);
        }
        Reduction::Source => return dpor::source(cursor, census, dependence).map(drop),
        Reduction::Optimal => return dpor::optimal(cursor, census, dependence).map(drop),
        Reduction::BudgetedSleep => {
            let waits = cursor
                .system_mut()
                .waits(&mut |bytes| census.goes_on(bytes))?
                .ok_or_else(|| census.out_of_memory())?;
            let config = budgeted_sleep::Config { bound, dependence, waits };
            budgeted_sleep::budgeted_sleep_sets(cursor, census, &config)?.bounded > 0
        }
        Reduction::CbPor | Reduction::CbPorStates => {
            let config = cb_por::Config { bound, dependence, ..cb_por::Config::default() };
            let algorithm =
                if plan.reduction == Reduction::CbPor { cb_por::terminals } else { cb_por::states };
            algorithm(cursor, census, &config)?.bounded > 0
        }
        Reduction::Blocks | Reduction::BlocksPaper => {
            let lines = cursor.system().straight_lines().expect("the model suits the search");
            let dependence = plan.reduction.blocks().expect("it is one of these");
            let config = blocks::Config { dependence, ..blocks::Config::default() };
            return blocks::explore(&lines, cursor, census, &config).map(drop);
        }
    };
    Visitor::<S>::bound(census, bound, cut);
    Ok(())
}
