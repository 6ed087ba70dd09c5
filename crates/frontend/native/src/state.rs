//! The part of an execution's state that decides which threads can step: the fields of the objects
//! and the number of steps of each thread.
//!
//! No code of the program runs here. Operations come from the threads' histories, so the same
//! functions serve the current execution and parts of it that were never executed.
//!
//! This is not the record of closures (`preempt_replay::Recording`): the rules below, for the end
//! of the process, deadlines and descriptors, concern all threads and have no counterpart there.
//!
//! # The process as a location
//!
//! Some operations concern all threads. *Exit* ends them, so it must not be independent of their
//! steps. With a *yield*, a thread can wait in a loop until another thread changes plain memory,
//! and no operation shows which memory; so it may be waiting for any step of another thread. A
//! *deadline* passes when the other threads cannot run, or only for a short time
//! ([`may_expire`](preempt_native_block::may_expire)). If a program has such an operation while
//! several threads live, every step reads the location [`PROCESS`], and these operations write it
//! ([`Needs::process`]). A thread that waits for its deadline writes it too: any step of another
//! thread may let time pass.
//!
//! If the main thread has ended by `pthread_exit`, the last thread that ends also ends the process.
//! Then it matters which thread is the last, so the ends of threads write [`ENDS`].
//!
//! If the end of the process interrupts a thread, the thread is *resting*: it waits for something
//! that never happens, which is not an error. Dynamic reductions then also consider the executions
//! in which it continues first.
//!
//! # Descriptors
//!
//! The readiness of descriptors is part of the kernel's state, not of this one. All operations on
//! descriptors write the location [`DESCRIPTORS`], so their order, and with it the readiness, is
//! the same in all executions with the same happens-before graph; the runtime logs it. If it was
//! not logged for a state, that state is executed ([`crate::ready`]).
//!
//! # Yields
//!
//! A thread that yields again at the same place, while no other thread has taken a step since, is
//! held back ([`Status::Spinning`]): nothing that it could observe has changed. Because yields
//! write [`PROCESS`] and all steps read it, the steps of other threads since a yield are the same
//! in all executions with the same happens-before graph. The steps of a loop that yields do not
//! count from its third round on ([`Outcome::idle`]): two such loops would let each other continue
//! forever, while a third thread waits.
//!
//! # Loops
//!
//! The runtime reports when a thread spins ([`Outcome::round`]): it repeats operations that change
//! nothing and find the same values, or it yields in a loop whose objects no other thread changes.
//! The thread is held back until an object changes that it used in its last round. A loop that
//! yields may change its objects itself, as one that polls under a lock; what it changes from the
//! third round on releases no other thread ([`Outcome::idle`]), or two such loops would release
//! each other forever. Whether it spins follows from its own operations and their results,
//! and whether it is held back follows from the versions of the watched objects, so both are the
//! same in all executions with the same happens-before graph; `preempt_replay::spin` makes the same
//! argument for closures. The next step of such a thread reads the watched objects in addition to
//! its own, whether or not it is held back.

use preempt_native_block::{MAX_COUNT, NEVER, Op as OpKind, may_expire};
use preempt_system::fingerprint::Mixer;
use preempt_system::{
    Access, Action, Footprint, Location, Misuse, Pending, Status, ThreadId, ThreadSet,
};

use crate::fences::Fences;
use crate::names::{DESCRIPTORS, ENDS, NOTHING, Names, PROCESS};

/// An operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) kind: OpKind,
    /// The location of its object, or [`NOTHING`].
    pub(crate) object: u32,
    /// The location of a second object, or [`NOTHING`].
    pub(crate) other: u32,
    /// The return address of the call.
    pub(crate) pc: u64,
    pub(crate) detail: Detail,
    /// The local time of the thread when it reaches the operation, in nanoseconds.
    pub(crate) time: u64,
    /// The local time at which a wait times out, or [`NEVER`].
    pub(crate) deadline: u64,
}

/// Details of an operation that do not change its footprint. They are compared to detect that two
/// executions of the same schedule differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Detail {
    /// The size of an atomic variable in bytes.
    pub(crate) size: u8,
    /// For an atomic operation, its [memory orders](preempt_native_block::orders); for a futex
    /// wait, the expected value; for descriptors, the [call](preempt_native_block::Call).
    pub(crate) number: u32,
    /// For an atomic operation, a [digest](preempt_native_block::digest) of its operands; for
    /// descriptors, the number of the descriptor.
    pub(crate) operands: u64,
    /// Under weak memory, the value that a compare-and-exchange expects.
    pub(crate) expected: u64,
}

impl Op {
    pub(crate) fn yields(&self) -> bool {
        self.kind == OpKind::Yield
    }

    /// Whether it can time out.
    pub(crate) fn is_timed(&self) -> bool {
        self.deadline != NEVER
    }
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The alternative that was taken.
    pub(crate) alternative: u32,
    /// A result that does not follow from the states of the objects.
    pub(crate) learned: u32,
    /// The value that an atomic operation found.
    pub(crate) found: u128,
    /// The value after an atomic operation; the same as `found` if it has not written.
    pub(crate) left: u128,
    /// Whether an atomic operation has written.
    pub(crate) wrote: bool,
    /// The value that was in memory before an atomic operation: the same as `found` unless the
    /// operation is stale (see [`crate::weak`]).
    pub(crate) memory: u128,
    /// The fences that the thread performed before its next operation, under weak memory.
    pub(crate) fences: Fences,
    /// The threads that the thread created before its next operation.
    pub(crate) started: ThreadSet,
    /// If the thread spins after the operation, the number of operations of one round; else 0.
    pub(crate) round: u16,
    /// Whether what the operation changed releases no thread that is held back.
    pub(crate) idle: bool,
    /// The versions of the operation's objects after it.
    pub(crate) seen: [u32; 2],
}

/// The operations of a thread with their outcomes. There is one more operation than outcomes,
/// unless the thread has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) ops: Vec<Op>,
    pub(crate) outcomes: Vec<Outcome>,
    /// After each operation, a digest of the values that the thread has found so far.
    digests: Vec<u64>,
}

impl History {
    /// The history of a new thread whose first operation is `op`.
    pub(crate) fn starting(op: Op) -> History {
        History { ops: vec![op], ..History::default() }
    }

    /// A digest of the values that the thread has found in its first `count` operations.
    pub(crate) fn digest(&self, count: usize) -> u64 {
        count.checked_sub(1).and_then(|last| self.digests.get(last)).copied().unwrap_or(0)
    }

    /// Records the outcome of the operation with index `count` and the operation after it. Replaces
    /// everything that was recorded after that index.
    pub(crate) fn record(&mut self, count: usize, outcome: Outcome, next: Option<Op>) {
        let mut mixer = Mixer::new();
        mixer.absorb(self.digest(count));
        mixer.absorb(outcome.learned.into());
        mixer.absorb(outcome.found as u64 ^ (outcome.found >> 64) as u64);
        self.digests.truncate(count);
        self.digests.push(mixer.finish().0 as u64);
        self.outcomes.truncate(count);
        self.outcomes.push(outcome);
        self.ops.truncate(count + 1);
        self.ops.extend(next);
    }

    /// The length of the round in which the thread spins after its first `count` operations, or 0.
    /// A thread that has read old values does not spin: the newest ones may let it continue.
    pub(crate) fn round(&self, count: usize) -> usize {
        if self.spins_on_stale_values(count) { 0 } else { self.reported_round(count) }
    }

    /// The length of the round that the runtime has reported.
    fn reported_round(&self, count: usize) -> usize {
        let last = count.checked_sub(1).and_then(|last| self.outcomes.get(last));
        last.map_or(0, |last| last.round.into())
    }

    /// Whether the thread repeats a round in which it has read an older store than the newest one.
    /// Stores become visible in finite time, so it reads the newest ones next.
    pub(crate) fn spins_on_stale_values(&self, count: usize) -> bool {
        let first = count.saturating_sub(self.reported_round(count));
        (first..count).any(|at| self.ops[at].kind.is_atomic() && self.outcomes[at].alternative != 0)
    }

    /// The objects that the thread used in its last round, with their versions after its last
    /// operation on each. An object occurs as often as it was used.
    fn watched(&self, count: usize, round: usize) -> impl Iterator<Item = (u32, u32)> {
        let first = count.saturating_sub(round);
        let used = |at: usize| {
            let (op, outcome) = (&self.ops[at], &self.outcomes[at]);
            [(op.object, outcome.seen[0]), (op.other, outcome.seen[1])]
        };
        (first..count).flat_map(used).filter(|&(object, _)| object != NOTHING).map(
            move |(object, _)| {
                let last = (first..count).rev().flat_map(used).find(|&(other, _)| other == object);
                last.expect("the object was used in the round")
            },
        )
    }

    /// Whether the operation with index `count` and the one before are yields at the same place.
    pub(crate) fn yields_again(&self, count: usize) -> bool {
        let next = self.ops.get(count).filter(|op| op.yields());
        let before = count.checked_sub(1).and_then(|last| self.ops.get(last));
        next.zip(before)
            .is_some_and(|(next, before)| (next.kind, next.pc) == (before.kind, before.pc))
    }
}

/// Dependencies that the search has turned out to need: see the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Whether steps depend on the end of the process, on yields and on deadlines.
    pub(crate) process: bool,
}

/// The data besides the state on which the pending step of a thread depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'c> {
    pub(crate) names: &'c Names,
    /// The histories of all threads, by slot.
    pub(crate) histories: &'c [History],
    pub(crate) needs: Needs,
    /// The maximal delay of a thread that can run: see [`may_expire`].
    pub(crate) max_delay: u64,
    /// The threads that wait for descriptors which are ready.
    pub(crate) ready: ThreadSet,
}

/// A state: see the module documentation.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The threads that exist or have ended.
    pub(crate) started: ThreadSet,
    /// The number of operations that each thread has performed.
    counts: Vec<u32>,
    /// The fields of the objects that were known at the last action; others have initial fields.
    cells: Vec<u64>,
    /// The number of changes of each object, by location.
    versions: Vec<u32>,
    /// The number of steps of all threads, without idle ones.
    steps: u32,
    /// For each thread, the value of `steps` after its last step.
    stepped_at: Vec<u32>,
    /// The thread that has ended the process, if one has.
    exited: Option<ThreadId>,
    /// Whether the process has ended by a failure.
    failed: bool,
}

impl State {
    /// The state before the first step, in which the threads in `started` exist.
    pub(crate) fn new(slots: usize, started: ThreadSet, names: &Names) -> State {
        let mut state =
            State { counts: vec![0; slots], stepped_at: vec![0; slots], ..State::default() };
        state.start(started, names);
        state
    }

    /// The number of operations that a thread has performed.
    pub(crate) fn count(&self, thread: ThreadId) -> usize {
        self.counts[thread.index()] as usize
    }

    /// Ends the process by a failure.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether the process has ended by a failure.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// The fields of all objects.
    pub(crate) fn cells<'a>(&self, names: &'a Names) -> Vec<u64>
    where
        Self: 'a,
    {
        let mut cells = self.cells.clone();
        cells.extend_from_slice(&names.initial()[cells.len()..]);
        cells
    }

    /// Adds the fields of objects that are new since the last call.
    fn add_new_objects(&mut self, names: &Names) {
        let known = self.cells.len();
        self.cells.extend_from_slice(&names.initial()[known..]);
    }

    fn start(&mut self, threads: ThreadSet, names: &Names) {
        for thread in threads.iter() {
            self.act(names, thread, thread.index() as u32, Action::Start)
                .expect("a thread starts once");
            self.started.insert(thread);
        }
    }

    fn act(
        &mut self,
        names: &Names,
        thread: ThreadId,
        object: u32,
        action: Action,
    ) -> Result<i64, Misuse> {
        self.add_new_objects(names);
        let (kind, at) = names.kind(object);
        let fields = &mut self.cells[at..at + kind.fields()];
        let before: [u64; 2] = std::array::from_fn(|field| fields.get(field).copied().unwrap_or(0));
        debug_assert!(fields.len() <= before.len(), "objects of the C library have few fields");
        let reply = kind.apply(fields, thread, action);
        let changed = fields.iter().zip(before).any(|(now, before)| *now != before);
        if changed {
            self.change(object);
        }
        reply
    }

    /// Counts a change of an object.
    fn change(&mut self, object: u32) {
        let at = object as usize;
        if self.versions.len() <= at {
            self.versions.resize(at + 1, 0);
        }
        self.versions[at] += 1;
    }

    /// The number of changes of an object.
    pub(crate) fn version(&self, object: u32) -> u32 {
        self.versions.get(object as usize).copied().unwrap_or(0)
    }

    fn fields<'a>(&'a self, names: &'a Names, at: usize) -> &'a [u64] {
        // `cells` ends between two objects, so either all fields of an object are there or none.
        if at < self.cells.len() { &self.cells[at..] } else { &names.initial()[at..] }
    }

    fn can(&self, names: &Names, thread: ThreadId, object: u32, action: Action) -> bool {
        let (kind, at) = names.kind(object);
        kind.enabled(self.fields(names, at), thread, action)
    }

    /// Takes the next step of a thread. A misuse changes nothing but the number of steps.
    pub(crate) fn step(
        &mut self,
        names: &Names,
        thread: ThreadId,
        op: &Op,
        outcome: &Outcome,
    ) -> Result<i64, Misuse> {
        self.steps += u32::from(!outcome.idle);
        self.counts[thread.index()] += 1;
        self.stepped_at[thread.index()] = self.steps;
        let objects = [op.object, op.other];
        let before = outcome.idle.then(|| objects.map(|object| self.version(object)));
        let result = self.perform(names, thread, op, outcome);
        for (object, before) in objects.into_iter().zip(before.into_iter().flatten()) {
            if let Some(version) = self.versions.get_mut(object as usize) {
                *version = before;
            }
        }
        self.start(outcome.started, names);
        result
    }

    fn perform(
        &mut self,
        names: &Names,
        thread: ThreadId,
        op: &Op,
        outcome: &Outcome,
    ) -> Result<i64, Misuse> {
        let (object, other) = (op.object, op.other);
        let timed_out = outcome.alternative == 1;
        match op.kind {
            OpKind::Exit => {
                self.exited = Some(thread);
                Ok(0)
            }
            OpKind::Wait => {
                let result = self.act(names, thread, object, Action::Wait)?;
                match other {
                    NOTHING => Ok(result),
                    mutex => self.act(names, thread, mutex, Action::Unlock),
                }
            }
            OpKind::Wake | OpKind::TimedWake => {
                if timed_out {
                    self.cancel_wait(names, thread, object);
                    return Ok(0);
                }
                match other {
                    NOTHING => Ok(0),
                    mutex => self.act(names, thread, mutex, Action::Lock),
                }
            }
            OpKind::FutexWait if outcome.learned == 0 => Ok(0),
            OpKind::FutexWait => self.act(names, thread, object, Action::Wait),
            OpKind::FutexWoken | OpKind::TimedFutexWoken => {
                if timed_out {
                    self.cancel_wait(names, thread, object);
                }
                Ok(0)
            }
            OpKind::NotifyOne | OpKind::FutexWakeOne => {
                self.act(names, thread, object, Action::NotifyOne { nth: outcome.alternative })
            }
            kind if kind.may_write() => {
                if outcome.found != outcome.left {
                    self.change(object);
                }
                Ok(0)
            }
            OpKind::EnterWait | OpKind::EnterWrite | OpKind::Relock => {
                self.change(object);
                Ok(0)
            }
            OpKind::Release if self.count_of(names, object) >= MAX_COUNT.into() => Ok(0),
            kind => match action(kind) {
                Some(action) => self.act(names, thread, object, action),
                None => Ok(0),
            },
        }
    }

    /// The count of a semaphore.
    fn count_of(&self, names: &Names, semaphore: u32) -> u64 {
        self.fields(names, names.kind(semaphore).1)[0]
    }

    /// Ends the wait of a thread that was not notified.
    fn cancel_wait(&mut self, names: &Names, thread: ThreadId, object: u32) {
        self.add_new_objects(names);
        let (_, at) = names.kind(object);
        self.cells[at] = ThreadSet::from_bits(self.cells[at]).without(thread).bits();
        self.change(object);
    }

    /// Advances by the next step of `thread`, as its history records it.
    pub(crate) fn advance(&mut self, names: &Names, thread: ThreadId, history: &History) {
        let at = self.count(thread);
        // A misuse changes nothing, and was reported when the step was executed.
        let _ = self.step(names, thread, &history.ops[at], &history.outcomes[at]);
    }

    /// Writes the pending step of a thread to `pending`.
    pub(crate) fn ask(&self, context: &Context<'_>, thread: ThreadId, pending: &mut Pending) {
        if !self.started.contains(thread) {
            return pending.set_nothing(Status::Vacant);
        }
        let Some(op) = self.next(context, thread).filter(|_| !self.failed) else {
            return pending.set_nothing(Status::Ended);
        };
        if self.exited.is_some() {
            // The end of the process interrupted the thread. A reduction reverses the two only if
            // the thread waits, not if it has ended.
            return pending.set_one(Status::Resting, 0, Location(PROCESS), Access::Read);
        }
        self.write_pending(context, thread, op, pending);
        let waits = pending.status == Status::Blocked && op.is_timed();
        if waits && self.may_expire(context, thread, op) {
            write_timeout(op, pending);
        }
        if context.needs.process {
            let writes = op.yields() || op.kind == OpKind::Exit || waits;
            let access = if writes { Access::Write } else { Access::Read };
            for (_, footprint) in &mut pending.footprints {
                footprint.add(Location(PROCESS), access);
                if op.kind == OpKind::Finish {
                    footprint.add(Location(ENDS), Access::Write);
                }
            }
            if pending.status == Status::Enabled && self.is_held(context, thread) {
                pending.status = Status::Spinning;
            }
        }
        let (history, count) = (&context.histories[thread.index()], self.count(thread));
        let round = history.round(count);
        if round > 0 && matches!(pending.status, Status::Enabled | Status::Spinning) {
            self.hold_back(history, count, round, pending);
        }
    }

    /// Holds back a thread that spins, unless an object has changed that it used in its last round.
    /// In both cases its next step depends on these objects.
    fn hold_back(&self, history: &History, count: usize, round: usize, pending: &mut Pending) {
        let mut unchanged = true;
        for (object, seen) in history.watched(count, round) {
            unchanged &= self.version(object) == seen;
            for (_, footprint) in &mut pending.footprints {
                footprint.add(Location(object), Access::Read);
            }
        }
        if unchanged {
            pending.status = Status::Spinning;
        }
    }

    /// The next operation of a thread.
    fn next<'c>(&self, context: &Context<'c>, thread: ThreadId) -> Option<&'c Op> {
        context.histories[thread.index()].ops.get(self.count(thread))
    }

    /// Whether a thread is held back: it yields again at the same place, and no other thread has
    /// taken a step since that is not idle, or it spins.
    fn is_held(&self, context: &Context<'_>, thread: ThreadId) -> bool {
        let (history, count) = (&context.histories[thread.index()], self.count(thread));
        let yields = self.stepped_at[thread.index()] == self.steps && history.yields_again(count);
        let round = history.round(count);
        let unchanged = |(object, seen)| self.version(object) == seen;
        yields || round > 0 && history.watched(count, round).all(unchanged)
    }

    /// Whether the deadline of a thread that has to wait may end its wait.
    fn may_expire(&self, context: &Context<'_>, thread: ThreadId, op: &Op) -> bool {
        let Some(deadline) = self.waits_until(context.names, thread, op) else { return false };
        let others = self.started.without(thread).iter();
        let times = others.filter_map(|other| self.acts_at(context, other));
        may_expire(deadline, op.time, times, context.max_delay)
    }

    /// The local time of a thread that can run, or the deadline of one that waits with a time
    /// limit.
    fn acts_at(&self, context: &Context<'_>, thread: ThreadId) -> Option<u64> {
        let op = self.next(context, thread)?;
        let mut pending = Pending::vacant();
        self.write_pending(context, thread, op, &mut pending);
        if pending.status != Status::Enabled {
            return self.waits_until(context.names, thread, op);
        }
        (!self.is_held(context, thread)).then_some(op.time)
    }

    /// The deadline that can end the wait of a thread.
    fn waits_until(&self, names: &Names, thread: ThreadId, op: &Op) -> Option<u64> {
        // A notified thread waits for the mutex without a time limit.
        let waits = op.kind == OpKind::TimedWake;
        let notified = waits && self.can(names, thread, op.object, Action::Wake);
        (op.is_timed() && !notified).then_some(op.deadline)
    }

    /// Writes to `pending` which objects `op` accesses, and whether it can be performed without a
    /// timeout.
    pub(crate) fn write_pending(
        &self,
        context: &Context<'_>,
        thread: ThreadId,
        op: &Op,
        pending: &mut Pending,
    ) {
        let names = context.names;
        let (object, other) = (Location(op.object), Location(op.other));
        let enabled = |pending: &mut Pending, alternative, accesses: &[(Location, Access)]| {
            let footprint: Footprint = accesses.iter().copied().collect();
            pending.set_alternatives(Status::Enabled, [(alternative, footprint)]);
        };
        match op.kind {
            OpKind::Created | OpKind::Yield | OpKind::Enter => enabled(pending, 0, &[]),
            OpKind::Io => enabled(pending, 0, &[(Location(DESCRIPTORS), Access::Write)]),
            OpKind::IoWait => {
                let (status, access) = match context.ready.contains(thread) {
                    true => (Status::Enabled, Access::Write),
                    false => (Status::Blocked, Access::Read),
                };
                pending.set_one(status, 0, Location(DESCRIPTORS), access);
            }
            OpKind::Sleep => {
                pending.set_alternatives(Status::Blocked, [(0, Footprint::default())]);
            }
            // Written even if `Needs::process` is not set: this distinguishes the end of the
            // process from that of a thread.
            OpKind::Exit => enabled(pending, 0, &[(Location(PROCESS), Access::Write)]),
            OpKind::Load | OpKind::Count => enabled(pending, 0, &[(object, Access::Read)]),
            // This includes a compare-and-exchange that will fail: values are not known here.
            kind if kind.may_write() => enabled(pending, 0, &[(object, Access::Write)]),
            // The operation itself accesses nothing. The code after it may use, by invisible
            // accesses, what the write before it has claimed. Counting it as a second write orders
            // that code with the next thread that claims the same.
            OpKind::AfterWrite => enabled(pending, 0, &[(object, Access::Write)]),
            OpKind::Wait if op.other == NOTHING => enabled(pending, 0, &[(object, Access::Write)]),
            OpKind::Wait => enabled(pending, 0, &[(object, Access::Write), (other, Access::Write)]),
            // Precompiled code that does not have to wait may change the word next, as a lock does.
            OpKind::FutexWait => {
                enabled(pending, 0, &[(object, Access::Write), (other, Access::Write)]);
            }
            OpKind::EnterWait => {
                enabled(pending, 0, &[(object, Access::Write), (other, Access::Read)]);
            }
            OpKind::EnterWrite | OpKind::Relock => enabled(pending, 0, &[(object, Access::Write)]),
            OpKind::Wake | OpKind::TimedWake | OpKind::FutexWoken | OpKind::TimedFutexWoken => {
                self.write_pending_wake(names, thread, op, pending);
            }
            OpKind::NotifyOne | OpKind::FutexWakeOne => {
                let (kind, at) = names.kind(op.object);
                let fields = self.fields(names, at);
                let count = kind.alternatives(fields, thread, Action::NotifyOne { nth: 0 });
                let each = (0..count).map(|nth| (nth, Footprint::one(object, Access::Write)));
                pending.set_alternatives(Status::Enabled, each);
            }
            kind => {
                let action = action(kind).expect("all other operations are actions");
                self.write_pending_action(names, thread, op, action, pending);
            }
        }
    }

    /// [`write_pending`](State::write_pending) for an operation that is one action on one object.
    fn write_pending_action(
        &self,
        names: &Names,
        thread: ThreadId,
        op: &Op,
        action: Action,
        pending: &mut Pending,
    ) {
        // A timed operation is performed as an attempt, but waits until the untimed one is enabled.
        let awaited = match op.kind {
            OpKind::TimedLock => Action::Lock,
            OpKind::TimedReadLock => Action::ReadLock,
            OpKind::TimedWriteLock => Action::WriteLock,
            OpKind::TimedAcquire => Action::Acquire,
            _ => action,
        };
        let (kind, _) = names.kind(op.object);
        let (status, access) = match self.can(names, thread, op.object, awaited) {
            true => (Status::Enabled, kind.access(action)),
            false => (Status::Blocked, kind.waiting(awaited)),
        };
        pending.set_one(status, 0, Location(op.object), access);
    }

    /// [`write_pending`](State::write_pending) for the end of a wait on a condition variable or a
    /// futex.
    fn write_pending_wake(&self, names: &Names, thread: ThreadId, op: &Op, pending: &mut Pending) {
        let (awaited, mutex) = (Location(op.object), Location(op.other));
        let wakes = matches!(op.kind, OpKind::Wake | OpKind::TimedWake);
        let needs_mutex = wakes && op.other != NOTHING;
        let mutex_is_free = !needs_mutex || self.can(names, thread, op.other, Action::Lock);
        let notified = self.can(names, thread, op.object, Action::Wake);
        if !notified {
            return pending.set_one(Status::Blocked, 0, awaited, Access::Read);
        }
        if !mutex_is_free {
            return pending.set_one(Status::Blocked, 0, mutex, Access::Read);
        }
        // Precompiled code that was woken from a futex may change the word next, as a lock does.
        let lock = (op.other != NOTHING).then_some((mutex, Access::Write));
        let footprint = [(awaited, Access::Read)].into_iter().chain(lock).collect();
        pending.set_alternatives(Status::Enabled, [(0, footprint)]);
    }
}

/// Writes to `pending` that the wait of `op` can time out.
fn write_timeout(op: &Op, pending: &mut Pending) {
    let object = Location(op.object);
    let (alternative, footprint): (u32, Footprint) = match op.kind {
        OpKind::Sleep => (0, Footprint::default()),
        // The thread leaves the set of waiting threads.
        OpKind::TimedFutexWoken | OpKind::TimedWake => (1, Footprint::one(object, Access::Write)),
        // A failed attempt only reads.
        _ => (1, Footprint::one(object, Access::Read)),
    };
    pending.set_alternatives(Status::Enabled, [(alternative, footprint)]);
}

/// The action of an operation that is one action on one object.
fn action(kind: OpKind) -> Option<Action> {
    Some(match kind {
        OpKind::Begin => Action::Begin,
        OpKind::Finish => Action::Finish,
        OpKind::Join => Action::Join,
        OpKind::Lock | OpKind::EnterOnce => Action::Lock,
        OpKind::TryLock | OpKind::TimedLock => Action::TryLock,
        OpKind::Unlock | OpKind::LeaveOnce => Action::Unlock,
        OpKind::ReadLock => Action::ReadLock,
        OpKind::TryReadLock | OpKind::TimedReadLock => Action::TryReadLock,
        OpKind::ReadUnlock => Action::ReadUnlock,
        OpKind::WriteLock => Action::WriteLock,
        OpKind::TryWriteLock | OpKind::TimedWriteLock => Action::TryWriteLock,
        OpKind::WriteUnlock => Action::WriteUnlock,
        OpKind::NotifyAll | OpKind::FutexWakeAll => Action::NotifyAll,
        OpKind::Acquire => Action::Acquire,
        OpKind::TryAcquire | OpKind::TimedAcquire => Action::TryAcquire,
        OpKind::Release => Action::Release,
        OpKind::Arrive => Action::Arrive,
        OpKind::Leave => Action::Leave,
        OpKind::Created | OpKind::Yield | OpKind::Sleep | OpKind::Exit => return None,
        OpKind::Count | OpKind::AfterWrite | OpKind::Io | OpKind::IoWait => return None,
        OpKind::EnterWait | OpKind::EnterWrite | OpKind::Enter | OpKind::Relock => return None,
        OpKind::Load | OpKind::Store | OpKind::Exchange | OpKind::CompareExchange => return None,
        OpKind::FetchAdd | OpKind::FetchSub | OpKind::FetchAnd | OpKind::FetchOr => return None,
        OpKind::FetchXor | OpKind::FetchNand => return None,
        OpKind::Wait | OpKind::Wake | OpKind::TimedWake | OpKind::NotifyOne => return None,
        OpKind::FutexWait | OpKind::FutexWoken | OpKind::TimedFutexWoken => return None,
        OpKind::FutexWakeOne => return None,
    })
}
