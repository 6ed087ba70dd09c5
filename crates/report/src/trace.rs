//! An execution, told: what the text trace, the JSON and later the viewer all show.
//!
//! A [`Trace`] is data without a front end behind it: names, places and effects have been asked
//! for, once.

use preempt_explore::Replay;
use preempt_system::{
    Choice, Failure, FailureKind, Model, Narrate, Narration, Schedule, Stepper as _, ThreadId,
    ThreadSet,
};

use crate::origin::{Origin, origins};
use crate::schedule::ScheduleFile;

/// One step of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarratedStep {
    /// Who moves.
    pub thread: ThreadId,
    /// Which of several alternatives it takes, counted from 0; `None` if it has no choice.
    pub alternative: Option<u32>,
    /// What happens.
    pub narration: Narration,
    /// The thread that could have gone on but is interrupted by this step.
    pub preempts: Option<ThreadId>,
}

/// A thread at the end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who it is.
    pub thread: ThreadId,
    /// Where it waits and what for, or what it would do next.
    pub narration: Narration,
}

/// An execution from the initial state on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The names of all thread slots.
    pub names: Vec<String>,
    /// The steps in their order.
    pub steps: Vec<NarratedStep>,
    /// How many of the last steps the execution repeats forever; 0 if it is finite.
    pub cycle: usize,
    /// How it ends, if badly.
    pub failure: Option<Failure>,
    /// Who has to wait at the end.
    pub waiting: Vec<Waiting>,
    /// Who could go on, and what they would do next.
    pub next: Vec<Waiting>,
    /// Where the values come from that the failing step has read.
    pub origins: Vec<Origin>,
    /// The shared variables and objects at the end, with their values.
    pub variables: Vec<(String, String)>,
}

impl Trace {
    /// The execution of `schedule`, which `replay` has made on `model`, and which ends in
    /// `failure`.
    pub fn of<'m, M>(
        model: &'m M,
        schedule: &Schedule,
        replay: &Replay,
        failure: Option<&Failure>,
    ) -> Trace
    where
        M: Model<Stepper<'m>: Narrate>,
    {
        let mut stepper = model.stepper();
        let names = (0..model.shape().threads)
            .map(|slot| stepper.thread_name(ThreadId::new(slot)))
            .collect();
        let mut last = None;
        let mut steps = Vec::with_capacity(replay.steps());
        for (at, &choice) in schedule.steps().iter().enumerate() {
            stepper.step(&mut replay.state(at).to_vec(), choice);
            // Not what the step says: one that fails says nothing of its alternatives.
            let chosen = choice.alternative > 0 || stepper.alternatives() > 1;
            steps.push(NarratedStep {
                thread: choice.thread,
                alternative: chosen.then_some(choice.alternative),
                narration: stepper.narrate(replay.state(at), choice),
                preempts: last.filter(|_| replay.is_preemption(at)),
            });
            last = Some(choice.thread);
        }
        let end = replay.state(replay.steps());
        let waiting = replay.blocked(replay.steps()).iter();
        let waiting = waiting.filter_map(|thread| {
            stepper.waits_for(end, thread).map(|narration| Waiting { thread, narration })
        });
        let waiting = waiting.collect();
        let next = replay.enabled(replay.steps()).iter();
        let next = next
            .map(|thread| Waiting { thread, narration: stepper.narrate(end, Choice::of(thread)) })
            .collect();
        let origins =
            failure.map(|failure| origins(model, schedule, replay, failure)).unwrap_or_default();
        Trace {
            names,
            steps,
            cycle: schedule.cycle().len(),
            failure: failure.cloned(),
            waiting,
            next,
            origins,
            variables: stepper.variables(end),
        }
    }

    /// The schedule of the execution, with the names of its threads and what its contexts begin
    /// with.
    pub fn recorded(&self, schedule: &Schedule) -> ScheduleFile {
        let movers: ThreadSet = schedule.steps().iter().map(|step| step.thread).collect();
        // The cycle begins a context of its own, even if the thread stays the same.
        let is_first = |at: &usize| {
            *at == 0
                || self.cycle_start() == Some(*at)
                || self.steps[at - 1].thread != self.steps[*at].thread
        };
        let contexts = (0..self.steps.len()).filter(is_first);
        ScheduleFile {
            names: movers.iter().map(|thread| (thread, self.name(thread).to_owned())).collect(),
            begins: contexts.map(|at| (at, self.steps[at].narration.source.clone())).collect(),
            schedule: schedule.clone(),
            ..ScheduleFile::default()
        }
    }

    /// The name of a thread.
    pub fn name(&self, thread: ThreadId) -> &str {
        &self.names[thread.index()]
    }

    /// The number of the first step that repeats forever, from 0; `None` if the execution is finite.
    pub fn cycle_start(&self) -> Option<usize> {
        (self.cycle > 0).then(|| self.steps.len() - self.cycle)
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
