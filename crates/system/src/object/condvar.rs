//! Condition variables. One field: the set of waiting threads.
//!
//! To wait is two steps of the front end: unlock and [`Action::Wait`], then lock and [`Action::Wake`]. A thread that is
//! in the set has not been notified; one that is not may go on when it gets the mutex.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};
use crate::thread::ThreadSet;

pub(super) struct Condvar;

const WAITING: usize = 0;

fn waiting<C: Cells + ?Sized>(cells: &C) -> ThreadSet {
    ThreadSet::from_bits(cells.get(WAITING))
}

/// A notification that nobody waits for can happen, in one way, and is lost.
fn notifications<C: Cells + ?Sized>(cells: &C) -> u32 {
    (waiting(cells).len() as u32).max(1)
}

impl Object for Condvar {
    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Threads
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Wake => !waiting(cells).contains(thread),
            Action::NotifyOne { nth } => nth < notifications(cells),
            Action::Wait | Action::NotifyAll => true,
            _ => foreign("condition variable", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(&self, cells: &mut C, thread: ThreadId, action: Action) -> Result<i64, Misuse> {
        match action {
            Action::Wait => cells.set(WAITING, waiting(cells).with(thread).bits()),
            Action::Wake => {}
            Action::NotifyOne { nth } => {
                let waiting = waiting(cells);
                if let Some(notified) = waiting.iter().nth(nth as usize) {
                    cells.set(WAITING, waiting.without(notified).bits());
                }
            }
            Action::NotifyAll => cells.set(WAITING, ThreadSet::EMPTY.bits()),
            _ => foreign("condition variable", action),
        }
        Ok(0)
    }

    #[inline]
    fn alternatives<C: Cells + ?Sized>(&self, cells: &C, action: Action) -> u32 {
        if matches!(action, Action::NotifyOne { .. }) { notifications(cells) } else { 1 }
    }

    /// To wake is to see that one was notified. Everything else changes the set; a notification does so even if nobody
    /// waits, because whether somebody does is what its order with a wait decides.
    ///
    /// A wait could be a read, as the readers' side of a reader-writer lock is: it changes only its own bit, and only
    /// notifications look at those of others. But it unlocks a mutex in the same step, which orders waits anyway, and the
    /// plain rule that what changes the state writes is then the better one.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Wake => Access::Read,
            Action::Wait | Action::NotifyOne { .. } | Action::NotifyAll => Access::Write,
            _ => foreign("condition variable", action),
        }
    }

    /// Only the thread itself can put it into the set again, so after a wake anything may be moved before it: it moves
    /// right. It does not move left of the notification. A wait and a notification move past each other neither way: one
    /// that comes too early is lost.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Wake => Mover::Right,
            Action::Wait | Action::NotifyOne { .. } | Action::NotifyAll => Mover::None,
            _ => foreign("condition variable", action),
        }
    }
}
