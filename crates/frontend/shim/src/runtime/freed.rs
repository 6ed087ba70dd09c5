//! Frees that uses of the memory may come after.
//!
//! An object that is used after its memory was freed is found when that happens
//! ([`Identity::check_memory`](super::identity::Identity::check_memory)). But a search that takes
//! one execution for each happens-before graph need not run the order in which the memory is freed
//! first: freeing is no step, and so conflicts with nothing.
//!
//! So when a thread frees memory, the uses of the objects inside by other threads are looked up. A
//! use that does not *happen before* the free, by the steps' own dependences, could as well come
//! after it, in an execution that a reduction takes to be the same. Such a use is a [`Suspect`],
//! and `system/witness.rs` runs the execution in which it comes last. What is reported has happened
//! there. If something that no check sees keeps the memory alive, the references of a
//! `std::sync::Arc` for one, that execution does not exist or frees nothing, and nothing is
//! reported.
//!
//! A use that does happen before the free by steps that conflict needs nothing of this: their other
//! orders are explored. If the step that frees the memory itself conflicts with the use, as that of
//! a thread that drops the last reference right after its own use does, this is seen at once.
//!
//! **Cost.** Nothing where a thread frees objects that only it and threads which it has joined have
//! used.

use std::panic::Location as Site;

use preempt_replay::Op;
use preempt_system::{ThreadId, ThreadSet};
use smallvec::SmallVec;

use super::{CellAccess, Runtime};

/// How many objects are compared with one that is new.
const RECENT: usize = 32;

/// An object in memory that a thread has allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    of: Object,
    /// Where it was made.
    site: &'static Site<'static>,
}

#[derive(Clone, Copy, Debug)]
enum Object {
    /// One with a location: all that are used by steps.
    Location(u32),
    /// A cell, with its number in the race detector.
    Cell(u32),
}

/// A use of memory that has just been freed, which may also come after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    /// The thread that used it.
    pub(crate) thread: ThreadId,
    /// How many steps it takes before the use.
    pub(crate) steps: usize,
    /// Which of its accesses to cells it was; `None` if it was a step.
    pub(crate) access: Option<u32>,
    /// Where the object was made.
    pub(crate) site: &'static Site<'static>,
}

impl Runtime {
    /// An object with a location was met here.
    pub(super) fn place_location(
        &mut self,
        address: usize,
        location: u32,
        site: &'static Site<'static>,
    ) {
        self.place(address, Placed { of: Object::Location(location), site });
    }

    /// A cell was met here.
    pub(crate) fn place_cell(&mut self, address: usize, cell: u32, site: &'static Site<'static>) {
        self.place(address, Placed { of: Object::Cell(cell), site });
    }

    fn place(&mut self, address: usize, placed: Placed) {
        if !self.arena.owns(address) {
            return;
        }
        // An object that takes the place of another one mostly does so soon. An entry that is left
        // only leads to a look too many.
        match self.met.placed.iter_mut().rev().take(RECENT).find(|(other, _)| *other == address) {
            Some((_, known)) => *known = placed,
            None => self.met.placed.push((address, placed)),
        }
    }

    /// Notes the uses of objects in memory that the running thread frees.
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
        // The step that frees it, unless that is the parent's of a thread that has done nothing
        // yet.
        let step = (self.done as usize)
            .checked_sub(1)
            .and_then(|at| self.recording.history(ThreadId::new(self.current)).ops().get(at));
        for Placed { of, site } in objects {
            match of {
                Object::Location(location) => {
                    for thread in others.iter() {
                        let done = self.recording.state().count(thread.index());
                        let ops = self.recording.history(thread).ops();
                        let uses = |op: &Op| op.object == location || op.other == location;
                        if let Some(steps) = ops[..done.min(ops.len())].iter().rposition(uses)
                            && !step.is_some_and(|step| step.conflicts(&ops[steps]))
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

    /// Whether the running thread is to stop before its next access to a cell.
    #[inline]
    pub(crate) fn stops_before_access(&mut self) -> bool {
        self.stop_before == Some((self.current, self.threads[self.current].cell_accesses))
            && self.stop_before.take().is_some()
    }
}
