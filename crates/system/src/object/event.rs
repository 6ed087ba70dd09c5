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
    fn apply<C: Cells + ?Sized>(&self, cells: &mut C, _thread: ThreadId, action: Action) -> Result<i64, Misuse> {
        match action {
            Action::Set => cells.set(IS_SET, 1),
            Action::Reset => cells.set(IS_SET, 0),
            Action::Await if self.auto => cells.set(IS_SET, 0),
            Action::Await => {}
            _ => foreign("event", action),
        }
        Ok(0)
    }

    /// Any number of threads pass a manual event together, and leave it as it is. An automatic one lets one pass.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Await if !self.auto => Access::Read,
            Action::Await | Action::Set | Action::Reset => Access::Write,
            _ => foreign("event", action),
        }
    }

    /// A manual event that nobody resets stays set: the wait moves right, the set moves left. An automatic one
    /// forgets: a set after a wait leaves it set, but before the wait it is lost in the set that the wait needed. So
    /// nothing moves, in contrast to a semaphore.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Await if !self.auto => Mover::Right,
            Action::Set if !self.auto => Mover::Left,
            Action::Await | Action::Set | Action::Reset => Mover::None,
            _ => foreign("event", action),
        }
    }

    /// A reset takes from waits what made them possible.
    #[inline]
    fn disturbs(&self, action: Action) -> bool {
        action == Action::Reset
    }
}
