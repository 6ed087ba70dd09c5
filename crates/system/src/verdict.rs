//! The results of a check.

use std::fmt;
use std::sync::Arc;

use crate::schedule::Schedule;

/// A position in the source text of the program under test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The file, as the user named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The kinds of errors that a check can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// An assertion failed.
    Assertion,
    /// An invariant does not hold in a reachable state.
    Invariant,
    /// A runtime error: division by zero, an index out of range, a null pointer, a misused lock.
    Runtime,
    /// No thread can step, and at least one of them may not wait forever where it is.
    Deadlock,
    /// Two threads access a plain variable, at least one of them writes, and no synchronisation
    /// orders the accesses.
    Race,
    /// The program runs forever under fair scheduling without progress.
    Livelock,
    /// A thread panicked and no other thread handled it.
    Panic,
    /// An allocation is not freed at the end.
    Leak,
    /// The same schedule leads to different executions.
    Nondeterminism,
    /// An execution reached the step limit without ending. Nothing is known about its remaining
    /// steps.
    StepLimit,
    /// No serial execution explains the results of concurrent operations.
    Linearizability,
}

impl FailureKind {
    /// The name of the kind in reports and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            FailureKind::Assertion => "assertion",
            FailureKind::Invariant => "invariant",
            FailureKind::Runtime => "runtime error",
            FailureKind::Deadlock => "deadlock",
            FailureKind::Race => "race",
            FailureKind::Livelock => "livelock",
            FailureKind::Panic => "panic",
            FailureKind::Leak => "leak",
            FailureKind::Nondeterminism => "nondeterminism",
            FailureKind::StepLimit => "step limit",
            FailureKind::Linearizability => "not linearizable",
        }
    }
}

/// An error of the program under test, in one state or step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Failure {
    /// The kind of error.
    pub kind: FailureKind,
    /// One sentence for the user.
    pub message: String,
    /// The source position, if there is one.
    pub site: Option<Site>,
}

impl Failure {
    /// Whether two failures are the same error: the same kind at the same source position or,
    /// without a position, with the same message. Messages are not compared if there is a position,
    /// because they may contain values that depend on the schedule.
    pub fn is_same_error(&self, other: &Failure) -> bool {
        (self.kind, &self.site) == (other.kind, &other.site)
            && (self.site.is_some() || self.message == other.message)
    }
}

/// A failure together with a schedule that reproduces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The error that the schedule leads to.
    pub failure: Failure,
    /// The steps from the initial state to the failure; the last one fails, or leads to the failing
    /// state.
    pub schedule: Schedule,
    /// The number of steps that preempt a thread which could have continued.
    pub preemptions: u32,
    /// The result of the search for a simpler schedule, if there was one.
    pub shrunk: Option<Shrunk>,
}

/// The result of the search for a simpler schedule of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shrunk {
    /// The number of steps of the original schedule.
    pub steps: usize,
    /// The number of preemptions of the original schedule.
    pub preemptions: u32,
    /// The number of executions that the search took.
    pub executions: u64,
    /// Whether the new schedule is known to have the fewest preemptions among all that show the
    /// same error.
    pub fewest: bool,
}

/// The result of a check in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// No error was found, and the requested search is complete.
    Ok,
    /// An assertion, an invariant or a runtime check failed, or operations are not linearizable.
    Violation,
    /// A deadlock was found.
    Deadlock,
    /// A data race was found.
    Race,
    /// A livelock was found.
    Livelock,
    /// A panic was found.
    Panic,
    /// A leak was found.
    Leak,
    /// The program under test is not deterministic, so the check cannot conclude anything else.
    Nondeterministic,
    /// No error was found, but the requested search is not complete.
    Incomplete,
}

impl Verdict {
    /// The name of the verdict in reports and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Violation => "violation",
            Verdict::Deadlock => "deadlock",
            Verdict::Race => "race",
            Verdict::Livelock => "livelock",
            Verdict::Panic => "panic",
            Verdict::Leak => "leak",
            Verdict::Nondeterministic => "nondeterministic",
            Verdict::Incomplete => "incomplete",
        }
    }
}

impl From<FailureKind> for Verdict {
    fn from(kind: FailureKind) -> Verdict {
        match kind {
            FailureKind::Deadlock => Verdict::Deadlock,
            FailureKind::Race => Verdict::Race,
            FailureKind::Livelock => Verdict::Livelock,
            FailureKind::Panic => Verdict::Panic,
            FailureKind::Leak => Verdict::Leak,
            FailureKind::Nondeterminism => Verdict::Nondeterministic,
            FailureKind::StepLimit => Verdict::Incomplete,
            FailureKind::Assertion
            | FailureKind::Invariant
            | FailureKind::Runtime
            | FailureKind::Linearizability => Verdict::Violation,
        }
    }
}
