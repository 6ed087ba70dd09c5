//! The schedules of failures, by marking backwards over the levels.
//!
//! No parent links are kept. A second search keeps the levels instead, as runs. From the level of a
//! failure on backwards, the states from which the failure can be reached in the remaining steps
//! are *marked*: those of level k with a step into a marked state of level k + 1. Forward from the
//! initial state, the schedule then always takes the first step that stays among marked states.
//!
//! **Why this is the schedule of [`retrace`](super::super::retrace).** There, one worker numbers
//! the states of a level in the order in which it finds them: by the number of the parent, then by
//! thread and alternative. By induction over levels, this is the order of the lexicographically
//! least shortest schedules to the states. `retrace` reports the failure with the fewest steps,
//! then with the least numbers on its last step, so the lexicographically least of the shortest
//! schedules to a failure. A marked state lies on such a schedule, and the forward pass takes the
//! least step at every state.
//!
//! **Memory.** If levels do not fit, only the last ones are kept. The states marked in the first of
//! these are then searched for like failures, by another search up to their level.

use std::collections::VecDeque;

use preempt_system::{Batch, Choice, Failure, Model, Schedule};

use super::{Failures, Phases, Progress, Runs, UNLIMITED, blocks, states};
use crate::engine::control::SearchControl;
use crate::engine::runs::{Run, RunError, RunReader, RunSpace, RunWriter};
use crate::plan::{Limits, ResolvedPlan};

/// A schedule for each failure in `wanted`, or only the best one unless the plan keeps going.
pub(super) fn schedules<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    budget: usize,
    wanted: &Failures,
) -> Vec<(Failure, Schedule)> {
    // A full disk must not hide a failure: without files everything is kept in memory.
    for directory in [control.spill, None] {
        let own = SearchControl::unobserved(Limits::default()).spilling(directory);
        let marking = Marking::<M, W> { shared: Phases::new(plan, model, &own, budget) };
        match marking.schedules(wanted) {
            Ok(found) => return found,
            Err(Interruption::Stopped) => {
                // Only a state that the first search did not expand can need more room. The whole
                // search starts again with larger states.
                let stop = own.reason().expect("a search that was stopped has a reason");
                control.stop(stop);
                return Vec::new();
            }
            Err(Interruption::Files) => {}
        }
    }
    panic!("runs in memory can be written and read")
}

/// Why there are no schedules.
enum Interruption {
    /// Files cannot be written or read.
    Files,
    /// A step needs larger states.
    Stopped,
}

impl From<RunError> for Interruption {
    fn from(_: RunError) -> Interruption {
        Interruption::Files
    }
}

/// The failures that a schedule may end with, after `steps` steps.
pub(in crate::order) struct Goal<'w> {
    pub(in crate::order) steps: usize,
    pub(in crate::order) failures: Vec<&'w Failure>,
}

/// The goals of the schedules for `wanted`: each failure, or only the nearest ones together.
pub(in crate::order) fn goals(wanted: &Failures, keep_going: bool) -> Vec<Goal<'_>> {
    if keep_going {
        return wanted
            .iter()
            .map(|(failure, steps)| Goal { steps: *steps as usize, failures: vec![failure] })
            .collect();
    }
    let steps = wanted.iter().map(|&(_, steps)| steps).min().expect("something failed");
    // Deadlocks of the last level are not among the failures unless it was expanded.
    let nearest = wanted.iter().filter(|(_, other)| *other == steps);
    let failures = nearest.map(|(failure, _)| failure).collect();
    vec![Goal { steps: steps as usize, failures }]
}

/// The schedules in the order of reports.
pub(in crate::order) fn in_order(mut found: Vec<(Failure, Schedule)>) -> Vec<(Failure, Schedule)> {
    found.sort_by(|(_, one), (_, other)| {
        (one.steps().len(), one).cmp(&(other.steps().len(), other))
    });
    found
}

impl Goal<'_> {
    fn is(&self, failure: &Failure) -> bool {
        self.failures.contains(&failure)
    }
}

/// Marks the states of one search.
pub(in crate::order) struct Marking<'a, M, const W: usize> {
    shared: Phases<'a, M>,
}

impl<'a, M: Model, const W: usize> Marking<'a, M, W> {
    /// For marking in memory.
    pub(in crate::order) fn new(
        plan: &'a ResolvedPlan,
        model: &'a M,
        control: &'a SearchControl<'a>,
    ) -> Self {
        Marking { shared: Phases::new(plan, model, control, UNLIMITED) }
    }

    /// The space of the runs.
    pub(in crate::order) fn space(&self) -> &RunSpace<'a> {
        &self.shared.space
    }
}

impl<M: Model, const W: usize> Marking<'_, M, W> {
    fn schedules(&self, wanted: &Failures) -> Result<Vec<(Failure, Schedule)>, Interruption> {
        let goals = goals(wanted, self.shared.plan.keep_going);
        let found = goals.iter().map(|goal| self.schedule(goal));
        Ok(in_order(found.collect::<Result<Vec<_>, _>>()?))
    }

    /// The least of the shortest schedules to the goal, and the failure at its end.
    fn schedule(&self, goal: &Goal<'_>) -> Result<(Failure, Schedule), Interruption> {
        if goal.steps == 0 {
            let failure = goal.failures[0].clone();
            return Ok((failure, Schedule::new(Vec::new())));
        }
        let mut marked: VecDeque<Runs> = VecDeque::new();
        let mut last = goal.steps;
        loop {
            let (first, levels) = self.levels(last)?;
            for (depth, level) in (first..last + 1).zip(&levels).rev() {
                let next = marked.front().map_or(&[][..], Vec::as_slice);
                let runs = self.mark(level, depth, goal, next)?;
                marked.push_front(runs);
            }
            match first.checked_sub(1) {
                Some(before) => last = before,
                None => break,
            }
        }
        Ok(self.follow(goal, marked.make_contiguous())?)
    }

    /// Searches up to the level `last`. Returns that level and as many of those before it as there
    /// is memory for, with the depth of the first.
    fn levels(&self, last: usize) -> Result<(usize, Vec<Runs>), Interruption> {
        let space = &self.shared.space;
        let (mut progress, mut levels) = (Progress::default(), VecDeque::new());
        self.shared.begin::<W>(&mut progress)?;
        while (progress.depth as usize) < last && !self.shared.control.stopped() {
            self.shared.explore_level::<W>(&mut progress, &mut |level| {
                levels.push_back(level);
                while space.has_no_room() && levels.len() > 1 {
                    levels.pop_front();
                }
            })?;
        }
        if self.shared.control.stopped() {
            return Err(Interruption::Stopped);
        }
        levels.push_back(progress.level);
        Ok((last + 1 - levels.len(), levels.into()))
    }

    /// The states of a level from which the goal can be reached; `next` are those of the next
    /// level.
    pub(in crate::order) fn mark(
        &self,
        level: &[Run],
        depth: usize,
        goal: &Goal<'_>,
        next: &[Run],
    ) -> Result<Runs, RunError> {
        let blocks = blocks(level);
        let workers = self.shared.workers(states(level));
        let parts = blocks.chunks(blocks.len().div_ceil(workers).max(1)).collect();
        let work = |blocks: &[(&Run, usize)]| {
            let mut run = RunWriter::<W>::new(&self.shared.space);
            let mut marker = Marker::<M, W>::new(&self.shared);
            let (mut raw, mut states) = (Vec::new(), Vec::new());
            for &(from, block) in blocks {
                from.read::<W>(block, &mut raw, &mut states)?;
                marker.mark(&states, depth, goal, next)?;
                let flagged = states.chunks_exact(self.shared.words()).zip(&marker.is_marked);
                for (state, _) in flagged.filter(|&(_, &is_marked)| is_marked) {
                    run.push(state)?;
                }
            }
            run.finish()
        };
        match blocks.is_empty() {
            true => Ok(Runs::new()),
            false => self.shared.in_parallel(parts, work),
        }
    }

    /// Goes forward from the initial state through marked states.
    pub(in crate::order) fn follow(
        &self,
        goal: &Goal<'_>,
        marked: &[Runs],
    ) -> Result<(Failure, Schedule), RunError> {
        let mut marker = Marker::<M, W>::new(&self.shared);
        let Ok(initial) = marker.expander.initial() else {
            panic!("the first search had room for the initial state");
        };
        let (mut state, mut schedule) = (initial.state, Vec::new());
        for depth in 0..goal.steps {
            let failed = marker.expand(&state, depth, goal);
            let marked = marker.marked_successors(&marked[depth + 1])?;
            let step = marked.into_iter().min_by_key(|&number| key(marker.batch.choice(number)));
            let is_first = |choice: Choice| {
                step.is_none_or(|number| key(choice) <= key(marker.batch.choice(number)))
            };
            if let Some((choice, failure)) = failed.filter(|&(choice, _)| is_first(choice)) {
                schedule.push(choice);
                return Ok((failure, Schedule::new(schedule)));
            }
            let number = step.expect("a marked state has a step towards the goal");
            schedule.push(marker.batch.choice(number));
            state = marker.batch.state(number).to_vec();
        }
        let failure = marker.failure_of(&state, goal).expect("the last marked state fails");
        Ok((failure, Schedule::new(schedule)))
    }
}

/// Steps in the order in which searches take them.
fn key(choice: Choice) -> (usize, u32) {
    (choice.thread.index(), choice.alternative)
}

/// Finds out which states of a block are marked.
struct Marker<'s, M: Model, const W: usize> {
    shared: &'s Phases<'s, M>,
    expander: crate::engine::expand::Expander<M::Stepper<'s>>,
    batch: Batch<W>,
    /// The successors in ascending order, by their numbers in the batch.
    order: Vec<usize>,
    /// The number of the state of the block that each successor comes from.
    parents: Vec<usize>,
    is_marked: Vec<bool>,
}

impl<'s, M: Model, const W: usize> Marker<'s, M, W> {
    fn new(shared: &'s Phases<'s, M>) -> Self {
        Marker {
            shared,
            expander: shared.expander(),
            batch: Batch::new(shared.words()),
            order: Vec::new(),
            parents: Vec::new(),
            is_marked: Vec::new(),
        }
    }

    /// Leaves in `is_marked` which of `states` are marked.
    fn mark(
        &mut self,
        states: &[u64],
        depth: usize,
        goal: &Goal<'_>,
        next: &[Run],
    ) -> Result<(), RunError> {
        let words = self.shared.words();
        self.is_marked.clear();
        self.parents.clear();
        self.batch.clear();
        for (number, state) in states.chunks_exact(words).enumerate() {
            let is_goal = match depth == goal.steps {
                true => self.failure_of(state, goal).is_some(),
                false => self.add_successors(state, depth, goal).is_some(),
            };
            self.is_marked.push(is_goal);
            self.parents.resize(self.batch.len(), number);
        }
        for number in self.marked_successors(next)? {
            self.is_marked[self.parents[number]] = true;
        }
        Ok(())
    }

    /// Replaces the batch by the successors of `state`. Returns the first step that reaches the
    /// goal by failing.
    fn expand(
        &mut self,
        state: &[u64],
        depth: usize,
        goal: &Goal<'_>,
    ) -> Option<(Choice, Failure)> {
        self.batch.clear();
        self.add_successors(state, depth, goal)
    }

    fn add_successors(
        &mut self,
        state: &[u64],
        depth: usize,
        goal: &Goal<'_>,
    ) -> Option<(Choice, Failure)> {
        let expanded = self.expander.expand(state, &mut self.batch);
        assert!(expanded.is_ok(), "the first search had room for these states");
        let steps = self.expander.failures.drain(..);
        let failed = steps.filter_map(|(choice, failure)| Some((choice?, failure)));
        let reaching = failed.filter(|(_, failure)| depth + 1 == goal.steps && goal.is(failure));
        reaching.min_by_key(|&(choice, _)| key(choice))
    }

    /// The failure of a state itself, if it is the goal: a violated invariant or a deadlock.
    fn failure_of(&mut self, state: &[u64], goal: &Goal<'_>) -> Option<Failure> {
        if let Err(failure) = self.expander.invariant(state)
            && goal.is(&failure)
        {
            return Some(*failure);
        }
        // Nothing of the last level is followed, so the batch is free.
        self.batch.clear();
        // The first search may not have expanded this state, so a successor may need more room. A
        // state with a successor is no deadlock.
        let expanded = self.expander.expand(state, &mut self.batch);
        self.batch.clear();
        let found = self.expander.failures.drain(..).find(|(choice, _)| choice.is_none());
        found
            .filter(|(_, failure)| expanded.is_ok() && goal.is(failure))
            .map(|(_, failure)| failure)
    }

    /// The numbers of the successors that are in `marked`.
    fn marked_successors(&mut self, marked: &[Run]) -> Result<Vec<usize>, RunError> {
        let mut found = Vec::new();
        if marked.is_empty() {
            return Ok(found);
        }
        let Marker { order, batch, .. } = self;
        order.clear();
        order.extend(0..batch.len());
        order.sort_unstable_by(|&one, &other| batch.state(one).cmp(batch.state(other)));
        for run in marked {
            let mut reader = RunReader::<W>::new(run);
            for &number in &*order {
                if reader.contains(batch.state(number))? {
                    found.push(number);
                }
            }
        }
        Ok(found)
    }
}
