//! An execution as its front end records it, and what follows from the record without running
//! anything.
//!
//! A front end *records* a step in two halves, because the code of the program runs in between:
//! [`start_step`](Recording::start_step) performs the pending operation of a thread on the pure
//! objects, then the thread runs to its next operation ([`arrive`](Recording::arrive)), and
//! [`end_step`](Recording::end_step) stores the outcome. A front end that gets the whole trace of
//! an execution at once calls [`feed`](Recording::feed) for each event instead.

use std::hash::Hash;

use preempt_system::{
    Access, Action, Choice, Footprint, Location, LocationKind, Misuse, Pending, Status, Swap,
    ThreadId, ThreadSet,
};

use crate::history::History;
use crate::names::Names;
use crate::op::{EarlyWake, Lookahead, NO_OBJECT, Op, OpKind, Outcome, Versions};
use crate::site::SiteId;
use crate::spin::{self, LoopRounds};
use crate::state::State;

/// Whether the steps of an execution are new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Steps are recorded.
    #[default]
    Record,
    /// Steps repeat the recorded ones, and the operations of the threads are compared with them.
    Repeat,
}

/// An operation other than the one that the same schedule led to before.
#[derive(Clone, Copy, Debug)]
pub struct Divergence {
    /// The thread that arrived at the operation.
    pub thread: ThreadId,
    /// The number of operations that the thread had performed.
    pub at: usize,
    /// The operation that was recorded.
    pub recorded: Op,
    /// The operation at which the thread has arrived now.
    pub found: Op,
}

/// One step of an execution, as a trace reports it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread that stepped, and the alternative that it took.
    pub choice: Choice,
    /// The [value](Outcome::value) that the step read, and whether it made a
    /// [change](Outcome::changed) or [progress](Outcome::progress). The recording computes the
    /// other fields.
    pub outcome: Outcome,
    /// The next operation of the thread, unless it has ended.
    pub next: Option<Op>,
    /// The threads that it started, with their first operations.
    pub started: Vec<(ThreadId, Op)>,
}

/// A step between its two halves.
#[derive(Clone, Copy, Debug)]
#[must_use = "a step has a second half"]
pub struct StartedStep {
    thread: ThreadId,
    /// The number of the thread's operations before it.
    at: usize,
    site: SiteId,
    objects: [u32; 2],
    before: [u32; 2],
    may_spin: bool,
    /// Whether the thread has yielded twice, so that the step may be idle.
    yields: bool,
    idle: bool,
}

impl StartedStep {
    /// The number of operations that the thread has performed, this one included.
    #[inline]
    pub fn count(&self) -> usize {
        self.at + 1
    }

    /// The place of its operation in the program.
    #[inline]
    pub fn site(&self) -> SiteId {
        self.site
    }
}

/// The objects that decide whether and how a thread can take its next step, which is not the same
/// in every state.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// The objects of its next operation; the first one twice if there is no second.
    objects: [u32; 2],
    /// It spins, and so also watches the objects of its last operations.
    spins: bool,
}

impl Waits {
    #[inline(always)]
    fn of(op: &Op, spins: bool) -> Waits {
        let other = if op.other == NO_OBJECT { op.object } else { op.other };
        Waits { objects: [op.object, other], spins }
    }

    /// Whether a step on these objects may change whether, or how, the thread can step. Operations
    /// without an object count as if they had one in common.
    #[inline(always)]
    fn depend_on(&self, [object, other]: [u32; 2]) -> bool {
        let is = |own: u32| own == object || own == other;
        self.spins || is(self.objects[0]) || is(self.objects[1])
    }
}

/// The current execution: the histories of its threads and its state. `P` identifies an object
/// across executions, see [`Names`].
#[derive(Debug)]
pub struct Recording<P> {
    names: Names<P>,
    loops: LoopRounds,
    histories: Vec<History>,
    state: State,
    mode: Mode,
    /// The threads before the first step.
    first: ThreadSet,
    /// The threads whose next operation is [uniform](Op::is_uniform).
    uniform: ThreadSet,
    /// For each slot whose thread is none of these, what it needs instead.
    waits: Vec<Waits>,
    unaffected: ThreadSet,
    /// Whether a thread has yielded, in this execution or an earlier one. Before, no step has to
    /// look for loops that yield.
    yields: bool,
}

impl<P: Copy + Eq + Hash> Recording<P> {
    /// A recording without an execution. `loops` are known to end by themselves.
    pub fn new(names: Names<P>, loops: LoopRounds) -> Recording<P> {
        let slots = names.slots();
        let histories = (0..slots).map(|_| History::default()).collect();
        Recording {
            names,
            loops,
            histories,
            state: State::default(),
            mode: Mode::Record,
            first: ThreadSet::EMPTY,
            uniform: ThreadSet::EMPTY,
            waits: vec![Waits::default(); slots],
            unaffected: ThreadSet::EMPTY,
            yields: false,
        }
    }

    /// Starts an execution with the first thread. The recorded operations stay, for executions that
    /// [repeat](Mode::Repeat) them.
    pub fn begin(&mut self) {
        self.names.begin();
        let first = ThreadSet::EMPTY.with(ThreadId::new(0));
        self.state.begin(self.names.slots(), first, self.names.objects());
    }

    /// Adds threads that were started before the first step.
    pub fn start(&mut self, threads: ThreadSet) {
        self.state.start(threads, self.names.objects());
    }

    /// Every thread has arrived at its first operation: the state is the initial one.
    pub fn ready(&mut self) {
        self.first = self.state.started();
        self.ask_all();
    }

    /// Switches between recording and repeating.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Whether steps are new.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The names of threads and objects.
    #[inline]
    pub fn names(&self) -> &Names<P> {
        &self.names
    }

    /// The names of threads and objects, to add some.
    #[inline]
    pub fn names_mut(&mut self) -> &mut Names<P> {
        &mut self.names
    }

    /// Drops the execution and keeps the names.
    pub fn into_names(self) -> Names<P> {
        self.names
    }

    /// The loops that are known to end by themselves.
    pub fn loops(&self) -> &LoopRounds {
        &self.loops
    }

    /// The state after the steps so far.
    #[inline]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The operations and outcomes of a thread.
    #[inline]
    pub fn history(&self, thread: ThreadId) -> &History {
        &self.histories[thread.index()]
    }

    /// The histories of all threads, by slot.
    pub fn histories(&self) -> &[History] {
        &self.histories
    }

    /// The next operation of a thread.
    #[inline]
    pub fn next_op(&self, thread: ThreadId) -> Option<&Op> {
        self.histories[thread.index()].ops.get(self.state.count(thread.index()))
    }

    /// The last operation that a thread has performed.
    pub fn last_op(&self, thread: ThreadId) -> Option<&Op> {
        let last = self.state.count(thread.index()).checked_sub(1)?;
        self.histories[thread.index()].ops.get(last)
    }

    /// Whether `thread`, which has just locked `lock` for reading, has overtaken a writer that
    /// waits for other readers.
    pub fn has_overtaken_writer(&self, thread: ThreadId, lock: u32) -> bool {
        let others = || self.state.started().without(thread).iter();
        let writes = |op: &Op| op.object == lock && op.kind == OpKind::Object(Action::WriteLock);
        others().any(|other| self.next_op(other).is_some_and(writes))
            && others().any(|other| self.state.holds(self.names.objects(), other, lock))
    }

    /// Whether an assumption of a thread has failed.
    pub fn is_discarded(&self) -> bool {
        let waits = |thread| self.next_op(thread).is_some_and(|op| op.kind == OpKind::Assume);
        self.state.started().iter().any(waits)
    }

    /// Whether a thread has started and ended.
    #[inline]
    pub fn has_ended(&self, thread: ThreadId) -> bool {
        self.state.started().contains(thread) && self.next_op(thread).is_none()
    }

    /// A thread arrives at its next operation.
    #[inline]
    pub fn arrive(&mut self, thread: ThreadId, op: &Op) -> Result<(), Box<Divergence>> {
        self.arrive_after(self.state.count(thread.index()), thread, op)
    }

    /// The same for a caller that knows `at`, the number of operations that the thread has
    /// performed.
    #[inline(always)]
    pub fn arrive_after(
        &mut self,
        at: usize,
        thread: ThreadId,
        op: &Op,
    ) -> Result<(), Box<Divergence>> {
        debug_assert_eq!(at, self.state.count(thread.index()), "the thread's operations");
        let ops = &mut self.histories[thread.index()].ops;
        match ops.get(at) {
            Some(recorded) if self.mode == Mode::Repeat => {
                if !recorded.is_same(op) {
                    return Err(diverge(thread, at, recorded, op));
                }
            }
            Some(_) => {
                ops.truncate(at);
                ops.push(*op);
            }
            None => ops.push(*op),
        }
        Ok(())
    }

    /// A thread has ended without a step of its own for that. If it repeats recorded steps and
    /// performed another operation before, returns that operation.
    pub fn end(&mut self, thread: ThreadId) -> Option<Op> {
        let at = self.state.count(thread.index());
        let ops = &mut self.histories[thread.index()].ops;
        if self.mode == Mode::Repeat {
            return ops.get(at).copied();
        }
        ops.truncate(at);
        None
    }

    /// A thread has yielded. Its next operation carries the place of the yield.
    pub fn note_yield(&mut self) {
        self.yields = true;
    }

    /// Whether a thread has yielded.
    #[inline]
    pub fn yields(&self) -> bool {
        self.yields
    }

    /// Performs the next operation of a thread on the objects. The reply is what the thread learns
    /// from them.
    #[inline(always)]
    pub fn start_step(&mut self, choice: Choice) -> (StartedStep, Result<i64, Misuse>) {
        self.perform::<false>(choice)
    }

    /// The same for a step that repeats a recorded one.
    #[inline(always)]
    pub fn start_repeated_step(&mut self, choice: Choice) -> (StartedStep, Result<i64, Misuse>) {
        self.perform::<true>(choice)
    }

    /// `REPEAT` is a constant because a search takes most steps again: every execution begins with
    /// steps of the one before.
    #[inline(always)]
    fn perform<const REPEAT: bool>(
        &mut self,
        choice: Choice,
    ) -> (StartedStep, Result<i64, Misuse>) {
        debug_assert_eq!(self.mode == Mode::Repeat, REPEAT, "a repeated step was recorded");
        let (thread, slot) = (choice.thread, choice.thread.index());
        let at = self.state.count_one(slot);
        let history = &mut self.histories[slot];
        if !REPEAT {
            history.forget_after(at);
        }
        let op = &history.ops[at];
        debug_assert!(op.kind != OpKind::Finish || op.object as usize == slot, "its own life ends");
        let yields = self.yields && at > 0 && history.outcomes[at - 1].yields > 1;
        let idle = REPEAT && yields && history.outcomes[at].idle;
        let objects = [op.object, op.other];
        // Versions matter for new outcomes, and to take back the changes of an idle step.
        let before = if REPEAT && !idle { [0; 2] } else { self.state.versions(objects) };
        let reply = self.state.perform(self.names.objects(), thread, op, choice.alternative);
        let (site, may_spin) = (op.site, op.may_spin());
        (StartedStep { thread, at, site, objects, before, may_spin, yields, idle }, reply)
    }

    /// The operation of a step.
    #[inline]
    pub fn op(&self, step: StartedStep) -> &Op {
        &self.histories[step.thread.index()].ops[step.at]
    }

    /// Attempts to lock count as writes even where they fail, and so do waits with a timeout, which
    /// access the mutex of a condition variable even where they time out. A search over execution
    /// graphs needs this: it moves a step to other places of the graph, and its class must not
    /// change there.
    pub fn count_attempts_as_writes(&mut self) {
        self.names.objects_mut().attempts_write = true;
    }

    /// The value of an atomic after the steps so far.
    #[inline]
    pub fn value(&self, object: u32) -> Option<u64> {
        self.state.value(self.names.objects(), object)
    }

    /// A thread arrives at an operation on an atomic that has this value. Returns whether that is
    /// the value that the steps so far left there.
    pub fn find_value(&mut self, object: u32, value: u64) -> bool {
        match self.state.written(object) {
            Some(written) => written == value,
            None => {
                self.names.objects_mut().set_value(object, value);
                true
            }
        }
    }

    /// The running thread accesses an atomic, which has this value afterwards.
    #[inline]
    pub fn set_value(&mut self, object: u32, value: u64) {
        self.state.write(object, value);
    }

    /// The running thread changes an object without fields.
    #[inline]
    pub fn change(&mut self, object: u32) {
        self.state.change(self.names.objects(), object);
    }

    /// Records the outcome of a step, after which its thread has arrived at its next operation and
    /// the threads of `started` at their first, and computes the fields of it that follow from the
    /// recording. Returns whether the thread spins.
    ///
    /// The fields are set in place, and then all of the outcome is copied at once: that takes half
    /// the instructions of making a new one from the old one field by field.
    #[inline(always)]
    pub fn end_step(
        &mut self,
        step: StartedStep,
        outcome: &mut Outcome,
        started: ThreadSet,
    ) -> bool {
        if !started.is_empty() {
            self.start(started);
        }
        let history = &mut self.histories[step.thread.index()];
        outcome.idle = step.yields && spin::is_idle(&history.ops, step.at, &self.loops);
        if outcome.idle {
            self.state.disregard(&history.ops[step.at], step.before);
        }
        let after = self.state.versions(step.objects);
        outcome.versions = [0, 1].map(|of| Versions { before: step.before[of], after: after[of] });
        outcome.spawned = started;
        outcome.progress |= !step.may_spin || !started.is_empty();
        let mut spins = history.push(outcome, &self.loops);
        if self.yields {
            history.find_yielding_round(&self.loops);
            spins = history.spins();
        }
        // As in `note_uniform`, with what is at hand: every new step of a search comes here.
        let next = history.ops.get(step.at + 1).filter(|op| spins || !op.is_uniform());
        let waits = next.map(|op| Waits::of(op, spins));
        self.note_waits(step.thread, waits);
        spins
    }

    /// The same for a step that repeats a recorded one, whose outcome is known.
    #[inline(always)]
    pub fn end_repeated_step(&mut self, step: StartedStep, started: ThreadSet) {
        if !started.is_empty() {
            self.start(started);
        }
        if step.idle {
            let op = &self.histories[step.thread.index()].ops[step.at];
            self.state.disregard(op, step.before);
        }
    }

    /// Records one step of a trace. The reply is what the thread learned from the objects; a misuse
    /// is recorded as well.
    pub fn feed(&mut self, event: &Event) -> Result<i64, Misuse> {
        let Event { choice, outcome, next, started } = event;
        let (step, reply) = self.start_step(*choice);
        if outcome.changed {
            self.change(step.objects[0]);
        }
        let mut threads = ThreadSet::EMPTY;
        let all = next.iter().map(|&op| (choice.thread, op)).chain(started.iter().copied());
        for (thread, op) in all {
            self.yields |= op.yielded.is_some();
            self.arrive(thread, &op).expect("only a repeated step can diverge");
            if thread != choice.thread {
                threads.insert(thread);
            }
        }
        let mut outcome = Outcome { alternative: choice.alternative, ..*outcome };
        self.end_step(step, &mut outcome, threads);
        self.note_started(step, threads);
        reply
    }

    /// Returns to the point after the steps of `path`, a prefix of the recorded execution, without
    /// running anything.
    pub fn rewind(&mut self, path: &[Choice]) {
        let mut state = self.initial();
        path.iter().for_each(|&choice| self.advance(&mut state, choice));
        self.state = state;
        self.ask_all();
    }

    /// Replaces the state after a look ahead of `thread` alone, and forgets the operations of that
    /// look. `lookahead` is its result.
    pub fn take_back(&mut self, state: State, thread: ThreadId) {
        let count = state.count(thread.index());
        let history = &mut self.histories[thread.index()];
        history.ops.truncate(count + 1);
        history.outcomes.truncate(count);
        self.state = state;
        self.note_uniform(thread);
    }

    /// Records whether the loop in which a thread spins ends by itself.
    pub fn set_lookahead(&mut self, thread: ThreadId, lookahead: Lookahead) {
        let last = self.histories[thread.index()].outcomes.last_mut();
        last.expect("a thread that spins has performed an operation").lookahead = lookahead;
    }

    /// The next step of a thread.
    pub fn ask(&self, thread: ThreadId) -> Pending {
        self.state.ask(self.names.objects(), thread, self.history(thread))
    }

    /// Writes to `pending` what a thread would do next.
    #[inline]
    pub fn ask_into(&self, thread: ThreadId, pending: &mut Pending) {
        self.state.ask_into(self.names.objects(), thread, self.history(thread), pending);
    }

    /// The accesses of an operation that need not wait, in its first alternative.
    pub fn footprint(&self, thread: ThreadId, op: &Op) -> Footprint {
        let write = |object| (Location(object), Access::Write);
        let access = |action| self.names.objects().of(op.object).0.access(action);
        match op.kind {
            OpKind::Load(_) | OpKind::Peek => Footprint::one(Location(op.object), Access::Read),
            OpKind::Store(_)
            | OpKind::Update(_)
            | OpKind::CompareExchange { .. }
            | OpKind::WeakCompareExchange { .. }
            | OpKind::Touch
            | OpKind::Return
            | OpKind::Downgrade
            | OpKind::Park { .. } => [write(op.object)].into_iter().collect(),
            OpKind::Object(action) => Footprint::one(Location(op.object), access(action)),
            OpKind::Wait => [write(op.object), write(op.other)].into_iter().collect(),
            OpKind::Wake { early } => {
                // Without a notification it leaves the set of waiting threads itself.
                let access = if early == EarlyWake::Never { Access::Read } else { Access::Write };
                [(Location(op.object), access), write(op.other)].into_iter().collect()
            }
            OpKind::Finish => [write(thread.index() as u32)].into_iter().collect(),
            OpKind::Call(returns) => {
                returns.read().map(|object| (Location(object), Access::Read)).collect()
            }
            OpKind::Choose(_) | OpKind::Fence | OpKind::Yield | OpKind::Assume => Footprint::new(),
        }
    }

    /// The state before the first step: see
    /// [`System::initial`](preempt_system::System::initial).
    pub fn initial(&self) -> State {
        let mut state = State::default();
        state.begin(self.names.slots(), self.first, self.names.objects());
        state
    }

    /// Advances the state of a prefix by a step of the recorded execution: see
    /// [`System::advance`](preempt_system::System::advance).
    pub fn advance(&self, state: &mut State, choice: Choice) {
        state.advance(self.names.objects(), choice.thread, self.history(choice.thread));
    }

    /// The next step of a thread after a prefix: see
    /// [`System::ask_at`](preempt_system::System::ask_at).
    pub fn ask_at(&self, state: &State, thread: ThreadId) -> Pending {
        state.ask(self.names.objects(), thread, self.history(thread))
    }

    /// Whether the later of two racing steps could have come first: see
    /// [`System::swap`](preempt_system::System::swap).
    pub fn swap(&self, earlier: (ThreadId, usize), (thread, nth): (ThreadId, usize)) -> Swap {
        let (before, op) =
            (&self.history(earlier.0).ops[earlier.1], &self.history(thread).ops[nth]);
        let spins = nth > 0 && self.history(thread).outcomes[nth - 1].round > 0;
        match op.kind {
            // Nothing else ends the wait, and what it waits for comes after everything else.
            OpKind::Object(Action::Join) if matches!(before.kind, OpKind::Finish) => {
                Swap::Impossible
            }
            // They have other alternatives.
            OpKind::WeakCompareExchange { .. } | OpKind::Choose(_) => Swap::Unknown,
            _ if op.is_uniform() && !spins => Swap::Possible,
            _ => Swap::Unknown,
        }
    }

    /// Whether accesses to a location are synchronisation: see
    /// [`System::location_kind`](preempt_system::System::location_kind).
    pub fn location_kind(&self, location: Location) -> LocationKind {
        self.names.thread_of(location.0).map_or(LocationKind::Synchronisation, LocationKind::Life)
    }

    /// Threads whose pending step the last step cannot have changed: see
    /// [`System::unaffected`](preempt_system::System::unaffected).
    #[inline]
    pub fn unaffected(&self) -> ThreadSet {
        self.unaffected
    }

    /// The last step started the threads of `started`: updates which threads it cannot have
    /// affected. A thread whose next operation is the same in every state is affected only by its
    /// own steps.
    ///
    /// Any other one is affected only by a step on an object of its next operation, unless it
    /// spins: its pending step is a function of its history, of the fields and values of these
    /// objects and, if it spins, of the versions of all objects that it watches, and a step changes
    /// no fields and values but those of its own objects ([`State::perform`]) and of the lives of
    /// threads that it starts.
    #[inline(always)]
    pub fn note_started(&mut self, step: StartedStep, started: ThreadSet) {
        let vacant = !self.state.started().bits();
        if !started.is_empty() {
            started.iter().for_each(|thread| self.note_uniform(thread));
            let unaffected = (self.uniform.bits() | vacant) & !started.bits();
            self.unaffected = ThreadSet::from_bits(unaffected);
            return;
        }
        let mut unaffected = ThreadSet::from_bits(self.uniform.bits() | vacant);
        for thread in ThreadSet::from_bits(!unaffected.bits()).iter() {
            if !self.waits[thread.index()].depend_on(step.objects) {
                unaffected.insert(thread);
            }
        }
        self.unaffected = unaffected;
    }

    /// All threads may have been affected since they were asked last.
    pub fn ask_all(&mut self) {
        let started = self.state.started();
        started.iter().for_each(|thread| self.note_uniform(thread));
        self.unaffected = ThreadSet::from_bits(!started.bits());
    }

    #[inline(always)]
    fn note_uniform(&mut self, thread: ThreadId) {
        let at = self.state.count(thread.index());
        let history = &self.histories[thread.index()];
        let spins = history.spins_after(at);
        let next = history.ops.get(at).filter(|op| spins || !op.is_uniform());
        let waits = next.map(|op| Waits::of(op, spins));
        self.note_waits(thread, waits);
    }

    #[inline(always)]
    fn note_waits(&mut self, thread: ThreadId, waits: Option<Waits>) {
        match waits {
            None => self.uniform.insert(thread),
            Some(waits) => {
                self.uniform.remove(thread);
                self.waits[thread.index()] = waits;
            }
        }
    }

    /// The threads that are held back because they spin, if no other thread can step; else none.
    pub fn only_spinning(&self) -> ThreadSet {
        let mut spinning = ThreadSet::EMPTY;
        for thread in self.state.started().iter() {
            match self.ask(thread).status {
                Status::Spinning => spinning.insert(thread),
                Status::Enabled => return ThreadSet::EMPTY,
                _ => {}
            }
        }
        spinning
    }

    /// Whether a thread other than `thread` can step.
    pub fn others_can_step(&self, thread: ThreadId) -> bool {
        self.state.started().without(thread).iter().any(|other| self.can_step(other))
    }

    /// Whether a thread can step, if it is not held back.
    pub fn can_step(&self, thread: ThreadId) -> bool {
        matches!(self.ask(thread).status, Status::Enabled | Status::Spinning)
    }

    /// Whether a step is possible now.
    pub fn can_take(&self, choice: Choice) -> bool {
        let pending = self.ask(choice.thread);
        matches!(pending.status, Status::Enabled | Status::Spinning)
            && pending.footprints.iter().any(|&(alternative, _)| alternative == choice.alternative)
    }

    /// The state and the histories, to be [restored](Recording::restore) after other steps.
    pub fn save(&self) -> Saved {
        Saved {
            state: self.state.clone(),
            histories: self.histories.clone(),
            uniform: self.uniform,
            waits: self.waits.clone(),
            unaffected: self.unaffected,
        }
    }

    /// Restores what was saved in the same recording.
    pub fn restore(&mut self, saved: Saved) {
        Saved {
            state: self.state,
            histories: self.histories,
            uniform: self.uniform,
            waits: self.waits,
            unaffected: self.unaffected,
        } = saved;
    }
}

/// Out of the way of the steps that repeat.
#[cold]
fn diverge(thread: ThreadId, at: usize, recorded: &Op, found: &Op) -> Box<Divergence> {
    Box::new(Divergence { thread, at, recorded: *recorded, found: *found })
}

/// A point of a recording.
#[derive(Clone, Debug)]
pub struct Saved {
    state: State,
    histories: Vec<History>,
    uniform: ThreadSet,
    waits: Vec<Waits>,
    unaffected: ThreadSet,
}
