//! Counting semaphores. One field: the count.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Semaphore {
    pub(super) initial: u32,
}

const COUNT: usize = 0;
const GREATEST: u64 = u32::MAX as u64;

impl Object for Semaphore {
    #[inline]
    fn initial(&self, _field: usize) -> u64 {
        u64::from(self.initial)
    }

    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Below(GREATEST + 1)
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, _thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Acquire => cells.get(COUNT) > 0,
            Action::TryAcquire | Action::Release => true,
            _ => foreign("semaphore", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        _thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
        let count = cells.get(COUNT);
        match action {
            Action::Acquire => {
                cells.set(COUNT, count - 1);
                Ok(0)
            }
            Action::TryAcquire => {
                cells.set(COUNT, count.saturating_sub(1));
                Ok(i64::from(count > 0))
            }
            Action::Release if count == GREATEST => Err(Misuse::Overflow),
            Action::Release => {
                cells.set(COUNT, count + 1);
                Ok(0)
            }
            _ => foreign("semaphore", action),
        }
    }

    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Acquire | Action::TryAcquire | Action::Release => Access::Write,
            _ => foreign("semaphore", action),
        }
    }

    /// P is a right mover: it only decrements, so whatever is possible after it is possible before
    /// it. V is a left mover: it only increments, so whatever is possible before it is possible
    /// after it, and V itself is always possible. The final count does not depend on the order.
    /// (Overflow is the exception; it ends the search at once.)
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Acquire => Mover::Right,
            Action::Release => Mover::Left,
            Action::TryAcquire => Mover::None,
            _ => foreign("semaphore", action),
        }
    }

    /// A failed attempt continues and observes that the count was 0.
    #[inline]
    fn disturbs(&self, action: Action) -> bool {
        action == Action::TryAcquire
    }
}
