//! The schedules of failures, by marking backwards over levels in several processes.
//!
//! The processes search again and keep their parts of the levels as sorted runs. The states from
//! which a failure can be reached are marked level by level, as in
//! [`sorted::marking`](crate::order::sorted::marking), which argues why the schedule is the one
//! that a single worker reports. Each process marks its own states; the marked states of the next
//! level are sent to all processes, since a successor may belong to any of them. Marked states are
//! few compared to the states of a level: they lie on shortest paths to the failure.
//!
//! At the end every process knows all marked states, so each follows the schedule by itself.
//!
//! **Cost.** A second search, and one more expansion of the states of all levels. Memory for the
//! levels in addition to the store: one to two bytes per state of one word.

use std::collections::VecDeque;

use preempt_system::{Failure, Model, Schedule};

use super::{Cluster, Failures};
use crate::codec::{Reader, Writer};
use crate::engine::control::SearchControl;
use crate::engine::exchange::Lost;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::runs::{Run, RunError, RunSpace, RunWriter, Union};
use crate::order::frontier::Frontier;
use crate::order::sorted::Runs;
use crate::order::sorted::marking::{Goal, Marking, goals, in_order};
use crate::plan::Limits;

/// A schedule for each failure in `wanted`, or only the best one unless the plan keeps going. No
/// schedules, and a reason in `control`, if the search has to start again with larger states.
pub(super) fn schedules<M: Model, const W: usize>(
    cluster: &Cluster<'_, M>,
    control: &SearchControl,
    wanted: &Failures,
) -> Result<Vec<(Failure, Schedule)>, Lost> {
    let goals = goals(wanted, cluster.plan.keep_going);
    let last = goals.iter().map(|goal| goal.steps).max().expect("something failed");
    let own = SearchControl::unobserved(Limits::default()).spilling(control.spill);
    let marking = Marking::<M, W>::new(cluster.plan, cluster.model, &own);
    let mut levels: Vec<Runs> = Vec::new();
    let (mut explored, mut failures) = (Explored::default(), Failures::default());
    if last > 0 {
        let goal = super::Goal::Levels { last: last as u32, kept: &mut levels };
        cluster.levels::<W>(&own, &mut explored, &mut failures, goal)?;
    }
    if let Some(stop) = own.reason() {
        // Without limits, only a state that the first search did not expand can need more room, or
        // a disk can be full.
        control.agree(stop);
        return Ok(Vec::new());
    }
    levels.resize_with(last + 1, Runs::new);
    let found = goals.iter().map(|goal| schedule(cluster, &marking, &levels, goal));
    let found = found.collect::<Result<Vec<_>, Interruption>>();
    let found = found.map_err(|interruption| match interruption {
        Interruption::Lost => Lost,
        Interruption::Files(error) => {
            // The others end when this process does.
            control.agree(Stop::Limit(error.into()));
            Lost
        }
    })?;
    Ok(in_order(found))
}

/// Why there is no schedule.
enum Interruption {
    /// Another process is lost.
    Lost,
    /// A level cannot be read from its file.
    Files(RunError),
}

impl From<Lost> for Interruption {
    fn from(_: Lost) -> Interruption {
        Interruption::Lost
    }
}

impl From<RunError> for Interruption {
    fn from(error: RunError) -> Interruption {
        Interruption::Files(error)
    }
}

/// The states of a level as a run in memory.
pub(super) fn level_of<const W: usize>(frontier: &Frontier<'_>, words: usize) -> Runs {
    let space = RunSpace::new(words, usize::MAX, None);
    in_memory(sorted_run::<W>(&space, words, &frontier.states()))
}

/// The least of the shortest schedules to the goal, and the failure at its end.
fn schedule<M: Model, const W: usize>(
    cluster: &Cluster<'_, M>,
    marking: &Marking<'_, M, W>,
    levels: &[Runs],
    goal: &Goal<'_>,
) -> Result<(Failure, Schedule), Interruption> {
    if goal.steps == 0 {
        return Ok((goal.failures[0].clone(), Schedule::new(Vec::new())));
    }
    let mut marked: VecDeque<Runs> = VecDeque::new();
    for depth in (0..=goal.steps).rev() {
        let next = marked.front().map_or(&[][..], Vec::as_slice);
        let mine = marking.mark(&levels[depth], depth, goal, next)?;
        marked.push_front(share(cluster, marking, &mine)?);
    }
    Ok(in_memory(marking.follow(goal, marked.make_contiguous())))
}

/// The union of the sets of all processes, of which `mine` is one.
fn share<M: Model, const W: usize>(
    cluster: &Cluster<'_, M>,
    marking: &Marking<'_, M, W>,
    mine: &[Run],
) -> Result<Runs, Lost> {
    let words = cluster.model.shape().words;
    let mut states = Vec::new();
    let mut union = in_memory(Union::<W>::new(mine, None, None));
    while in_memory(union.take(1 << 12, &mut states)) {}
    let all = cluster.exchange.gather(Writer::collect(|to| to.words(&states)))?;
    states.clear();
    for set in all {
        let mut from = Reader::of(set);
        let set = from.words().map_err(|_| Lost)?;
        if !set.len().is_multiple_of(words) || !from.is_at_its_end() {
            return Err(Lost);
        }
        states.extend(set);
    }
    Ok(in_memory(sorted_run::<W>(marking.space(), words, &states)))
}

/// A run of `states`, which need be neither sorted nor distinct.
fn sorted_run<const W: usize>(
    space: &RunSpace<'_>,
    words: usize,
    states: &[u64],
) -> Result<Runs, RunError> {
    let mut order: Vec<&[u64]> = states.chunks_exact(words).collect();
    order.sort_unstable();
    order.dedup();
    if order.is_empty() {
        return Ok(Runs::new());
    }
    let mut run = RunWriter::<W>::new(space);
    order.into_iter().try_for_each(|state| run.push(state))?;
    Ok(vec![run.finish()?])
}

/// The result of an operation on runs in memory.
fn in_memory<T>(result: Result<T, RunError>) -> T {
    match result {
        Ok(value) => value,
        Err(_) => panic!("runs in memory can be written and read"),
    }
}
