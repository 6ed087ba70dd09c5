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

/// Those that are kept when there is no room for another one: more than [`spin`] looks back.
const KEPT: usize = 160;

/// The last operations of a thread.
struct Past {
    ops: [Op; ROOM],
    outcomes: [Outcome; ROOM],
    count: usize,
    /// The length of the round in which it spins, or 0.
    round: u16,
}

const NO_VERSIONS: Versions = Versions { before: 0, after: 0 };

const EMPTY: Past = Past {
    ops: [Op { kind: 0, object: 0, other: 0, site: SiteId(0), yielded: None }; ROOM],
    outcomes: [Outcome { alternative: 0, progress: false, value: 0, versions: [NO_VERSIONS; 2] };
        ROOM],
    count: 0,
    round: 0,
};

static mut PASTS: [Past; MAX_THREADS] = [EMPTY; MAX_THREADS];

fn past(slot: usize) -> &'static mut Past {
    // SAFETY: only the thread with the baton comes here, and the reference ends before it is
    // handed over.
    unsafe { &mut (*addr_of_mut!(PASTS))[slot] }
}

/// An operation that a thread has performed, while the code after it runs.
#[derive(Clone, Copy)]
pub struct Step {
    pub next: Next,
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
    pub fn new(next: Next, alternative: u32, objects: [u32; 2]) -> Step {
        let before = versions(objects);
        Step { next, alternative, objects, before, value: 0, progress: true, yields: false }
    }

    /// Sets what the operation learned from the objects. Operations on atomics learn more.
    pub fn learn(&mut self, reply: i64) {
        self.value = reply as u64;
        let failed = reply == 0;
        (self.progress, self.yields) = match self.next.op {
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
    if past.count == ROOM {
        past.ops.copy_within(ROOM - KEPT.., 0);
        past.outcomes.copy_within(ROOM - KEPT.., 0);
        past.count = KEPT;
    }
    let (site, [object, other]) = (SiteId(step.next.pc), step.objects);
    let after = versions(step.objects);
    let version = |of: usize| Versions { before: step.before[of], after: after[of] };
    let (kind, yielded) = (step.next.op as u8, step.yields.then_some(site));
    past.ops[past.count] = Op { kind, object, other, site, yielded };
    let last = Outcome {
        alternative: step.alternative,
        progress: step.progress,
        value: step.value,
        versions: [version(0), version(1)],
    };
    past.outcomes[past.count] = last;
    let before = past.count;
    past.count += 1;
    past.round = match last.progress {
        true => 0,
        // No loop is known to end by itself, so the table is empty, and does not allocate.
        false => {
            let (ops, outcomes) = (&past.ops[..past.count], &past.outcomes[..before]);
            spin::round(ops, outcomes, &last, &LoopRounds::default())
        }
    };
    past.round
}

/// Whether a thread spins, and nothing that it reads has changed since.
pub fn is_held(slot: usize) -> bool {
    let past = past(slot);
    if past.round == 0 {
        return false;
    }
    let (ops, outcomes) = (&past.ops[..past.count], &past.outcomes[..past.count]);
    let mut watched = spin::watched(ops, outcomes, past.round.into());
    watched.all(|(object, seen)| objects().version(object) == seen)
}
