//! Repeats a search of several workers with one worker, where their outcome would differ.
//!
//! Which of several workers reaches a state or a failure first depends on their speed. Where the
//! outcome would depend on this, one worker searches again, in its own order:
//!
//! - A search that ends at its first finding: everything again, up to the first finding of one
//!   worker.
//! - Threads that spin in a search that compares happens-before graphs: everything again. This
//!   shows early, if at all.
//! - Schedules of findings where only the first path to a state or a graph is taken: the counts are
//!   right, and only the schedules are searched for again. In a search by levels, each failure has
//!   its best schedule in the first level that shows it, so the second search ends with the last
//!   such level.
//!
//! **Cost.** At most the time of a search by one worker, after that of several. A search that finds
//! nothing has no extra cost. The outcome says how long it took, and [`Plan::first`] asks for the
//! finding of the several workers instead.
//!
//! If a limit ends the second search first, what the first one has found is reported: a finding is
//! never withheld.

use std::time::Instant;

use preempt_system::Program;

use super::executions::attempt;
use crate::codec::save_fields;
use crate::engine::checkpoint::Layer;
use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::plan::strategy::{ExecutionSearch, Strategy};
use crate::plan::{Cache, ResolvedPlan};

/// The result of several workers.
struct ParallelResult {
    explored: Explored,
    /// The greatest cost of any failing schedule.
    greatest_cost: Option<u32>,
    /// Whether one worker has to search everything again.
    rerun_all: bool,
}

save_fields!(ParallelResult { explored, greatest_cost, rerun_all });

/// Sets the frame of checkpoints: the result of several workers, once one worker searches again.
fn set_frame<N: Copy>(control: &SearchControl<'_, N>, first: Option<&ParallelResult>) {
    if let Some(pauses) = control.pauses() {
        pauses.frame(Layer::SerialRerun, |to| {
            to.put(&first.is_some());
            first.into_iter().for_each(|first| to.put(first));
        });
    }
}

/// Searches with several workers, and then again with one worker as far as necessary.
pub(super) fn explore_with_rerun<P: Program>(
    plan: &ResolvedPlan,
    program: &P,
    control: &SearchControl<'_, P::Need>,
) -> Explored {
    let first = control.resume_part(|from| from.get::<Option<ParallelResult>>()).flatten();
    set_frame(control, first.as_ref());
    if first.as_ref().is_some_and(|first| first.rerun_all) {
        control.stop(Stop::Rerun);
    }
    let first = first.unwrap_or_else(|| {
        let (explored, greatest_cost) = attempt(plan, program, control);
        ParallelResult { explored, greatest_cost, rerun_all: control.reason() == Some(Stop::Rerun) }
    });
    if plan.first && !first.explored.failures.is_empty() {
        return first_found(first.explored, control);
    }
    let again = match (control.reason(), first.greatest_cost, plan.strategy.executions()) {
        (Some(Stop::Rerun), ..) | (None, Some(_), Some(ExecutionSearch::DfsHb { .. })) => {
            plan.strategy
        }
        (
            None,
            Some(most),
            Some(ExecutionSearch::Icb { cost, cache: cache @ (Cache::State | Cache::Hb), .. }),
        ) => {
            // Only schedules are searched for, and none is beyond this bound.
            let bound = Some(most);
            let search = ExecutionSearch::Icb { cost, cache, bound, past_bound: None };
            Strategy::Executions { search, points: plan.strategy.points() }
        }
        _ => return first.explored,
    };
    set_frame(control, Some(&first));
    let ParallelResult { mut explored, rerun_all, .. } = first;
    let (serial, started) = (control.restarted(), Instant::now());
    let serial_plan = ResolvedPlan { jobs: 1, strategy: again, ..*plan };
    let (mut again, _) = attempt(&serial_plan, program, &serial);
    let rerun = Some(started.elapsed());
    if rerun_all {
        if again.failures.is_empty() {
            again.failures = explored.failures;
        }
        control.adopt_reason(&serial);
        return Explored { rerun, ..again };
    }
    if serial.reason().is_none() {
        explored.failures = again.failures;
    }
    Explored { rerun, ..explored }
}

/// The result of several workers up to the first finding. Other workers may have found something
/// else before they noticed that the search was stopped.
fn first_found<N: Copy + PartialEq>(
    mut explored: Explored,
    control: &SearchControl<'_, N>,
) -> Explored {
    explored.failures.truncate(1);
    if control.reason() == Some(Stop::Rerun) {
        let ended = control.restarted();
        ended.stop(Stop::Finding);
        control.adopt_reason(&ended);
    }
    explored
}
