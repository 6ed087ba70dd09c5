//! An execution in progress: what every strategy sees that explores executions rather than states.
//!
//! A cursor stands at the end of an execution. It knows what each thread would do next, whether it can or has to wait, takes a
//! step, and goes back to any earlier point. How going back is done is the [system](crate::system)'s affair.
//!
//! The next step of a thread stays what it is while others take steps that are independent of it. So after a step only those
//! threads are asked again whose next step depends on it: this is where the cost of a step lies, and where it is saved.

use preempt_system::{
    Capacity, Choice, Failure, Footprint, HbGraph, Model, Preemptions, Schedule, ThreadId, ThreadSet,
};

use crate::system::{Copies, Pending, Status, System};

/// One step of the execution.
#[derive(Clone, Debug)]
struct Taken {
    choice: Choice,
    footprint: Footprint,
    enabled: ThreadSet,
    preemptions: Preemptions,
    forced: u32,
    /// Where in [`Cursor::undo`] that begins which the step changed.
    undo: u32,
}

/// An execution in progress.
pub struct Cursor<S> {
    system: S,
    steps: Vec<Taken>,
    pending: Vec<Pending>,
    /// What threads would have done next before steps changed it.
    undo: Vec<(ThreadId, Pending)>,
    /// The threads whose status is [`Status::Enabled`], and [`Status::Held`].
    ready: ThreadSet,
    held: ThreadSet,
    enabled: ThreadSet,
    preemptions: Preemptions,
    /// How many steps were taken one after the other by threads that are held back, since nobody else could move.
    forced: u32,
    /// Whether threads that spin are held back.
    fair: bool,
    /// The happens-before graph of the execution, if somebody asked for it.
    graph: Option<HbGraph>,
}

impl<'m, M: Model> Cursor<Copies<'m, M>> {
    /// Stands at the beginning of an execution of `model`.
    pub fn new(model: &'m M) -> Result<Self, Capacity> {
        Cursor::over(Copies::new(model)?)
    }
}

impl<S: System> Cursor<S> {
    /// Stands where `system` stands: at the beginning of an execution.
    pub fn over(mut system: S) -> Result<Self, Capacity> {
        let slots = (0..system.threads()).map(ThreadId::new);
        let pending = slots.map(|slot| system.ask(slot)).collect::<Result<_, _>>()?;
        let mut cursor = Cursor {
            system,
            steps: Vec::new(),
            pending,
            undo: Vec::new(),
            ready: ThreadSet::EMPTY,
            held: ThreadSet::EMPTY,
            enabled: ThreadSet::EMPTY,
            preemptions: Preemptions::default(),
            forced: 0,
            fair: false,
            graph: None,
        };
        (0..cursor.pending.len()).for_each(|slot| cursor.note_status(ThreadId::new(slot)));
        cursor.enabled = cursor.count_enabled();
        Ok(cursor)
    }

    /// Builds the happens-before graph of the execution from now on, which has to be its beginning.
    pub fn recording(mut self) -> Self {
        assert!(self.is_empty(), "a happens-before graph has all steps of its execution");
        self.graph = Some(HbGraph::new());
        self
    }

    /// Holds back threads that spin, from now on: that have come back to a state by steps of their own, so that they can only do
    /// the same again until another thread moves.
    pub fn fair(mut self) -> Self {
        self.fair = true;
        self
    }

    /// The happens-before graph of the execution, of a cursor that is [recording](Cursor::recording).
    pub fn graph(&self) -> Option<&HbGraph> {
        self.graph.as_ref()
    }

    /// The program.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// The program, to be asked about parts of the present execution.
    pub fn system_mut(&mut self) -> &mut S {
        &mut self.system
    }

    /// How many thread slots there are.
    pub fn threads(&self) -> usize {
        self.pending.len()
    }

    /// How many steps the execution has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether no step was taken yet.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
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

    /// Whether the execution goes on for ever from here, though every thread gets its turns: all that could move spin.
    pub fn is_livelock(&self) -> bool {
        self.enabled.is_empty() && !self.held.is_empty()
    }

    /// Whether the execution ends here with threads that wait though they may not rest.
    pub fn is_deadlock(&self) -> bool {
        self.enabled.is_empty()
            && !self.is_livelock()
            && self.pending.iter().any(|p| p.status == Status::Blocked { resting: false })
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
        let existing = if self.enabled.contains(thread) { &pending.footprints[..] } else { &[] };
        existing.iter().map(move |&(alternative, _)| Choice { thread, alternative })
    }

    /// Whether a step can be taken: the thread is enabled or only held back, which a reduction that reorders steps need not heed.
    pub fn can(&self, choice: Choice) -> bool {
        let pending = &self.pending[choice.thread.index()];
        matches!(pending.status, Status::Enabled | Status::Held)
            && pending.footprints.iter().any(|&(alternative, _)| alternative == choice.alternative)
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
        debug_assert!(self.can(choice), "only threads step that can");
        let footprint = self.footprint(choice).clone();
        let failure = self.system.step(choice)?;
        let start = self.graph.is_some().then(|| self.start(choice.thread)).flatten();
        let (before, forced) = (self.enabled, self.forced);
        self.forced = match self.pending[choice.thread.index()].status {
            Status::Held => forced + 1,
            // Its turn goes on until it is held back again.
            _ if self.running() == Some(choice.thread) => forced,
            _ => 0,
        };
        let preemptions = self.preemptions;
        self.preemptions.step(choice.thread, before);
        let undo = self.undo.len() as u32;
        let settled = self.system.settled().without(choice.thread);
        for thread in (0..self.pending.len()).map(ThreadId::new).filter(|&thread| !settled.contains(thread)) {
            let pending = &self.pending[thread.index()];
            let affected = thread == choice.thread
                || matches!(pending.status, Status::Vacant)
                || pending.footprints.iter().any(|(_, theirs)| theirs.depends(&footprint));
            if affected {
                let mut new = self.system.ask(thread)?;
                if thread == choice.thread && self.fair && new.status == Status::Enabled {
                    self.hold(&mut new, choice, &footprint);
                }
                if new != self.pending[thread.index()] {
                    let old = std::mem::replace(&mut self.pending[thread.index()], new);
                    self.undo.push((thread, old));
                    self.note_status(thread);
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
        self.steps.push(Taken { choice, footprint, enabled: before, preemptions, forced, undo });
        Ok(failure)
    }

    /// The step that started a thread which is about to take its first one; `None` if it was there from the beginning, or has
    /// taken a step already.
    fn start(&self, thread: ThreadId) -> Option<usize> {
        if self.graph.as_ref().is_some_and(|graph| graph.clock(thread).is_some()) {
            return None;
        }
        let started = |(other, old): &(ThreadId, Pending)| *other == thread && old.status == Status::Vacant;
        let at = self.undo.iter().rposition(started)? as u32;
        Some(self.steps.partition_point(|step| step.undo <= at) - 1)
    }

    /// Goes back to where the execution had `len` steps.
    pub fn rewind(&mut self, len: usize) {
        if let Some(graph) = &mut self.graph {
            graph.truncate(len);
        }
        if self.steps.len() > len {
            self.system.rewind(len);
        }
        while self.steps.len() > len {
            let step = self.steps.pop().expect("there are more steps than len");
            while self.undo.len() > step.undo as usize {
                let (thread, old) = self.undo.pop().expect("there are more changes than before the step");
                self.pending[thread.index()] = old;
                self.note_status(thread);
            }
            self.enabled = step.enabled;
            self.preemptions = step.preemptions;
            self.forced = step.forced;
        }
    }

    /// Checks what must hold in every state, in the present one.
    pub fn invariant(&mut self) -> Result<(), Box<Failure>> {
        self.system.invariant()
    }

    /// Holds the thread of the step just taken back if its steps have led it back to where it was.
    fn hold(&self, next: &mut Pending, choice: Choice, footprint: &Footprint) {
        if self.system.words().is_none() {
            // A system whose states are not known says itself who spins.
            return;
        }
        let mut round = footprint.clone();
        let mut own = self.steps.iter().rev().take_while(|step| step.choice.thread == choice.thread);
        let mut start = self.steps.len();
        while !self.system.is_back_at(start) {
            let Some(step) = own.next() else { return };
            step.footprint.accesses().iter().for_each(|&(location, access)| round.add(location, access));
            start -= 1;
        }
        next.status = Status::Held;
        for (_, footprint) in &mut next.footprints {
            round.accesses().iter().for_each(|&(location, access)| footprint.add(location, access));
        }
    }

    /// Takes note of whether a thread can move.
    fn note_status(&mut self, thread: ThreadId) {
        let status = self.pending[thread.index()].status;
        for (set, belongs) in [(&mut self.ready, Status::Enabled), (&mut self.held, Status::Held)] {
            *set = if status == belongs { set.with(thread) } else { set.without(thread) };
        }
    }

    /// The threads that can move. If all that could are held back, one of them gets its turn after the other, until that has
    /// led to nothing.
    fn count_enabled(&self) -> ThreadSet {
        let held = self.held.len() as u32;
        if !self.ready.is_empty() || held == 0 || self.forced >= held * self.system.patience() {
            return self.ready;
        }
        self.held.iter().nth((self.forced % held) as usize).into_iter().collect()
    }
}
