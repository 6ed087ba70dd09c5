//! The token of `park` and `unpark`. One field: 1 if the token is available. Tokens do not
//! accumulate.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Parker;

const TOKEN: usize = 0;

impl Object for Parker {
    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Below(2)
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, _thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Park => cells.get(TOKEN) == 1,
            Action::Unpark => true,
            _ => foreign("parker", action),
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
            Action::Park => cells.set(TOKEN, 0),
            Action::Unpark => cells.set(TOKEN, 1),
            _ => foreign("parker", action),
        }
        Ok(0)
    }

    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Park | Action::Unpark => Access::Write,
            _ => foreign("parker", action),
        }
    }

    /// Nothing moves, as with an automatic event: an unpark after the park leaves a token, but an
    /// unpark directly before the park merges with the token that the park consumes.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Park | Action::Unpark => Mover::None,
            _ => foreign("parker", action),
        }
    }
}
