//! Descriptions of an execution for reports.
//!
//! A front end that implements [`Narrate`] for its [`System`] gets every report: the text trace,
//! JSON, the HTML page, schedule files and tokens. A recorder moves the execution along a schedule
//! and asks it, step by step, what it is doing. The execution answers about its current state, so
//! it may describe itself from packed states, from a log, or from a running process.

use crate::footprint::Location;
use crate::program::System;
use crate::schedule::Choice;
use crate::thread::ThreadId;
use crate::verdict::{Failure, FailureKind, Site};

/// A system that can describe its steps and its state.
pub trait Narrate: System {
    /// The name of a thread in reports.
    fn thread_name(&self, thread: ThreadId) -> String;

    /// The number of `thread` in schedules that leave the process. It must not depend on other
    /// executions: a system that assigns slots in the order in which a search meets threads counts
    /// the threads of this execution instead. The default is the slot.
    fn number(&self, thread: ThreadId) -> ThreadId {
        thread
    }

    /// The inverse of [`Narrate::number`]; `None` if the execution has no such thread so far.
    fn numbered(&self, number: ThreadId) -> Option<ThreadId> {
        (number.index() < self.threads()).then_some(number)
    }

    /// Announces that `choice` is the next step and that [`Narrate::narrate`] follows it, so that
    /// the system can keep what it needs to describe the step.
    fn prepare(&mut self, _choice: Choice) {}

    /// Describes the step `choice`, which was just taken.
    fn narrate(&mut self, choice: Choice) -> StepNarration;

    /// Describes what the thread of `choice` would do next: the step `choice` if it can take it,
    /// and what it waits for if it is blocked.
    fn narrate_next(&mut self, choice: Choice) -> Narration;

    /// The variables and objects with their values in the current state, in a fixed order. After a
    /// step that failed, these are the values at the failure.
    fn values(&mut self) -> Vec<VariableValue>;

    /// Which reads explain `failure`, with which the execution ends. By default, a failed assertion
    /// and a runtime error are explained by what the failing step read, and no other failure is.
    fn explanation(&mut self, failure: &Failure) -> Explanation {
        match failure.kind {
            FailureKind::Assertion | FailureKind::Runtime => Explanation::LastStep,
            _ => Explanation::Nothing,
        }
    }
}

/// The description of one step, as a reader of the program sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narration {
    /// The source position at which the step begins.
    pub site: Option<Site>,
    /// The source text there, on one line.
    pub source: String,
    /// The values read and written, in the program's notation: `x = 3`, `m: free → phil(1)`.
    pub effects: Vec<String>,
}

/// The description of a step that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepNarration {
    /// The description for a reader.
    pub narration: Narration,
    /// Identifies the operation in schedule files. It must be the same in every replay of the same
    /// program, even where the source text cannot be read.
    pub label: String,
    /// The shared variables and objects that the step used.
    pub uses: Vec<Use>,
    /// Under weak memory, the location that the step has read and the step, from 0, that stored the
    /// value; `None` for the initial value. Without it, a read sees the last write.
    pub read_from: Option<(Location, Option<usize>)>,
    /// Under weak memory, the stores that a stale step does not see.
    pub stale: Option<Stale>,
    /// The relation of the step to the program's own code.
    pub nesting: Nesting,
}

/// An access that is stale under weak memory. Steps are counted from 0; `None` is an initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It reads an older store than the newest one.
    Read {
        /// The step of the store that it reads.
        store: Option<usize>,
        /// The step of the newest store.
        newest: Option<usize>,
    },
    /// It stores before an existing store in modification order.
    Write {
        /// The step of the next store in modification order.
        next: Option<usize>,
    },
}

/// The relation of a step to the program's own code, as opposed to that of libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nesting {
    /// It is a part of it.
    #[default]
    Own,
    /// It happens in a library that is called by a statement of the program.
    Called {
        /// The position of the statement.
        site: Site,
        /// The statement, on one line.
        source: String,
    },
    /// It happens where no code of the program is active: at the start or the end of a thread, or
    /// in a test harness.
    Apart,
}

/// The use of a shared variable or object by a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The location, which connects a read with the writes before it.
    pub location: Location,
    /// The name of the variable or object.
    pub name: String,
    /// The value that was read, if it is known.
    pub value: Option<String>,
    /// Whether the thread learned something from it.
    pub reads: bool,
    /// Whether other threads may learn something new from it.
    pub writes: bool,
}

/// A variable or an object and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableValue {
    /// The thread whose local variable it is; `None` if it is shared.
    pub owner: Option<ThreadId>,
    /// The name of the variable or object.
    pub name: String,
    /// The value, in the program's notation.
    pub value: String,
}

/// The reads that explain a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// No reads.
    Nothing,
    /// The reads of the last step, or of the last step of the same thread that read something.
    LastStep,
    /// The reads of the last step that read something among the first `steps` steps of `thread`.
    FirstSteps {
        /// The thread.
        thread: ThreadId,
        /// The number of its steps before the failure.
        steps: usize,
    },
    /// These reads, made after the last step. An invariant makes such reads.
    State(Vec<Use>),
}
