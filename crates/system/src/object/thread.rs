//! The lifecycle of a thread. One field: 0 not started, 1 running, 2 ended.
//!
//! Starting and ending are accesses like any other. If the first step of a thread did not read what
//! the start wrote ([`Action::Begin`]), a part of an execution could contain the first step without
//! the start, and would not be an execution.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Thread;

const STAGE: usize = 0;
const UNSTARTED: u64 = 0;
const RUNNING: u64 = 1;
const ENDED: u64 = 2;

impl Object for Thread {
    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Below(ENDED + 1)
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, _thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Start => cells.get(STAGE) == UNSTARTED,
            Action::Begin => cells.get(STAGE) != UNSTARTED,
            Action::Finish => cells.get(STAGE) == RUNNING,
            Action::Join => cells.get(STAGE) == ENDED,
            _ => foreign("thread", action),
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
            Action::Start => cells.set(STAGE, RUNNING),
            Action::Finish => cells.set(STAGE, ENDED),
            Action::Begin | Action::Join => {}
            _ => foreign("thread", action),
        }
        Ok(0)
    }

    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Begin | Action::Join => Access::Read,
            Action::Start | Action::Finish => Access::Write,
            _ => foreign("thread", action),
        }
    }

    /// The stages have one order. Begin and join are right movers: the stage that they wait for,
    /// once reached, stays reached. Start and finish are left movers: exactly one thread performs
    /// each, once, and it was possible as soon as that thread got there. (The start is a step of
    /// another thread; the finish follows the thread's own begin, so it never directly follows the
    /// start.)
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Begin | Action::Join => Mover::Right,
            Action::Start | Action::Finish => Mover::Left,
            _ => foreign("thread", action),
        }
    }
}
