//! Atomic cells. One field: the value.
//!
//! Cells are sequentially consistent: all actions have one order, and a load returns the value of
//! the last store.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Cell {
    pub(super) initial: i64,
}

const VALUE: usize = 0;

impl Object for Cell {
    #[inline]
    fn initial(&self, _field: usize) -> u64 {
        self.initial as u64
    }

    fn holds(&self, _field: usize, _threads: usize) -> Holds {
        Holds::Payload
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, _cells: &C, _thread: ThreadId, _action: Action) -> bool {
        true
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        _thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
        let value = cells.get(VALUE) as i64;
        let (new, reply) = match action {
            Action::Load => return Ok(value),
            Action::Store(new) => (new, 0),
            Action::Swap(new) => (new, value),
            Action::CompareExchange { old, new } => (if value == old { new } else { value }, value),
            Action::FetchAdd(operand) => (value.wrapping_add(operand), value),
            Action::FetchSub(operand) => (value.wrapping_sub(operand), value),
            Action::FetchAnd(operand) => (value & operand, value),
            Action::FetchOr(operand) => (value | operand, value),
            Action::FetchXor(operand) => (value ^ operand, value),
            _ => foreign("cell", action),
        };
        cells.set(VALUE, new as u64);
        Ok(reply)
    }

    /// A compare-and-exchange writes even if it fails. Otherwise its class would depend on the
    /// value found.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Load => Access::Read,
            Action::Store(_) | Action::Swap(_) | Action::CompareExchange { .. } => Access::Write,
            Action::FetchAdd(_) | Action::FetchSub(_) => Access::Write,
            Action::FetchAnd(_) | Action::FetchOr(_) | Action::FetchXor(_) => Access::Write,
            _ => foreign("cell", action),
        }
    }

    /// Nothing moves: any thread may load and store at any time and observes the difference. Even
    /// two additions, which leave the same sum in both orders, reply different values.
    #[inline]
    fn mover(&self, _action: Action) -> Mover {
        Mover::None
    }
}
