//! Events. One field: 1 if set.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Event {
    pub(super) auto: bool,
    pub(super) set: bool,
}

const IS_SET: usize = 0;

impl Object for Event {
    #[inline]
    fn initial(&self, _field: usize) -> u64 {
        u64::from(self.set)
    }

    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Below(2)
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, _thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Await => cells.get(IS_SET) == 1,
            Action::Set | Action::Reset => true,
            _ => foreign("event", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        _thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
        match action {
            Action::Set => cells.set(IS_SET, 1),
            Action::Reset => cells.set(IS_SET, 0),
            Action::Await if self.auto => cells.set(IS_SET, 0),
            Action::Await => {}
            _ => foreign("event", action),
        }
        Ok(0)
    }

    /// Waiting for a manual event does not change it, so any number of threads can pass together.
    /// Waiting for an automatic event resets it.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Await if !self.auto => Access::Read,
            Action::Await | Action::Set | Action::Reset => Access::Write,
            _ => foreign("event", action),
        }
    }

    /// A manual event that no thread resets stays set: waiting is a right mover, setting a left
    /// mover. With an automatic event nothing moves, in contrast to a semaphore: a set after the
    /// wait leaves the event set, but moved before the wait it merges with the set that the wait
    /// needed, and is lost.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Await if !self.auto => Mover::Right,
            Action::Set if !self.auto => Mover::Left,
            Action::Await | Action::Set | Action::Reset => Mover::None,
            _ => foreign("event", action),
        }
    }

    /// A reset disables waits that were possible before it.
    #[inline]
    fn disturbs(&self, action: Action) -> bool {
        action == Action::Reset
    }
}
