//! Threads that wait in a loop: they are held back until an object that they read has changed.
//!
//! [`crate::spin`] decides which threads these are; it is the same source as for closures. A round
//! of a loop makes no progress if its operations are the same as in the round before, found the
//! same values and changed nothing. The code between operations is not visible here, so only
//! operations that read count as changing nothing: loads, failed attempts, writes of the value that
//! was there, and yields. A thread that takes a lock makes progress, since it may change what the
//! lock protects; so does one that sleeps or times out, since time has passed.
//!
//! A thread that yields asks for others to run first, whatever else it does: a loop may poll a
//! variable under a lock. So a thread also spins if it has yielded twice at one place, stays in the
//! loop, and no other thread has changed an object that it used since. In a program without data
//! races, the loop can only observe what a thread wrote before it changed one of these objects.
//! [`crate::spin`] has the rules and the argument, also for changes that are *idle*.
//!
//! The log says after which operations a thread spins ([`crate::block::Record::Spin`]). The
//! controller holds the thread back in the same way, and reports the assumption of the search: that
//! the loop would have continued without the change.

use core::ptr::addr_of_mut;

use crate::block::{MAX_THREADS, Op as OpKind};
use crate::op::{NO_OBJECT, Op, Outcome, Versions};
use crate::schedule::{Next, objects};
use crate::site::SiteId;
use crate::spin::{self, LoopRounds};

/// The maximal number of operations in the history of a thread.
const CAPACITY: usize = 256;

/// The number of operations that are stored in the history itself, so that threads with few
/// operations touch few pages.
const INLINE: usize = 24;

/// The number of operations that are kept when the history is full: more than [`spin`] looks back.
const KEPT: usize = 160;

/// Operations with their outcomes.
struct Ops<const N: usize> {
    ops: [Op; N],
    outcomes: [Outcome; N],
}

impl<const N: usize> Ops<N> {
    const EMPTY: Ops<N> = Ops {
        ops: [Op { kind: 0, object: 0, other: 0, site: SiteId(0), yielded: None }; N],
        outcomes: [Outcome {
            alternative: 0,
            progress: false,
            value: 0,
            versions: [NO_VERSIONS; 2],
        }; N],
    };
}

/// The last operations of a thread.
struct History {
    count: usize,
    /// The number of yields among all operations so far.
    yields: u32,
    /// The number of operations of the round in which the thread spins, or 0.
    round: u16,
    /// Whether the operations are in [`LONG_HISTORIES`] because there were more than [`INLINE`].
    is_long: bool,
    inline: Ops<INLINE>,
}

const NO_VERSIONS: Versions = Versions { before: 0, after: 0 };

const EMPTY: History =
    History { count: 0, yields: 0, round: 0, is_long: false, inline: Ops::EMPTY };

static mut HISTORIES: [History; MAX_THREADS] = [EMPTY; MAX_THREADS];
static mut LONG_HISTORIES: [Ops<CAPACITY>; MAX_THREADS] = [Ops::EMPTY; MAX_THREADS];

fn history(slot: usize) -> &'static mut History {
    // SAFETY: only the thread with the baton runs this, and the reference ends before it is
    // handed over.
    unsafe { &mut (*addr_of_mut!(HISTORIES))[slot] }
}

fn long(slot: usize) -> &'static mut Ops<CAPACITY> {
    // SAFETY: as above.
    unsafe { &mut (*addr_of_mut!(LONG_HISTORIES))[slot] }
}

impl History {
    /// The storage for the operations of this history, which is that of the thread in `slot`.
    fn storage(&mut self, slot: usize) -> (&mut [Op], &mut [Outcome]) {
        match self.is_long {
            true => (&mut long(slot).ops, &mut long(slot).outcomes),
            false => (&mut self.inline.ops, &mut self.inline.outcomes),
        }
    }

    /// Makes room for one more operation, and for the next one after it.
    fn make_room(&mut self, slot: usize) {
        if self.is_long && self.count + 1 == CAPACITY {
            let (all, kept) = (long(slot), self.count - KEPT..self.count);
            all.ops.copy_within(kept.clone(), 0);
            all.outcomes.copy_within(kept, 0);
            self.count = KEPT;
        }
        if !self.is_long && self.count + 1 == INLINE {
            let all = long(slot);
            all.ops[..INLINE].copy_from_slice(&self.inline.ops);
            all.outcomes[..INLINE].copy_from_slice(&self.inline.outcomes);
            self.is_long = true;
        }
    }
}

/// An operation that a thread has performed, until the code after it reaches the next operation.
#[derive(Clone, Copy)]
pub struct Step {
    pub op: OpKind,
    pub pc: usize,
    /// As in [`crate::block::Event`].
    pub size: u8,
    /// The memory orders of an atomic operation: see [`crate::block::orders`].
    pub orders: u32,
    pub alternative: u32,
    /// The indices of its objects, or [`NO_OBJECT`].
    pub objects: [u32; 2],
    /// The versions of the objects before it.
    pub before: [u32; 2],
    /// The result of the operation, or the value that it found.
    pub value: u64,
    pub progress: bool,
    pub yields: bool,
}

impl Step {
    /// The step that performs `next` on `objects`.
    pub fn new(next: &Next, alternative: u32, objects: [u32; 2]) -> Step {
        Step {
            op: next.op,
            pc: next.pc,
            size: next.size,
            orders: next.value,
            alternative,
            objects,
            before: versions(objects),
            value: 0,
            progress: true,
            yields: false,
        }
    }

    /// Sets the result of the operation. Atomic operations set more with [`find`](Step::find).
    pub fn learn(&mut self, reply: i64) {
        self.value = reply as u64;
        let failed = reply == 0;
        (self.progress, self.yields) = match self.op {
            OpKind::Yield => (false, true),
            OpKind::TryLock | OpKind::TryReadLock | OpKind::TryWriteLock => (!failed, false),
            OpKind::TryAcquire => (!failed, false),
            // The result is the number of threads that were woken.
            OpKind::FutexWakeOne | OpKind::FutexWakeAll => (!failed, false),
            // The end of a wait is an operation of its own.
            OpKind::FutexWait | OpKind::AfterWrite => (false, false),
            op if op.is_atomic() => (false, false),
            _ => (true, false),
        };
    }

    /// Sets the value that an atomic operation found, and whether the operation changed it.
    pub fn find(&mut self, value: u64, changed: bool) {
        (self.value, self.progress) = (value, changed);
    }
}

fn versions(of: [u32; 2]) -> [u32; 2] {
    of.map(|object| if object == NO_OBJECT { 0 } else { objects().version(object) })
}

/// What a step shows about the loop of its thread.
#[derive(Clone, Copy)]
pub struct Recorded {
    /// The number of operations of the round in which the thread spins, or 0.
    pub round: u16,
    /// Whether what the step changed releases no thread that is held back.
    pub idle: bool,
}

/// Records a step of a thread, which has reached its operation `next`, on `next_objects`.
pub fn record(slot: usize, step: &Step, next: &Next, next_objects: [u32; 2]) -> Recorded {
    let history = history(slot);
    history.make_room(slot);
    history.yields += u32::from(step.yields);
    let (at, mut yields) = (history.count, history.yields);
    let (ops, outcomes) = history.storage(slot);
    ops[at] = operation(step.op, step.pc, step.objects);
    ops[at + 1] = operation(next.op, next.pc, next_objects);
    // No loop is known to end by itself, so the table is empty and does not allocate.
    let loops = LoopRounds::default();
    let idle = yields > 1 && spin::is_idle(&ops[..=at + 1], at, &loops);
    if idle {
        disregard(step);
    }
    let after = versions(step.objects);
    let version = |of: usize| Versions { before: step.before[of], after: after[of] };
    // Field by field: copying the struct at once would stall on the stores to its fields.
    let (before, rest) = outcomes.split_at_mut(at);
    let last = &mut rest[0];
    (last.alternative, last.progress, last.value) = (step.alternative, step.progress, step.value);
    (last.versions[0], last.versions[1]) = (version(0), version(1));
    let mut round = match last.progress {
        true => 0,
        false => spin::round(&ops[..=at], before, last, &loops),
    };
    yields += u32::from(next.op == OpKind::Yield);
    if round == 0 && yields > 1 {
        round = spin::yielding_round(&ops[..=at + 1], &outcomes[..=at], &loops);
        let first = at + 1 - usize::from(round);
        // A round that changes nothing is the case above.
        let changes = outcomes[first..=at].iter().any(|outcome| outcome.progress);
        if !changes || !waits_for_objects(&ops[first..=at]) {
            round = 0;
        }
    }
    (history.count, history.round) = (at + 1, round);
    Recorded { round, idle }
}

/// Whether a round of a loop that yields waits for changes of objects alone. It waits for nothing
/// if it uses none: the scheduler holds it back for one step of another thread. Descriptors, ends
/// of threads and time are not objects, so their changes would not release the thread.
fn waits_for_objects(round: &[Op]) -> bool {
    let has_object = |op: &Op| op.object != NO_OBJECT;
    round.iter().any(has_object) && round.iter().all(|op| has_object(op) || op.yielded.is_some())
}

fn operation(op: OpKind, pc: usize, [object, other]: [u32; 2]) -> Op {
    let (site, yields) = (SiteId(pc), op == OpKind::Yield);
    Op { kind: op as u8, object, other, site, yielded: yields.then_some(site) }
}

/// Takes back that a step counts as a change of its objects.
#[cold]
fn disregard(step: &Step) {
    let used = step.objects.into_iter().zip(step.before);
    used.filter(|&(object, _)| object != NO_OBJECT)
        .for_each(|(object, before)| objects().get(object).set_version(before));
}

/// Whether a thread spins and no object that it reads has changed since its last round.
pub fn is_held(slot: usize) -> bool {
    let history = history(slot);
    if history.round == 0 {
        return false;
    }
    let (round, count) = (history.round.into(), history.count);
    let (ops, outcomes) = history.storage(slot);
    // A thread that reads old values waits for nothing: the newest one may let it continue.
    let is_stale = |(op, outcome): (&Op, &Outcome)| {
        outcome.alternative != 0 && OpKind::of(op.kind).is_some_and(OpKind::is_atomic)
    };
    if ops[..count].iter().zip(&outcomes[..count]).skip(count - round).any(is_stale) {
        return false;
    }
    let mut watched = spin::watched(&ops[..count], &outcomes[..count], round);
    watched.all(|(object, seen)| objects().version(object) == seen)
}
