//! Searches over executions: from a plan to a cursor, counters and a strategy.

use preempt_system::{Program, System};

use super::serial_rerun;
use crate::engine::control::SearchControl;
use crate::engine::cursor::Cursor;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::stats::{ExecutionStats, SharedStats};
use crate::engine::tree::Extent;
use crate::engine::workers::Workers;
use crate::order::bounded::Bounded;
use crate::order::depth::Depth;
use crate::order::icb::Icb;
use crate::order::walk::{self, Draws};
use crate::order::{pct, random, urw};
use crate::plan::strategy::{Chooser, ExecutionSearch, Strategy};
use crate::plan::{Cache, ResolvedPlan};
use crate::reduce::{Dependence, blocks, budgeted_sleep, cb_por, dpor, graphs, sleep};

/// Explores the executions of a program as `plan` says.
pub(crate) fn explore_executions<P: Program>(
    plan: &ResolvedPlan,
    program: &P,
    control: &SearchControl<'_, P::Need>,
) -> Explored {
    if plan.jobs == 1 {
        attempt(plan, program, control).0
    } else {
        serial_rerun::explore_with_rerun(plan, program, control)
    }
}

/// One attempt. With several workers the result may depend on their speed: [`serial_rerun`] says
/// when. Also returns the most preemptions of a failing schedule.
pub(super) fn attempt<P: Program>(
    plan: &ResolvedPlan,
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

/// Dispatches from a strategy over executions to the function that implements it.
fn run<P: Program>(plan: &ResolvedPlan, workers: &mut Workers<'_, P>) -> Result<(), Stop<P::Need>> {
    let steps = plan.limits.depth;
    let threads = workers.cursor.threads();
    let within = |cost| Extent { cost, steps };
    let search = match plan.strategy {
        Strategy::Executions { search, .. } => search,
        Strategy::Blocks(dependence) => {
            return blocks(dependence, &mut workers.cursor, &mut workers.stats);
        }
        Strategy::Sample { chooser, runs, seed, .. } => {
            let draws = Draws { runs, seed, steps };
            return match chooser {
                Chooser::Random => walk::draw_executions(workers, &draws, || random::Uniform),
                Chooser::Pct { depth } => {
                    walk::draw_executions(workers, &draws, || pct::Priorities::new(depth, threads))
                }
                Chooser::Urw => {
                    walk::draw_executions(workers, &draws, || urw::Remaining::new(threads))
                }
            };
        }
        other => unreachable!("{other:?} does not search executions"),
    };
    match search {
        ExecutionSearch::Icb { cache, bound, past_bound, .. } => {
            let icb = Icb::new(within(bound), past_bound, workers.count());
            workers.explore_rounds(&icb, cache)
        }
        ExecutionSearch::Bounded { bound } => {
            workers.explore_rounds(&Bounded(within(Some(bound))), Cache::None)
        }
        ExecutionSearch::DfsHb { bound } => {
            workers.explore_rounds(&Bounded(within(bound)), Cache::Hb)
        }
        ExecutionSearch::All => workers.explore_rounds(&Bounded(within(None)), Cache::None),
        ExecutionSearch::Depth { steps } => {
            workers.explore_rounds(&Depth::up_to(steps), Cache::None)
        }
        ExecutionSearch::IterativeDepth { by } => {
            workers.explore_rounds(&Depth::iterated(by, steps), Cache::None)
        }
        reduced => reduce(reduced, &mut workers.cursor, &mut workers.stats),
    }
}

/// The dispatch of reductions.
fn reduce<S: System>(
    search: ExecutionSearch,
    cursor: &mut Cursor<S>,
    stats: &mut ExecutionStats<'_, S::Need>,
) -> Result<(), Stop<S::Need>> {
    let dependence = Dependence::ReadWrite;
    let cb_por = |bound| cb_por::Config { bound, dependence, ..cb_por::Config::default() };
    let (bound, cut) = match search {
        ExecutionSearch::Sleep => {
            return stats.drive(sleep::strategy(cursor, dependence)).map(drop);
        }
        ExecutionSearch::FlanaganGodefroid => {
            return stats.drive(dpor::flanagan_godefroid::strategy(cursor, dependence)).map(drop);
        }
        ExecutionSearch::Source => {
            return stats.drive(dpor::source::strategy(cursor, dependence)).map(drop);
        }
        ExecutionSearch::Optimal => {
            return stats.drive(dpor::optimal::strategy(cursor, dependence)).map(drop);
        }
        ExecutionSearch::Graphs => {
            return stats.drive(graphs::strategy(cursor)).map(drop);
        }
        ExecutionSearch::BudgetedSleep { bound } => {
            let waits = cursor
                .system_mut()
                .waits(&mut |bytes| stats.may_continue(bytes))?
                .ok_or_else(|| stats.out_of_memory())?;
            let config = budgeted_sleep::Config { bound, dependence, waits };
            (bound, stats.drive(budgeted_sleep::strategy(cursor, config))?)
        }
        ExecutionSearch::CbPor { bound } => {
            let terminals = cb_por::Algorithm::Terminals;
            (bound, stats.drive(cb_por::strategy(cursor, &cb_por(bound), terminals))?)
        }
        ExecutionSearch::CbPorStates { bound } => {
            let states = cb_por::Algorithm::States;
            (bound, stats.drive(cb_por::strategy(cursor, &cb_por(bound), states))?)
        }
        other => unreachable!("{other:?} is not a reduction"),
    };
    stats.complete_bound(bound, cut);
    Ok(())
}

fn blocks<S: System>(
    dependence: Dependence,
    cursor: &mut Cursor<S>,
    stats: &mut ExecutionStats<'_, S::Need>,
) -> Result<(), Stop<S::Need>> {
    let lines =
        cursor.system().straight_lines().expect("Search::suits: the threads are straight lines");
    let blocks = blocks::Blocks::new(&lines, dependence);
    stats.drive(blocks::Search::new(&lines, &blocks, cursor)).map(drop)
}
