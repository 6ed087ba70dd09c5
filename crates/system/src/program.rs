//! The interface of everything that can be executed: programs that can be started, stepped and
//! rewound.
//!
//! A [`System`] is a [`Program`] in the middle of an execution. Some systems copy their states (a
//! [`Model`](crate::Model)); real code can only be started again and brought back to the same
//! point. Strategies do not see the difference.
//!
//! Reductions also ask about executions that never happened: parts of the current one, in another
//! order. The state of such a part ([`System::State`]) only has to say which threads could step
//! there and what they would touch. That follows from the objects that the steps use, so a program
//! whose memory cannot be copied can answer without being run.

use std::fmt::Debug;

use crate::fingerprint::Fingerprint;
use crate::footprint::{Footprint, Location};
use crate::memory::GraphStep;
use crate::model::{LocationKind, NotStraight};
use crate::pending::Pending;
use crate::schedule::Choice;
use crate::thread::{ThreadId, ThreadSet};
use crate::verdict::{Failure, Site};

/// A program whose executions can be explored: it can be started, and started again.
pub trait Program: Sync + Sized {
    /// A need that a run reports before the program can be searched completely, for example larger
    /// states or more thread slots. A search starts small, and starts over with each need that a
    /// run reports.
    type Need: Copy + PartialEq + Debug + Send + Sync;

    /// An execution of this program.
    type System<'p>: System<Need = Self::Need>
    where
        Self: 'p;

    /// Begins an execution. Every worker of a search has a system of its own.
    fn start(&self) -> Result<Self::System<'_>, Self::Need>;

    /// Provides for `need`, which a system has reported.
    fn grow(&mut self, need: Self::Need) -> Restart;

    /// Whether a schedule always leads to the same execution. If not, a schedule that does not fit
    /// its second execution is a finding; otherwise it is a fault of the search.
    fn is_deterministic(&self) -> bool {
        true
    }
}

/// The reaction of a search to a new need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The search starts over.
    Again,
    /// The program cannot be searched; its front end reports why.
    Refused,
}

/// A program in the middle of an execution.
pub trait System {
    /// The same type as [`Program::Need`].
    type Need: Copy + PartialEq + Debug + Send + Sync;

    /// The state at the end of a part of the execution, with the information that reductions need.
    type State: Clone;

    /// The number of thread slots, which is fixed: a system that turns out to need more reports
    /// that [need](Program::Need), and the search restarts with a larger program.
    fn threads(&self) -> usize;

    /// Writes to `pending` what `thread` would do next. A search asks at every step, and copying
    /// the answer would take longer than computing it.
    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), Self::Need>;

    /// Takes a step of an enabled thread. After a failure that thread has ended; the others may
    /// continue.
    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Self::Need>;

    /// Threads, other than the one that stepped last, whose pending step the last step cannot have
    /// changed. A search need not ask them again.
    fn unaffected(&self) -> ThreadSet {
        ThreadSet::EMPTY
    }

    /// The failure before the first step, if there was one.
    fn failure(&self) -> Option<&Failure> {
        None
    }

    /// Whether a thread has failed in the current state: see
    /// [`Stepper::has_failed`](crate::Stepper::has_failed).
    fn has_failed(&self) -> bool {
        false
    }

    /// Whether the execution ends here although threads could step: it has as many steps as the
    /// front end allows. Its last step failed for that reason.
    fn is_cut(&self) -> bool {
        false
    }

    /// Returns to the point where the execution had `len` steps.
    fn rewind(&mut self, len: usize);

    /// Checks the invariants in the current state.
    fn invariant(&mut self) -> Result<(), Box<Failure>> {
        Ok(())
    }

    /// The packed current state, equal iff the states are equal; `None` for a system that cannot
    /// read its states.
    fn words(&self) -> Option<&[u64]>;

    /// Whether `steps` of one thread, taken in a row at the point where the execution had `len`
    /// steps, lead back to the same state. `false` if the system cannot tell.
    fn is_round(&mut self, _len: usize, _steps: impl ExactSizeIterator<Item = Choice>) -> bool {
        false
    }

    /// Whether the current state is the one in which the execution had `len` steps, so that the
    /// steps since then can be repeated forever. `false` if the system cannot tell.
    fn returns_to(&self, _len: usize) -> bool {
        false
    }

    /// The running thread before the first step, if there is one. Switching away from it while it
    /// is enabled is a preemption.
    ///
    /// All threads of a model exist from the beginning, so none is running. A closure starts in its
    /// first thread, and spawning the others belongs to that thread's code before its first step.
    fn initially_running(&self) -> Option<ThreadId> {
        None
    }

    /// The number of extra turns that a search gives each thread, where all threads spin, before it
    /// reports a livelock. A system with comparable states needs only one, because the search sees
    /// a state repeat.
    fn livelock_rounds(&self) -> u32 {
        1
    }

    /// Whether the next step of a thread is only its end: its code has returned.
    fn is_ending(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Whether a thread, after its last step, is between two operations of a data structure, so
    /// that a switch away from it is not a preemption.
    fn is_between_operations(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Whether an assumption of the program does not hold in the current execution, so that it is
    /// not an execution of the program: its end is not counted and not judged.
    fn is_discarded(&self) -> bool {
        false
    }

    /// The failure of an execution that ends here with threads that wait or spin forever; `failure`
    /// is the deadlock or the livelock that it would be. `None` if these threads may wait: in the
    /// test of a structure whose operations block, a reader of an empty channel is not an error.
    fn judge_stuck(&mut self, failure: Failure) -> Option<Failure> {
        Some(failure)
    }

    /// Whether accesses to a location are synchronisation or data.
    fn location_kind(&self, location: Location) -> LocationKind;

    /// The name of a location in reports.
    fn location_name(&self, location: Location) -> String;

    /// The source position of the step `choice`, taken at the point where the execution had `len`
    /// steps.
    fn site(&self, _len: usize, _choice: Choice) -> Option<Site> {
        None
    }

    /// The state before the first step.
    fn initial(&self) -> Self::State;

    /// Advances `state`, the end of a part of the current execution, by a step of that execution.
    /// The part contains everything that happens before the step.
    fn advance(&mut self, state: &mut Self::State, choice: Choice) -> Result<(), Self::Need>;

    /// Whether [`advance`](System::advance) also accepts steps that the current execution does not
    /// contain. Otherwise all alternatives of a step must have the same footprint.
    fn advances_by_any_step(&self) -> bool {
        false
    }

    /// The next step of `thread` in `state`.
    fn ask_at(&mut self, state: &Self::State, thread: ThreadId) -> Result<Pending, Self::Need>;

    /// Whether the later of two racing steps of the current execution could have been taken before
    /// the earlier one, in an execution without the earlier one and everything that happens after
    /// it. A step is identified by its thread and the number of that thread's steps before it.
    fn swap(&self, _earlier: (ThreadId, usize), _later: (ThreadId, usize)) -> Swap {
        Swap::Unknown
    }

    /// A number for what the threads are about to do, as far as it shows in more than footprints:
    /// the operands of operations, for example. Real code whose threads communicate in ways that no
    /// footprint shows may reach different operations in executions that have the same
    /// happens-before graph. Such executions are not the same, and a cache that identifies
    /// executions by their graphs distinguishes them by this number.
    fn announced(&self) -> u64 {
        0
    }

    /// The name of the execution so far, if happens-before graphs over footprints do not identify
    /// executions: under weak memory, what loads read and where stores are in modification order
    /// belongs to it. Two executions with the same name lead to the same state.
    fn name(&self) -> Option<Fingerprint> {
        None
    }

    /// The next step of `thread`, which is not vacant and has not ended, as a part of the execution
    /// graph. A system that cannot describe it reports a need, for which its program
    /// [refuses](Restart::Refused) the search.
    fn graph_step(&mut self, thread: ThreadId) -> Result<GraphStep, Self::Need> {
        unreachable!("{thread:?}: only a system with a weak memory has execution graphs")
    }

    /// Whether a step may change the alternatives of steps that its footprint does not depend on,
    /// so that a search has to ask all threads again.
    fn affects_all(&self) -> bool {
        false
    }

    /// The footprints of each thread's steps, if they are the same in every execution: see
    /// [`Model::straight_lines`](crate::Model::straight_lines).
    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        Err(NotStraight {
            why: "nothing is known about its steps before they are taken",
            site: None,
        })
    }

    /// The locations that threads may have to wait for. The system calls `may_continue` regularly
    /// with the bytes that it uses so far; `None` if that returned false.
    fn waits(
        &mut self,
        may_continue: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<Waits>, Self::Need> {
        let _ = may_continue;
        Ok(Some(Waits::Anywhere))
    }
}

/// Whether a step could have come before a step that it races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// Yes, with the same footprint and without other alternatives.
    Possible,
    /// No: its thread would have to wait for that very step.
    Impossible,
    /// It depends on the state: see [`System::ask_at`].
    Unknown,
}

/// The locations that threads may have to wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// Threads may wait for any location.
    #[default]
    Anywhere,
    /// Threads wait only for these locations, with the access that checking them counts as: locks
    /// and other objects, variables in conditions, the ends of threads.
    At(Footprint),
}

impl Waits {
    /// Whether a step with this footprint may enable a blocked thread. Where checking counts as a
    /// write, even a read may: the last reader that leaves a reader-writer lock enables a writer.
    pub fn may_end(&self, footprint: &Footprint) -> bool {
        match self {
            Waits::Anywhere => !footprint.accesses().is_empty(),
            Waits::At(looks) => looks.depends(footprint),
        }
    }
}
