//! The interface between strategies and front ends whose states can be copied.
//!
//! A [`Model`] is a program with packed states: a fixed number of 64-bit words, equal iff the
//! states are equal. A [`Stepper`] executes its steps; every worker of a search has its own. A step
//! is a function of the state, the thread and the number of the alternative, so program and
//! schedule together determine the execution.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::batch::Batch;
use crate::footprint::{Footprint, Location};
use crate::memory::{MemoryLog, MemoryModel};
use crate::narrate::Narration;
use crate::object::LockMode;
use crate::schedule::Choice;
use crate::step_log::{ObjectAccess, Place, StepLog};
use crate::thread::ThreadId;
use crate::verdict::{Failure, Site};

/// The size of a model's states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// 64-bit words of a packed state, at least 1. The lowest bit of the first word is set in every
    /// state.
    pub words: usize,
    /// Thread slots: threads are numbered from 0 to `threads` - 1. Slots may be unused in some
    /// states.
    pub threads: usize,
}

/// The result of an attempted step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The thread moved and the state has changed. Alternatives 0 to `alternatives` - 1 are worth
    /// trying in the state before the step. The number may grow as they are tried, and some of them
    /// may be [`Step::Absent`].
    Moved {
        /// The number of alternatives known so far, at least 1.
        alternatives: u32,
    },
    /// There is no alternative with this number. The content of the state is unspecified.
    Absent,
    /// The thread has to wait. The state is unchanged.
    Blocked {
        /// The thread may wait here forever without that being a deadlock.
        resting: bool,
    },
    /// The thread has ended or failed before. The state is unchanged.
    Ended,
    /// There is no thread in this slot. The state is unchanged.
    Vacant,
    /// The step fails. In the new state the thread has failed and takes no further step. A front
    /// end whose states can be copied changes nothing else, so that the other threads can do
    /// exactly what they could do if the failing step were not taken.
    Failed(Box<Failure>),
    /// The step is possible, but its result does not fit the packed states: see [`Model::grow`].
    /// The content of the state is unspecified.
    Full(Capacity),
}

/// A part of the packed states that is too small, and the value that it must hold. Only the model
/// that reported it can interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The number of the part, assigned by the model.
    pub part: u32,
    /// The value that the part must hold.
    pub value: i64,
}

/// A program whose states can be copied and compared.
pub trait Model: Sync + Sized {
    /// Executes the steps of this model.
    type Stepper<'m>: Stepper
    where
        Self: 'm;

    /// The size of the model's states.
    fn shape(&self) -> Shape;

    /// Creates a stepper.
    fn stepper(&self) -> Self::Stepper<'_>;

    /// The same program with states that have room for `capacity`, which one of its steppers
    /// reported. The states of the two models are not comparable, so a search starts over. After
    /// finitely many calls either no step is [`Step::Full`], or a step reports the same capacity
    /// again: then the program needs more than is possible.
    fn grow(&self, capacity: Capacity) -> Self;

    /// The same program, with location names that do not change during an execution. Happens-before
    /// graphs need such names. The model may distinguish more states.
    fn with_stable_names(self) -> Self {
        self
    }

    /// Undoes [`with_stable_names`](Model::with_stable_names).
    fn without_stable_names(self) -> Self {
        self
    }

    /// The same program, with states that record ownership for [`Stepper::is_private`] and
    /// [`Stepper::is_alone`]. The model may distinguish more states.
    fn with_owners(self) -> Self {
        self
    }

    /// Whether the program has invariants, which must hold in every state.
    fn has_invariants(&self) -> bool {
        true
    }

    /// For each thread slot, an upper bound on the footprint of each of its steps, first step
    /// first. Only for programs in which every thread exists from the beginning, takes the same
    /// steps in every execution unless one of them fails, never waits and never chooses.
    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        Err(NotStraight {
            why: "nothing is known about its steps before they are taken",
            site: None,
        })
    }

    /// For each thread slot and each of its [rest points](Model::rest_point), whether the step from
    /// there only accesses plain variables ([`LocationKind::Data`]) in every state: it neither
    /// waits nor chooses, and touches no location of `points` and none that any thread may have to
    /// wait for. A list may be shorter than the number of rest points; the answer for missing
    /// entries is no.
    fn data_steps(&self, _points: &BTreeSet<Location>) -> Vec<Vec<bool>> {
        Vec::new()
    }

    /// The thread's position in its code, if it has a next step and the model can tell its steps
    /// apart before they are taken. No step of another thread changes it.
    fn rest_point(&self, _state: &[u64], _thread: ThreadId) -> Option<usize> {
        None
    }

    /// Whether accesses to a location are synchronisation or data. The default is synchronisation.
    fn location_kind(&self, _location: Location) -> LocationKind {
        LocationKind::Synchronisation
    }

    /// The source position of the step that `choice` takes in `state`, if it is known.
    fn site(&self, _state: &[u64], _choice: Choice) -> Option<Site> {
        None
    }

    /// The name of a location in reports.
    fn location_name(&self, location: Location) -> String {
        format!("location {}", location.0)
    }

    /// The memory model that the program names. Under weak memory a state is not enough to know
    /// what a step does: its steppers support [`Stepper::step_with_memory`], and only searches over
    /// executions explore it.
    fn memory_model(&self) -> MemoryModel {
        MemoryModel::Sc
    }

    /// Why a search over execution graphs cannot explore the program, if it cannot.
    fn graph_obstacle(&self) -> Option<GraphObstacle> {
        None
    }
}

/// A construct that a search over execution graphs does not handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphObstacle {
    /// The construct, with an article.
    pub what: &'static str,
    /// Its source position.
    pub site: Option<Site>,
}

impl fmt::Display for GraphObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.site {
            Some(site) => write!(f, "{} ({site})", self.what),
            None => f.write_str(self.what),
        }
    }
}

/// Why the threads of a program are not [straight lines](Model::straight_lines).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStraight {
    /// The obstacle, as the rest of a sentence that starts with "it".
    pub why: &'static str,
    /// The source position of the obstacle.
    pub site: Option<Site>,
}

impl fmt::Display for NotStraight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.site {
            Some(site) => write!(f, "{} ({site})", self.why),
            None => f.write_str(self.why),
        }
    }
}

/// The meaning of accesses to a location. The kind of a location never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocationKind {
    /// Accesses order threads: an object, or a variable meant for lock-free use.
    Synchronisation,
    /// The start and the end of this thread. They order threads, but a thread influences when
    /// another one continues only by spawning and joining, which are synchronisation themselves.
    Life(ThreadId),
    /// Accesses must be ordered by synchronisation: a plain variable.
    Data,
}

/// The thread at which [`Stepper::step_all`] stopped: its alternatives have to be tried one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The thread to step.
    pub thread: ThreadId,
    /// Opaque token that the search passes back to [`Stepper::finish_step`].
    pub known: u32,
}

/// The number of threads that cannot move, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockedCounts {
    /// Blocked where waiting forever is a deadlock.
    pub waiting: u64,
    /// Blocked where the thread may wait forever.
    pub resting: u64,
    /// Ended or failed.
    pub ended: u64,
}

/// Executes the steps of one model.
pub trait Stepper {
    /// Writes the initial state to `state`. `Failed` if the program fails before any thread steps.
    fn initial(&mut self, state: &mut [u64]) -> Step;

    /// Lets a thread take one of its alternatives and updates `state` in place.
    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step;

    /// Takes the steps of `threads` in `state`, in order, as long as their results are known
    /// without trying alternatives. Appends the successors to the batch and counts the threads that
    /// cannot move. Returns the thread at which it stopped because [`Stepper::finish_step`] is
    /// needed. The default takes no steps and stops at the first thread.
    fn step_all<const W: usize>(
        &mut self,
        _state: &[u64],
        threads: Range<usize>,
        _batch: &mut Batch<W>,
        _idle: &mut BlockedCounts,
    ) -> Option<Partial> {
        (!threads.is_empty()).then(|| Partial { thread: ThreadId::new(threads.start), known: 0 })
    }

    /// Like [`Stepper::step`] for the thread at which [`Stepper::step_all`] stopped, from the same
    /// `state`, which stays unchanged. The content of `next` is specified only if the thread moved
    /// or failed.
    fn finish_step(
        &mut self,
        state: &[u64],
        next: &mut [u64],
        partial: Partial,
        alternative: u32,
    ) -> Step {
        next.copy_from_slice(state);
        self.step(next, Choice { thread: partial.thread, alternative })
    }

    /// Like [`Stepper::step`], but a failing step keeps its effects up to the failure, so that a
    /// report can show these values.
    fn step_with_effects(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.step(state, choice)
    }

    /// Whether a thread has failed in `state`. Searches then report neither deadlock nor livelock:
    /// threads may wait for the failed thread to release a lock or to end, but that only repeats
    /// the error already found.
    fn has_failed(&self, _state: &[u64]) -> bool {
        false
    }

    /// The number of alternatives that the last step showed to be worth trying. [`Step::Moved`]
    /// contains it too; for a step that fails, this method is the only source.
    fn alternatives(&self) -> u32;

    /// Checks the properties that every reachable state must have.
    fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>>;

    /// Like [`Stepper::invariant`], and adds the locations that the invariants read to `footprint`.
    fn invariant_with_footprint(
        &mut self,
        state: &[u64],
        footprint: &mut Footprint,
    ) -> Result<(), Box<Failure>>;

    /// Like [`Stepper::step`], and adds what the step touches to `footprint`. For a blocked thread
    /// and for an empty slot these are the locations that the stepper read to find that out.
    fn step_with_footprint(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        footprint: &mut Footprint,
    ) -> Step;

    /// Like [`Stepper::step`], and appends what the step does to `log`, in order. By default the
    /// log is the footprint, and no object has rules of its own.
    fn step_with_log(&mut self, state: &mut [u64], choice: Choice, log: &mut StepLog) -> Step {
        let mut footprint = Footprint::new();
        let step = self.step_with_footprint(state, choice, &mut footprint);
        let accesses = footprint.accesses().iter();
        accesses.for_each(|&(location, access)| {
            log.push(ObjectAccess::Access(location.into(), access))
        });
        step
    }

    /// Like [`Stepper::step`], and writes what the step does to `log`, for a model with weak
    /// memory. Also for a thread that has to wait, or fails.
    fn step_with_memory(
        &mut self,
        _state: &mut [u64],
        choice: Choice,
        _log: &mut MemoryLog,
    ) -> Step {
        unreachable!("{choice:?}: the model has no weak memory")
    }

    /// The value of an atomic variable in `state`, for a model with weak memory.
    fn atomic(&self, _state: &[u64], location: Location) -> i64 {
        unreachable!("{location:?}: the model has no weak memory")
    }

    /// Replaces the value of an atomic variable in `state` by one that it has had.
    fn set_atomic(&self, _state: &mut [u64], location: Location, _value: i64) {
        unreachable!("{location:?}: the model has no weak memory")
    }

    /// How `thread` holds `lock` in `state`, if it does. Only the thread's own steps change the
    /// answer.
    fn holds(&self, _state: &[u64], _thread: ThreadId, _lock: Place) -> Option<LockMode> {
        None
    }

    /// Adds to `held` the locks that `thread` holds in `state` and that can be named relative to
    /// `place`: locks with a fixed name, and locks in the record of `place`.
    fn held(
        &self,
        _state: &[u64],
        _thread: ThreadId,
        _place: Place,
        _held: &mut Vec<(Place, LockMode)>,
    ) {
    }

    /// Whether only the thread that uses the record of `place` in `state` has ever been able to
    /// reach it, since the record was allocated or since it was passed to that thread before the
    /// thread's first step. `false` if the state does not record ownership
    /// ([`Model::with_owners`]).
    fn is_private(&self, _state: &[u64], _place: Place) -> bool {
        false
    }

    /// Whether every thread except `thread` has either not been started or has been joined. `false`
    /// if the state does not record ownership ([`Model::with_owners`]).
    fn is_alone(&self, _state: &[u64], _thread: ThreadId) -> bool {
        false
    }
}

/// Descriptions of a model's packed states. With them, an execution of the model can
/// [narrate](crate::Narrate) itself.
pub trait Describe {
    /// The name of a thread in reports.
    fn thread_name(&self, thread: ThreadId) -> String;

    /// Describes the step that `choice` takes in `state`.
    fn describe_step(&mut self, state: &[u64], choice: Choice) -> Narration;

    /// Describes what `thread` waits for in `state`, if it is blocked there.
    fn describe_wait(&mut self, state: &[u64], thread: ThreadId) -> Option<Narration>;

    /// The name of the variable at a location, and its value in `state`; `None` if the location is
    /// internal to the model.
    fn value(&mut self, _state: &[u64], _location: Location) -> Option<(String, String)> {
        None
    }

    /// Names and values of the shared variables and objects in `state`, in the order of their
    /// declaration.
    fn variables(&mut self, state: &[u64]) -> Vec<(String, String)>;

    /// Names and values of the local variables of `thread` in `state`.
    fn locals(&mut self, _state: &[u64], _thread: ThreadId) -> Vec<(String, String)> {
        Vec::new()
    }
}
