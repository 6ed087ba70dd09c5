//! Executions of an executable under weak memory.
//!
//! A child process runs with memory that always contains the last store of each atomic variable in
//! modification order. Its log has every atomic operation with its memory orders and values, and
//! the fences. From the log this file builds the state of the [memory machine](Weak), which says
//! which older stores the next operation of a thread may read, and before which stores its own may
//! be. Such an operation is *stale*. To take a stale step, a child is started whose prefix names
//! the value to read (`runtime/src/hooks/atomic.rs`). After its prefix a child continues with the
//! newest values, which every execution allows.
//!
//! # Code that is not visible
//!
//! Precompiled code, such as the slow paths of std's locks, accesses memory by instructions that no
//! log shows. An error that is only possible because such an access was overlooked would be a false
//! alarm. So where it may have synchronised, threads are taken to be ordered, as in the runtime's
//! detection of data races:
//!
//! 1. *Opaque variables.* A variable is opaque if the code that performs its first operation
//!    belongs to std (`library/std`): the word of a mutex, the state of a `Once`, the counters of a
//!    channel. Other code of std may be precompiled and use the same variable. Code of `core` and
//!    `alloc`, such as `Arc`, is generic or inlined and thus instrumented with its callers. A
//!    variable is also opaque if two operations of different sizes overlap, if it has 16 bytes, or
//!    if in any execution an operation found another value than the visible operations left: the
//!    search then starts over ([`Need::Opaque`](crate::Need::Opaque)). That check includes stale
//!    operations, and the whole execution, before anything of it is used. What escapes it is
//!    precompiled code that writes a variable of the program's own and restores the old value
//!    before the next visible operation.
//!
//!    An operation on an opaque variable reads the newest value, counts as SeqCst, and continues
//!    the release sequence of everything before it, so it comes after all earlier operations on the
//!    variable that write. If it finds a value that no visible operation left, or is the first one,
//!    its thread comes after everything that has happened so far in any thread.
//! 2. *Calls.* The end of a futex wait, the entries of precompiled functions (`Once::call`,
//!    `thread::park`, `Condvar::wait`, `Barrier::wait`), and operations on descriptors order their
//!    thread after everything that has happened so far. Precompiled code can learn of what another
//!    thread has done only at a scheduling point, because no other thread runs between two.
//! 3. Objects whose semantics are known (pthread, C11 threads, semaphores, barriers) synchronise
//!    exactly as documented, and so do the start and the end of threads.
//!
//! "After everything that has happened" is stronger than any real synchronisation, so it can hide
//! an execution of the program, but never adds one. Which events these are is part of the
//! execution's name, so that the cache does not confuse executions that differ in it.
//!
//! # Addresses
//!
//! A variable is identified by its address. The runtime's allocator never reuses memory, and the
//! stacks of threads stay mapped, so two variables share an address only in one frame after the
//! other of one stack. A thread that accesses the second one correctly comes after all accesses to
//! the first one, so it cannot read their values.

use std::sync::atomic::Ordering;

use preempt_native_block::Op as OpKind;
use preempt_system::memory::{Alternatives, Memory as _, MemoryAccess, Stored, Weak};
use preempt_system::{
    Access, Fingerprint, Footprint, Location, MAX_THREADS, Stale, SyncClocks, ThreadId, ThreadSet,
    VectorClock,
};

use crate::names::NOTHING;
use crate::state::{Op, Outcome};

/// The number of the chain of operations that order their thread after everything.
const EVERYTHING: u32 = crate::names::PROCESS;

/// The memory order with this number in C11. Consume is not weaker than acquire in any compiler.
pub(crate) fn order(number: u32) -> Ordering {
    match number {
        0 => Ordering::Relaxed,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    }
}

/// The access of an atomic operation.
fn access_of(op: &Op) -> Option<MemoryAccess> {
    let success = order(op.detail.number & 0xff);
    Some(match op.kind {
        OpKind::Load => MemoryAccess::Load(success),
        OpKind::Store => MemoryAccess::Store(success),
        OpKind::CompareExchange => {
            let failure = order(op.detail.number >> 8 & 0xff);
            MemoryAccess::Exchange { expected: op.detail.expected, success, failure }
        }
        kind if kind.may_write() => MemoryAccess::Update(success),
        _ => return None,
    })
}

/// A step, with what the machine needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Performed {
    pub(crate) thread: ThreadId,
    pub(crate) op: Op,
    pub(crate) outcome: Outcome,
    /// The accesses of the step on which other steps depend.
    pub(crate) footprint: Footprint,
    /// Whether the operation is on an [opaque](self) variable.
    pub(crate) is_opaque: bool,
    /// Whether an attempt at a lock or a semaphore has succeeded.
    pub(crate) has_acquired: bool,
}

/// A store of a thread that another one has read without coming after what the first one did
/// before: the two accesses are the nearest miss of a stale load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissedOrder {
    pub(crate) location: u32,
    /// The number of the step and the ordering of the store.
    pub(crate) store: (u32, Ordering),
    /// The number of the step and the ordering of the load.
    pub(crate) load: (u32, Ordering),
}

/// The machine after the steps of an execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct WeakMemory {
    memory: Weak,
    clocks: SyncClocks,
    /// The threads that have started.
    threads: ThreadSet,
    steps: Vec<Performed>,
    /// For each step, the store that it reads, if it is an operation on a variable that is not
    /// opaque.
    reads: Vec<Option<Stored>>,
}

impl WeakMemory {
    /// The machine before the first step, where these threads exist.
    pub(crate) fn new(threads: ThreadSet) -> WeakMemory {
        // What was done before the first step is the initial values, which come before everything.
        WeakMemory { threads, ..WeakMemory::default() }
    }

    /// The name of the execution.
    pub(crate) fn name(&self) -> Fingerprint {
        self.memory.name()
    }

    /// The alternatives of an atomic operation that `thread` is about to perform.
    pub(crate) fn alternatives(&self, thread: ThreadId, op: &Op) -> Alternatives {
        match access_of(op).filter(|_| self.memory.latest(op.object).is_some()) {
            Some(access) => self.memory.alternatives(&self.clocks, thread, op.object, access),
            // The machine learns the initial value from the first operation.
            None => Alternatives::from_slice(&[0]),
        }
    }

    /// The store that an alternative of an operation on this variable reads.
    pub(crate) fn stored(&self, location: u32, alternative: u32) -> Stored {
        self.memory.stored(location, alternative)
    }

    /// The stores that an operation with this alternative does not see.
    pub(crate) fn stale(&self, op: &Op, alternative: u32) -> Option<Stale> {
        match op.kind {
            OpKind::Store => self.memory.stale_write(op.object, alternative),
            _ => self.memory.stale_read(op.object, alternative),
        }
    }

    /// The location that the last step has read, and the step that stored the value.
    pub(crate) fn last_read(&self) -> Option<(Location, Option<usize>)> {
        let (step, read) = (self.steps.last()?, self.reads.last().copied().flatten()?);
        Some((Location(step.op.object), read.number()))
    }

    /// The steps so far.
    pub(crate) fn steps(&self) -> &[Performed] {
        &self.steps
    }

    /// The last store that `thread` has read and that the thread of `newest` performed after it, if
    /// its ordering or that of the load is the reason why `thread` need not see `newest`.
    pub(crate) fn missed_order(&self, thread: ThreadId, newest: &Stored) -> Option<MissedOrder> {
        let writer = newest.event.thread?;
        let is_later = |read: &Stored| read.event.thread == Some(writer) && read.step > newest.step;
        let (at, read) = (0..self.steps.len())
            .rev()
            .filter(|&at| self.steps[at].thread == thread)
            .find_map(|at| Some((at, self.reads[at].filter(is_later)?)))?;
        let orderings = |at: usize| {
            let Performed { op, outcome, .. } = &self.steps[at];
            let fails = op.kind == OpKind::CompareExchange && !outcome.wrote;
            order(op.detail.number >> if fails { 8 } else { 0 } & 0xff)
        };
        let (load, store) = (orderings(at), orderings(read.step as usize - 1));
        let is_ordered = acquires(load) && releases(store);
        let location = self.steps[at].op.object;
        let (store, load) = ((read.step, store), (at as u32 + 1, load));
        (!is_ordered).then_some(MissedOrder { location, store, load })
    }

    /// Returns to the point where the execution had `len` steps; `threads` are those that existed
    /// before the first one.
    pub(crate) fn rewind(&mut self, len: usize, threads: ThreadSet) {
        if len == self.steps.len() {
            return;
        }
        let mut steps = std::mem::take(&mut self.steps);
        steps.truncate(len);
        self.memory.clear();
        self.clocks.clear();
        self.threads = threads;
        self.reads.clear();
        steps.into_iter().for_each(|step| self.perform(step));
    }

    /// Takes a step.
    pub(crate) fn perform(&mut self, step: Performed) {
        self.memory.set_step(self.steps.len() as u32 + 1);
        self.reads.push(None);
        if step.op.kind.is_atomic() {
            self.access(&step);
            self.depend(&step, Some(step.op.object));
        } else {
            self.synchronise(&step);
        }
        for &order in step.outcome.fences.orders() {
            self.memory.fence(&mut self.clocks, step.thread, order);
        }
        for started in step.outcome.started.iter() {
            self.clocks.fork(step.thread, started);
            self.threads.insert(started);
        }
        self.steps.push(step);
    }

    /// Performs an atomic operation.
    fn access(&mut self, step: &Performed) {
        let Performed { thread, op, outcome, is_opaque, .. } = *step;
        let (location, alternative, left) = (op.object, outcome.alternative, outcome.left as u64);
        let found = outcome.memory as u64;
        let newest = self.memory.latest(location);
        if newest.is_none() {
            self.memory.initialise(location, found);
        }
        let written = outcome.wrote.then_some(left);
        if is_opaque {
            const ORDERS: (Ordering, Ordering) = (Ordering::SeqCst, Ordering::SeqCst);
            if newest != Some(found) {
                self.come_after_everything(thread);
                self.memory.update(&mut self.clocks, thread, location, ORDERS, 0, |_| Some(found));
            }
            self.memory.update(&mut self.clocks, thread, location, ORDERS, 0, |_| written);
            return;
        }
        debug_assert!(newest.is_none_or(|newest| newest == found), "it would be opaque");
        if op.kind != OpKind::Store {
            let read = self.memory.stored(location, alternative);
            *self.reads.last_mut().expect("the step was added") = Some(read);
        }
        let (memory, clocks) = (&mut self.memory, &mut self.clocks);
        match access_of(&op).expect("the operation is atomic") {
            MemoryAccess::Load(order) => {
                let read = memory.load(clocks, thread, location, order, alternative);
                debug_assert_eq!(read, outcome.found as u64, "the child reads what was asked for");
            }
            MemoryAccess::Store(order) => {
                memory.store(clocks, thread, location, left, order, alternative);
            }
            MemoryAccess::Update(order) => {
                let orders = (order, order);
                memory.update(clocks, thread, location, orders, alternative, |_| written);
            }
            MemoryAccess::Exchange { success, failure, .. } => {
                let orders = (success, failure);
                memory.update(clocks, thread, location, orders, alternative, |_| written);
            }
        }
    }

    /// Orders a thread after everything that has happened.
    fn come_after_everything(&mut self, thread: ThreadId) {
        self.clocks.epoch(thread);
        let mut before = self.now(thread);
        for other in self.threads.without(thread).iter() {
            let published = self.clocks.publish(other);
            self.clocks.join(thread, &published);
            let after = self.now(thread);
            // The name says how far each other thread has come.
            let everything = [(EVERYTHING, Access::Write)].into_iter();
            let reached = self.memory.events(other) * MAX_THREADS as u32 + other.index() as u32;
            self.memory.act(thread, everything, reached, (&before, &after));
            before = after;
        }
    }

    fn now(&self, thread: ThreadId) -> VectorClock {
        self.clocks.now(thread).map_or_else(VectorClock::new, VectorClock::clone)
    }

    /// Performs an operation that is not one on an atomic variable.
    fn synchronise(&mut self, step: &Performed) {
        let Performed { thread, op, outcome, .. } = *step;
        let (object, other) = (op.object, op.other);
        if orders_after_everything(&op, &outcome) {
            self.come_after_everything(thread);
        }
        self.clocks.epoch(thread);
        let before = self.now(thread);
        let clocks = &mut self.clocks;
        let succeeded = step.has_acquired;
        match op.kind {
            OpKind::Finish => clocks.release(thread, thread.index() as u32),
            OpKind::Join => clocks.acquire(thread, object),
            OpKind::Lock | OpKind::Leave | OpKind::Acquire | OpKind::EnterOnce | OpKind::Count => {
                clocks.acquire(thread, object);
            }
            OpKind::TryLock | OpKind::TimedLock | OpKind::TryAcquire | OpKind::TimedAcquire
                if succeeded =>
            {
                clocks.acquire(thread, object);
            }
            OpKind::Unlock | OpKind::Release | OpKind::LeaveOnce => clocks.release(thread, object),
            OpKind::ReadLock => clocks.acquire(thread, object),
            OpKind::TryReadLock | OpKind::TimedReadLock if succeeded => {
                clocks.acquire(thread, object);
            }
            OpKind::ReadUnlock => clocks.release_shared(thread, object),
            OpKind::WriteLock => clocks.acquire_exclusive(thread, object),
            OpKind::TryWriteLock | OpKind::TimedWriteLock if succeeded => {
                clocks.acquire_exclusive(thread, object);
            }
            OpKind::WriteUnlock => clocks.release(thread, object),
            OpKind::Arrive => {
                clocks.acquire(thread, object);
                clocks.release(thread, object);
            }
            OpKind::Wait if other == NOTHING => {}
            OpKind::Wait => clocks.release(thread, other),
            // POSIX lists notifications among the functions that synchronise memory.
            OpKind::NotifyOne | OpKind::NotifyAll => clocks.release(thread, object),
            OpKind::Wake | OpKind::TimedWake => {
                clocks.acquire(thread, object);
                if other != NOTHING {
                    clocks.acquire(thread, other);
                }
            }
            _ => {}
        }
        let after = self.now(thread);
        self.act(step, None, (&before, &after));
    }

    /// Adds the dependences of an atomic operation on other objects than its variable, if there
    /// are any, to the name.
    fn depend(&mut self, step: &Performed, own: Option<u32>) {
        let mut accesses = step.footprint.accesses().iter();
        if accesses.any(|(location, _)| Some(location.0) != own) {
            let now = self.now(step.thread);
            self.act(step, own, (&now, &now));
        }
    }

    /// Adds a step to the name of the execution, with its accesses to objects other than `own`.
    fn act(&mut self, step: &Performed, own: Option<u32>, clocks: (&VectorClock, &VectorClock)) {
        let accesses: Vec<(u32, Access)> = step
            .footprint
            .accesses()
            .iter()
            .map(|&(location, access)| (location.0, access))
            .filter(|&(location, _)| Some(location) != own)
            .collect();
        let alternative = step.outcome.alternative;
        self.memory.act(step.thread, accesses.into_iter(), alternative, clocks);
    }
}

/// Whether a load with this ordering acquires.
pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

/// Whether a store with this ordering releases.
pub(crate) fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

/// Whether precompiled code may have synchronised the thread with any other before or in an
/// operation: rule 2 of the module documentation.
fn orders_after_everything(op: &Op, outcome: &Outcome) -> bool {
    match op.kind {
        // A wait that finds another value than the expected one returns at once.
        OpKind::FutexWait => outcome.learned == 0,
        OpKind::FutexWoken | OpKind::TimedFutexWoken => true,
        OpKind::EnterWait | OpKind::EnterWrite | OpKind::Enter | OpKind::Relock => true,
        OpKind::Io | OpKind::IoWait => true,
        _ => false,
    }
}
