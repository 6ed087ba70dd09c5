//! Condition variables. One field: the set of waiting threads.
//!
//! Waiting takes two steps of the front end: unlock and [`Action::Wait`], then lock and
//! [`Action::Wake`]. A thread in the set has not been notified; a waiting thread that is no longer
//! in the set continues as soon as it gets the mutex.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};
use crate::thread::ThreadSet;

pub(super) struct Condvar;

const WAITING: usize = 0;

fn waiting<C: Cells + ?Sized>(cells: &C) -> ThreadSet {
    ThreadSet::from_bits(cells.get(WAITING))
}

/// If no thread waits there is still one alternative: the notification happens and is lost.
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
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
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

    /// Waking only observes that the thread was notified. Everything else writes. A notification
    /// writes even if no thread waits, because its order with a wait decides whether one does.
    ///
    /// A wait could be a read, like the reader side of a reader-writer lock: it changes only its
    /// own bit, and only notifications read the bits of other threads. But it also unlocks a mutex
    /// in the same step, which orders waits anyway, so the simpler rule (whatever changes the state
    /// writes) costs nothing.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Wake => Access::Read,
            Action::Wait | Action::NotifyOne { .. } | Action::NotifyAll => Access::Write,
            _ => foreign("condition variable", action),
        }
    }

    /// Waking is a right mover: only the thread itself can enter the set again, so any later action
    /// of another thread can be moved before it. It is not a left mover, because it cannot move
    /// before the notification. A wait and a notification move in neither direction: a notification
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
