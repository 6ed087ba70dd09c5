//! Operations on synchronisation objects of which not all fields are known: the object itself
//! determines which fields it reads.

use std::cell::Cell as Once;

use preempt_system::ThreadId;
use preempt_system::object::{Action, Cells};

use super::super::Machine;
use super::super::code::{Cell, Operation, Reg};
use super::NodeId;
use super::path::{Path, STUCK, Turn, Value};

/// The fields of an object on a path through the code.
struct Fields<'p, 'm> {
    path: &'p Path<'m>,
    /// The first field.
    first: Cell,
    /// The values written to them.
    put: Vec<(Cell, Value)>,
    /// The tests that must be decided before the result is valid.
    unknown: Once<Option<Turn>>,
}

impl Fields<'_, '_> {
    fn ask(&self, turn: Turn) {
        self.unknown.set(self.unknown.get().or(Some(turn)));
    }

    /// An error if an unknown field was read.
    fn checked<T>(&self, value: T) -> Result<T, Turn> {
        self.unknown.get().map_or(Ok(value), Err)
    }
}

impl Cells for Fields<'_, '_> {
    fn get(&self, field: usize) -> u64 {
        let cell = self.first + field as Cell;
        let put = self.put.iter().rev().find(|&&(put, _)| put == cell);
        match self.path.number(put.map_or_else(|| self.path.load(cell), |&(_, value)| value)) {
            Ok(value) => value as u64,
            Err(turn) => {
                self.ask(turn);
                // Any possible value of the field; the result will be discarded.
                self.path.lowest(cell) as u64
            }
        }
    }

    fn set(&mut self, field: usize, value: u64) {
        let cell = self.first + field as Cell;
        let place = self.path.field(cell);
        let fits = value.wrapping_sub(place.lo as u64) <= place.span;
        match value {
            value if fits => self.put.push((cell, Value::Const(value as i64))),
            0 => self.put.push((cell, self.path.zero(cell))),
            _ => self.ask(STUCK),
        }
    }
}

impl<'m> Path<'m> {
    /// Whether an operation on an object is enabled.
    pub(super) fn guard(
        &self,
        operation: Operation,
        addr: Reg,
        thread: ThreadId,
    ) -> Result<bool, Turn> {
        let first = self.object_at(addr)?;
        let fields = Fields { path: self, first, put: Vec::new(), unknown: Once::new(None) };
        fields.checked(operation.kind.enabled(&fields, thread, operation.action))
    }

    /// An operation on an object, as in [`Stepper::object`](super::super::run::Stepper::object);
    /// ends with `wait` if it is not enabled.
    pub(super) fn object(
        &mut self,
        machine: &Machine,
        operation: Operation,
        thread: ThreadId,
        (dst, arg, addr): (Reg, Reg, Reg),
        wait: NodeId,
    ) -> Result<(), Turn> {
        let first = self.object_at(addr)?;
        let sends = matches!(operation.action, Action::Send(_) | Action::TrySend(_));
        let arg = if sends { self.number(self.reg(arg)?)? } else { 0 };
        if sends {
            let class = machine.cells.cells[first as usize + 1];
            let (lo, hi) = machine.cells.classes[class as usize].bounds;
            if !(lo..=hi).contains(&arg) {
                return Err(STUCK);
            }
        }
        let mut fields = Fields { path: self, first, put: Vec::new(), unknown: Once::new(None) };
        let action = match operation.action {
            Action::Send(_) => Action::Send(arg),
            Action::TrySend(_) => Action::TrySend(arg),
            Action::NotifyOne { .. } => {
                let waiting = operation.kind.alternatives(&fields, thread, operation.action);
                let waiting = fields.checked(waiting)?;
                Action::NotifyOne { nth: self.digit.ok_or(Turn::Choose(waiting))? }
            }
            action => action,
        };
        let enabled = operation.kind.enabled(&fields, thread, action);
        if !fields.checked(enabled)? {
            return Err(Turn::End(wait));
        }
        let reply = operation.kind.apply(&mut fields, thread, action);
        let reply = fields.checked(reply)?.map_err(|_| STUCK)?;
        for (cell, value) in std::mem::take(&mut fields.put) {
            self.store(cell, value)?;
        }
        self.digit = None;
        self.set(dst, Value::Const(reply));
        Ok(())
    }
}
