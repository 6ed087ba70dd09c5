//! Searches over executions: from a plan to a cursor, a strategy and a census.

use preempt_system::Model;

use super::tree::Extent;
use super::{Explored, bounded, depth, icb, pct, random, urw, walk};
use crate::census::Census;
use crate::cursor::{Cursor, NoStart};
use crate::execution::Stop;
use crate::plan::{Cache, Count, Order, Plan};
use crate::watch::{Stop as Ended, Watch};

/// Explores the executions of `model` as `plan` says.
pub(crate) fn explore<M: Model>(plan: &Plan, model: &M, watch: &Watch<'_>) -> Explored {
    let mut census = Census::new(plan, watch);
    let done = match Cursor::new(model) {
        Err(NoStart::Full(capacity)) => Err(Stop::Full(capacity)),
        Err(NoStart::Failed(failure)) => census.stillborn(*failure),
        Ok(cursor) => {
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
    plan.count >= Count::Traces || matches!(plan.order, Order::Icb { cache: Cache::Hb } | Order::DfsHb)
}

fn run<M: Model>(plan: &Plan, cursor: &mut Cursor<'_, M>, census: &mut Census<'_>) -> Result<(), Stop> {
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
