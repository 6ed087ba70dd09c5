//! Executing one schedule: whether it can be executed, and which failures show at its end.

use preempt_system::{
    Choice, Failure, FailureKind, Finding, Schedule, Status, System, ThreadId, ThreadSet,
};

use crate::engine::cursor::Cursor;
pub use crate::engine::expand::{deadlock, livelock};
use crate::engine::race;

/// The end of a schedule that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The failures that show there, races and livelocks included. A failed step comes first.
    pub failures: Vec<Failure>,
    /// The preemptions of the schedule.
    pub preemptions: u32,
    /// The cost of the schedule in the unit that the cursor [counts](Cursor::counting).
    pub(crate) cost: u32,
    /// If the execution is a livelock, how many of its last steps it can repeat forever; otherwise
    /// 0.
    pub cycle: usize,
}

impl End {
    /// The finding that `schedule`, which was executed, ends in `failure`.
    pub(crate) fn finding(&self, failure: Failure, schedule: Schedule) -> Finding {
        let cycle = if failure.kind == FailureKind::Livelock { self.cycle } else { 0 };
        let schedule = schedule.with_cycle(cycle);
        Finding { failure, schedule, preemptions: self.preemptions, shrunk: None }
    }
}

/// A schedule that could not be executed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The first step that could not be taken, counted from 0.
    pub step: usize,
    /// The preemptions of the steps before it.
    pub preemptions: u32,
}

/// Executes `schedule` from the beginning; `cursor` is there.
pub fn end<S: System>(mut cursor: Cursor<S>, schedule: &Schedule) -> Result<End, Misfit> {
    let mut failed = cursor.system().failure().cloned().map(Box::new);
    for (step, &choice) in schedule.steps().iter().enumerate() {
        let misfit = Misfit { step, preemptions: cursor.preemptions().count() };
        if choice.thread.index() >= cursor.threads() || !cursor.can(choice) {
            return Err(misfit);
        }
        failed = cursor.step(choice).map_err(|_| misfit)?;
    }
    let cycle = cycle(&cursor);
    let failures = failures_at_end(&mut cursor, failed);
    let (preemptions, cost) = (cursor.preemptions().count(), cursor.cost());
    Ok(End { failures, preemptions, cost, cycle })
}

/// The failures at the end of the execution of `cursor`; `failed` is that of its last step.
pub fn failures_at_end<S: System>(
    cursor: &mut Cursor<S>,
    failed: Option<Box<Failure>>,
) -> Vec<Failure> {
    let mut failures: Vec<Failure> = failed.into_iter().map(|failure| *failure).collect();
    failures.extend(cursor.invariant().err().map(|failure| *failure));
    failures.extend(cursor.stuck());
    for race in race::all(cursor, |location| cursor.system().location_kind(location)) {
        let failure = race::failure(cursor, race);
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    failures
}

/// The number of last steps that a livelock can repeat forever.
///
/// The steps since an earlier point form a cycle if the system is in the same state there and here:
/// then they can be taken again, and lead here again. The cycle is fair, and so a livelock, if
/// every thread that could move here moves in it. The shortest such cycle is returned; 0 if the
/// execution is not a livelock, or if the system cannot compare its states.
pub fn cycle<S: System>(cursor: &Cursor<S>) -> usize {
    if !cursor.is_livelock() {
        return 0;
    }
    let threads = (0..cursor.threads()).map(ThreadId::new);
    let spinning: ThreadSet =
        threads.filter(|&thread| cursor.pending(thread).status == Status::Spinning).collect();
    let mut moved = ThreadSet::EMPTY;
    let start = (0..cursor.len()).rev().find(|&start| {
        let Choice { thread, .. } = cursor.choice(start);
        moved.insert(thread);
        spinning.iter().all(|thread| moved.contains(thread)) && cursor.system().returns_to(start)
    });
    start.map_or(0, |start| cursor.len() - start)
}
