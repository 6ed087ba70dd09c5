//! Data races, looked for while an execution is made.
//!
//! **Paper.** icb, section 3.1: switching at synchronisation only is sound where there are no data
//! races. Epochs as in FastTrack (Flanagan and Freund, PLDI 2009).
//!
//! **Guarantees.** Precise for the execution: two accesses to a plain cell by different threads,
//! one of them a write, are reported iff program order and synchronisation do not order them. What
//! synchronises is what std promises: a lock with the unlock before it, an acquire load with the
//! release store that it reads from and its release sequence, fences, spawn, join, `unpark`,
//! barriers, the last drop of an `Arc`.
//!
//! **Map.** The thread's vector clock C(t): [`Races::clocks`]; L(m): [`Sync::released`]; W(x):
//! [`Plain::write`]; R(x): [`Plain::reads`].
//!
//! **Deviations.** 1. Reads are a short list, not an epoch that grows into a vector. 2. The
//! orderings of atomics count, although the search is of sequentially consistent executions: a
//! relaxed flag protects nothing.
//!
//! **Cost.** O(threads) for each synchronisation, from the moment at which a program is known to
//! use plain cells.

use std::panic::Location as Site;
use std::sync::atomic::Ordering;

use preempt_system::{Access, Action, Epoch, ThreadId, VectorClock};
use smallvec::SmallVec;

use super::op::{Act, NOTHING, Op};

/// What an object passes on.
#[derive(Clone, Debug, Default)]
struct Sync {
    /// To everybody who takes or reads it.
    released: VectorClock,
    /// From readers, to writers only.
    read: VectorClock,
}

/// When a thread accessed a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// How many operations it had done.
    pub(crate) done: u32,
    /// Which of its accesses to cells it was.
    pub(crate) nth: u32,
}

/// An access to a plain cell.
#[derive(Clone, Copy, Debug)]
struct Mark {
    epoch: Epoch,
    moment: Moment,
    site: &'static Site<'static>,
}

/// What a next access to a cell may race with.
#[derive(Clone, Debug, Default)]
struct Plain {
    write: Option<Mark>,
    reads: SmallVec<[Mark; 2]>,
}

/// The other access of a race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Racing {
    pub(crate) thread: usize,
    pub(crate) access: Access,
    pub(crate) site: &'static Site<'static>,
}

/// How an atomic is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Read.
    Load,
    /// Written without being read.
    Store,
    /// Both.
    Update,
}

/// The clocks of an execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Races {
    clocks: Vec<VectorClock>,
    /// What relaxed loads have seen: an acquire fence takes it.
    seen: Vec<VectorClock>,
    /// What the last release fence has published: relaxed stores pass it on.
    fenced: Vec<VectorClock>,
    objects: Vec<Sync>,
    cells: Vec<Plain>,
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl Races {
    /// Begins an execution.
    pub(crate) fn begin(&mut self, slots: usize) {
        *self = Races::default();
        for clocks in [&mut self.clocks, &mut self.seen, &mut self.fenced] {
            clocks.resize(slots, VectorClock::new());
        }
        self.clocks[0].tick(ThreadId::new(0));
    }

    fn object(&mut self, object: u32) -> &mut Sync {
        let at = object as usize;
        if self.objects.len() <= at {
            self.objects.resize(at + 1, Sync::default());
        }
        &mut self.objects[at]
    }

    fn acquire(&mut self, thread: usize, object: u32) {
        let released = std::mem::take(&mut self.object(object).released);
        self.clocks[thread].join(&released);
        self.object(object).released = released;
    }

    fn release(&mut self, thread: usize, object: u32) {
        let clock = self.clocks[thread].clone();
        self.object(object).released.join(&clock);
        self.clocks[thread].tick(ThreadId::new(thread));
    }

    /// A thread starts another.
    pub(crate) fn start(&mut self, parent: usize, child: usize) {
        self.clocks[child] = self.clocks[parent].clone();
        self.clocks[child].tick(ThreadId::new(child));
        self.clocks[parent].tick(ThreadId::new(parent));
    }

    /// A thread performs an operation on objects.
    pub(crate) fn perform(&mut self, thread: usize, op: &Op, alternative: u32, reply: i64) {
        let object = op.object;
        match op.act {
            Act::Finish => self.release(thread, thread as u32),
            Act::Downgrade => self.release(thread, object),
            Act::Wait => self.release(thread, op.other),
            Act::Wake { .. } => self.acquire(thread, op.other),
            Act::Park { .. } if alternative == 0 => self.acquire(thread, object),
            Act::Object(action) => match action {
                Action::Lock | Action::Join | Action::Leave => self.acquire(thread, object),
                Action::TryLock if reply == 1 => self.acquire(thread, object),
                Action::Unlock | Action::Unpark => self.release(thread, object),
                Action::Arrive => {
                    self.acquire(thread, object);
                    self.release(thread, object);
                }
                Action::ReadLock => self.acquire(thread, object),
                Action::TryReadLock if reply == 1 => self.acquire(thread, object),
                Action::ReadUnlock => {
                    let clock = self.clocks[thread].clone();
                    self.object(object).read.join(&clock);
                    self.clocks[thread].tick(ThreadId::new(thread));
                }
                Action::WriteLock => self.acquire_all(thread, object),
                Action::TryWriteLock if reply == 1 => self.acquire_all(thread, object),
                Action::WriteUnlock => self.release(thread, object),
                _ => {}
            },
            _ => {}
        }
    }

    fn acquire_all(&mut self, thread: usize, object: u32) {
        self.acquire(thread, object);
        let read = self.object(object).read.clone();
        self.clocks[thread].join(&read);
    }

    /// A thread accesses an atomic.
    pub(crate) fn atomic(&mut self, thread: usize, object: u32, memory: Memory, order: Ordering) {
        if object == NOTHING {
            return;
        }
        if memory != Memory::Store {
            match acquires(order) {
                true => self.acquire(thread, object),
                false => {
                    let released = self.object(object).released.clone();
                    self.seen[thread].join(&released);
                }
            }
        }
        if memory == Memory::Load {
            return;
        }
        let passed =
            if releases(order) { self.clocks[thread].clone() } else { self.fenced[thread].clone() };
        let released = &mut self.object(object).released;
        match memory {
            // What was stored before is not passed on by a new store.
            Memory::Store => *released = passed,
            _ => released.join(&passed),
        }
        if releases(order) {
            self.clocks[thread].tick(ThreadId::new(thread));
        }
    }

    /// A thread makes a fence.
    pub(crate) fn fence(&mut self, thread: usize, order: Ordering) {
        if acquires(order) {
            let seen = self.seen[thread].clone();
            self.clocks[thread].join(&seen);
        }
        if releases(order) {
            self.fenced[thread] = self.clocks[thread].clone();
            self.clocks[thread].tick(ThreadId::new(thread));
        }
    }

    /// A number for a cell that is new in this execution.
    pub(crate) fn cell(&mut self) -> u32 {
        self.cells.push(Plain::default());
        self.cells.len() as u32 - 1
    }

    /// The last accesses to a cell that no later one is known to follow: their threads, with the
    /// moments.
    pub(crate) fn last_accesses(&self, cell: u32) -> impl Iterator<Item = (usize, Moment)> + '_ {
        let plain = &self.cells[cell as usize];
        plain.write.iter().chain(&plain.reads).map(|mark| (mark.epoch.thread.index(), mark.moment))
    }

    /// A thread accesses a cell. Returns what that races with.
    pub(crate) fn access(
        &mut self,
        thread: usize,
        cell: u32,
        access: Access,
        site: &'static Site<'static>,
        moment: Moment,
    ) -> Option<Racing> {
        let (clock, id) = (&self.clocks[thread], ThreadId::new(thread));
        let plain = &mut self.cells[cell as usize];
        let unordered = |mark: &&Mark| mark.epoch.thread != id && !clock.includes(mark.epoch);
        let racing = |access| {
            move |mark: &Mark| Racing { thread: mark.epoch.thread.index(), access, site: mark.site }
        };
        if let Some(race) = plain.write.iter().find(unordered).map(racing(Access::Write)) {
            return Some(race);
        }
        let here = Mark { epoch: clock.epoch(id), moment, site };
        match access {
            Access::Read => {
                plain.reads.retain(|mark| mark.epoch.thread != id);
                plain.reads.push(here);
            }
            Access::Write => {
                if let Some(race) = plain.reads.iter().find(unordered).map(racing(Access::Read)) {
                    return Some(race);
                }
                *plain = Plain { write: Some(here), reads: SmallVec::new() };
            }
        }
        None
    }

    /// The clock of a thread, to be kept where an `Arc` is dropped.
    pub(crate) fn clock(&mut self, thread: usize) -> VectorClock {
        let clock = self.clocks[thread].clone();
        self.clocks[thread].tick(ThreadId::new(thread));
        clock
    }

    /// Takes a clock that was kept.
    pub(crate) fn join(&mut self, thread: usize, clock: &VectorClock) {
        self.clocks[thread].join(clock);
    }
}
