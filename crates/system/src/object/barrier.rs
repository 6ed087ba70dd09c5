//! Barriers. One field: the set of threads that wait.
//!
//! Passing a barrier takes two steps: [`Action::Arrive`], then [`Action::Leave`]. The last party to
//! arrive releases all the others by emptying the set, and does not enter it. Threads that have not
//! left yet do not delay the next round, because they are no longer in the set.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};
use crate::thread::ThreadSet;

pub(super) struct Barrier {
    pub(super) parties: u32,
}

const WAITING: usize = 0;

fn waiting<C: Cells + ?Sized>(cells: &C) -> ThreadSet {
    ThreadSet::from_bits(cells.get(WAITING))
}

impl Object for Barrier {
    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Threads
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Arrive => true,
            Action::Leave => !waiting(cells).contains(thread),
            _ => foreign("barrier", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
        match action {
            Action::Arrive => {
                let arrived = waiting(cells).with(thread);
                let complete = arrived.len() >= self.parties as usize;
                cells.set(WAITING, if complete { 0 } else { arrived.bits() });
                Ok(i64::from(complete))
            }
            Action::Leave => Ok(0),
            _ => foreign("barrier", action),
        }
    }

    /// Leaving only observes that all parties have arrived.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Arrive => Access::Write,
            Action::Leave => Access::Read,
            _ => foreign("barrier", action),
        }
    }

    /// Leaving is a right mover: once a thread may leave, only its own next arrival can change
    /// that. Arrivals do not commute: the later one learns whether it completes the parties or
    /// starts the next round.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Arrive => Mover::None,
            Action::Leave => Mover::Right,
            _ => foreign("barrier", action),
        }
    }
}
