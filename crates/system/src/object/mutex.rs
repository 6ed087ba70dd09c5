//! Mutexes. One field: 0 if free, otherwise the owner's slot + 1.

use super::{Access, Action, Cells, Holds, LockMode, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Mutex;

const OWNER: usize = 0;

/// Whether a thread holds the mutex.
pub(super) fn is_locked<C: Cells + ?Sized>(cells: &C) -> bool {
    cells.get(OWNER) != 0
}

impl Object for Mutex {
    fn holds(&self, _field: usize, threads: usize) -> Holds {
        Holds::Below(threads as u64 + 1)
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, _thread: ThreadId, action: Action) -> bool {
        match action {
            // Not reentrant: the owner waits for itself.
            Action::Lock => cells.get(OWNER) == 0,
            Action::TryLock | Action::Unlock => true,
            _ => foreign("mutex", action),
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
            Action::Lock => {
                cells.set(OWNER, me);
                Ok(0)
            }
            Action::TryLock => {
                let free = cells.get(OWNER) == 0;
                if free {
                    cells.set(OWNER, me);
                }
                Ok(i64::from(free))
            }
            Action::Unlock if cells.get(OWNER) == me => {
                cells.set(OWNER, 0);
                Ok(0)
            }
            Action::Unlock => Err(Misuse::NotHeld),
            _ => foreign("mutex", action),
        }
    }

    /// Every action writes. A failed attempt changes nothing, but this class must not depend on the
    /// outcome; see [`Kind::access_in`](super::Kind::access_in).
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Lock | Action::TryLock | Action::Unlock => Access::Write,
            _ => foreign("mutex", action),
        }
    }

    /// Locking is a right mover: after it, other threads can only misuse the mutex, and the misuse
    /// fails in the same way whether the mutex is free or held by another thread. Unlocking by the
    /// owner is a left mover for the same reason: no other thread can have locked directly before
    /// it.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Lock => Mover::Right,
            Action::Unlock => Mover::Left,
            Action::TryLock => Mover::None,
            _ => foreign("mutex", action),
        }
    }

    /// A failed attempt continues and observes that the mutex was locked.
    #[inline]
    fn disturbs(&self, action: Action) -> bool {
        action == Action::TryLock
    }

    #[inline]
    fn lock_mode<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId) -> Option<LockMode> {
        (cells.get(OWNER) == thread.index() as u64 + 1).then_some(LockMode::Exclusive)
    }
}
