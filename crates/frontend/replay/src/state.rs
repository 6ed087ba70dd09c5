//! The state after a prefix of an execution, as far as it decides which threads can step: the
//! fields of the objects, the number of operations of each thread, and the version of each object.
//!
//! # Values of atomics
//!
//! A compare-exchange that fails only reads, so its footprint depends on the value of the atomic in
//! that state. Where a front end knows the values, the state keeps them: each step records the
//! value that it left ([`Outcome::newest`]), and the first arrival at an atomic the value before
//! all steps. In a part of an execution the last access to an atomic is the one that comes last in
//! the whole execution too, among those in the part: accesses of which one writes are ordered by
//! happens-before, and reads leave the value as it is. So the value in a part is the one that its
//! last step on the atomic left.
//!
//! No code of the program runs here. The operations come from the threads' histories, so the same
//! functions serve the execution that is running and parts of it, reordered, that never ran.

use preempt_system::fingerprint::Mixer;
use preempt_system::{
    Access, Action, Footprint, Kind, Location, Misuse, Pending, Status, ThreadId, ThreadSet,
};
use smallvec::SmallVec;

use crate::history::History;
use crate::objects::Objects;
use crate::op::{EarlyWake, Lookahead, Op, OpClass, OpKind, Outcome};
use crate::spin;

/// The state after a prefix of an execution.
#[derive(Debug, Default)]
pub struct State {
    started: ThreadSet,
    counts: SmallVec<[u32; 6]>,
    fields: SmallVec<[u64; 12]>,
    versions: SmallVec<[u32; 12]>,
    /// The values that steps left in atomics, if values are known. Shorter than `versions` until a
    /// step has accessed the last atomic.
    values: SmallVec<[Option<u64>; 4]>,
}

impl Clone for State {
    /// Like the derived implementation, but copies slices at once instead of element by element:
    /// reductions copy states of prefixes.
    fn clone(&self) -> State {
        State {
            started: self.started,
            counts: SmallVec::from_slice(&self.counts),
            fields: SmallVec::from_slice(&self.fields),
            versions: SmallVec::from_slice(&self.versions),
            values: SmallVec::from_slice(&self.values),
        }
    }
}

impl State {
    /// Resets to the state before the first step of a program with `slots` thread slots, of which
    /// `started` have threads.
    pub(crate) fn begin(&mut self, slots: usize, started: ThreadSet, objects: &Objects) {
        // Every execution starts here, with the objects of the one before: `objects` only grows.
        // So initial values overwrite the last ones instead of being appended to nothing.
        if self.counts.len() != slots {
            self.counts.resize(slots, 0);
        }
        self.counts.fill(0);
        let known = self.fields.len();
        self.fields.copy_from_slice(&objects.initial[..known]);
        self.versions.fill(0);
        self.values.clear();
        self.started = ThreadSet::EMPTY;
        self.start(started, objects);
    }

    /// Starts threads. The life of a thread is the object whose location is its slot.
    pub(crate) fn start(&mut self, threads: ThreadSet, objects: &Objects) {
        for thread in threads.iter() {
            self.act_on(objects, thread, thread.index() as u32, Action::Start)
                .expect("a start cannot be misused");
            self.started.insert(thread);
        }
    }

    /// The threads that have started. Some may have ended.
    #[inline]
    pub fn started(&self) -> ThreadSet {
        self.started
    }

    /// The number of operations of each thread, by slot.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The number of operations of the thread in `slot`.
    #[inline]
    pub fn count(&self, slot: usize) -> usize {
        self.counts[slot] as usize
    }

    /// The number of changes of an object, idle ones excepted (see [`crate::spin`]).
    #[inline]
    pub fn version(&self, object: u32) -> u32 {
        self.versions.get(object as usize).copied().unwrap_or(0)
    }

    /// The value of an atomic, if it is known.
    #[inline]
    pub fn value(&self, objects: &Objects, object: u32) -> Option<u64> {
        self.written(object).or_else(|| objects.value(object))
    }

    /// The value that the last step on an atomic left.
    #[inline]
    pub(crate) fn written(&self, object: u32) -> Option<u64> {
        self.values.get(object as usize).copied().flatten()
    }

    /// A step leaves this value in an atomic.
    #[inline]
    pub(crate) fn write(&mut self, object: u32, value: u64) {
        let at = object as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, None);
        }
        self.values[at] = Some(value);
    }

    /// The access of an exchange: it writes unless it is known to fail.
    #[inline]
    fn exchanges(&self, objects: &Objects, op: &Op) -> Access {
        let fails = match (op.expected(), self.value(objects, op.object)) {
            (Some(expected), Some(value)) => value != expected,
            _ => false,
        };
        if fails { Access::Read } else { Access::Write }
    }

    /// The state of an object in words, if it has fields.
    pub fn show(
        &self,
        objects: &Objects,
        object: u32,
        thread_name: impl Fn(ThreadId) -> String,
    ) -> Option<String> {
        let (kind, at) = objects.get(object)?;
        let fields = self.fields(objects, at);
        Some(kind.show(&fields[..kind.fields()], thread_name, |value| value.to_string()))
    }

    /// Adds the fields of all objects to `mixer`.
    pub fn absorb(&self, mixer: &mut Mixer) {
        self.fields.iter().for_each(|&field| mixer.absorb(field));
    }

    /// Makes room for new objects.
    #[inline]
    fn fit(&mut self, objects: &Objects) {
        if self.versions.len() < objects.len() {
            self.widen(objects);
        }
    }

    #[cold]
    fn widen(&mut self, objects: &Objects) {
        self.versions.resize(objects.len(), 0);
        let known = self.fields.len();
        self.fields.extend_from_slice(&objects.initial[known..]);
    }

    /// Counts a change of an object.
    #[inline]
    pub(crate) fn change(&mut self, objects: &Objects, object: u32) {
        match self.versions.get_mut(object as usize) {
            Some(version) => *version += 1,
            None => {
                self.widen(objects);
                self.versions[object as usize] += 1;
            }
        }
    }

    fn act_on(
        &mut self,
        objects: &Objects,
        thread: ThreadId,
        object: u32,
        action: Action,
    ) -> Result<i64, Misuse> {
        self.fit(objects);
        let (kind, at) = objects.of(object);
        let fields = &mut self.fields[at..at + kind.fields()];
        // Fast path: most objects have one field.
        if fields.len() == 1 {
            let before = fields[0];
            let reply = kind.apply(fields, thread, action);
            self.versions[object as usize] += u32::from(fields[0] != before);
            return reply;
        }
        let before: SmallVec<[u64; 4]> = SmallVec::from_slice(fields);
        let reply = kind.apply(fields, thread, action);
        self.versions[object as usize] += u32::from(*fields != *before);
        reply
    }

    #[inline(always)]
    fn can(&self, objects: &Objects, thread: ThreadId, object: u32, action: Action) -> bool {
        let (kind, at) = objects.of(object);
        kind.enabled(self.fields(objects, at), thread, action)
    }

    /// The fields from `at` on, which is the first field of an object. An object that this state
    /// has no room for yet is in its initial state.
    #[inline(always)]
    fn fields<'s>(&'s self, objects: &'s Objects, at: usize) -> &'s [u64] {
        // `widen` adds the fields of whole objects, so either all of an object's are here or none.
        if at < self.fields.len() { &self.fields[at..] } else { &objects.initial[at..] }
    }

    /// Performs an operation of a thread, which is already [counted](State::count_one), on the
    /// fields of its objects. The reply is what the thread learns.
    #[inline(always)]
    pub(crate) fn perform(
        &mut self,
        objects: &Objects,
        thread: ThreadId,
        op: &Op,
        alternative: u32,
    ) -> Result<i64, Misuse> {
        if op.has_no_fields() { Ok(0) } else { self.act(objects, thread, op, alternative) }
    }

    /// Counts one more operation of the thread in `slot`. Returns how many it had performed.
    #[inline(always)]
    pub(crate) fn count_one(&mut self, slot: usize) -> usize {
        let count = &mut self.counts[slot];
        *count += 1;
        *count as usize - 1
    }

    fn act(
        &mut self,
        objects: &Objects,
        thread: ThreadId,
        op: &Op,
        alternative: u32,
    ) -> Result<i64, Misuse> {
        match op.kind {
            OpKind::Load(_) | OpKind::Store(_) | OpKind::Update(_) | OpKind::Touch => Ok(0),
            OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. } => Ok(0),
            OpKind::Peek | OpKind::Choose(_) | OpKind::Fence | OpKind::Yield => Ok(0),
            OpKind::Call(_) | OpKind::Return | OpKind::Assume => Ok(0),
            OpKind::Downgrade => {
                self.act_on(objects, thread, op.object, Action::WriteUnlock)?;
                self.act_on(objects, thread, op.object, Action::ReadLock)
            }
            OpKind::Object(Action::NotifyOne { .. }) => {
                self.act_on(objects, thread, op.object, Action::NotifyOne { nth: alternative })
            }
            OpKind::Object(action) => self.act_on(objects, thread, op.object, action),
            OpKind::Wait => {
                self.act_on(objects, thread, op.object, Action::Wait)?;
                self.act_on(objects, thread, op.other, Action::Unlock)
            }
            OpKind::Wake { .. } => {
                if alternative == 1 {
                    self.stop_waiting(objects, thread, op.object);
                }
                if op.times_out(alternative) {
                    return Ok(0);
                }
                self.act_on(objects, thread, op.other, Action::Lock)
            }
            OpKind::Park { .. } if alternative == 1 => Ok(0),
            OpKind::Park { .. } => self.act_on(objects, thread, op.object, Action::Park),
            OpKind::Finish => self.act_on(objects, thread, thread.index() as u32, Action::Finish),
        }
    }

    /// Ends a wait on a condition variable without a notification.
    fn stop_waiting(&mut self, objects: &Objects, thread: ThreadId, condvar: u32) {
        self.fit(objects);
        let (_, at) = objects.of(condvar);
        self.fields[at] = ThreadSet::from_bits(self.fields[at]).without(thread).bits();
        self.versions[condvar as usize] += 1;
    }

    /// Advances the state by the next operation of `thread` in its history.
    pub(crate) fn advance(&mut self, objects: &Objects, thread: ThreadId, history: &History) {
        let at = self.count_one(thread.index());
        let (op, outcome) = (&history.ops[at], &history.outcomes[at]);
        let before = outcome.idle.then(|| self.versions([op.object, op.other]));
        // A misuse changes nothing.
        let _ = self.perform(objects, thread, op, outcome.alternative);
        if outcome.changed {
            self.change(objects, op.object);
        }
        if let Some(newest) = outcome.newest {
            self.write(op.object, newest);
        }
        if let Some(before) = before {
            self.disregard(op, before);
        }
        self.start(outcome.spawned, objects);
    }

    /// The next step of `thread`.
    pub(crate) fn ask(&self, objects: &Objects, thread: ThreadId, history: &History) -> Pending {
        let mut pending = Pending::vacant();
        self.ask_into(objects, thread, history, &mut pending);
        pending
    }

    /// Writes the next step of `thread` to `pending`.
    #[inline]
    pub(crate) fn ask_into(
        &self,
        objects: &Objects,
        thread: ThreadId,
        history: &History,
        pending: &mut Pending,
    ) {
        if !self.started.contains(thread) {
            return pending.set_nothing(Status::Vacant);
        }
        let count = self.counts[thread.index()] as usize;
        let Some(op) = history.ops.get(count) else { return pending.set_nothing(Status::Ended) };
        match op.class {
            OpClass::Load => pending.set_one(Status::Enabled, 0, Location(op.object), Access::Read),
            OpClass::Write | OpClass::Unlock => {
                pending.set_one(Status::Enabled, 0, Location(op.object), Access::Write)
            }
            OpClass::Lock => {
                self.offer_action(Kind::Mutex, objects, (thread, op, Action::Lock), pending)
            }
            OpClass::Exchange | OpClass::Call | OpClass::Other => {
                self.offer(objects, thread, op, pending)
            }
        }
        let Some(last) = count.checked_sub(1).map(|last| &history.outcomes[last]) else { return };
        if last.round > 0 && pending.status == Status::Enabled {
            self.hold_back(
                pending,
                &history.ops[..count],
                &history.outcomes[..count],
                last.round.into(),
            );
            let is_held_back = pending.status == Status::Spinning;
            if is_held_back
                && last.lookahead == Lookahead::Repeats
                && op.is_woken_spuriously(&pending.footprints)
            {
                // Spurious wakeups have led back to this wait and would do so forever. None has to
                // come, so the thread waits.
                pending.status = Status::Blocked;
            }
        }
    }

    /// Holds back a thread that spins, unless an object that it watches has changed. In both cases
    /// its next step depends on those objects.
    fn hold_back(&self, pending: &mut Pending, ops: &[Op], outcomes: &[Outcome], round: usize) {
        if spin::watched(ops, outcomes, round).all(|(object, seen)| self.version(object) == seen) {
            pending.status = Status::Spinning;
        }
        for (object, _) in spin::watched(ops, outcomes, round) {
            pending
                .footprints
                .iter_mut()
                .for_each(|(_, footprint)| footprint.add(Location(object), Access::Read));
        }
    }

    /// The status, alternatives and footprints of an operation.
    fn offer(&self, objects: &Objects, thread: ThreadId, op: &Op, pending: &mut Pending) {
        let object = Location(op.object);
        match op.kind {
            OpKind::Load(_) | OpKind::Peek => {
                pending.set_one(Status::Enabled, 0, object, Access::Read)
            }
            OpKind::Store(_)
            | OpKind::Update(_)
            | OpKind::Touch
            | OpKind::Return
            | OpKind::Downgrade => pending.set_one(Status::Enabled, 0, object, Access::Write),
            OpKind::CompareExchange { .. } => {
                pending.set_one(Status::Enabled, 0, object, self.exchanges(objects, op))
            }
            OpKind::Choose(below) => {
                pending.set_alternatives(
                    Status::Enabled,
                    (0..below).map(|nth| (nth, Footprint::new())),
                );
            }
            OpKind::WeakCompareExchange { .. } => {
                // A spurious failure only reads, but the alternatives of a step need the same
                // footprint (`System::advances_by_any_step`).
                let footprint = Footprint::one(object, self.exchanges(objects, op));
                pending.set_alternatives(Status::Enabled, [(0, footprint.clone()), (1, footprint)]);
            }
            OpKind::Call(returns) => {
                let read = returns.read().map(|object| (Location(object), Access::Read));
                pending.set_alternatives(Status::Enabled, [(0, read.collect())]);
            }
            OpKind::Fence | OpKind::Yield => {
                pending.set_alternatives(Status::Enabled, [(0, Footprint::new())]);
            }
            // No step of another thread ends this wait.
            OpKind::Assume => {
                pending.set_alternatives(Status::Blocked, [(0, Footprint::new())]);
            }
            OpKind::Finish => {
                pending.set_one(Status::Enabled, 0, Location(thread.index() as u32), Access::Write)
            }
            OpKind::Object(action @ Action::NotifyOne { .. }) => {
                let (kind, at) = objects.of(op.object);
                let count = kind.alternatives(self.fields(objects, at), thread, action);
                let each = (0..count).map(|nth| (nth, Footprint::one(object, Access::Write)));
                pending.set_alternatives(Status::Enabled, each);
            }
            OpKind::Object(action) => {
                self.offer_action(objects.of(op.object).0, objects, (thread, op, action), pending);
            }
            OpKind::Wait => {
                let both = [(object, Access::Write), (Location(op.other), Access::Write)];
                pending.set_alternatives(Status::Enabled, [(0, both.into_iter().collect())]);
            }
            OpKind::Wake { early } => self.offer_wake(objects, thread, op, early, pending),
            OpKind::Park { early } => match self.can(objects, thread, op.object, Action::Park) {
                true => pending.set_one(Status::Enabled, 0, object, Access::Write),
                // It reads the token and continues without it.
                false if early != EarlyWake::Never => {
                    let access = if objects.attempts_write { Access::Write } else { Access::Read };
                    pending.set_one(Status::Enabled, 1, object, access)
                }
                false => pending.set_one(Status::Blocked, 0, object, Access::Read),
            },
        }
    }

    /// The same for one action on an object. Callers mostly know its `kind` at compile time.
    #[inline(always)]
    fn offer_action(
        &self,
        kind: Kind,
        objects: &Objects,
        (thread, op, action): (ThreadId, &Op, Action),
        pending: &mut Pending,
    ) {
        let (_, at) = objects.of(op.object);
        let fields = self.fields(objects, at);
        let (status, access) = match kind.enabled(fields, thread, action) {
            true if objects.attempts_write => (Status::Enabled, kind.access(action)),
            true => (Status::Enabled, kind.access_in(fields, action)),
            false => (Status::Blocked, kind.waiting(action)),
        };
        pending.set_one(status, 0, Location(op.object), access);
    }

    fn offer_wake(
        &self,
        objects: &Objects,
        thread: ThreadId,
        op: &Op,
        early: EarlyWake,
        pending: &mut Pending,
    ) {
        let (condvar, mutex) = (Location(op.object), Location(op.other));
        let notified = self.can(objects, thread, op.object, Action::Wake);
        if !notified && early == EarlyWake::Never {
            return pending.set_one(Status::Blocked, 0, condvar, Access::Read);
        }
        if !notified && early == EarlyWake::Timeout {
            // The thread leaves the set of waiting threads, whoever holds the mutex.
            pending.set_one(Status::Enabled, 1, condvar, Access::Write);
            if objects.attempts_write {
                pending.footprints[0].1.add(mutex, Access::Write);
            }
            return;
        }
        if !self.can(objects, thread, op.other, Action::Lock) {
            // Whether a wait without a timeout ends early is decided when the mutex is free.
            return pending.set_one(Status::Blocked, 0, mutex, Access::Read);
        }
        let (alternative, access) = match notified {
            false => (1, Access::Write),
            true if objects.attempts_write && early != EarlyWake::Never => (0, Access::Write),
            true => (0, Access::Read),
        };
        let both = [(condvar, access), (mutex, Access::Write)];
        pending.set_alternatives(Status::Enabled, [(alternative, both.into_iter().collect())]);
    }

    /// Resets the versions of an operation's objects: the operation is idle, and its changes do not
    /// count.
    pub(crate) fn disregard(&mut self, op: &Op, before: [u32; 2]) {
        for (of, object) in op.objects() {
            if let Some(version) = self.versions.get_mut(object as usize) {
                *version = before[of];
            }
        }
    }

    /// The versions of an operation's objects; 0 for [`NO_OBJECT`](crate::NO_OBJECT).
    #[inline]
    pub(crate) fn versions(&self, objects: [u32; 2]) -> [u32; 2] {
        let versions = &self.versions[..];
        objects.map(|object| versions.get(object as usize).copied().unwrap_or(0))
    }
}
