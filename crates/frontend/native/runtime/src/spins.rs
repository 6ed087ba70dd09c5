//! Threads that wait by looping: they are held back until what they read has changed.
//!
//! [`crate::spin`] decides, the same source as for closures. A round is fruitless if its operations
//! are the same as in the round before, found the same, and changed nothing. What a thread does
//! besides is not visible here, so only operations that are reads count as changing nothing: loads,
//! failed attempts, writes of the value that was there, and yields. A thread that takes a lock has
//! made progress, since it may change what the lock protects; one that sleeps or times out has,
//! since time has passed.
//!
//! The log says after which operations a thread spins ([`crate::block::Record::Spin`]). The
//! controller holds it back in the same way, and reports what the search relied on: that the loop
//! would have continued without the change.

use core::ptr::addr_of_mut;

use crate::block::{MAX_THREADS, Op as OpKind};
use crate::op::{NO_OBJECT, Op, Outcome, Versions};
use crate::schedule::{Next, objects};
use crate::site::SiteId;
use crate::spin::{self, LoopRounds};

/// The operations that are remembered of each thread.
const ROOM: usize = 256;

/// The first of them have a place of their own, so that threads with few operations touch few
/// pages.
const FEW: usize = 24;

/// Those that are kept when there is no room for another one: more than [`spin`] looks back.
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
struct Past {
    count: usize,
    /// The length of the round in which it spins, or 0.
    round: u16,
    /// Whether it has had more than [`FEW`] operations. All are in [`MANY_OPS`] then.
    is_long: bool,
    few: Ops<FEW>,
}

const NO_VERSIONS: Versions = Versions { before: 0, after: 0 };

const EMPTY: Past = Past { count: 0, round: 0, is_long: false, few: Ops::EMPTY };

static mut PASTS: [Past; MAX_THREADS] = [EMPTY; MAX_THREADS];
static mut MANY_OPS: [Ops<ROOM>; MAX_THREADS] = [Ops::EMPTY; MAX_THREADS];

fn past(slot: usize) -> &'static mut Past {
    // SAFETY: only the thread with the baton runs this, and the reference ends before it is
    // handed over.
    unsafe { &mut (*addr_of_mut!(PASTS))[slot] }
}

fn many(slot: usize) -> &'static mut Ops<ROOM> {
    // SAFETY: as above.
    unsafe { &mut (*addr_of_mut!(MANY_OPS))[slot] }
}

impl Past {
    /// The room for the operations of this thread, which is the one in `slot`.
    fn room(&mut self, slot: usize) -> (&mut [Op], &mut [Outcome]) {
        match self.is_long {
            true => (&mut many(slot).ops, &mut many(slot).outcomes),
            false => (&mut self.few.ops, &mut self.few.outcomes),
        }
    }

    /// Makes room for one more operation.
    fn make_room(&mut self, slot: usize) {
        if self.is_long && self.count == ROOM {
            let all = many(slot);
            all.ops.copy_within(ROOM - KEPT.., 0);
            all.outcomes.copy_within(ROOM - KEPT.., 0);
            self.count = KEPT;
        }
        if !self.is_long && self.count == FEW {
            let all = many(slot);
            all.ops[..FEW].copy_from_slice(&self.few.ops);
            all.outcomes[..FEW].copy_from_slice(&self.few.outcomes);
            self.is_long = true;
        }
    }
}

/// An operation that a thread has performed, while the code after it runs.
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
    /// What the thread learned.
    pub value: u64,
    pub progress: bool,
    pub yields: bool,
}

impl Step {
    /// A step whose operation has these objects.
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

    /// Sets what the operation learned from the objects. Operations on atomics learn more.
    pub fn learn(&mut self, reply: i64) {
        self.value = reply as u64;
        let failed = reply == 0;
        (self.progress, self.yields) = match self.op {
            OpKind::Yield => (false, true),
            OpKind::TryLock | OpKind::TryReadLock | OpKind::TryWriteLock => (!failed, false),
            OpKind::TryAcquire => (!failed, false),
            // They have woken no thread.
            OpKind::FutexWakeOne | OpKind::FutexWakeAll => (!failed, false),
            // What ends a wait is an operation of its own.
            OpKind::FutexWait | OpKind::AfterWrite => (false, false),
            op if op.is_atomic() => (false, false),
            _ => (true, false),
        };
    }

    /// Sets what an atomic operation has found, and whether it has changed the value.
    pub fn find(&mut self, value: u64, changed: bool) {
        (self.value, self.progress) = (value, changed);
    }
}

fn versions(of: [u32; 2]) -> [u32; 2] {
    of.map(|object| if object == NO_OBJECT { 0 } else { objects().version(object) })
}

/// Records a step of a thread, which has reached its next operation. Returns the length of the
/// round in which it spins, or 0.
pub fn record(slot: usize, step: &Step) -> u16 {
    let past = past(slot);
    past.make_room(slot);
    let (site, [object, other]) = (SiteId(step.pc), step.objects);
    let after = versions(step.objects);
    let version = |of: usize| Versions { before: step.before[of], after: after[of] };
    let (kind, yielded) = (step.op as u8, step.yields.then_some(site));
    let at = past.count;
    let (ops, outcomes) = past.room(slot);
    ops[at] = Op { kind, object, other, site, yielded };
    // Field by field: a copy of the whole would wait for the stores of its parts.
    let (before, rest) = outcomes.split_at_mut(at);
    let last = &mut rest[0];
    (last.alternative, last.progress, last.value) = (step.alternative, step.progress, step.value);
    (last.versions[0], last.versions[1]) = (version(0), version(1));
    let round = match last.progress {
        true => 0,
        // No loop is known to end by itself, so the table is empty, and does not allocate.
        false => spin::round(&ops[..=at], before, last, &LoopRounds::default()),
    };
    (past.count, past.round) = (at + 1, round);
    round
}

/// Whether a thread spins, and nothing that it reads has changed since.
pub fn is_held(slot: usize) -> bool {
    let past = past(slot);
    if past.round == 0 {
        return false;
    }
    let (round, count) = (past.round.into(), past.count);
    let (ops, outcomes) = past.room(slot);
    let mut watched = spin::watched(&ops[..count], &outcomes[..count], round);
    watched.all(|(object, seen)| objects().version(object) == seen)
}
