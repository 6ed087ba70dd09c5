//! Running one schedule: the states it passes, who could run in them, and how it ends.

use std::fmt;

use preempt_system::{
    Capacity, Choice, Failure, Model, Preemptions, Schedule, Step, Stepper, System, ThreadId,
    ThreadSet,
};

use crate::engine::cursor::Cursor;
pub use crate::engine::expand::{deadlock, livelock};
use crate::engine::race;

/// An execution of a schedule of n steps: n + 1 states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    words: usize,
    states: Vec<u64>,
    enabled: Vec<ThreadSet>,
    blocked: Vec<ThreadSet>,
    preemptive: Vec<bool>,
    failures: Vec<(usize, Failure)>,
}

impl Replay {
    /// Runs `schedule` on `model`. [`ReplayError::Full`] if the model's states are too small for
    /// it.
    pub fn of<M: Model>(model: &M, schedule: &Schedule) -> Result<Replay, ReplayError> {
        let shape = model.shape();
        let mut stepper = model.stepper();
        let mut state = vec![0; shape.words];
        let mut replay = Replay {
            words: shape.words,
            states: Vec::new(),
            enabled: Vec::new(),
            blocked: Vec::new(),
            preemptive: Vec::new(),
            failures: Vec::new(),
        };
        match stepper.initial(&mut state) {
            Step::Moved { .. } => {}
            Step::Failed(failure) => replay.failures.push((0, *failure)),
            Step::Full(capacity) => return Err(ReplayError::Full { step: 0, capacity }),
            other => unreachable!("a program begins, and does not find itself {other:?}"),
        }
        replay.arrive(&mut stepper, &state, shape.threads);
        let mut preemptions = Preemptions::default();
        for (step, &choice) in schedule.steps().iter().enumerate() {
            if choice.thread.index() >= shape.threads {
                return Err(ReplayError::NoThread { step, choice });
            }
            // The failure that is reported is that of the last step: what led to it is of interest.
            let is_last = step + 1 == schedule.steps().len();
            let taken = match is_last {
                true => stepper.step_with_effects(&mut state, choice),
                false => stepper.step(&mut state, choice),
            };
            match taken {
                Step::Moved { .. } => {}
                Step::Failed(failure) => replay.failures.push((step + 1, *failure)),
                Step::Absent => return Err(ReplayError::Absent { step, choice }),
                Step::Blocked { .. } => return Err(ReplayError::Blocked { step, choice }),
                Step::Ended | Step::Vacant => return Err(ReplayError::Ended { step, choice }),
                Step::Full(capacity) => return Err(ReplayError::Full { step, capacity }),
            }
            let enabled = replay.enabled[step];
            replay.preemptive.push(preemptions.would_preempt(choice.thread, enabled));
            preemptions.step(choice.thread, enabled);
            replay.arrive(&mut stepper, &state, shape.threads);
        }
        Ok(replay)
    }

    /// Looks at a state that the schedule has led to.
    fn arrive<S: Stepper>(&mut self, stepper: &mut S, state: &[u64], threads: usize) {
        let at = self.enabled.len();
        self.states.extend_from_slice(state);
        self.failures.extend(stepper.invariant(state).err().map(|failure| (at, *failure)));
        let (mut enabled, mut blocked, mut waits) = (ThreadSet::EMPTY, ThreadSet::EMPTY, false);
        for thread in (0..threads).map(ThreadId::new) {
            match stepper.step(&mut state.to_vec(), Choice::of(thread)) {
                Step::Moved { .. } | Step::Failed(_) | Step::Full(_) => enabled.insert(thread),
                Step::Blocked { resting } => {
                    blocked.insert(thread);
                    waits |= !resting;
                }
                Step::Absent | Step::Ended | Step::Vacant => {}
            }
        }
        if enabled.is_empty() && waits && !stepper.has_failed(state) {
            self.failures.push((at, deadlock()));
        }
        self.enabled.push(enabled);
        self.blocked.push(blocked);
    }

    /// The same, for a search that holds back threads that spin: a switch away from such a thread
    /// is no preemption.
    pub fn fair<M: Model>(mut self, model: &M, schedule: &Schedule) -> Result<Replay, Capacity> {
        let mut cursor = Cursor::new(model)?.fair();
        for (step, &choice) in schedule.steps().iter().enumerate() {
            self.preemptive[step] =
                cursor.preemptions().would_preempt(choice.thread, cursor.enabled());
            cursor.step(choice)?;
        }
        Ok(self)
    }

    /// The same with the preemptions of another replay, which counts them in its own way: of the
    /// same schedule, or of one that begins with it.
    pub fn preempting_as(self, other: &Replay) -> Replay {
        assert!(self.steps() <= other.steps(), "a replay has all steps of another one");
        Replay { preemptive: other.preemptive[..self.steps()].to_vec(), ..self }
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.preemptive.len()
    }

    /// The state after so many steps.
    pub fn state(&self, steps: usize) -> &[u64] {
        &self.states[steps * self.words..][..self.words]
    }

    /// The threads that could run after so many steps: those whose alternative 0 would move or
    /// fail.
    pub fn enabled(&self, steps: usize) -> ThreadSet {
        self.enabled[steps]
    }

    /// The threads that had to wait after so many steps.
    pub fn blocked(&self, steps: usize) -> ThreadSet {
        self.blocked[steps]
    }

    /// Whether the step after so many steps was a preemption.
    pub fn is_preemption(&self, steps: usize) -> bool {
        self.preemptive[steps]
    }

    /// The preemptions of the whole schedule.
    pub fn preemptions(&self) -> u32 {
        self.preemptive.iter().map(|&preempts| u32::from(preempts)).sum()
    }

    /// All failures that were passed, each with the number of steps after which it showed.
    pub fn failures(&self) -> &[(usize, Failure)] {
        &self.failures
    }

    /// The failure in which the schedule ends. A failed step comes before what is wrong with the
    /// state after it.
    pub fn failure(&self) -> Option<&Failure> {
        self.failures.iter().find(|(at, _)| *at == self.steps()).map(|(_, failure)| failure)
    }

    /// Whether `failure` is one of those that show at the end.
    pub fn fails_with(&self, failure: &Failure) -> bool {
        self.failures.iter().any(|(at, other)| *at == self.steps() && other == failure)
    }
}

/// How far a schedule could be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The first step that could not be taken, counted from 0.
    pub step: usize,
    /// The preemptions of the steps before it.
    pub preemptions: u32,
}

/// The failures that show at the end of a schedule, races and livelocks among them, and its
/// preemptions; if it cannot be executed, how far it could.
pub fn end<S: System>(
    mut cursor: Cursor<S>,
    schedule: &Schedule,
) -> Result<(Vec<Failure>, u32), Misfit> {
    let mut failed = cursor.system().failure().cloned().map(Box::new);
    for (step, &choice) in schedule.steps().iter().enumerate() {
        let misfit = Misfit { step, preemptions: cursor.preemptions().count() };
        if choice.thread.index() >= cursor.threads() || !cursor.can(choice) {
            return Err(misfit);
        }
        failed = cursor.step(choice).map_err(|_| misfit)?;
    }
    let mut failures: Vec<Failure> = failed.into_iter().map(|failure| *failure).collect();
    failures.extend(cursor.invariant().err().map(|failure| *failure));
    failures.extend(cursor.is_deadlock().then(deadlock));
    failures.extend(cursor.is_livelock().then(livelock));
    for race in race::all(&cursor, |location| cursor.system().location_kind(location)) {
        let failure = race::failure(&cursor, race);
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    Ok((failures, cursor.preemptions().count()))
}

/// Runs `schedule` on `model`, or on what it has to [grow](Model::grow) into. Also returns the
/// model that the states belong to.
pub fn replay<M: Model>(mut model: M, schedule: &Schedule) -> Result<(Replay, M), ReplayError> {
    loop {
        match Replay::of(&model, schedule) {
            Ok(replay) => return Ok((replay, model)),
            Err(ReplayError::Full { capacity, .. }) => model = model.grow(capacity),
            Err(error) => return Err(error),
        }
    }
}

/// Why a schedule is not one of this program. Steps are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The program has no such thread.
    NoThread {
        /// Where in the schedule.
        step: usize,
        /// What it asks for.
        choice: Choice,
    },
    /// The thread has fewer alternatives.
    Absent {
        /// Where in the schedule.
        step: usize,
        /// What it asks for.
        choice: Choice,
    },
    /// The thread has to wait.
    Blocked {
        /// Where in the schedule.
        step: usize,
        /// What it asks for.
        choice: Choice,
    },
    /// The thread was not started, has ended or has gone wrong.
    Ended {
        /// Where in the schedule.
        step: usize,
        /// What it asks for.
        choice: Choice,
    },
    /// The model's states are too small. Not an error of the schedule; [`replay`] never returns it.
    Full {
        /// Where in the schedule.
        step: usize,
        /// What is too small.
        capacity: Capacity,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, choice, why) = match *self {
            ReplayError::NoThread { step, choice } => {
                (step, choice, "the program has no such thread")
            }
            ReplayError::Absent { step, choice } => {
                (step, choice, "the thread has no such alternative there")
            }
            ReplayError::Blocked { step, choice } => (step, choice, "the thread has to wait there"),
            ReplayError::Ended { step, choice } => {
                (step, choice, "the thread has not started or has ended there")
            }
            ReplayError::Full { step, .. } => {
                return write!(f, "step {}: its result does not fit the model's states", step + 1);
            }
        };
        write!(
            f,
            "step {}, alternative {} of thread {}: {why}; the schedule is of another program or of another version of it",
            step + 1,
            choice.alternative,
            choice.thread.index()
        )
    }
}

impl std::error::Error for ReplayError {}
