//! The trace of an execution: what the text, the JSON and the HTML viewer show.
//!
//! A [`Trace`] is data. [`record`](crate::recorder::record) makes it in one pass over a schedule;
//! the formats only arrange it.

use preempt_system::{Choice, Failure, FailureKind, Narration, Nesting, Schedule, Stale, ThreadId};

use crate::number::counted;
use crate::origin::Origin;
use crate::schedule::{Ending, ScheduleFile};
use crate::value_history::ValueHistory;

/// One step of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarratedStep {
    /// The thread that moves.
    pub thread: ThreadId,
    /// The number of the thread in schedules: see [`Narrate::number`](preempt_system::Narrate).
    pub number: ThreadId,
    /// The alternative that it takes, from 0; `None` if it has only one.
    pub alternative: Option<u32>,
    /// The description.
    pub narration: Narration,
    /// The operation in schedule files: see [`StepNarration`](preempt_system::StepNarration).
    pub label: String,
    /// The relation of the step to the program's own code.
    pub nesting: Nesting,
    /// The thread that could have continued but is interrupted by this step.
    pub preempts: Option<ThreadId>,
    /// Under weak memory, the stores that it does not see.
    pub stale: Option<Stale>,
}

/// The position of a thread at the end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPosition {
    /// The thread.
    pub thread: ThreadId,
    /// The operation that it waits for or would perform next.
    pub narration: Narration,
}

/// An execution from the initial state on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The names of all thread slots.
    pub names: Vec<String>,
    /// The steps in their order.
    pub steps: Vec<NarratedStep>,
    /// The number of last steps that the execution repeats forever; 0 if it is finite.
    pub cycle: usize,
    /// For each step, the steps that happen immediately before it.
    pub arrows: Vec<Vec<usize>>,
    /// The values of all variables after each step.
    pub values: ValueHistory,
    /// The failure in which it ends.
    pub failure: Option<Failure>,
    /// The threads that are blocked at the end.
    pub waiting: Vec<ThreadPosition>,
    /// The threads that can move at the end.
    pub next: Vec<ThreadPosition>,
    /// The origins of the values that the failing step read.
    pub origins: Vec<Origin>,
    /// The shared variables and objects at the end, with their values.
    pub variables: Vec<(String, String)>,
}

impl Trace {
    /// The schedule of the steps, with thread numbers that other processes understand.
    pub fn schedule(&self) -> Schedule {
        let step = |step: &NarratedStep| Choice {
            thread: step.number,
            alternative: step.alternative.unwrap_or(0),
        };
        Schedule::new(self.steps.iter().map(step).collect()).with_cycle(self.cycle)
    }

    /// The contents of a schedule file for this execution. Model and settings are not known here.
    pub fn schedule_file(&self) -> ScheduleFile {
        let mut file = ScheduleFile {
            ending: Ending::of(self.failure.as_ref()),
            schedule: self.schedule(),
            ..ScheduleFile::default()
        };
        for step in &self.steps {
            if file.name(step.number).is_none() {
                file.names.push((step.number, self.name(step.thread).to_owned()));
            }
        }
        file.names.sort();
        // The cycle begins a context of its own, even if the thread stays the same.
        let is_first = |at: &usize| {
            *at == 0
                || self.cycle_start() == Some(*at)
                || self.steps[at - 1].thread != self.steps[*at].thread
        };
        let contexts = (0..self.steps.len()).filter(is_first);
        file.begins = contexts.map(|at| (at, self.steps[at].label.clone())).collect();
        file
    }

    /// The name of a thread.
    pub fn name(&self, thread: ThreadId) -> &str {
        &self.names[thread.index()]
    }

    /// The number of the first step that repeats forever, from 0; `None` if the execution is
    /// finite.
    pub fn cycle_start(&self) -> Option<usize> {
        (self.cycle > 0).then(|| self.steps.len() - self.cycle)
    }

    /// The number of steps that preempt a thread.
    pub fn preemptions(&self) -> u32 {
        self.steps.iter().map(|step| u32::from(step.preempts.is_some())).sum()
    }

    /// The stale accesses of weak memory in words: "1 stale read", "2 stale reads and 1 stale
    /// write". A read-modify-write that is stale counts as a read.
    pub fn stale_words(&self) -> String {
        let stale = || self.steps.iter().filter_map(|step| step.stale);
        let reads = stale().filter(|stale| matches!(stale, Stale::Read { .. })).count() as u64;
        let writes = stale().count() as u64 - reads;
        match (reads, writes) {
            (_, 0) => counted(reads, "stale read"),
            (0, _) => counted(writes, "stale write"),
            _ => format!("{} and {}", counted(reads, "stale read"), counted(writes, "stale write")),
        }
    }

    /// Whether it ends in a deadlock.
    pub fn is_deadlock(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Deadlock)
    }
}
