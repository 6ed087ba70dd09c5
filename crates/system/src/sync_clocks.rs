//! Synchronises-with in one execution: vector clocks of threads and of the objects by which they
//! synchronise.
//!
//! Time of a thread advances when it releases something, so that what it does afterwards is not
//! ordered by that release. An access of thread u at time k happens before the present of thread t
//! iff t's clock has at least k for u.
//!
//! The rules are those of the C++20 memory model for its fragment without consume: a release store
//! or a fence before it publishes the clock of its thread, an acquire load or a fence after it
//! joins what the store that it reads has published, and a read-modify-write passes on what it
//! read. [`SyncClocks::load`], [`SyncClocks::store`] and [`SyncClocks::update`] are for a memory in
//! which a load reads the last store, so that one clock per atomic is enough; the
//! [weak memory](crate::memory::Weak) has one per store.

use std::sync::atomic::Ordering;

use crate::clock::{Epoch, VectorClock};
use crate::object::Action;
use crate::thread::ThreadId;

/// The clocks that an object passes on to the threads that synchronise with it.
#[derive(Clone, Debug, Default)]
struct SyncClock {
    /// The join of the clocks of its releases.
    released: VectorClock,
    /// The join of the clocks of its shared releases, after which only exclusive acquisitions are
    /// ordered.
    shared: VectorClock,
}

/// The clocks of a thread.
#[derive(Clone, Debug, Default)]
struct ThreadClocks {
    /// C(t).
    now: VectorClock,
    /// The join of the clocks that relaxed loads have read; an acquire fence acquires it.
    seen: VectorClock,
    /// The clock that the last release fence published; relaxed stores pass it on.
    fenced: VectorClock,
}

pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

pub(crate) fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

/// The clocks of the threads and synchronisation objects of one execution. Objects are numbered by
/// the caller, densely.
#[derive(Clone, Debug, Default)]
pub struct SyncClocks {
    threads: Vec<ThreadClocks>,
    objects: Vec<SyncClock>,
}

impl SyncClocks {
    /// The clocks before the first step.
    pub fn new() -> SyncClocks {
        SyncClocks::default()
    }

    /// Resets to the clocks before the first step.
    pub fn clear(&mut self) {
        self.threads.clear();
        self.objects.clear();
    }

    /// The clock of `thread`; `None` if it has done nothing yet.
    #[inline]
    pub fn now(&self, thread: ThreadId) -> Option<&VectorClock> {
        self.threads.get(thread.index()).map(|clocks| &clocks.now)
    }

    /// The present of `thread` on its own clock.
    #[inline]
    pub fn epoch(&mut self, thread: ThreadId) -> Epoch {
        self.thread(thread).now.epoch(thread)
    }

    #[inline]
    fn thread(&mut self, thread: ThreadId) -> &mut ThreadClocks {
        if self.threads.len() <= thread.index() {
            self.add_threads(thread);
        }
        &mut self.threads[thread.index()]
    }

    #[cold]
    fn add_threads(&mut self, last: ThreadId) {
        for slot in self.threads.len()..=last.index() {
            let mut clocks = ThreadClocks::default();
            // Time 0 would happen before everything.
            clocks.now.tick(ThreadId::new(slot));
            self.threads.push(clocks);
        }
    }

    fn object(&mut self, object: u32) -> &mut SyncClock {
        let at = object as usize;
        if self.objects.len() <= at {
            self.objects.resize(at + 1, SyncClock::default());
        }
        &mut self.objects[at]
    }

    /// `child` starts after what `parent` has done.
    pub fn fork(&mut self, parent: ThreadId, child: ThreadId) {
        let mut now = self.publish(parent);
        now.tick(child);
        self.thread(child).now = now;
    }

    /// `thread` comes after the releases of `object`.
    pub fn acquire(&mut self, thread: ThreadId, object: u32) {
        let released = std::mem::take(&mut self.object(object).released);
        self.thread(thread).now.join(&released);
        self.object(object).released = released;
    }

    /// `thread` comes after the releases and the shared releases of `object`.
    pub fn acquire_exclusive(&mut self, thread: ThreadId, object: u32) {
        self.acquire(thread, object);
        let shared = std::mem::take(&mut self.object(object).shared);
        self.thread(thread).now.join(&shared);
        self.object(object).shared = shared;
    }

    /// Later acquisitions of `object` come after what `thread` has done.
    pub fn release(&mut self, thread: ThreadId, object: u32) {
        let clock = self.publish(thread);
        self.object(object).released.join(&clock);
    }

    /// Later exclusive acquisitions of `object` come after what `thread` has done.
    pub fn release_shared(&mut self, thread: ThreadId, object: u32) {
        let clock = self.publish(thread);
        self.object(object).shared.join(&clock);
    }

    /// `thread` performs an action on an object that blocks, or joins or ends a thread. `reply` is
    /// what the object replied. A lock comes after the unlock before it, a join after the end of
    /// its thread, a departure from a barrier after the arrivals, a `recv` after the sends so far.
    /// A failed attempt comes after nothing.
    pub fn act(&mut self, thread: ThreadId, object: u32, action: Action, reply: i64) {
        match action {
            Action::Lock | Action::Join | Action::Leave => self.acquire(thread, object),
            Action::TryLock if reply == 1 => self.acquire(thread, object),
            Action::Unlock | Action::Unpark | Action::Finish => self.release(thread, object),
            Action::Arrive => {
                self.acquire(thread, object);
                self.release(thread, object);
            }
            Action::ReadLock => self.acquire(thread, object),
            Action::TryReadLock if reply == 1 => self.acquire(thread, object),
            Action::ReadUnlock => self.release_shared(thread, object),
            Action::WriteLock => self.acquire_exclusive(thread, object),
            Action::TryWriteLock if reply == 1 => self.acquire_exclusive(thread, object),
            Action::WriteUnlock => self.release(thread, object),
            Action::Acquire | Action::Await | Action::Recv => self.acquire(thread, object),
            Action::TryAcquire if reply == 1 => self.acquire(thread, object),
            Action::Release | Action::Set | Action::Send(_) => self.release(thread, object),
            Action::TrySend(_) if reply == 1 => self.release(thread, object),
            _ => {}
        }
    }

    /// The clock of `thread`, to be passed to [`SyncClocks::join`]. Later operations of the thread
    /// are not included.
    pub fn publish(&mut self, thread: ThreadId) -> VectorClock {
        let now = &mut self.thread(thread).now;
        let published = now.clone();
        now.tick(thread);
        published
    }

    /// `thread` comes after what a clock includes.
    pub fn join(&mut self, thread: ThreadId, clock: &VectorClock) {
        self.thread(thread).now.join(clock);
    }

    /// `thread` reads an atomic.
    pub fn load(&mut self, thread: ThreadId, object: u32, order: Ordering) {
        if acquires(order) {
            return self.acquire(thread, object);
        }
        let released = std::mem::take(&mut self.object(object).released);
        self.thread(thread).seen.join(&released);
        self.object(object).released = released;
    }

    /// `thread` writes an atomic without reading it. What earlier stores released is not passed on.
    pub fn store(&mut self, thread: ThreadId, object: u32, order: Ordering) {
        self.object(object).released = self.stored(thread, order);
    }

    /// `thread` reads and writes an atomic: it continues the release sequence of the store that it
    /// reads.
    pub fn update(&mut self, thread: ThreadId, object: u32, order: Ordering) {
        self.load(thread, object, order);
        let stored = self.stored(thread, order);
        self.object(object).released.join(&stored);
    }

    /// The clock that a store of `thread` passes on.
    pub(crate) fn stored(&mut self, thread: ThreadId, order: Ordering) -> VectorClock {
        if releases(order) { self.publish(thread) } else { self.thread(thread).fenced.clone() }
    }

    /// `thread` reads a store that passes `released` on.
    pub(crate) fn read(&mut self, thread: ThreadId, released: &VectorClock, order: Ordering) {
        let ThreadClocks { now, seen, .. } = self.thread(thread);
        if acquires(order) { now.join(released) } else { seen.join(released) }
    }

    /// `thread` performs a fence. Returns what happens before it.
    pub fn fence(&mut self, thread: ThreadId, order: Ordering) -> VectorClock {
        if acquires(order) {
            let ThreadClocks { now, seen, .. } = self.thread(thread);
            now.join(seen);
        }
        if !releases(order) {
            return self.thread(thread).now.clone();
        }
        let published = self.publish(thread);
        self.thread(thread).fenced.clone_from(&published);
        published
    }
}
