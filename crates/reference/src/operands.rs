//! When the operands of an access are evaluated.
//!
//! docs/language.md says that operands which consist of constants, local variables and operators
//! are evaluated in the step of the access itself. The only observable effect is the step in which
//! such an operand fails. The interpreter therefore always evaluates operands before the thread
//! rests, and keeps a failure of such operands as a task of its own, [`Task::Fault`], before which
//! the thread rests as it would before the access.

use preempt_lang::syntax::ast::{Expr, ExprKind};

use crate::run::{Failure, Run, Stop};
use crate::types::Type;
use crate::value::{Root, Task};

impl<'p> Run<'_, 'p> {
    /// If these operands fail in the step of their access, makes that failure the next task.
    pub fn fails_at_access(&mut self, operands: &[&'p Expr]) -> bool {
        let stepping = !self.model.by_statement && self.me.atomic == 0 && !self.nonstop;
        if !stepping || !operands.iter().all(|e| self.is_steady(e)) {
            return false;
        }
        let failure = operands.iter().find_map(|e| self.failure_of(e));
        let fails = failure.is_some();
        self.me.todo.extend(failure.map(Task::Fault));
        fails
    }

    /// The failure of an expression without effects, if its evaluation fails.
    fn failure_of(&mut self, e: &'p Expr) -> Option<Failure> {
        let before = self.me.clone();
        let outcome = self.at_once(e);
        self.me = before;
        match outcome {
            Err(Stop::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// Whether an expression consists of constants, local variables and operators.
    fn is_steady(&self, e: &'p Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Null => true,
            ExprKind::Name(name) => {
                self.local(name).is_some() || self.model.named_constant(name).is_some()
            }
            ExprKind::Index(..) | ExprKind::Field(..) => {
                !self.is_shared_place(e) && self.operands_of(e).iter().all(|e| self.is_steady(e))
            }
            ExprKind::Unary(_, e) => self.is_steady(e),
            ExprKind::Binary(_, l, r) => self.is_steady(l) && self.is_steady(r),
            ExprKind::If(c, a, b) => self.is_steady(c) && self.is_steady(a) && self.is_steady(b),
            _ => false,
        }
    }

    fn is_pointer(&self, e: &'p Expr) -> bool {
        matches!(self.model.ty(self.static_type(e)), Type::Pointer(_))
    }

    /// Whether a place is shared, that is, not inside a local variable.
    pub fn is_shared_place(&self, e: &'p Expr) -> bool {
        match &e.kind {
            ExprKind::Name(name) => !matches!(self.local(name), Some((Root::Local(..), _))),
            ExprKind::Index(array, _) => self.is_shared_place(array),
            ExprKind::Field(record, _) => self.is_pointer(record) || self.is_shared_place(record),
            _ => true,
        }
    }

    /// The operands needed to find a place: a pointer, and indices.
    pub fn operands_of(&self, e: &'p Expr) -> Vec<&'p Expr> {
        match &e.kind {
            ExprKind::Name(_) => Vec::new(),
            ExprKind::Index(array, index) => {
                let mut operands = self.operands_of(array);
                operands.push(index);
                operands
            }
            ExprKind::Field(record, _) if self.is_pointer(record) => vec![record],
            ExprKind::Field(record, _) => self.operands_of(record),
            ExprKind::Deref(pointer) => vec![pointer],
            _ => vec![e],
        }
    }

    /// Like [`Run::operands_of`], for the object of a method, which may be given by a pointer.
    pub fn operands_of_object(&self, e: &'p Expr) -> Vec<&'p Expr> {
        if self.is_pointer(e) { vec![e] } else { self.operands_of(e) }
    }

    /// The operands of the access with which an expression ends, if it ends with one.
    pub fn operands_of_access(&self, e: &'p Expr) -> Vec<&'p Expr> {
        match &e.kind {
            ExprKind::Index(..) | ExprKind::Field(..) | ExprKind::Deref(_)
                if self.is_shared_place(e) =>
            {
                self.operands_of(e)
            }
            ExprKind::Call(name, arguments)
                if !self.model.functions.contains_key(name.text.as_str())
                    && self.is_shared_place(&arguments[0]) =>
            {
                let mut operands = self.operands_of(&arguments[0]);
                operands.extend(&arguments[1..]);
                operands
            }
            ExprKind::Method(object, name, arguments) => {
                let mut operands = self.operands_of_object(object);
                for argument in arguments {
                    if name.text == "wait" {
                        operands.extend(self.operands_of_object(argument));
                    } else {
                        operands.push(argument);
                    }
                }
                operands
            }
            ExprKind::Spawn(_, arguments) => arguments.iter().collect(),
            ExprKind::New(_, fields) => fields.iter().map(|(_, e)| e).collect(),
            ExprKind::Choose(range) => vec![&range.lo, &range.hi],
            _ => Vec::new(),
        }
    }
}
