//! Reader-writer locks. Two fields: the writer's slot + 1 or 0, and the set of readers.
//!
//! The readers are a set, so a thread holds at most one read lock at a time. A second read lock by
//! the same thread waits, as it may on a lock that prefers writers, and an attempt fails.
//!
//! # Why reader actions are reads
//!
//! [`Action::ReadLock`] and [`Action::ReadUnlock`] change the set of readers, yet their class is
//! [`Access::Read`]. A class must answer two questions:
//!
//! - Do two actions of different threads commute? Reader actions change different bits. They
//!   observe only the writer and their own bit, which no other reader's action changes. State and
//!   replies are the same in both orders.
//! - Does one action enable or disable the other? A reader waits for the writer and for itself,
//!   never for another reader.
//!
//! Only writer actions observe the set of readers. They are [`Access::Write`], which conflicts with
//! every access, so there is always a happens-before edge between a reader's action and a writer's.
//! The unlock of the last reader enables the writer along such an edge.

use super::{Access, Action, Cells, Holds, LockMode, Misuse, Mover, Object, ThreadId, foreign};
use crate::thread::ThreadSet;

pub(super) struct RwLock;

const WRITER: usize = 0;
const READERS: usize = 1;

fn readers<C: Cells + ?Sized>(cells: &C) -> ThreadSet {
    ThreadSet::from_bits(cells.get(READERS))
}

/// Whether a thread holds the lock exclusively.
pub(super) fn has_writer<C: Cells + ?Sized>(cells: &C) -> bool {
    cells.get(WRITER) != 0
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
            Action::TryReadLock
            | Action::ReadUnlock
            | Action::TryWriteLock
            | Action::WriteUnlock => true,
            _ => foreign("reader-writer lock", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
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

    /// The module documentation explains why reader actions are reads.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::ReadLock | Action::TryReadLock | Action::ReadUnlock => Access::Read,
            Action::WriteLock | Action::TryWriteLock | Action::WriteUnlock => Access::Write,
            _ => foreign("reader-writer lock", action),
        }
    }

    /// As for a mutex, acquiring is a right mover and releasing a left mover: while a thread reads,
    /// other threads can only begin and end reading, which commutes, and while a thread writes,
    /// they can do nothing. Ending a read is not a right mover, because a writer may follow.
    /// Beginning a read is not a left mover, because the end of a write may precede it.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::ReadLock | Action::WriteLock => Mover::Right,
            Action::ReadUnlock | Action::WriteUnlock => Mover::Left,
            Action::TryReadLock | Action::TryWriteLock => Mover::None,
            _ => foreign("reader-writer lock", action),
        }
    }

    /// A failed attempt continues and observes that the lock was held.
    #[inline]
    fn disturbs(&self, action: Action) -> bool {
        matches!(action, Action::TryReadLock | Action::TryWriteLock)
    }

    #[inline]
    fn lock_mode<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId) -> Option<LockMode> {
        let writes = cells.get(WRITER) == thread.index() as u64 + 1;
        let reads = || readers(cells).contains(thread).then_some(LockMode::Shared);
        if writes { Some(LockMode::Exclusive) } else { reads() }
    }
}
