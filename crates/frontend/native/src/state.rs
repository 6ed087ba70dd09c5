//! The state of an execution or of a part of one, as far as it decides which threads can step: the
//! fields of the objects, and the number of steps of each thread.
//!
//! No code of the program runs here. Operations come from the threads' histories, so the same
//! functions serve the current execution and parts of it that were never executed.
//!
//! # The process as a location
//!
//! Some operations concern all threads. *Exit* ends them, so it must not be independent of their
//! steps. A *yield* lets a thread wait in a loop for memory that another thread changes, without an
//! operation that would show which memory: any step of another thread may be what it waits for. A
//! *deadline* passes when the other threads cannot run, or not for long
//! ([`may_expire`](preempt_native_block::may_expire)). If a program has one of these while several
//! threads live, every step reads the location [`PROCESS`], and these write it
//! ([`Needs::process`]). A thread that waits for its deadline writes it as well: every step of
//! another thread may be what lets time pass.
//!
//! If the main thread has ended by `pthread_exit`, the last thread that ends also ends the process.
//! So which one is the last matters: the ends of threads write [`ENDS`] then.
//!
//! A thread that the end of the process interrupts rests: it waits for something that never
//! happens, which is not an error. Dynamic reductions then consider the executions in which it
//! continues first.
//!
//! # Descriptors
//!
//! What is ready in the kernel is not part of the state. All operations on descriptors write the
//! location [`DESCRIPTORS`], so their order, and with it what is ready, is the same in all
//! executions with the same happens-before graph; the runtime logs it. A state in which it was not
//! logged is executed ([`crate::ready`]).
//!
//! # Yields
//!
//! A thread that yields again at the same place, while no other thread has taken a step since, is
//! held back ([`Status::Spinning`]): what it could have seen has not changed. Because yields write
//! [`PROCESS`] and all steps read it, the steps of other threads since a yield are the same in all
//! executions with the same happens-before graph.
//!
//! # Loops
//!
//! The runtime reports when a thread spins: it repeats operations that change nothing and find the
//! same ([`Outcome::round`]). It is held back until an object changes that it used in its last
//! round. Whether it spins follows from its own operations and what they found, and whether it is
//! held back from the versions of the watched objects, so both are the same in all executions with
//! the same happens-before graph: `preempt_replay::spin` has the argument. The next step of such a
//! thread reads the watched objects besides its own, whether or not it is held back.

use preempt_native_block::{NEVER, Op as OpKind, may_expire};
use preempt_system::fingerprint::Mixer;
use preempt_system::{
    Access, Action, Footprint, Location, Misuse, Pending, Status, ThreadId, ThreadSet,
};

use crate::names::{DESCRIPTORS, ENDS, NOTHING, Names, PROCESS};

/// The next operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) kind: OpKind,
    /// The location of its object, or [`NOTHING`].
    pub(crate) object: u32,
    /// The location of a second object, or [`NOTHING`].
    pub(crate) other: u32,
    /// Where it is called.
    pub(crate) pc: u64,
    /// What else there is to say about it.
    pub(crate) detail: Detail,
    /// The local time of the thread when it arrives here, in nanoseconds.
    pub(crate) time: u64,
    /// The time at which a wait ends in any case, or [`NEVER`].
    pub(crate) deadline: u64,
}

/// What an operation does to its objects beyond its kind. It changes no footprint, but threads that
/// are about to do something else have another past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Detail {
    /// The size of an atomic variable in bytes.
    pub(crate) size: u8,
    /// The [memory orders](preempt_native_block::orders) of an atomic operation; the value that a
    /// futex is expected to have.
    pub(crate) number: u32,
    /// A [digest](preempt_native_block::digest) of the operands of an atomic operation.
    pub(crate) operands: u64,
}

impl Op {
    pub(crate) fn yields(&self) -> bool {
        self.kind == OpKind::Yield
    }

    /// Whether it can end by a deadline.
    pub(crate) fn is_timed(&self) -> bool {
        self.deadline != NEVER
    }
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The alternative that was taken.
    pub(crate) alternative: u32,
    /// What the thread learned that does not follow from the objects.
    pub(crate) learned: u32,
    /// What an atomic operation has found and left; both are the same if it has not written.
    pub(crate) found: u128,
    /// See `found`.
    pub(crate) left: u128,
    /// The threads that it created before its next operation.
    pub(crate) started: ThreadSet,
    /// If the thread spins after the operation, the number of operations of one round; else 0.
    pub(crate) round: u16,
    /// The versions of its objects after the operation.
    pub(crate) seen: [u32; 2],
}

/// The operations of a thread with their outcomes: one operation more than outcomes, unless the
/// thread has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) ops: Vec<Op>,
    pub(crate) outcomes: Vec<Outcome>,
    /// After each operation, a digest of what the thread has learned so far.
    digests: Vec<u64>,
}

impl History {
    /// That of a thread that has performed nothing, and starts with this operation.
    pub(crate) fn starting(op: Op) -> History {
        History { ops: vec![op], ..History::default() }
    }

    /// A digest of what the thread has learned in its first `count` operations.
    pub(crate) fn digest(&self, count: usize) -> u64 {
        count.checked_sub(1).and_then(|last| self.digests.get(last)).copied().unwrap_or(0)
    }

    /// Replaces what followed the first `count` operations and their successor.
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
    pub(crate) fn round(&self, count: usize) -> usize {
        let last = count.checked_sub(1).and_then(|last| self.outcomes.get(last));
        last.map_or(0, |last| last.round.into())
    }

    /// The objects that the thread has used in its last round, with their versions after its last
    /// operation on each.
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

    /// Whether the operation after the first `count` is a yield at the place of the one before.
    pub(crate) fn yields_again(&self, count: usize) -> bool {
        let next = self.ops.get(count).filter(|op| op.yields());
        let before = count.checked_sub(1).and_then(|last| self.ops.get(last));
        next.zip(before)
            .is_some_and(|(next, before)| (next.kind, next.pc) == (before.kind, before.pc))
    }
}

/// What the search has learned that it needs: see the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Whether steps depend on the end of the process, on yields and on deadlines.
    pub(crate) process: bool,
}

/// What the answer to a question about one thread depends on besides the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'c> {
    pub(crate) names: &'c Names,
    /// The operations of all threads.
    pub(crate) histories: &'c [History],
    pub(crate) needs: Needs,
    /// The longest delay of a thread that can run: see [`may_expire`].
    pub(crate) max_delay: u64,
    /// The threads that wait for descriptors which are ready.
    pub(crate) ready: ThreadSet,
}

/// The state.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The threads that exist, or have ended.
    pub(crate) started: ThreadSet,
    counts: Vec<u32>,
    cells: Vec<u64>,
    /// The number of changes of each object, by location.
    versions: Vec<u32>,
    /// The number of steps.
    steps: u32,
    /// The number of steps after the last one of each thread.
    stepped_at: Vec<u32>,
    /// The thread that has ended the process, if one has.
    exited: Option<ThreadId>,
    /// Whether the process has ended by a failure.
    failed: bool,
}

impl State {
    /// The state before the first step, in which these threads exist.
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

    fn fit(&mut self, names: &Names) {
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
        self.fit(names);
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
        // There are the fields of whole objects, or none.
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
        self.steps += 1;
        self.counts[thread.index()] += 1;
        self.stepped_at[thread.index()] = self.steps;
        let done = self.perform(names, thread, op, outcome);
        self.start(outcome.started, names);
        done
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
                self.act(names, thread, object, Action::Wait)?;
                self.act(names, thread, other, Action::Unlock)
            }
            OpKind::Wake | OpKind::TimedWake => {
                if timed_out {
                    self.leave(names, thread, object);
                    return Ok(0);
                }
                self.act(names, thread, other, Action::Lock)
            }
            OpKind::FutexWait if outcome.learned == 0 => Ok(0),
            OpKind::FutexWait => self.act(names, thread, object, Action::Wait),
            OpKind::FutexWoken | OpKind::TimedFutexWoken => {
                if timed_out {
                    self.leave(names, thread, object);
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
            kind => match action(kind) {
                Some(action) => self.act(names, thread, object, action),
                None => Ok(0),
            },
        }
    }

    /// Ends a wait that was not notified.
    fn leave(&mut self, names: &Names, thread: ThreadId, object: u32) {
        self.fit(names);
        let (_, at) = names.kind(object);
        self.cells[at] = ThreadSet::from_bits(self.cells[at]).without(thread).bits();
        self.change(object);
    }

    /// Advances by the next step of `thread`, as its history records it.
    pub(crate) fn advance(&mut self, names: &Names, thread: ThreadId, history: &History) {
        let at = self.count(thread);
        // A misuse changes nothing, and was reported where it was found.
        let _ = self.step(names, thread, &history.ops[at], &history.outcomes[at]);
    }

    /// Writes to `pending` what a thread would do next.
    pub(crate) fn ask(&self, context: &Context<'_>, thread: ThreadId, pending: &mut Pending) {
        if !self.started.contains(thread) {
            return pending.set_nothing(Status::Vacant);
        }
        let Some(op) = self.next(context, thread).filter(|_| !self.failed) else {
            return pending.set_nothing(Status::Ended);
        };
        if self.exited.is_some() {
            // It was interrupted, and could have continued if the process had not ended: a
            // reduction considers that if the thread waits for that, and not if it has ended.
            return pending.set_one(Status::Resting, 0, Location(PROCESS), Access::Read);
        }
        self.offer(context, thread, op, pending);
        let waits = pending.status == Status::Blocked && op.is_timed();
        if waits && self.may_expire(context, thread, op) {
            self.offer_timeout(op, pending);
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

    /// Holds back a thread that spins, unless an object that it watches has changed. In both cases
    /// its next step depends on these objects.
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
    /// taken a step since, or it spins.
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

    /// The local time of a thread that can run, or the deadline of one that waits with a limit.
    fn acts_at(&self, context: &Context<'_>, thread: ThreadId) -> Option<u64> {
        let op = self.next(context, thread)?;
        let mut pending = Pending::vacant();
        self.offer(context, thread, op, &mut pending);
        if pending.status != Status::Enabled {
            return self.waits_until(context.names, thread, op);
        }
        (!self.is_held(context, thread)).then_some(op.time)
    }

    /// The deadline that can end the wait of a thread.
    fn waits_until(&self, names: &Names, thread: ThreadId, op: &Op) -> Option<u64> {
        // A thread that was notified waits for the mutex, however long.
        let waits = op.kind == OpKind::TimedWake;
        let notified = waits && self.can(names, thread, op.object, Action::Wake);
        (op.is_timed() && !notified).then_some(op.deadline)
    }

    /// Writes to `pending` that a wait can end by its deadline.
    fn offer_timeout(&self, op: &Op, pending: &mut Pending) {
        let object = Location(op.object);
        let (alternative, footprint): (u32, Footprint) = match op.kind {
            OpKind::Sleep => (0, Footprint::default()),
            // To leave without a notification changes the set of waiting threads.
            OpKind::TimedFutexWoken | OpKind::TimedWake => {
                (1, Footprint::one(object, Access::Write))
            }
            // An attempt that fails.
            _ => (1, Footprint::one(object, Access::Read)),
        };
        pending.set_alternatives(Status::Enabled, [(alternative, footprint)]);
    }

    /// Writes to `pending` what an operation touches, and whether it can be performed without a
    /// timeout.
    pub(crate) fn offer(
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
            // Always written: that is what makes the end of the process different from others'.
            OpKind::Exit => enabled(pending, 0, &[(Location(PROCESS), Access::Write)]),
            OpKind::Load | OpKind::Count => enabled(pending, 0, &[(object, Access::Read)]),
            // Also a compare-and-exchange that will fail: what it finds is not known here.
            kind if kind.may_write() => enabled(pending, 0, &[(object, Access::Write)]),
            // It touches nothing itself. The code after it may use, in ways that are not visible,
            // what the operation before it has claimed; others that claim it next are ordered with
            // that code by counting it as a second write.
            OpKind::AfterWrite => enabled(pending, 0, &[(object, Access::Write)]),
            OpKind::Wait => enabled(pending, 0, &[(object, Access::Write), (other, Access::Write)]),
            // Precompiled code that does not have to wait changes the word at once: a lock does.
            OpKind::FutexWait => {
                enabled(pending, 0, &[(object, Access::Write), (other, Access::Write)]);
            }
            OpKind::EnterWait => {
                enabled(pending, 0, &[(object, Access::Write), (other, Access::Read)]);
            }
            OpKind::EnterWrite | OpKind::Relock => enabled(pending, 0, &[(object, Access::Write)]),
            OpKind::Wake | OpKind::TimedWake | OpKind::FutexWoken | OpKind::TimedFutexWoken => {
                self.offer_wake(names, thread, op, pending);
            }
            OpKind::NotifyOne | OpKind::FutexWakeOne => {
                let (kind, at) = names.kind(op.object);
                let fields = self.fields(names, at);
                let ways = kind.alternatives(fields, thread, Action::NotifyOne { nth: 0 });
                let each = (0..ways).map(|nth| (nth, Footprint::one(object, Access::Write)));
                pending.set_alternatives(Status::Enabled, each);
            }
            kind => {
                let action = action(kind).expect("all other operations are actions");
                // An attempt with a deadline waits as one without.
                let awaited = match kind {
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
                pending.set_one(status, 0, object, access);
            }
        }
    }

    fn offer_wake(&self, names: &Names, thread: ThreadId, op: &Op, pending: &mut Pending) {
        let (waits, mutex) = (Location(op.object), Location(op.other));
        let needs_mutex = matches!(op.kind, OpKind::Wake | OpKind::TimedWake);
        let has_mutex = !needs_mutex || self.can(names, thread, op.other, Action::Lock);
        let notified = self.can(names, thread, op.object, Action::Wake);
        if !notified {
            return pending.set_one(Status::Blocked, 0, waits, Access::Read);
        }
        if !has_mutex {
            return pending.set_one(Status::Blocked, 0, mutex, Access::Read);
        }
        // Precompiled code that was woken from a futex changes the word next: a lock does.
        let lock = (op.other != NOTHING).then_some((mutex, Access::Write));
        let footprint = [(waits, Access::Read)].into_iter().chain(lock).collect();
        pending.set_alternatives(Status::Enabled, [(0, footprint)]);
    }
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
