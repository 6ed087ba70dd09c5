//! Detects uses of freed memory that no explored order shows.
//!
//! A use of an object whose memory was freed is detected when it happens
//! ([`Identity::check_memory`](super::identity::Identity::check_memory)). But a search that takes
//! one execution for each happens-before graph need not run the order in which the memory is freed
//! first: freeing is not a step, so it conflicts with nothing.
//!
//! So when a thread frees memory, the uses of its objects by other threads are looked up. A use
//! that does not *happen before* the free, by the dependences of steps, could also come after it,
//! in an execution that a reduction considers equivalent. Such a use is a [`Suspect`], and
//! `system/witness.rs` runs the execution in which it comes last. Only what happens there is
//! reported. If something that the check does not observe keeps the memory alive, for example the
//! references of a `std::sync::Arc`, that execution does not exist or frees nothing, and nothing is
//! reported.
//!
//! A use that happens before the free because of conflicting steps needs no such check: the other
//! orders of these steps are explored. If the step that frees the memory conflicts with the use
//! itself, for example in a thread that drops the last reference right after its own use, this is
//! detected at once.
//!
//! **Cost.** None where a thread frees objects that only it and threads that it has joined have
//! used.

use std::panic::Location as Site;

use preempt_replay::Op;
use preempt_system::{ThreadId, ThreadSet};
use smallvec::SmallVec;

use super::{CellAccess, Runtime};

/// The number of recent objects that a new one is compared with.
const RECENT: usize = 32;

/// An object in memory that a thread has allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    of: Object,
    /// The position at which it was created.
    site: &'static Site<'static>,
}

#[derive(Clone, Copy, Debug)]
enum Object {
    /// An object with a location, which steps use.
    Location(u32),
    /// A cell, with its number in the race detector.
    Cell(u32),
}

/// A use of memory that was just freed, which may also come after the free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    /// The thread that used the memory.
    pub(crate) thread: ThreadId,
    /// The number of its steps before the use.
    pub(crate) steps: usize,
    /// The number of the access among its accesses to cells; `None` if the use is a step.
    pub(crate) access: Option<u32>,
    /// The position at which the object was created.
    pub(crate) site: &'static Site<'static>,
}

impl Runtime {
    /// Records the address of an object with a location.
    pub(super) fn place_location(
        &mut self,
        address: usize,
        location: u32,
        site: &'static Site<'static>,
    ) {
        self.place(address, Placed { of: Object::Location(location), site });
    }

    /// Records the address of a cell.
    pub(crate) fn place_cell(&mut self, address: usize, cell: u32, site: &'static Site<'static>) {
        self.place(address, Placed { of: Object::Cell(cell), site });
    }

    fn place(&mut self, address: usize, placed: Placed) {
        if !self.arena.owns(address) {
            return;
        }
        // An object that reuses an address mostly does so soon. A stale entry only costs an
        // unnecessary check.
        match self.met.placed.iter_mut().rev().take(RECENT).find(|(other, _)| *other == address) {
            Some((_, known)) => *known = placed,
            None => self.met.placed.push((address, placed)),
        }
    }

    /// Records the uses of objects in memory that the running thread frees.
    #[cold]
    pub(super) fn note_free(&mut self, address: usize, size: usize) {
        let known = self.threads[self.current].joined.with(ThreadId::new(self.current));
        let others = ThreadSet::from_bits(self.recording.state().started().bits() & !known.bits());
        if others.is_empty() {
            return;
        }
        let memory = address..address + size;
        let placed = self.met.placed.iter().filter(|(address, _)| memory.contains(address));
        let objects: SmallVec<[Placed; 4]> = placed.map(|&(_, placed)| placed).collect();
        if objects.is_empty() {
            return;
        }
        self.met.placed.retain(|(address, _)| !memory.contains(address));
        // The step that frees it; `None` in a thread that has performed no operation yet, which
        // runs in the step of its parent.
        let step = (self.done as usize)
            .checked_sub(1)
            .and_then(|at| self.recording.history(ThreadId::new(self.current)).ops().get(at))
            .map(|op| op.performed(self.outcome.alternative));
        for Placed { of, site } in objects {
            match of {
                Object::Location(location) => {
                    for thread in others.iter() {
                        let done = self.recording.state().count(thread.index());
                        let history = self.recording.history(thread);
                        let (ops, outcomes) = (history.ops(), history.outcomes());
                        let performed = |at: usize| ops[at].performed(outcomes[at].alternative);
                        let uses = |op: Op| op.object == location || op.other == location;
                        let last = (0..done.min(outcomes.len())).rfind(|&at| uses(performed(at)));
                        if let Some(steps) = last
                            && !step.is_some_and(|step| step.conflicts(&performed(steps)))
                        {
                            self.met.suspects.push(Suspect { thread, steps, access: None, site });
                        }
                    }
                }
                Object::Cell(cell) => {
                    let accesses = self.races.last_accesses(cell);
                    let uses = accesses.filter(|(thread, _)| others.contains(*thread)).map(
                        |(thread, CellAccess { done, nth, .. })| Suspect {
                            thread,
                            steps: done as usize,
                            access: Some(nth),
                            site,
                        },
                    );
                    self.met.suspects.extend(uses);
                }
            }
        }
    }

    /// Whether the running thread has to stop before its next access to a cell.
    #[inline]
    pub(crate) fn stops_before_access(&mut self) -> bool {
        self.stop_before == Some((self.current, self.threads[self.current].cell_accesses))
            && self.stop_before.take().is_some()
    }
}
