//! The interface between front ends whose states can be copied and the strategies that explore them.
//!
//! A [`Model`] is a program with packed states: a fixed number of 64-bit words, equal iff the states are equal.
//! A [`Stepper`] executes its steps; every worker of a search has its own. A step of a thread is a function of the
//! state, the thread and the number of the alternative, so that program and schedule determine the execution.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::batch::Batch;
use crate::deed::{Deed, Deeds, Hold, Place};
use crate::footprint::{Footprint, Location};
use crate::schedule::Choice;
use crate::thread::ThreadId;
use crate::verdict::{Failure, Site};

/// The size of a model's states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// 64-bit words of a packed state, at least 1. The lowest bit of the first word is set in every state.
    pub words: usize,
    /// Thread slots: threads are numbered from 0 to `threads` - 1. Slots may be unused in some states.
    pub threads: usize,
}

/// What became of an attempted step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The thread moved; the state has been changed. Alternatives from 0 to `alternatives` - 1 are worth trying in the
    /// state before the step; the number may grow as they are tried, and some of them may be [`Step::Absent`].
    Moved {
        /// The alternatives known so far, at least 1.
        alternatives: u32,
    },
    /// There is no alternative of this number. The state is of no use any more.
    Absent,
    /// The thread has to wait. The state has not been changed.
    Blocked {
        /// The thread may stay here for ever without that being a deadlock.
        resting: bool,
    },
    /// The thread has ended, or has gone wrong before. The state has not been changed.
    Ended,
    /// There is no thread in this slot. The state has not been changed.
    Vacant,
    /// The step fails. The state is the one in which the thread has failed and takes no further step; a front end whose states can be
    /// copied changes nothing else, so that whatever other threads do from there they can also do if the failing step is not taken.
    Failed(Box<Failure>),
    /// The step is possible, but its result does not fit the packed states. See [`Model::grow`]. The state is of no use any
    /// more.
    Full(Capacity),
}

/// Which part of a model's packed states is too small, and for what. Only the model itself understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The part.
    pub part: u32,
    /// What it has to hold.
    pub value: i64,
}

/// A program whose states can be copied and compared.
pub trait Model: Sync + Sized {
    /// What executes its steps.
    type Stepper<'m>: Stepper
    where
        Self: 'm;

    /// The size of its states.
    fn shape(&self) -> Shape;

    /// A new stepper.
    fn stepper(&self) -> Self::Stepper<'_>;

    /// The same program with states that hold more. States of the two are not comparable: a search begins anew. Only
    /// capacities that a stepper reported are passed. After finitely many calls no step is [`Step::Full`], or one reports the same
    /// capacity again: then the program needs more than is possible.
    fn grow(&self, capacity: Capacity) -> Self;

    /// The same program with names of locations that do not change during an execution, as happens-before graphs need them.
    /// Its states may tell more apart.
    fn with_stable_names(self) -> Self {
        self
    }

    /// The same program with states that know who owns what: [`Stepper::is_private`], [`Stepper::is_alone`]. They may tell more apart.
    fn with_owners(self) -> Self {
        self
    }

    /// Whether there is something that must hold in every state.
    fn has_invariants(&self) -> bool {
        true
    }

    /// For each thread slot, what each of its steps touches at most, the first step first: if every thread is there from the
    /// beginning, takes the same steps in every execution unless one of them fails, never waits and never chooses.
    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        Err(NotStraight { why: "nothing is known about its steps before they are taken", site: None })
    }

    /// For each thread slot and each of its [rest points](Model::rest_point), whether the step there is nothing but accesses to plain
    /// variables ([`Sort::Data`]), in whatever state it is taken: it can neither wait nor choose, and touches no location of
    /// `points` and none that any thread may have to wait for. Points may be missing at the end of a list: there the answer is no.
    fn data_steps(&self, _points: &BTreeSet<Location>) -> Vec<Vec<bool>> {
        Vec::new()
    }

    /// Where in its code a thread is, if it has a next step and the model can tell its steps apart before they are taken. No step of
    /// another thread changes it.
    fn rest_point(&self, _state: &[u64], _thread: ThreadId) -> Option<usize> {
        None
    }

    /// What accesses to a location are: synchronisation unless the model says otherwise.
    fn sort(&self, _location: Location) -> Sort {
        Sort::Synchronisation
    }

    /// Where in the program the step is that `choice` takes in `state`, if that is known.
    fn site(&self, _state: &[u64], _choice: Choice) -> Option<Site> {
        None
    }

    /// The name of a location, for a person.
    fn location_name(&self, location: Location) -> String {
        format!("location {}", location.0)
    }
}

/// Why the threads of a program are no [straight lines](Model::straight_lines).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStraight {
    /// What is in the way: "it …".
    pub why: &'static str,
    /// Where.
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

/// What accesses to a location are, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// They order threads: an object, or a variable meant for lock-free use.
    Synchronisation,
    /// The start and the end of this thread. They order threads, and no thread decides there when another goes on but by
    /// spawning and joining, which are synchronisation.
    Life(ThreadId),
    /// They have to be ordered by synchronisation: a plain variable.
    Data,
}

/// A thread whose steps have to be taken one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The thread.
    pub thread: ThreadId,
    /// What its stepper found out about it, in its own words.
    pub known: u32,
}

/// How many threads cannot move, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// They wait, and may not do so for ever.
    pub waiting: u64,
    /// They wait where they may stay.
    pub resting: u64,
    /// They have ended.
    pub ended: u64,
}

/// Executes the steps of one model.
pub trait Stepper {
    /// Writes the initial state.
    fn initial(&mut self, state: &mut [u64]) -> Step;

    /// Lets `thread` take its alternative number `alternative`, in place.
    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step;

    /// Takes the steps of `threads` in `state`, in their order, as far as it can tell at once what they come to: successors go to the batch, threads that
    /// cannot move are counted. Says at which thread it has to stop because [`Stepper::step_to`] is needed. Who knows nothing before a step
    /// was tried stops at the first.
    fn lead<const W: usize>(
        &mut self,
        _state: &[u64],
        threads: Range<usize>,
        _batch: &mut Batch<W>,
        _idle: &mut Idle,
    ) -> Option<Lead> {
        (!threads.is_empty()).then(|| Lead { thread: ThreadId::new(threads.start), known: 0 })
    }

    /// Like [`Stepper::step`] of the thread at which [`Stepper::lead`] stopped, from the `state` in which it did, which stays as it is. What `next`
    /// holds afterwards means something only if the thread moved or failed.
    fn step_to(&mut self, state: &[u64], next: &mut [u64], lead: Lead, alternative: u32) -> Step {
        next.copy_from_slice(state);
        self.step(next, Choice { thread: lead.thread, alternative })
    }

    /// Like [`Stepper::step`], but a step that fails leaves what it did up to its failure: a report shows these values.
    fn step_with_effects(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.step(state, choice)
    }

    /// Whether some thread has failed in `state`. The execution has shown its error then, and that the failed thread gives nothing back and
    /// nobody can join it is not another one: no deadlock and no livelock is reported.
    fn has_failed(&self, _state: &[u64]) -> bool {
        false
    }

    /// How many alternatives the last step showed to be worth trying. [`Step::Moved`] says it too; a step that fails does so only here.
    fn alternatives(&self) -> u32;

    /// Checks the properties that every reachable state must have.
    fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>>;

    /// Like [`Stepper::invariant`], and adds to `footprint` what it reads.
    fn invariant_with_footprint(&mut self, state: &[u64], footprint: &mut Footprint) -> Result<(), Box<Failure>>;

    /// Like [`Stepper::step`], and adds to `footprint` what the step touches: for a thread that has to wait, and for a slot without
    /// thread, what it looked at to find that out.
    fn step_with_footprint(&mut self, state: &mut [u64], choice: Choice, footprint: &mut Footprint) -> Step;

    /// Like [`Stepper::step`], and adds to `deeds` what the step does, in the order in which it does it. Unless the front end says
    /// more, that is its footprint: no object has rules of its own then.
    fn step_with_deeds(&mut self, state: &mut [u64], choice: Choice, deeds: &mut Deeds) -> Step {
        let mut footprint = Footprint::new();
        let step = self.step_with_footprint(state, choice, &mut footprint);
        let accesses = footprint.accesses().iter();
        accesses.for_each(|&(location, access)| deeds.push(Deed::Access(location.into(), access)));
        step
    }

    /// How `thread` holds a lock in `state`, if it does. Only the thread's own steps change the answer.
    fn holds(&self, _state: &[u64], _thread: ThreadId, _lock: Place) -> Option<Hold> {
        None
    }

    /// Adds to `held` the locks that `thread` holds in `state` and that have a name at `place`: the same in every state, or in the
    /// same record as the place.
    fn held(&self, _state: &[u64], _thread: ThreadId, _place: Place, _held: &mut Vec<(Place, Hold)>) {}

    /// Whether nobody but the thread that uses it in `state` could ever reach the record of `place`, since it was made, or since it
    /// was handed over to that thread before its first step. `false` if nothing is known ([`Model::with_owners`]).
    fn is_private(&self, _state: &[u64], _place: Place) -> bool {
        false
    }

    /// Whether all threads but `thread` have either not been started or have been joined. `false` if nothing is known
    /// ([`Model::with_owners`]).
    fn is_alone(&self, _state: &[u64], _thread: ThreadId) -> bool {
        false
    }
}

/// What a person is told about the steps and states of a program.
pub trait Narrate {
    /// The name of a thread.
    fn thread_name(&self, thread: ThreadId) -> String;

    /// What happens when `choice` is taken in `state`.
    fn narrate(&mut self, state: &[u64], choice: Choice) -> Narration;

    /// What `thread` waits for in `state`, if it is blocked there.
    fn waits_for(&mut self, state: &[u64], thread: ThreadId) -> Option<Narration>;

    /// The name of what is at a location, and its value in `state`; `None` if it is nothing that the program speaks of.
    fn value(&mut self, _state: &[u64], _location: Location) -> Option<(String, String)> {
        None
    }

    /// The shared variables and objects of a state, in the order of their declaration.
    fn variables(&mut self, state: &[u64]) -> Vec<(String, String)>;

    /// The variables of `thread` alone in a state, if it has any that can be named.
    fn locals(&mut self, _state: &[u64], _thread: ThreadId) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// One step, told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narration {
    /// Where the step begins in the program.
    pub site: Option<Site>,
    /// The text of the program there, on one line.
    pub source: String,
    /// What was observed and changed, in the words of the program: `x = 3`, `m: free → phil(1)`.
    pub effects: Vec<String>,
}
