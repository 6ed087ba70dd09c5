//! Many readers or one writer. Two fields: the writer's slot + 1 or 0, and the set of readers.
//!
//! A thread reads at most once at a time, since the readers are a set: to read again while reading waits, as a lock
//! that prefers writers may, and an attempt to does not succeed.
//!
//! # Why the readers' side reads
//!
//! [`Action::ReadLock`] and [`Action::ReadUnlock`] change the set of readers, and are classed [`Access::Read`]
//! nevertheless. A class must answer two questions. Do two actions of different threads commute? The readers' actions
//! change different bits and look at the writer and at the own bit only, which no other reader's action changes; so
//! the state and the replies are the same in both orders. Does one enable or disable the other? A reader waits
//! for the writer and for itself, never for another reader. Who does observe the set is the writer's side, and that is
//! [`Access::Write`], which conflicts with every access: between a reader's action and a writer's there is always a
//! happens-before edge. The unlock of the last reader enables the writer along such an edge.

use super::{Access, Action, Cells, Hold, Holds, Misuse, Mover, Object, ThreadId, foreign};
use crate::thread::ThreadSet;

pub(super) struct RwLock;

const WRITER: usize = 0;
const READERS: usize = 1;

fn readers<C: Cells + ?Sized>(cells: &C) -> ThreadSet {
    ThreadSet::from_bits(cells.get(READERS))
}

fn can_read<C: Cells + ?Sized>(cells: &C, thread: ThreadId) -> bool {
    cells.get(WRITER) == 0 && !readers(cells).contains(thread)
}

fn can_write<C: Cells + ?Sized>(cells: &C) -> bool {
    cells.get(WRITER) == 0 && cells.get(READERS) == 0
}

impl Object for RwLock {
    #[inline]
    fn fields(&self) -> usize {
        2
    }

    fn holds(&self, field: usize, threads: usize) -> Holds {
        if field == WRITER { Holds::Below(threads as u64 + 1) } else { Holds::Threads }
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId, action: Action) -> bool {
        match action {
            Action::ReadLock => can_read(cells, thread),
            Action::WriteLock => can_write(cells),
            Action::TryReadLock | Action::ReadUnlock | Action::TryWriteLock | Action::WriteUnlock => true,
            _ => foreign("reader-writer lock", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(&self, cells: &mut C, thread: ThreadId, action: Action) -> Result<i64, Misuse> {
        let me = thread.index() as u64 + 1;
        match action {
            Action::ReadLock | Action::TryReadLock => {
                let free = can_read(cells, thread);
                if free {
                    cells.set(READERS, readers(cells).with(thread).bits());
                }
                Ok(i64::from(free && action == Action::TryReadLock))
            }
            Action::ReadUnlock if readers(cells).contains(thread) => {
                cells.set(READERS, readers(cells).without(thread).bits());
                Ok(0)
            }
            Action::ReadUnlock => Err(Misuse::NotReading),
            Action::WriteLock | Action::TryWriteLock => {
                let free = can_write(cells);
                if free {
                    cells.set(WRITER, me);
                }
                Ok(i64::from(free && action == Action::TryWriteLock))
            }
            Action::WriteUnlock if cells.get(WRITER) == me => {
                cells.set(WRITER, 0);
                Ok(0)
            }
            Action::WriteUnlock => Err(Misuse::NotWriting),
            _ => foreign("reader-writer lock", action),
        }
    }

    /// See the module's text.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::ReadLock | Action::TryReadLock | Action::ReadUnlock => Access::Read,
            Action::WriteLock | Action::TryWriteLock | Action::WriteUnlock => Access::Write,
            _ => foreign("reader-writer lock", action),
        }
    }

    /// While somebody reads, others can only begin and end reading, which commutes; while somebody writes, others can do
    /// nothing. So what takes the lock moves right and what gives it back moves left, as for a mutex. A reader's end
    /// does not move right, since a writer may follow; a reader's beginning does not move left, since a writer's end may
    /// have come before.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::ReadLock | Action::WriteLock => Mover::Right,
            Action::ReadUnlock | Action::WriteUnlock => Mover::Left,
            Action::TryReadLock | Action::TryWriteLock => Mover::None,
            _ => foreign("reader-writer lock", action),
        }
    }

    /// Attempts see who holds the lock.
    #[inline]
    fn disturbs(&self, action: Action) -> bool {
        matches!(action, Action::TryReadLock | Action::TryWriteLock)
    }

    #[inline]
    fn hold<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId) -> Option<Hold> {
        let writes = cells.get(WRITER) == thread.index() as u64 + 1;
        let reads = || readers(cells).contains(thread).then_some(Hold::Shared);
        if writes { Some(Hold::Exclusive) } else { reads() }
    }
}
