//! An execution in progress: what every strategy sees that explores executions rather than states.
//!
//! A cursor stands at the end of an execution. It knows what each thread would do next, whether it can or has to wait, takes a
//! step, and goes back to any earlier point. Over a [`Model`] going back is a matter of keeping the states of the
//! execution; strategies do not see that.
//!
//! The next step of a thread stays what it is while others take steps that are independent of it. So after a step only those
//! threads are asked again whose next step depends on it: this is where the cost of a step lies, and where it is saved.

use preempt_system::{
    Capacity, Choice, Failure, Footprint, HbGraph, Model, Preemptions, Schedule, Shape, Step, Stepper, ThreadId,
    ThreadSet,
};

/// What a thread will do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Whether it can.
    pub status: Status,
    /// What its next step touches: for each alternative that exists, its number and its footprint. For a thread that has to wait,
    /// one entry: what it looks at.
    pub footprints: Vec<(u32, Footprint)>,
}

/// Whether a thread can take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no thread in the slot.
    Vacant,
    /// It has ended or gone wrong.
    Ended,
    /// It has to wait.
    Blocked {
        /// It may stay here for ever.
        resting: bool,
    },
    /// It can.
    Enabled,
}

/// One step of the execution.
#[derive(Clone, Debug)]
struct Taken {
    choice: Choice,
    footprint: Footprint,
    enabled: ThreadSet,
    preemptions: Preemptions,
    /// What the step changed of what threads would do next.
    changed: Vec<(ThreadId, Pending)>,
}

/// An execution in progress.
pub struct Cursor<'m, M: Model + 'm> {
    model: &'m M,
    stepper: M::Stepper<'m>,
    shape: Shape,
    /// The states of the execution, one after the other.
    states: Vec<u64>,
    steps: Vec<Taken>,
    pending: Vec<Pending>,
    enabled: ThreadSet,
    preemptions: Preemptions,
    /// The happens-before graph of the execution, if somebody asked for it.
    graph: Option<HbGraph>,
    /// Where steps are tried.
    scratch: Vec<u64>,
}

/// Where a program cannot even begin.
#[derive(Clone, Debug)]
pub enum NoStart {
    /// It fails before its first step.
    Failed(Box<Failure>),
    /// Its initial state does not fit: see [`Model::grow`].
    Full(Capacity),
}

impl<'m, M: Model> Cursor<'m, M> {
    /// Stands at the beginning of an execution of `model`.
    pub fn new(model: &'m M) -> Result<Cursor<'m, M>, NoStart> {
        let (mut stepper, shape) = (model.stepper(), model.shape());
        let mut states = vec![0; shape.words];
        match stepper.initial(&mut states) {
            Step::Failed(failure) => return Err(NoStart::Failed(failure)),
            Step::Full(capacity) => return Err(NoStart::Full(capacity)),
            _ => {}
        }
        let mut cursor = Cursor {
            model,
            stepper,
            shape,
            states,
            steps: Vec::new(),
            pending: Vec::new(),
            enabled: ThreadSet::EMPTY,
            preemptions: Preemptions::default(),
            graph: None,
            scratch: vec![0; shape.words],
        };
        for slot in 0..shape.threads {
            let pending = cursor.ask(ThreadId::new(slot)).map_err(NoStart::Full)?;
            cursor.pending.push(pending);
        }
        cursor.enabled = cursor.count_enabled();
        Ok(cursor)
    }

    /// Builds the happens-before graph of the execution from now on, which has to be its beginning.
    pub fn recording(mut self) -> Cursor<'m, M> {
        assert!(self.is_empty(), "a happens-before graph has all steps of its execution");
        self.graph = Some(HbGraph::new());
        self
    }

    /// The happens-before graph of the execution, of a cursor that is [recording](Cursor::recording).
    pub fn graph(&self) -> Option<&HbGraph> {
        self.graph.as_ref()
    }

    /// The model.
    pub fn model(&self) -> &'m M {
        self.model
    }

    /// How many thread slots there are.
    pub fn threads(&self) -> usize {
        self.shape.threads
    }

    /// How many steps the execution has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether no step was taken yet.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The present state.
    pub fn state(&self) -> &[u64] {
        &self.states[self.states.len() - self.shape.words..]
    }

    /// The threads that can take a step.
    pub fn enabled(&self) -> ThreadSet {
        self.enabled
    }

    /// What a thread will do next.
    pub fn pending(&self, thread: ThreadId) -> &Pending {
        &self.pending[thread.index()]
    }

    /// What a step would touch that the thread can take now.
    pub fn footprint(&self, choice: Choice) -> &Footprint {
        let of = &self.pending[choice.thread.index()].footprints;
        let found = of.iter().find(|&&(alternative, _)| alternative == choice.alternative);
        &found.expect("only alternatives that exist are asked for").1
    }

    /// Whether the execution ends here with threads that wait though they may not rest.
    pub fn is_deadlock(&self) -> bool {
        self.enabled.is_empty() && self.pending.iter().any(|p| p.status == Status::Blocked { resting: false })
    }

    /// The preemptions so far, and whose the last step was.
    pub fn preemptions(&self) -> Preemptions {
        self.preemptions
    }

    /// How many preemptions there would be after a step of `thread`.
    pub fn preemptions_with(&self, thread: ThreadId) -> u32 {
        self.preemptions.count() + u32::from(self.preemptions.would_preempt(thread, self.enabled))
    }

    /// Whose the last step was.
    pub fn running(&self) -> Option<ThreadId> {
        self.steps.last().map(|step| step.choice.thread)
    }

    /// The steps that a thread can take now, if it is enabled: one for each of its alternatives, in their order.
    pub fn choices(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = Choice> + '_ {
        let pending = &self.pending[thread.index()];
        let existing = if pending.status == Status::Enabled { &pending.footprints[..] } else { &[] };
        existing.iter().map(move |&(alternative, _)| Choice { thread, alternative })
    }

    /// The step that was taken `at` steps after the beginning.
    pub fn choice(&self, at: usize) -> Choice {
        self.steps[at].choice
    }

    /// What that step touched.
    pub fn taken(&self, at: usize) -> &Footprint {
        &self.steps[at].footprint
    }

    /// The threads that could take a step before it.
    pub fn enabled_before(&self, at: usize) -> ThreadSet {
        self.steps[at].enabled
    }

    /// The steps so far.
    pub fn schedule(&self) -> Schedule {
        Schedule(self.steps.iter().map(|step| step.choice).collect())
    }

    /// Takes a step of an enabled thread. If it fails the thread has gone wrong; the others may go on.
    pub fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Capacity> {
        debug_assert!(self.enabled.contains(choice.thread), "only enabled threads step");
        let words = self.shape.words;
        let footprint = self.footprint(choice).clone();
        let start = self.states.len() - words;
        self.states.extend_from_within(start..);
        let failure = match self.stepper.step(&mut self.states[start + words..], choice) {
            Step::Moved { .. } => None,
            Step::Failed(failure) => Some(failure),
            Step::Full(capacity) => return Err(capacity),
            other => unreachable!("a pending step can be taken, and is not {other:?}"),
        };
        let start = self.graph.is_some().then(|| self.start(choice.thread)).flatten();
        let before = self.enabled;
        let preemptions = self.preemptions;
        self.preemptions.step(choice.thread, before);
        let mut changed = Vec::new();
        for thread in (0..self.shape.threads).map(ThreadId::new) {
            let pending = &self.pending[thread.index()];
            let affected = thread == choice.thread
                || matches!(pending.status, Status::Vacant)
                || pending.footprints.iter().any(|(_, theirs)| theirs.depends(&footprint));
            if affected {
                let new = self.ask(thread)?;
                if new != self.pending[thread.index()] {
                    let old = std::mem::replace(&mut self.pending[thread.index()], new);
                    changed.push((thread, old));
                }
            }
        }
        self.enabled = self.count_enabled();
        if let Some(graph) = &mut self.graph {
            match start {
                Some(start) => graph.push_first(choice, &footprint, start),
                None => graph.push(choice, &footprint),
            }
        }
        self.steps.push(Taken { choice, footprint, enabled: before, preemptions, changed });
        Ok(failure)
    }

    /// The step that started a thread which is about to take its first one; `None` if it was there from the beginning, or has
    /// taken a step already.
    fn start(&self, thread: ThreadId) -> Option<usize> {
        if self.graph.as_ref().is_some_and(|graph| graph.clock(thread).is_some()) {
            return None;
        }
        let started = |(other, old): &(ThreadId, Pending)| *other == thread && old.status == Status::Vacant;
        self.steps.iter().rposition(|step| step.changed.iter().any(started))
    }

    /// Goes back to where the execution had `len` steps.
    pub fn rewind(&mut self, len: usize) {
        if let Some(graph) = &mut self.graph {
            graph.truncate(len);
        }
        while self.steps.len() > len {
            let step = self.steps.pop().expect("there are more steps than len");
            for (thread, old) in step.changed {
                self.pending[thread.index()] = old;
            }
            self.enabled = step.enabled;
            self.preemptions = step.preemptions;
            self.states.truncate(self.states.len() - self.shape.words);
        }
    }

    /// Checks what must hold in every state, in the present one.
    pub fn invariant(&mut self) -> Result<(), Box<Failure>> {
        let start = self.states.len() - self.shape.words;
        self.stepper.invariant(&self.states[start..])
    }

    fn count_enabled(&self) -> ThreadSet {
        let enabled = self.pending.iter().enumerate().filter(|(_, p)| p.status == Status::Enabled);
        enabled.map(|(slot, _)| ThreadId::new(slot)).collect()
    }

    /// Finds out what a thread would do in the present state.
    fn ask(&mut self, thread: ThreadId) -> Result<Pending, Capacity> {
        let start = self.states.len() - self.shape.words;
        ask(&mut self.stepper, &self.states[start..], thread, &mut self.scratch)
    }
}

/// Finds out what a thread would do in a state; `scratch` has room for a state.
pub(crate) fn ask<S: Stepper>(
    stepper: &mut S,
    state: &[u64],
    thread: ThreadId,
    scratch: &mut [u64],
) -> Result<Pending, Capacity> {
    let mut footprints = Vec::new();
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
                return Ok(Pending { status: Status::Blocked { resting }, footprints: vec![(0, footprint)] });
            }
            Step::Ended => return Ok(Pending { status: Status::Ended, footprints }),
            Step::Vacant => return Ok(Pending { status: Status::Vacant, footprints }),
        }
        footprints.push((alternative, footprint));
        alternative += 1;
    }
    Ok(Pending { status: Status::Enabled, footprints })
}
