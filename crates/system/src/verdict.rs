//! What a check found, or why it could not say.

use std::fmt;
use std::sync::Arc;

use crate::schedule::Schedule;

/// A place in the text of the program under test.
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

/// The kinds of errors that a program under test can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// An assertion that does not hold.
    Assertion,
    /// An invariant that does not hold in a reachable state.
    Invariant,
    /// The program itself went wrong: division by zero, an index out of range, a null pointer, a lock misused.
    Runtime,
    /// No thread can move, and not all of them may rest where they are.
    Deadlock,
    /// Two threads access a plain variable, one of them writes, and no synchronisation orders them.
    Race,
    /// The program goes on for ever under fair scheduling, and gets nowhere.
    Livelock,
    /// A thread panicked, and nobody took notice.
    Panic,
    /// What was allocated is not freed at the end.
    Leak,
    /// The same schedule does not lead to the same execution.
    Nondeterminism,
    /// An execution has as many steps as one may have, and has not ended: nothing is known about the rest.
    StepLimit,
}

impl FailureKind {
    /// The word for it in reports and in JSON.
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
        }
    }
}

/// An error of the program under test in one state or step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Failure {
    /// What kind of error it is.
    pub kind: FailureKind,
    /// One sentence for a person.
    pub message: String,
    /// Where in the program, if one place can be named.
    pub site: Option<Site>,
}

impl Failure {
    /// Whether two failures are one error: of the same kind, at the same place; with the same words where no place is known. Words
    /// that stand beside a place may have values in them that depend on the schedule.
    pub fn is_same_error(&self, other: &Failure) -> bool {
        (self.kind, &self.site) == (other.kind, &other.site) && (self.site.is_some() || self.message == other.message)
    }
}

/// A failure together with a schedule that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The failure.
    pub failure: Failure,
    /// The steps from the initial state to the failure; the last one fails, or leads to the failing state.
    pub schedule: Schedule,
    /// How many of the steps preempt a thread that could have gone on.
    pub preemptions: u32,
    /// What a look for a simpler schedule has reached, if there was one.
    pub shrunk: Option<Shrunk>,
}

/// What a look for a simpler schedule of a finding has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shrunk {
    /// The steps of the schedule that was found first.
    pub steps: usize,
    /// Its preemptions.
    pub preemptions: u32,
    /// How many executions the look took.
    pub executions: u64,
    /// Whether it is known that no schedule with fewer preemptions shows the same error.
    pub fewest: bool,
}

/// The end of a check in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing was found and all that was asked is covered.
    Ok,
    /// An assertion, an invariant or the program itself failed.
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
    /// The program under test is not deterministic: nothing else can be said.
    Nondeterministic,
    /// Nothing was found, and not all that was asked is covered.
    Incomplete,
}

impl Verdict {
    /// The word for it in reports and in JSON.
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
            FailureKind::Assertion | FailureKind::Invariant | FailureKind::Runtime => Verdict::Violation,
        }
    }
}
