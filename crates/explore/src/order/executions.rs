//! Searches over executions: from a plan to a cursor, a strategy and a census.

use super::tree::Extent;
use super::{Explored, bounded, depth, icb, pct, random, urw, walk};
use crate::census::Census;
use crate::cursor::Cursor;
use crate::execution::{Stop, Visitor};
use crate::plan::{Cache, Count, Order, Plan};
use crate::reduce::budgeted_sleep;
use crate::reduce::{Dependence, Reduction, blocks, cb_por, dpor, sleep};
use crate::system::{Program, System};
use crate::watch::{Stop as Ended, Watch};

/// Explores the executions of a program as `plan` says.
pub(crate) fn explore<P: Program>(plan: &Plan, program: &P, watch: &Watch<'_>) -> Explored {
    let mut census = Census::new(plan, watch);
    let done = match program.start().and_then(Cursor::over) {
        Err(capacity) => Err(Stop::Full(capacity)),
        Ok(cursor) => {
            let cursor = if plan.is_fair() { cursor.fair() } else { cursor };
            let mut cursor = if needs_graph(plan) { cursor.recording() } else { cursor };
            census.begin(&mut cursor).and_then(|()| run(plan, &mut cursor, &mut census))
        }
    };
    if let Err(Stop::Full(capacity)) = done {
        watch.stop(Ended::Full(capacity));
    }
    census.explored()
}

/// Whether somebody will ask for happens-before graphs.
fn needs_graph(plan: &Plan) -> bool {
    match plan.order {
        Order::Icb { cache: Cache::Hb } | Order::DfsHb => true,
        // It covers states; the traces it happens to meet mean nothing.
        Order::Icb { cache: Cache::State } => false,
        _ => plan.count >= Count::Traces,
    }
}

fn run<S: System>(plan: &Plan, cursor: &mut Cursor<S>, census: &mut Census<'_>) -> Result<(), Stop> {
    if plan.reduction != Reduction::None {
        return reduce(plan, cursor, census);
    }
    let extent = Extent { preemptions: plan.bound, steps: plan.limits.depth };
    match plan.order {
        Order::BreadthFirst | Order::DepthFirst => unreachable!("an order of states"),
        Order::Icb { cache } => icb::explore(cursor, extent, cache, census),
        Order::ContextBounded | Order::Executions => bounded::explore(cursor, extent, Cache::None, census),
        Order::DfsHb => bounded::explore(cursor, extent, Cache::Hb, census),
        Order::Depth { steps } => depth::explore(cursor, steps, census).map(|_| ()),
        Order::IterativeDepth { by } => depth::iterate(cursor, by, plan.limits.depth, census),
        Order::Random => walk::explore(cursor, plan, &mut random::Uniform, census),
        Order::Pct { depth } => {
            let mut priorities = pct::Priorities::new(depth, cursor.threads());
            walk::explore(cursor, plan, &mut priorities, census)
        }
        Order::Urw => {
            let mut remaining = urw::Remaining::new(cursor.threads());
            walk::explore(cursor, plan, &mut remaining, census)
        }
    }
}

fn reduce<S: System>(plan: &Plan, cursor: &mut Cursor<S>, census: &mut Census<'_>) -> Result<(), Stop> {
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
            return dpor::flanagan_godefroid(cursor, census, dependence, dpor::Sleep::Never).map(drop);
        }
        Reduction::Source => return dpor::source(cursor, census, dependence).map(drop),
        Reduction::Optimal => return dpor::optimal(cursor, census, dependence).map(drop),
        Reduction::BudgetedSleep => {
            let waits = cursor.system_mut().waits()?;
            let config = budgeted_sleep::Config { bound, dependence, waits };
            budgeted_sleep::budgeted_sleep_sets(cursor, census, &config)?.bounded > 0
        }
        Reduction::CbPor | Reduction::CbPorStates => {
            let config = cb_por::Config { bound, dependence, ..cb_por::Config::default() };
            let algorithm = if plan.reduction == Reduction::CbPor { cb_por::terminals } else { cb_por::states };
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
