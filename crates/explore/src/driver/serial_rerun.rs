//! Repeats a search of several workers with one worker, where their outcome would differ.
//!
//! Which of several workers reaches a state or a failure first depends on their speed. Where this
//! would show in the outcome, one worker searches again, in its own order:
//!
//! - A search that ends at its first finding: everything again, up to the finding that one worker
//!   meets first.
//! - Threads that spin in a search that compares happens-before graphs: everything again. This
//!   shows early, if at all.
//! - Schedules of findings where only the first way to a state or a graph is taken: the counts are
//!   right, the schedules are looked for again. Level by level each failure has its best schedule
//!   in the first level that shows it, so that the last such level is the last one that is
//!   searched.
//!
//! **Cost.** At most the time of a search by one worker, after that of several. A search that finds
//! nothing costs nothing more. The outcome says how long it took, and [`Plan::first`] asks for the
//! finding of the several workers instead.
//!
//! If a limit ends the second search first, what the first one has found is reported: a finding is
//! never withheld.

use std::time::Instant;

use preempt_system::Program;

use super::executions::attempt;
use crate::codec::save_fields;
use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::plan::strategy::{ExecutionSearch, Strategy};
use crate::plan::{Cache, ResolvedPlan};

/// What several workers have seen.
struct First {
    explored: Explored,
    /// The most preemptions that the schedule of a failure has.
    most: Option<u32>,
    /// Whether one has to search all of it again.
    alone: bool,
}

save_fields!(First { explored, most, alone });

/// Where in checkpoints it stands what several workers have seen, once one searches again.
fn frame<N: Copy>(control: &SearchControl<'_, N>, first: Option<&First>) {
    if let Some(pauses) = control.pauses() {
        pauses.frame(2, |to| {
            to.put(&first.is_some());
            first.into_iter().for_each(|first| to.put(first));
        });
    }
}

/// Lets several workers search, and one again after them as far as it is necessary.
pub(super) fn explore<P: Program>(
    plan: &ResolvedPlan,
    program: &P,
    control: &SearchControl<'_, P::Need>,
) -> Explored {
    let first = control.resume_part(|from| from.get::<Option<First>>()).flatten();
    frame(control, first.as_ref());
    if first.as_ref().is_some_and(|first| first.alone) {
        control.stop(Stop::Rerun);
    }
    let first = first.unwrap_or_else(|| {
        let (explored, most) = attempt(plan, program, control);
        First { explored, most, alone: control.reason() == Some(Stop::Rerun) }
    });
    if plan.first && !first.explored.failures.is_empty() {
        return first_found(first.explored, control);
    }
    let again = match (control.reason(), first.most, plan.strategy.executions()) {
        (Some(Stop::Rerun), ..) | (None, Some(_), Some(ExecutionSearch::DfsHb { .. })) => {
            plan.strategy
        }
        (
            None,
            Some(most),
            Some(ExecutionSearch::Icb { cache: cache @ (Cache::State | Cache::Hb), .. }),
        ) => {
            // Only schedules are looked for, and none is past this bound.
            let search = ExecutionSearch::Icb { cache, bound: Some(most), past_bound: None };
            Strategy::Executions { search, points: plan.strategy.points() }
        }
        _ => return first.explored,
    };
    frame(control, Some(&first));
    let First { mut explored, alone, .. } = first;
    let (anew, started) = (control.anew(), Instant::now());
    let alone_plan = ResolvedPlan { jobs: 1, strategy: again, ..*plan };
    let (mut again, _) = attempt(&alone_plan, program, &anew);
    let rerun = Some(started.elapsed());
    if alone {
        if again.failures.is_empty() {
            again.failures = explored.failures;
        }
        control.follow(&anew);
        return Explored { rerun, ..again };
    }
    if anew.reason().is_none() {
        explored.failures = again.failures;
    }
    Explored { rerun, ..explored }
}

/// What several workers have seen up to the finding at which they stopped. Others may have found
/// something else before they noticed.
fn first_found<N: Copy + PartialEq>(
    mut explored: Explored,
    control: &SearchControl<'_, N>,
) -> Explored {
    explored.failures.truncate(1);
    if control.reason() == Some(Stop::Rerun) {
        let ended = control.anew();
        ended.stop(Stop::Finding);
        control.follow(&ended);
    }
    explored
}
