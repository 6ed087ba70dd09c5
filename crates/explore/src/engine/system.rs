//! What executions are made of: a program that can be stepped and taken back.
//!
//! A [`System`] is a program in the middle of an execution. Some can copy their states ([`Copies`] of a
//! [`Model`]); real code can only be started again and brought back to the same place. Strategies do not see the difference:
//! they move a [`Cursor`](crate::engine::cursor::Cursor), and the cursor moves a system.
//!
//! Reductions also ask about executions that were never made: parts of the present one, in another order. A state of such a part
//! ([`System::State`]) has only to tell who could move there and what they would touch, and that follows from the objects that the
//! steps use. So a program whose memory cannot be copied can answer all the same, without being run.

use preempt_system::{
    Access, Capacity, Choice, Failure, Footprint, Location, Model, NotStraight, Shape, Site, Sort, Step, Stepper,
    ThreadId, ThreadSet,
};
use smallvec::{SmallVec, smallvec};

use crate::engine::waits::Waits;

/// A program whose executions can be explored: it can be started, and started again.
pub trait Program: Sync + Sized {
    /// An execution of it.
    type System<'p>: System
    where
        Self: 'p;

    /// Stands at the beginning of an execution. Every worker of a search has its own.
    fn start(&self) -> Result<Self::System<'_>, Capacity>;

    /// The same program with room for more, after a system asked for it.
    fn grow(self, capacity: Capacity) -> Self;

    /// Whether a schedule always leads to the same execution, or the program may be at fault if it does not.
    fn is_deterministic(&self) -> bool {
        true
    }
}

/// A model as such a program.
pub(crate) struct Copied<M>(pub(crate) M);

impl<M: Model> Program for Copied<M> {
    type System<'p>
        = Copies<'p, M>
    where
        M: 'p;

    fn start(&self) -> Result<Copies<'_, M>, Capacity> {
        Copies::new(&self.0)
    }

    fn grow(self, capacity: Capacity) -> Self {
        Copied(self.0.grow(capacity))
    }
}

/// A program in the middle of an execution. It begins at the beginning.
pub trait System {
    /// What is kept of a state in which parts of an execution end.
    type State: Clone;

    /// How many thread slots there are. It does not change: a system that turns out to need more says so by
    /// [`Capacity`], and the search begins anew with a larger one.
    fn threads(&self) -> usize;

    /// What a thread would do next, written to where it is wanted: a search asks at every step, and to pass the answer on from place to
    /// place would take longer than to find it.
    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), Capacity>;

    /// Takes a step of an enabled thread. If it fails the thread has gone wrong; the others may go on.
    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Capacity>;

    /// Threads, other than the one that moved last, that need not be asked again because the answer would be that from before the last
    /// step, whatever it touched.
    fn settled(&self) -> ThreadSet {
        ThreadSet::EMPTY
    }

    /// What went wrong before the first step, if something did.
    fn failure(&self) -> Option<&Failure> {
        None
    }

    /// Whether a thread has failed in the present state, of a system whose failed threads just stop: see [`Stepper::has_failed`].
    fn has_failed(&self) -> bool {
        false
    }

    /// Goes back to where the execution had `len` steps.
    fn rewind(&mut self, len: usize);

    /// Checks what must hold in every state, in the present one.
    fn invariant(&mut self) -> Result<(), Box<Failure>> {
        Ok(())
    }

    /// All of the present state, if that can be told: equal iff the states are equal.
    fn words(&self) -> Option<&[u64]>;

    /// Whether these steps of one thread, taken one after the other where the execution had `len` steps, lead back there, as far as is
    /// known.
    fn is_round(&mut self, _len: usize, _steps: impl ExactSizeIterator<Item = Choice>) -> bool {
        false
    }

    /// The running thread before the first step, if there is one: switching away from it while it can go on is a preemption.
    ///
    /// All threads of a model exist from the beginning, so none is running. A closure begins in its first thread, and starting the others
    /// belongs to that thread's code before its first step.
    fn initially_running(&self) -> Option<ThreadId> {
        None
    }

    /// How often threads that all spin are let go on, each of them, before that counts as going on for ever. A system whose
    /// states are known need not be patient: it is seen when they come back.
    fn patience(&self) -> u32 {
        1
    }

    /// What accesses to a location are.
    fn sort(&self, location: Location) -> Sort;

    /// The name of a location, for a person.
    fn location_name(&self, location: Location) -> String;

    /// Where in the program the step is that was taken where the execution had `len` steps, if that is known.
    fn site(&self, _len: usize, _choice: Choice) -> Option<Site> {
        None
    }

    /// The state before the first step.
    fn initial(&self) -> Self::State;

    /// Brings `state` forward by a step of the present execution. `state` is that of a part of the present execution to which the step
    /// can be added: all that happens before it is in it.
    fn advance(&mut self, state: &mut Self::State, choice: Choice) -> Result<(), Capacity>;

    /// Whether it can do so for any step that is possible, also one that the present execution does not have. Otherwise all alternatives
    /// of a step have to touch the same.
    fn advances_by_any_step(&self) -> bool {
        false
    }

    /// What a thread would do next in such a state.
    fn ask_at(&mut self, state: &Self::State, thread: ThreadId) -> Result<Pending, Capacity>;

    /// Such a state as words, if it can be told: for checkpoints.
    fn state_words(state: &Self::State) -> Option<&[u64]> {
        let _ = state;
        None
    }

    /// The state that these words tell, which [`System::state_words`] made of one.
    fn state_of(words: Vec<u64>) -> Option<Self::State> {
        let _ = words;
        None
    }

    /// Whether the later of two steps of the present execution that race could have come before the earlier one, where it did not
    /// happen and what follows from it did not either. A step is told by its thread and how many steps that had taken before.
    fn swap(&self, _earlier: (ThreadId, usize), _later: (ThreadId, usize)) -> Swap {
        Swap::Unknown
    }

    /// What the steps of each thread touch, if that is the same in every execution: see [`Model::straight_lines`].
    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        Err(NotStraight { why: "nothing is known about its steps before they are taken", site: None })
    }

    /// What threads may have to wait for, as far as can be known. `None` if `goes_on`, which is asked now and then and told the bytes
    /// that the answer needs so far, has said no.
    fn waits(&mut self, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<Option<Waits>, Capacity> {
        let _ = goes_on;
        Ok(Some(Waits::Anywhere))
    }
}

/// Whether a step could have come before one that it races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// It could, with the same footprint, and in no other way.
    Possible,
    /// Its thread would have to wait there, for that very step.
    Impossible,
    /// That depends on the state: see [`System::ask_at`].
    Unknown,
}

/// For each alternative of a step its number and what it touches. Most steps have one.
pub type Footprints = SmallVec<[(u32, Footprint); 1]>;

/// What a thread will do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Whether it can.
    pub status: Status,
    /// What its next step touches: for each alternative that exists, its number and its footprint. For a thread that has to wait,
    /// one entry: what it looks at.
    pub footprints: Footprints,
}

impl Pending {
    /// Whether there are several alternatives, and not all of them touch the same.
    #[inline]
    pub fn varies(&self) -> bool {
        let [(_, first), rest @ ..] = &self.footprints[..] else { return false };
        rest.iter().any(|(_, footprint)| footprint != first)
    }

    /// Whether there are several alternatives.
    #[inline]
    pub fn chooses(&self) -> bool {
        self.footprints.len() > 1
    }

    /// What there is to say about a slot without a thread.
    #[inline]
    pub fn vacant() -> Pending {
        Pending { status: Status::Vacant, footprints: Footprints::new() }
    }

    /// Becomes that of a thread that will do nothing any more, or yet.
    #[inline]
    pub fn set_nothing(&mut self, status: Status) {
        self.status = status;
        self.footprints.clear();
    }

    /// Becomes that of a thread whose next step has one alternative with one access, or that looks at one thing while it waits.
    #[inline(always)]
    pub fn set_one(&mut self, status: Status, alternative: u32, location: Location, access: Access) {
        self.status = status;
        match &mut self.footprints[..] {
            [(number, footprint)] => {
                *number = alternative;
                footprint.set_one(location, access);
            }
            _ => self.set_alternatives(status, [(alternative, Footprint::one(location, access))]),
        }
    }

    /// Becomes that of a thread whose next step has these alternatives.
    pub fn set_alternatives(&mut self, status: Status, alternatives: impl IntoIterator<Item = (u32, Footprint)>) {
        self.set_nothing(status);
        self.footprints.extend(alternatives);
    }
}

/// Whether a thread can take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no thread in the slot.
    Vacant,
    /// It has ended or gone wrong.
    Ended,
    /// It has to wait.
    Blocked,
    /// It waits where it may stay for ever.
    Resting,
    /// It could, but it has just been where it is and found what it finds: it spins. It is held back until something that it looks
    /// at changes, or nobody else can move.
    Held,
    /// It can.
    Enabled,
}

/// A model as a system: going back is a matter of keeping the states of the execution.
pub struct Copies<'m, M: Model + 'm> {
    model: &'m M,
    stepper: M::Stepper<'m>,
    shape: Shape,
    /// What went wrong before the first step.
    failure: Option<Box<Failure>>,
    /// The states of the execution, one after the other.
    states: Vec<u64>,
    /// Where steps are tried.
    scratch: Vec<u64>,
}

impl<'m, M: Model> Copies<'m, M> {
    /// Stands at the beginning of an execution of `model`.
    pub fn new(model: &'m M) -> Result<Copies<'m, M>, Capacity> {
        let (mut stepper, shape) = (model.stepper(), model.shape());
        let mut states = vec![0; shape.words];
        let failure = match stepper.initial(&mut states) {
            Step::Failed(failure) => Some(failure),
            Step::Full(capacity) => return Err(capacity),
            _ => None,
        };
        Ok(Copies { model, stepper, shape, failure, states, scratch: vec![0; shape.words] })
    }

    /// The present state.
    fn state(&self) -> &[u64] {
        &self.states[self.states.len() - self.shape.words..]
    }
}

impl<M: Model> System for Copies<'_, M> {
    type State = Box<[u64]>;

    fn threads(&self) -> usize {
        self.shape.threads
    }

    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), Capacity> {
        let start = self.states.len() - self.shape.words;
        *pending = ask(&mut self.stepper, &self.states[start..], thread, &mut self.scratch)?;
        Ok(())
    }

    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Capacity> {
        let start = self.states.len() - self.shape.words;
        self.states.extend_from_within(start..);
        match self.stepper.step(&mut self.states[start + self.shape.words..], choice) {
            Step::Moved { .. } => Ok(None),
            Step::Failed(failure) => Ok(Some(failure)),
            Step::Full(capacity) => Err(capacity),
            other => unreachable!("a pending step can be taken, and is not {other:?}"),
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    fn has_failed(&self) -> bool {
        self.stepper.has_failed(self.state())
    }

    fn rewind(&mut self, len: usize) {
        self.states.truncate((len + 1) * self.shape.words);
    }

    fn invariant(&mut self) -> Result<(), Box<Failure>> {
        let start = self.states.len() - self.shape.words;
        self.stepper.invariant(&self.states[start..])
    }

    fn words(&self) -> Option<&[u64]> {
        Some(self.state())
    }

    fn is_round(&mut self, len: usize, mut steps: impl ExactSizeIterator<Item = Choice>) -> bool {
        let words = self.shape.words;
        let (start, here) = (&self.states[len * words..][..words], &self.states[self.states.len() - words..]);
        if (len + steps.len() + 1) * words == self.states.len() {
            // They are the last steps of the execution, and were taken.
            return start == here;
        }
        self.scratch.copy_from_slice(start);
        steps.all(|choice| matches!(self.stepper.step(&mut self.scratch, choice), Step::Moved { .. }))
            && self.scratch == start
    }

    fn sort(&self, location: Location) -> Sort {
        self.model.sort(location)
    }

    fn location_name(&self, location: Location) -> String {
        self.model.location_name(location)
    }

    fn site(&self, len: usize, choice: Choice) -> Option<Site> {
        self.model.site(&self.states[len * self.shape.words..][..self.shape.words], choice)
    }

    fn initial(&self) -> Box<[u64]> {
        self.states[..self.shape.words].into()
    }

    fn advance(&mut self, state: &mut Box<[u64]>, choice: Choice) -> Result<(), Capacity> {
        match self.stepper.step(state, choice) {
            Step::Moved { .. } | Step::Failed(_) => Ok(()),
            Step::Full(capacity) => Err(capacity),
            other => unreachable!("a part of an execution is an execution: {choice:?} is {other:?}"),
        }
    }

    fn advances_by_any_step(&self) -> bool {
        true
    }

    fn ask_at(&mut self, state: &Box<[u64]>, thread: ThreadId) -> Result<Pending, Capacity> {
        ask(&mut self.stepper, state, thread, &mut self.scratch)
    }

    fn state_words(state: &Box<[u64]>) -> Option<&[u64]> {
        Some(state)
    }

    fn state_of(words: Vec<u64>) -> Option<Box<[u64]>> {
        Some(words.into())
    }

    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        self.model.straight_lines()
    }

    fn waits(&mut self, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<Option<Waits>, Capacity> {
        Waits::reachable_while(self.model, goes_on)
    }
}

/// Finds out what a thread would do in a state; `scratch` has room for a state.
pub(crate) fn ask<S: Stepper>(
    stepper: &mut S,
    state: &[u64],
    thread: ThreadId,
    scratch: &mut [u64],
) -> Result<Pending, Capacity> {
    let mut footprints = Footprints::new();
    let (mut alternative, mut alternatives) = (0, 1);
    while alternative < alternatives {
        scratch.copy_from_slice(state);
        let mut footprint = Footprint::new();
        let choice = Choice { thread, alternative };
        match stepper.step_with_footprint(scratch, choice, &mut footprint) {
            Step::Moved { alternatives: known } => alternatives = alternatives.max(known),
            Step::Failed(_) => alternatives = alternatives.max(stepper.alternatives()),
            Step::Full(capacity) => return Err(capacity),
            Step::Absent => {
                alternative += 1;
                continue;
            }
            Step::Blocked { .. } | Step::Ended | Step::Vacant if alternative > 0 => break,
            Step::Blocked { resting } => {
                let status = if resting { Status::Resting } else { Status::Blocked };
                return Ok(Pending { status, footprints: smallvec![(0, footprint)] });
            }
            Step::Ended => return Ok(Pending { status: Status::Ended, footprints }),
            Step::Vacant => return Ok(Pending { status: Status::Vacant, footprints }),
        }
        footprints.push((alternative, footprint));
        alternative += 1;
    }
    Ok(Pending { status: Status::Enabled, footprints })
}
