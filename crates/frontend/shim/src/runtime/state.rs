//! The state of an execution or of a part of one, as far as it decides who can move: the cells of
//! the objects, how many operations each thread has done, and how often each object was changed.
//!
//! No code of the program runs here. The operations come from the threads' histories, so the same
//! functions serve the execution that is being made and parts of it that never were executions.

use preempt_system::fingerprint::Mixer;
use preempt_system::{
    Access, Action, Footprint, Kind, Location, Misuse, Pending, Status, ThreadId, ThreadSet,
};
use smallvec::SmallVec;

use super::needs::Needs;
use super::op::{Act, Early, Followed, Op, Outcome, Seen, Touch};
use super::spin;

/// What is known of all objects, in every execution: their kinds, and where their cells are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    kinds: Vec<Option<(Kind, u32)>>,
    /// All cells at the beginning.
    initial: Vec<u64>,
}

impl Objects {
    /// Adds an object; without a kind it has no cells, as an atomic. Returns its location.
    pub(crate) fn add(&mut self, kind: Option<Kind>) -> u32 {
        let at = self.initial.len() as u32;
        if let Some(kind) = kind {
            self.initial.extend((0..kind.fields()).map(|field| kind.initial(field)));
        }
        self.kinds.push(kind.map(|kind| (kind, at)));
        self.kinds.len() as u32 - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    #[inline]
    fn of(&self, object: u32) -> (Kind, usize) {
        let (kind, at) =
            self.kinds[object as usize].expect("only objects with a kind are acted on");
        (kind, at as usize)
    }
}

/// What a thread has done, and what it would do next: one operation more than outcomes, unless it
/// has ended.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) ops: Vec<Op>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Default for History {
    /// Nothing yet, with room for what most threads do.
    fn default() -> History {
        History { ops: Vec::with_capacity(16), outcomes: Vec::with_capacity(16) }
    }
}

impl History {
    /// Forgets what came after the first `count` operations, in another execution, except what the
    /// next one is.
    #[inline]
    pub(crate) fn forget_after(&mut self, count: usize) {
        if self.outcomes.len() > count {
            self.outcomes.truncate(count);
        }
        if self.ops.len() > count + 1 {
            self.ops.truncate(count + 1);
        }
    }

    /// Whether the thread spins since its last operation.
    #[inline]
    pub(crate) fn spins(&self) -> bool {
        self.outcomes.last().is_some_and(|last| last.round > 0)
    }

    /// Whether its next operation stays possible whatever others do.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.is_steady_after(self.outcomes.len())
    }

    /// The same when it had done so many operations.
    #[inline]
    pub(crate) fn is_steady_after(&self, count: usize) -> bool {
        let spins = count > 0 && self.outcomes[count - 1].round > 0;
        !spins && self.ops.get(count).is_none_or(Op::is_steady)
    }

    /// Records what came of the last operation, and whether the thread spins since.
    #[inline(always)]
    pub(crate) fn note(&mut self, outcome: &Outcome, needs: &Needs) {
        // Who got somewhere does not spin, nor has who got somewhere just before gone round.
        let idle =
            !outcome.effective && self.outcomes.last().is_some_and(|before| !before.effective);
        self.outcomes.push(*outcome);
        if idle {
            self.note_round(needs);
        }
    }

    fn note_round(&mut self, needs: &Needs) {
        if let Some((last, before)) = self.outcomes.split_last_mut() {
            last.round = spin::round(&self.ops, before, last, needs);
        }
    }

    /// The same for rounds that yield. Needed only if a thread has yielded.
    #[cold]
    pub(crate) fn note_yields(&mut self, needs: &Needs) {
        let next = self.ops.get(self.outcomes.len());
        let yields = next.is_some_and(|next| next.yielded.is_some());
        let Some((last, before)) = self.outcomes.split_last_mut() else { return };
        last.yields = before.last().map_or(0, |before| before.yields) + u32::from(yields);
        if last.yields > 1 && last.round == 0 {
            let round = spin::yielding_round(&self.ops, &self.outcomes, needs);
            let last = self.outcomes.last_mut().expect("there is one, see above");
            (last.round, last.fair) = (round, round > 0);
        }
    }

    /// Whether the last operation was one more round of a loop that yields, and changed something.
    pub(crate) fn yields_and_writes(&self) -> bool {
        self.outcomes.last().is_some_and(|last| last.idle && last.effective)
    }
}

/// The state.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The threads that exist, or have ended.
    pub(crate) started: ThreadSet,
    /// How many operations each has done.
    pub(crate) counts: SmallVec<[u32; 6]>,
    cells: SmallVec<[u64; 12]>,
    /// How often each object was changed.
    versions: SmallVec<[u32; 12]>,
}

impl Clone for State {
    /// As derived, but in pieces instead of element by element: reductions copy states of parts of
    /// executions.
    fn clone(&self) -> State {
        State {
            started: self.started,
            counts: SmallVec::from_slice(&self.counts),
            cells: SmallVec::from_slice(&self.cells),
            versions: SmallVec::from_slice(&self.versions),
        }
    }
}

impl State {
    /// The state before the first step of a program with so many thread slots, which has these
    /// threads then.
    pub(crate) fn begin(&mut self, slots: usize, started: ThreadSet, objects: &Objects) {
        self.counts.clear();
        self.counts.resize(slots, 0);
        self.cells.clear();
        self.versions.clear();
        self.started = ThreadSet::EMPTY;
        self.start(started, objects);
    }

    /// Starts threads. The life of a thread is the object with the number of its slot.
    pub(crate) fn start(&mut self, threads: ThreadSet, objects: &Objects) {
        for thread in threads.iter() {
            self.act_on(objects, thread, thread.index() as u32, Action::Start)
                .expect("a start cannot be misused");
            self.started.insert(thread);
        }
    }

    /// Makes room for objects that are new.
    #[inline]
    fn fit(&mut self, objects: &Objects) {
        if self.versions.len() < objects.len() {
            self.widen(objects);
        }
    }

    #[cold]
    fn widen(&mut self, objects: &Objects) {
        self.versions.resize(objects.len(), 0);
        let known = self.cells.len();
        self.cells.extend_from_slice(&objects.initial[known..]);
    }

    /// The state of an object in words, if it has cells.
    pub(crate) fn show(
        &self,
        objects: &Objects,
        object: u32,
        name: impl Fn(ThreadId) -> String,
    ) -> Option<String> {
        let (kind, at) = (*objects.kinds.get(object as usize)?)?;
        let fields = at as usize..at as usize + kind.fields();
        // One that nobody has acted on yet is as it began.
        let cells = self.cells.get(fields.clone()).unwrap_or(&objects.initial[fields]);
        Some(kind.show(cells, name, |value| value.to_string()))
    }

    /// How many operations a thread has done.
    #[inline]
    pub(crate) fn count(&self, slot: usize) -> usize {
        self.counts[slot] as usize
    }

    #[inline]
    pub(crate) fn version(&self, object: u32) -> u32 {
        self.versions.get(object as usize).copied().unwrap_or(0)
    }

    /// Adds the states of all objects with cells to `mixer`.
    pub(crate) fn absorb(&self, mixer: &mut Mixer) {
        self.cells.iter().for_each(|&cell| mixer.absorb(cell));
    }

    /// Takes note that an object was changed.
    #[inline]
    pub(crate) fn change(&mut self, objects: &Objects, object: u32) {
        self.fit(objects);
        self.versions[object as usize] += 1;
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
        let cells = &mut self.cells[at..at + kind.fields()];
        // Most objects have one cell.
        if let [cell] = cells {
            let before = *cell;
            let reply = kind.apply(cells, thread, action);
            self.versions[object as usize] += u32::from(self.cells[at] != before);
            return reply;
        }
        let before: SmallVec<[u64; 4]> = SmallVec::from_slice(cells);
        let reply = kind.apply(cells, thread, action);
        self.versions[object as usize] += u32::from(*cells != *before);
        reply
    }

    #[inline(always)]
    fn can(&self, objects: &Objects, thread: ThreadId, object: u32, action: Action) -> bool {
        let (kind, at) = objects.of(object);
        kind.enabled(self.cells(objects, at), thread, action)
    }

    /// The cells of an object and of those after it.
    #[inline(always)]
    fn cells<'s>(&'s self, objects: &'s Objects, at: usize) -> &'s [u64] {
        // There are the cells of whole objects, or none.
        if at < self.cells.len() { &self.cells[at..] } else { &objects.initial[at..] }
    }

    fn alternatives(
        &self,
        objects: &Objects,
        thread: ThreadId,
        object: u32,
        action: Action,
    ) -> u32 {
        let (kind, at) = objects.of(object);
        match self.cells.get(at..at + kind.fields()) {
            Some(cells) => kind.alternatives(cells, thread, action),
            None => kind.alternatives(&objects.initial[at..at + kind.fields()], thread, action),
        }
    }

    /// Performs an operation of a thread, which is [counted](State::count_one), as far as it
    /// concerns the cells of objects. The reply is what the thread learns.
    #[inline(always)]
    pub(crate) fn perform(
        &mut self,
        objects: &Objects,
        thread: ThreadId,
        op: &Op,
        alternative: u32,
    ) -> Result<i64, Misuse> {
        if op.is_bare() { Ok(0) } else { self.act(objects, thread, op, alternative) }
    }

    /// Counts one more operation of a thread. Returns how many it had done.
    #[inline(always)]
    pub(crate) fn count_one(&mut self, slot: usize) -> usize {
        let count = &mut self.counts[slot];
        *count += 1;
        *count as usize - 1
    }

    /// The same for an operation on an object that may have cells.
    fn act(
        &mut self,
        objects: &Objects,
        thread: ThreadId,
        op: &Op,
        alternative: u32,
    ) -> Result<i64, Misuse> {
        match op.act {
            Act::Load | Act::Update | Act::WeakUpdate | Act::Choose(_) | Act::Rest => Ok(0),
            Act::Downgrade => {
                self.act_on(objects, thread, op.object, Action::WriteUnlock)?;
                self.act_on(objects, thread, op.object, Action::ReadLock)
            }
            Act::Object(Action::NotifyOne { .. }) => {
                self.act_on(objects, thread, op.object, Action::NotifyOne { nth: alternative })
            }
            Act::Object(action) => self.act_on(objects, thread, op.object, action),
            Act::Wait => {
                self.act_on(objects, thread, op.object, Action::Wait)?;
                self.act_on(objects, thread, op.other, Action::Unlock)
            }
            Act::Wake { .. } => {
                if alternative == 1 {
                    self.leave(objects, thread, op.object);
                }
                self.act_on(objects, thread, op.other, Action::Lock)
            }
            Act::Park { .. } if alternative == 1 => Ok(0),
            Act::Park { .. } => self.act_on(objects, thread, op.object, Action::Park),
            Act::Finish => self.act_on(objects, thread, thread.index() as u32, Action::Finish),
        }
    }

    /// Ends a wait on a condition variable that was not notified.
    fn leave(&mut self, objects: &Objects, thread: ThreadId, condvar: u32) {
        self.fit(objects);
        let (_, at) = objects.of(condvar);
        self.cells[at] = ThreadSet::from_bits(self.cells[at]).without(thread).bits();
        self.versions[condvar as usize] += 1;
    }

    /// Brings the state forward by the next operation of `thread`, as its history tells it.
    pub(crate) fn advance(&mut self, objects: &Objects, thread: ThreadId, history: &History) {
        let at = self.count_one(thread.index());
        let (op, outcome) = (&history.ops[at], &history.outcomes[at]);
        let seen = outcome.idle.then(|| self.look([op.object, op.other]));
        // A misuse changes nothing.
        let _ = self.perform(objects, thread, op, outcome.alternative);
        if outcome.changed {
            self.change(objects, op.object);
        }
        if let Some(seen) = seen {
            self.disregard(op, seen);
        }
        self.start(outcome.spawned, objects);
    }

    /// What a thread would do next.
    pub(crate) fn ask(&self, objects: &Objects, thread: ThreadId, history: &History) -> Pending {
        let mut pending = Pending::vacant();
        self.ask_into(objects, thread, history, &mut pending);
        pending
    }

    /// The same, written to where it is wanted.
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
        match op.touch {
            Touch::Load => pending.set_one(Status::Enabled, 0, Location(op.object), Access::Read),
            Touch::Update | Touch::Unlock => {
                pending.set_one(Status::Enabled, 0, Location(op.object), Access::Write)
            }
            Touch::Lock => {
                self.offer_object(Kind::Mutex, objects, (thread, op, Action::Lock), pending)
            }
            Touch::Other => self.offer(objects, thread, op, pending),
        }
        let Some(last) = count.checked_sub(1).map(|last| &history.outcomes[last]) else { return };
        if last.round > 0 && pending.status == Status::Enabled {
            self.hold(
                pending,
                &history.ops[..count],
                &history.outcomes[..count],
                last.round.into(),
            );
            let is_held = pending.status == Status::Spinning;
            if is_held
                && last.followed == Followed::Repeats
                && op.is_woken_spuriously(&pending.footprints)
            {
                // Spurious wake-ups have led back to this wait, and would do so forever. None has
                // to come, so the thread waits.
                pending.status = Status::Blocked;
            }
        }
    }

    /// Holds a thread back that spins, if nothing has changed of what it looked at. If something
    /// has, its next step follows from that change.
    fn hold(&self, pending: &mut Pending, ops: &[Op], outcomes: &[Outcome], round: usize) {
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

    /// What an operation looks at or changes, and whether it can.
    fn offer(&self, objects: &Objects, thread: ThreadId, op: &Op, pending: &mut Pending) {
        let object = Location(op.object);
        match op.act {
            Act::Load => pending.set_one(Status::Enabled, 0, object, Access::Read),
            Act::Update | Act::Downgrade => {
                pending.set_one(Status::Enabled, 0, object, Access::Write)
            }
            Act::Choose(below) => {
                pending.set_alternatives(
                    Status::Enabled,
                    (0..below).map(|nth| (nth, Footprint::new())),
                );
            }
            Act::WeakUpdate => {
                let footprint = Footprint::one(object, Access::Write);
                pending.set_alternatives(Status::Enabled, [(0, footprint.clone()), (1, footprint)]);
            }
            Act::Rest => pending.set_alternatives(Status::Enabled, [(0, Footprint::new())]),
            Act::Finish => {
                pending.set_one(Status::Enabled, 0, Location(thread.index() as u32), Access::Write)
            }
            Act::Object(action @ Action::NotifyOne { .. }) => {
                let ways = self.alternatives(objects, thread, op.object, action);
                let each = (0..ways).map(|nth| (nth, Footprint::one(object, Access::Write)));
                pending.set_alternatives(Status::Enabled, each);
            }
            Act::Object(action) => {
                self.offer_object(objects.of(op.object).0, objects, (thread, op, action), pending);
            }
            Act::Wait => {
                let both = [(object, Access::Write), (Location(op.other), Access::Write)];
                pending.set_alternatives(Status::Enabled, [(0, both.into_iter().collect())]);
            }
            Act::Wake { early } => self.wake(objects, thread, op, early, pending),
            Act::Park { early } => match self.can(objects, thread, op.object, Action::Park) {
                true => pending.set_one(Status::Enabled, 0, object, Access::Write),
                // It looks at the token and goes on without it.
                false if early != Early::Never => {
                    pending.set_one(Status::Enabled, 1, object, Access::Read)
                }
                false => pending.set_one(Status::Blocked, 0, object, Access::Read),
            },
        }
    }

    /// The same for an action on an object of this kind, which is mostly known where this is asked.
    #[inline(always)]
    fn offer_object(
        &self,
        kind: Kind,
        objects: &Objects,
        (thread, op, action): (ThreadId, &Op, Action),
        pending: &mut Pending,
    ) {
        let (_, at) = objects.of(op.object);
        let (status, access) = match kind.enabled(self.cells(objects, at), thread, action) {
            true => (Status::Enabled, kind.access(action)),
            false => (Status::Blocked, kind.waiting(action)),
        };
        pending.set_one(status, 0, Location(op.object), access);
    }

    fn wake(
        &self,
        objects: &Objects,
        thread: ThreadId,
        op: &Op,
        early: Early,
        pending: &mut Pending,
    ) {
        let (condvar, mutex) = (Location(op.object), Location(op.other));
        let notified = self.can(objects, thread, op.object, Action::Wake);
        if !notified && early == Early::Never {
            return pending.set_one(Status::Blocked, 0, condvar, Access::Read);
        }
        if !self.can(objects, thread, op.other, Action::Lock) {
            // Which alternative there is decides when the mutex is free.
            return pending.set_one(Status::Blocked, 0, mutex, Access::Read);
        }
        let (alternative, access) = if notified { (0, Access::Read) } else { (1, Access::Write) };
        let both = [(condvar, access), (mutex, Access::Write)];
        pending.set_alternatives(Status::Enabled, [(alternative, both.into_iter().collect())]);
    }

    /// Does not count the changes of an operation that is idle: its objects have the versions again
    /// that it saw.
    pub(crate) fn disregard(&mut self, op: &Op, seen: [u32; 2]) {
        for (of, object) in spin::objects(op) {
            if let Some(version) = self.versions.get_mut(object as usize) {
                *version = seen[of];
            }
        }
    }

    /// What an operation sees of its objects.
    #[inline]
    pub(crate) fn look(&self, objects: [u32; 2]) -> [u32; 2] {
        // Nothing has no versions.
        objects.map(|object| self.version(object))
    }
}

/// The versions before and after an operation.
pub(crate) fn seen(before: [u32; 2], after: [u32; 2]) -> [Seen; 2] {
    [0, 1].map(|at| Seen { before: before[at], after: after[at] })
}
