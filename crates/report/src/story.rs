//! An execution, told: what the text trace, the JSON and later the viewer all show.
//!
//! A [`Story`] is data without a front end behind it: names, places and effects have been asked for, once.

use preempt_explore::Replay;
use preempt_system::{Failure, FailureKind, Model, Narrate, Narration, Schedule, Step, Stepper as _, ThreadId};

/// One step of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Who moves.
    pub thread: ThreadId,
    /// Which of several alternatives it takes, counted from 0; `None` if it has no choice.
    pub alternative: Option<u32>,
    /// What happens.
    pub narration: Narration,
    /// The thread that could have gone on but is interrupted by this step.
    pub preempts: Option<ThreadId>,
}

/// A thread that has to wait at the end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who waits.
    pub thread: ThreadId,
    /// Where, and what for.
    pub narration: Narration,
}

/// An execution from the initial state on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The names of all thread slots.
    pub names: Vec<String>,
    /// The steps in their order.
    pub steps: Vec<Told>,
    /// How it ends, if badly.
    pub failure: Option<Failure>,
    /// Who has to wait at the end.
    pub waiting: Vec<Waiting>,
    /// The shared variables and objects at the end, with their values.
    pub variables: Vec<(String, String)>,
}

impl Story {
    /// The execution of `schedule`, which `replay` has made on `model`, and which ends in `failure`.
    pub fn of<'m, M>(model: &'m M, schedule: &Schedule, replay: &Replay, failure: Option<&Failure>) -> Story
    where
        M: Model<Stepper<'m>: Narrate>,
    {
        let mut stepper = model.stepper();
        let names = (0..model.shape().threads).map(|slot| stepper.thread_name(ThreadId::new(slot))).collect();
        let mut last = None;
        let mut steps = Vec::with_capacity(replay.steps());
        for (at, &choice) in schedule.steps().iter().enumerate() {
            let step = stepper.step(&mut replay.state(at).to_vec(), choice);
            let chosen = choice.alternative > 0 || matches!(step, Step::Moved { alternatives } if alternatives > 1);
            steps.push(Told {
                thread: choice.thread,
                alternative: chosen.then_some(choice.alternative),
                narration: stepper.narrate(replay.state(at), choice),
                preempts: last.filter(|_| replay.is_preemption(at)),
            });
            last = Some(choice.thread);
        }
        let end = replay.state(replay.steps());
        let waiting = replay.blocked(replay.steps()).iter();
        let waiting =
            waiting.filter_map(|thread| stepper.waits_for(end, thread).map(|narration| Waiting { thread, narration }));
        let waiting = waiting.collect();
        Story { names, steps, failure: failure.cloned(), waiting, variables: stepper.variables(end) }
    }

    /// The name of a thread.
    pub fn name(&self, thread: ThreadId) -> &str {
        &self.names[thread.index()]
    }

    /// How many steps preempt a thread.
    pub fn preemptions(&self) -> usize {
        self.steps.iter().filter(|step| step.preempts.is_some()).count()
    }

    /// Whether it ends in a deadlock.
    pub fn is_deadlock(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Deadlock)
    }
}
