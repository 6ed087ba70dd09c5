//! Races with the initial value of an atomic, under weak memory.
//!
//! The initial value of an atomic is a plain write by the thread that creates it. A thread that
//! reaches the atomic without coming after that write races with it: for example through a pointer
//! that was published by a relaxed store.
//!
//! Constructors are `const` functions and cannot record anything. But an atomic on the heap is
//! created after its memory was allocated, and by a thread that comes after the allocation. So an
//! access that does not come after the *allocation* is a race, whichever thread has initialised
//! the memory. Where the allocation is known by the number of operations that its thread had
//! performed ([`Block`](super::blocks::Block)), the earliest time of that period counts. Hence an
//! access that is reported does race. A race is missed if the access comes after the allocation
//! but not after the initialisation. Atomics on stacks and in statics are not examined.

use preempt_system::ThreadId;

use super::Runtime;
use super::place::{Owner, Place};

/// The times of allocations on the clocks of their threads.
#[derive(Debug, Default)]
pub(crate) struct CreationTimes {
    /// For each thread slot: a number of operations, and the time right after them.
    periods: Vec<Vec<(u32, u32)>>,
    /// For each thread slot: the time of each [`Owner::Thread`].
    owners: Vec<Vec<u32>>,
}

impl CreationTimes {
    /// An execution begins.
    pub(crate) fn clear(&mut self) {
        self.periods.clear();
        self.owners.clear();
    }

    /// The earliest time at which a thread can have allocated something after `done` operations.
    /// Time 1 is that of its start.
    fn after(&self, slot: usize, done: u32) -> u32 {
        let periods = self.periods.get(slot).map_or(&[][..], |periods| periods);
        let known = periods.iter().rev().find(|(operations, _)| *operations <= done);
        known.map_or(1, |&(_, time)| time)
    }
}

fn of_slot<T>(all: &mut Vec<Vec<T>>, slot: usize) -> &mut Vec<T> {
    if all.len() <= slot {
        all.resize_with(slot + 1, Vec::new);
    }
    &mut all[slot]
}

impl Runtime {
    /// Records that `thread` has performed an operation under weak memory.
    pub(crate) fn begin_period(&mut self, thread: ThreadId) {
        let done = self.recording.state().count(thread.index()) as u32;
        let time = self.races.clocks.epoch(thread).time;
        of_slot(&mut self.creation_times.periods, thread.index()).push((done, time));
    }

    /// Records that the running thread allocates memory with an owner.
    pub(super) fn create_owner(&mut self) {
        if self.weak_memory.is_some() {
            let slot = self.current;
            let time = self.races.clocks.epoch(ThreadId::new(slot)).time;
            of_slot(&mut self.creation_times.owners, slot).push(time);
        }
    }

    /// The thread that has allocated the memory of an atomic, if `thread` does not come after the
    /// allocation.
    pub(crate) fn unseen_creator(&self, thread: ThreadId, location: u32) -> Option<ThreadId> {
        let times = &self.creation_times;
        let (slot, time) = match self.recording.names().place(location)? {
            Place::Block { block, .. } => (block.slot, times.after(block.slot.into(), block.done)),
            Place::Shared { owner: Owner::Thread { slot, nth }, .. } => {
                (slot, *times.owners.get(usize::from(slot))?.get(nth as usize)?)
            }
            _ => return None,
        };
        let creator = ThreadId::new(slot.into());
        let known = self.races.clocks.now(thread).map_or(0, |now| now.time(creator));
        (creator != thread && known < time).then_some(creator)
    }
}
