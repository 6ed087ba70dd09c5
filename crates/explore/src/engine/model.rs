//! A model as a program that can be executed. It keeps the states of the execution, so going back
//! is cheap. If the model has weak memory, [`weak_model`](super::weak_model) keeps that too.

use preempt_system::memory::GraphStep;
use preempt_system::memory::explain::{self, MissedOrder, Unseen};
use preempt_system::{
    Access, Capacity, Choice, Describe, Explanation, Failure, FailureKind, Fingerprint, Footprint,
    Footprints, Location, LocationKind, MemoryModel, Model, Narrate, Narration, NotStraight,
    Pending, Program, Restart, Shape, Site, Status, Step, StepNarration, Stepper, System, ThreadId,
    Use, VariableValue, Waits,
};
use smallvec::smallvec;

use super::weak_model::WeakModel;
use crate::engine::waits;

/// A model as a program.
pub(crate) struct ModelProgram<M>(pub(crate) M);

impl<M: Model> Program for ModelProgram<M> {
    type Need = Capacity;
    type System<'p>
        = ModelExecution<'p, M>
    where
        M: 'p;

    fn start(&self) -> Result<ModelExecution<'_, M>, Capacity> {
        ModelExecution::new(&self.0)
    }

    fn grow(&mut self, capacity: Capacity) -> Restart {
        self.0 = self.0.grow(capacity);
        Restart::Again
    }
}

/// A model as a system that keeps the states of its execution.
pub struct ModelExecution<'m, M: Model + 'm> {
    model: &'m M,
    stepper: M::Stepper<'m>,
    shape: Shape,
    /// The failure before the first step.
    failure: Option<Box<Failure>>,
    /// The states of the execution, one after the other.
    states: Vec<u64>,
    /// The memory of the execution, if it is weak.
    weak: Option<Box<WeakModel>>,
    /// Scratch memory for steps that are tried and discarded.
    scratch: Vec<u64>,
    /// If the last step was narrated and failed, the state with its effects up to the failure.
    at_failure: Option<Vec<u64>>,
}

impl<'m, M: Model> ModelExecution<'m, M> {
    /// Starts an execution of `model`.
    pub fn new(model: &'m M) -> Result<ModelExecution<'m, M>, Capacity> {
        let (mut stepper, shape) = (model.stepper(), model.shape());
        let mut states = vec![0; shape.words];
        let failure = match stepper.initial(&mut states) {
            Step::Failed(failure) => Some(failure),
            Step::Full(capacity) => return Err(capacity),
            _ => None,
        };
        let scratch = vec![0; shape.words];
        let is_weak = model.memory_model() == MemoryModel::Weak;
        let weak = is_weak.then(|| Box::new(WeakModel::new()));
        let at_failure = None;
        Ok(ModelExecution { model, stepper, shape, failure, states, weak, scratch, at_failure })
    }

    fn state(&self) -> &[u64] {
        &self.states[self.states.len() - self.shape.words..]
    }

    /// Takes a step under weak memory, in the state that starts at `next`.
    fn step_weak(&mut self, next: usize, choice: Choice) -> Result<Option<Box<Failure>>, Capacity> {
        let weak = self.weak.as_mut().expect("the caller has checked that memory is weak");
        let on = (self.model, &mut self.stepper);
        let (failure, race) = weak.step(on, &mut self.states[next..], choice, &mut self.scratch)?;
        let Some(race) = race else { return Ok(failure) };
        let (states, words) = (&self.states, self.shape.words);
        let name = self.model.location_name(race.location);
        let site = |at: usize, choice| self.model.site(&states[at * words..][..words], choice);
        Ok(Some(weak.race_failure(&race, &name, site)))
    }
}

impl<M: Model> System for ModelExecution<'_, M> {
    type Need = Capacity;
    type State = Box<[u64]>;

    fn threads(&self) -> usize {
        self.shape.threads
    }

    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), Capacity> {
        let start = self.states.len() - self.shape.words;
        let (stepper, state) = (&mut self.stepper, &self.states[start..]);
        *pending = match &mut self.weak {
            None => ask(stepper, state, thread, &mut self.scratch)?,
            Some(weak) => weak.ask(stepper, state, thread, &mut self.scratch)?,
        };
        Ok(())
    }

    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Capacity> {
        let start = self.states.len() - self.shape.words;
        self.states.extend_from_within(start..);
        if self.weak.is_some() {
            return self.step_weak(start + self.shape.words, choice);
        }
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
        self.stepper.has_failed(self.state()) || self.is_cut()
    }

    fn is_cut(&self) -> bool {
        self.weak.as_ref().is_some_and(|weak| weak.is_cut())
    }

    fn rewind(&mut self, len: usize) {
        self.states.truncate((len + 1) * self.shape.words);
        if let Some(weak) = &mut self.weak {
            weak.rewind(len);
        }
    }

    fn invariant(&mut self) -> Result<(), Box<Failure>> {
        let start = self.states.len() - self.shape.words;
        self.stepper.invariant(&self.states[start..])
    }

    fn words(&self) -> Option<&[u64]> {
        // Under weak memory a state does not determine what follows.
        self.weak.is_none().then(|| self.state())
    }

    fn name(&self) -> Option<Fingerprint> {
        self.weak.as_ref().map(|weak| weak.name())
    }

    fn affects_all(&self) -> bool {
        self.weak.is_some()
    }

    fn graph_step(&mut self, thread: ThreadId) -> Result<GraphStep, Capacity> {
        let start = self.states.len() - self.shape.words;
        let weak = self.weak.as_mut().expect("only weak memory has execution graphs");
        weak.graph_step(&mut self.stepper, &self.states[start..], thread, &mut self.scratch)
    }

    fn returns_to(&self, len: usize) -> bool {
        self.weak.is_none()
            && self.states[len * self.shape.words..][..self.shape.words] == *self.state()
    }

    fn is_round(&mut self, len: usize, mut steps: impl ExactSizeIterator<Item = Choice>) -> bool {
        let words = self.shape.words;
        let (start, here) =
            (&self.states[len * words..][..words], &self.states[self.states.len() - words..]);
        if (len + steps.len() + 1) * words == self.states.len() {
            // These are the last steps of the execution: they were taken from `start`.
            return start == here;
        }
        self.scratch.copy_from_slice(start);
        steps.all(|choice| {
            matches!(self.stepper.step(&mut self.scratch, choice), Step::Moved { .. })
        }) && self.scratch == start
    }

    fn location_kind(&self, location: Location) -> LocationKind {
        self.model.location_kind(location)
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
            other => {
                unreachable!("a prefix of an execution can be executed: {choice:?} is {other:?}")
            }
        }
    }

    fn advances_by_any_step(&self) -> bool {
        true
    }

    fn ask_at(&mut self, state: &Box<[u64]>, thread: ThreadId) -> Result<Pending, Capacity> {
        ask(&mut self.stepper, state, thread, &mut self.scratch)
    }

    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        self.model.straight_lines()
    }

    fn waits(
        &mut self,
        may_continue: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<Waits>, Capacity> {
        waits::reachable_while(self.model, may_continue)
    }
}

/// Computes what a thread would do in a state; `scratch` has room for a state.
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
                return Ok(Pending::new(status, smallvec![(0, footprint)]));
            }
            Step::Ended => return Ok(Pending::new(Status::Ended, footprints)),
            Step::Vacant => return Ok(Pending::new(Status::Vacant, footprints)),
        }
        footprints.push((alternative, footprint));
        alternative += 1;
    }
    Ok(Pending::new(Status::Enabled, footprints))
}

/// The state that a report describes: the current one, or the one in which the last step failed.
impl<'m, M: Model<Stepper<'m>: Describe>> ModelExecution<'m, M> {
    fn shown(&self) -> Vec<u64> {
        self.at_failure.clone().unwrap_or_else(|| self.state().to_vec())
    }

    /// The uses of the locations of `footprint` that have names, with their values in `state`.
    fn uses(&mut self, state: &[u64], footprint: &Footprint) -> Vec<Use> {
        let accesses = footprint.accesses().iter();
        let used = accesses.filter_map(|&(location, access)| {
            let (name, value) = self.stepper.value(state, location)?;
            let writes = access == Access::Write;
            Some(Use { location, name, value: Some(value), reads: true, writes })
        });
        used.collect()
    }
}

impl<'m, M: Model<Stepper<'m>: Describe>> ModelExecution<'m, M> {
    /// Which newer store the step `at` does not see, if it is stale: the description of the access
    /// without that, and with it.
    fn unseen(&mut self, at: usize, before: &[u64]) -> Option<(String, String)> {
        let stale = self.weak.as_ref()?.stale_step(at)?;
        let mut state = before.to_vec();
        let mut show = |value: i64| {
            self.stepper.set_atomic(&mut state, stale.location, value);
            self.stepper.value(&state, stale.location).unwrap_or_default()
        };
        let (name, value) = show(stale.value);
        let (_, newest) = show(stale.newest.value as i64);
        let by = stale.newest.event.thread.map(|thread| self.stepper.thread_name(thread));
        let name_of = |missed: MissedOrder| self.model.location_name(Location(missed.location));
        let missed = stale.missed.map(|missed| (name_of(missed), missed));
        let unseen = Unseen { by, value: newest, step: stale.newest.step, missed };
        let rest = match stale.reads {
            true => unseen.after_load(explain::lower_case_name),
            false => unseen.after_store(),
        };
        let plain = format!("{name} = {value}");
        let explained = format!("{plain}{rest}");
        Some((plain, explained))
    }
}

impl<'m, M: Model<Stepper<'m>: Describe>> Narrate for ModelExecution<'m, M> {
    fn thread_name(&self, thread: ThreadId) -> String {
        self.stepper.thread_name(thread)
    }

    fn prepare(&mut self, _: Choice) {
        self.at_failure = None;
    }

    fn narrate(&mut self, choice: Choice) -> StepNarration {
        let end = self.states.len() - self.shape.words;
        let mut before = self.states[end - self.shape.words..end].to_vec();
        let at = end / self.shape.words - 1;
        let choice = match &self.weak {
            None => choice,
            Some(weak) => weak.seen_by(&self.stepper, at, &mut before),
        };
        let mut narration = self.stepper.describe_step(&before, choice);
        if let Some((plain, explained)) = self.unseen(at, &before) {
            narration.effects.retain(|effect| *effect != plain);
            narration.effects.push(explained);
        }
        let mut footprint = Footprint::new();
        self.scratch.copy_from_slice(&before);
        self.stepper.step_with_footprint(&mut self.scratch, choice, &mut footprint);
        let uses = self.uses(&before, &footprint);
        self.scratch.copy_from_slice(&before);
        let step = self.stepper.step_with_effects(&mut self.scratch, choice);
        self.at_failure = matches!(step, Step::Failed(_)).then(|| self.scratch.clone());
        let label = narration.source.clone();
        let read_from = self.weak.as_ref().and_then(|weak| weak.read_from(at));
        let stale = self.weak.as_ref().and_then(|weak| weak.stale(at));
        StepNarration { label, narration, uses, read_from, stale, ..StepNarration::default() }
    }

    fn narrate_next(&mut self, choice: Choice) -> Narration {
        let state = self.shown();
        // An alternative of weak memory is not one of the model.
        let alternative = if self.weak.is_some() { 0 } else { choice.alternative };
        let choice = Choice { alternative, ..choice };
        let waits = self.stepper.describe_wait(&state, choice.thread);
        waits.unwrap_or_else(|| self.stepper.describe_step(&state, choice))
    }

    fn values(&mut self) -> Vec<VariableValue> {
        let state = self.shown();
        let value = |owner, (name, value)| VariableValue { owner, name, value };
        let shared = self.stepper.variables(&state).into_iter();
        let mut values: Vec<VariableValue> = shared.map(|shared| value(None, shared)).collect();
        for thread in (0..self.shape.threads).map(ThreadId::new) {
            let locals = self.stepper.locals(&state, thread).into_iter();
            values.extend(locals.map(|local| value(Some(thread), local)));
        }
        values
    }

    fn explanation(&mut self, failure: &Failure) -> Explanation {
        match failure.kind {
            FailureKind::Assertion | FailureKind::Runtime => Explanation::LastStep,
            FailureKind::Invariant => {
                let (state, mut footprint) = (self.shown(), Footprint::new());
                // Only its reads matter: that the invariant is violated is known.
                let _ = self.stepper.invariant_with_footprint(&state, &mut footprint);
                Explanation::State(self.uses(&state, &footprint))
            }
            _ => Explanation::Nothing,
        }
    }
}
