//! Compiles places, and keeps their operands across rest points.

use preempt_system::MemoryModel;

use super::{Slot, Value};
use crate::machine::cells::{NO_CELL, size};
use crate::machine::code::{Cell, Instr, Reg};
use crate::program::{
    Base, Expr, ExprKind, Granularity, Method, ObjectType, Place, Projection, Type,
};
use crate::walk::{Part, expr, parts};

/// The address of a place: known at compile time, or at run time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Address {
    Cell(Cell),
    Reg(Reg),
}

/// Operands that are used once or twice, with rest points before each use.
pub(super) enum Held<'p> {
    /// They can be evaluated again: nothing changes them in between.
    Again(Vec<&'p Expr>),
    /// They were evaluated and are kept in temporaries.
    Kept(Vec<Kept>),
}

/// An operand that has been evaluated.
pub(super) enum Kept {
    Const(i64),
    Temp(Temp),
}

/// A temporary: its kind and number.
#[derive(Clone, Copy)]
pub(super) struct Temp {
    pointer: bool,
    index: usize,
}

/// Whether a place is shared state.
pub(super) fn shared(place: &Place) -> bool {
    !matches!(place.base, Base::Local(_))
}

/// The operands of a place.
pub(super) fn operands(place: &Place) -> Vec<&Expr> {
    let pointer = match &place.base {
        Base::Deref(pointer) => Some(&**pointer),
        Base::Global(_) | Base::Local(_) => None,
    };
    let indices = place.path.iter().filter_map(|p| match p {
        Projection::Index(index, _) => Some(index),
        Projection::Field(..) => None,
    });
    pointer.into_iter().chain(indices).collect()
}

impl<'c> Slot<'c> {
    /// Whether evaluating `e` destroys registers: it passes a rest point, or calls a function.
    pub(super) fn rests(&self, e: &Expr) -> bool {
        if self.atomic {
            return any(e, |e| matches!(e.kind, ExprKind::Call(..)));
        }
        let access = self.program.granularity == Granularity::Access;
        let here = match &e.kind {
            ExprKind::Call(..) | ExprKind::CondWait { .. } => true,
            ExprKind::Method { method: Method::BarrierWait, .. } => true,
            ExprKind::Method { object, method: Method::Send, .. } => access || rendezvous(object),
            ExprKind::Load(place) | ExprKind::AtomicLoad { place, .. } => access && shared(place),
            ExprKind::Fence(_) => self.program.memory == MemoryModel::Weak,
            ExprKind::Method { .. }
            | ExprKind::AtomicStore { .. }
            | ExprKind::CompareAndSwap { .. }
            | ExprKind::Swap { .. }
            | ExprKind::Fetch { .. }
            | ExprKind::Spawn(..)
            | ExprKind::New(..)
            | ExprKind::Choose { .. } => access,
            _ => false,
        };
        let mut rests = here;
        parts(e, &mut |part| {
            rests = rests
                || match part {
                    Part::Expr(e) => self.rests(e),
                    Part::Place(p) => operands(p).into_iter().any(|e| self.rests(e)),
                }
        });
        rests
    }

    /// Evaluates operands from left to right, without a rest point after the last.
    pub(super) fn values(&mut self, exprs: &[&'c Expr]) -> Vec<Value> {
        let last = exprs.iter().rposition(|e| self.rests(e));
        let Some(last) = last else { return exprs.iter().map(|e| self.eval(e)).collect() };
        // Operands before the last one that rests must be kept across it.
        let before = self.keep(&exprs[..last]);
        let at = self.eval(exprs[last]);
        let mut values = self.take(before);
        values.push(at);
        values.extend(exprs[last + 1..].iter().map(|e| self.eval(e)).collect::<Vec<_>>());
        values
    }

    /// Evaluates operands and keeps them in temporaries.
    fn keep(&mut self, exprs: &[&'c Expr]) -> Vec<Kept> {
        let mut kept = Vec::new();
        for e in exprs {
            let regs = self.regs;
            kept.push(match self.eval(e) {
                Value::Const(value) => Kept::Const(value),
                Value::Reg(src) => {
                    let temp = self.temp(matches!(e.ty, Type::Pointer(_)));
                    let cell = self.temp_cell(temp);
                    self.emit(Instr::Store { cell, src });
                    Kept::Temp(temp)
                }
            });
            self.regs = regs;
        }
        kept
    }

    /// Loads operands from their temporaries and frees these.
    fn take(&mut self, kept: Vec<Kept>) -> Vec<Value> {
        let values = self.look(&kept);
        for temp in kept {
            if let Kept::Temp(temp) = temp {
                self.free(temp);
            }
        }
        values
    }

    fn look(&mut self, kept: &[Kept]) -> Vec<Value> {
        let values = kept.iter().map(|kept| match *kept {
            Kept::Const(value) => Value::Const(value),
            Kept::Temp(temp) => {
                let dst = self.fresh();
                let cell = self.temp_cell(temp);
                self.emit(Instr::Load { dst, cell });
                Value::Reg(dst)
            }
        });
        values.collect()
    }

    /// Allocates a temporary of the frame.
    pub(super) fn temp(&mut self, pointer: bool) -> Temp {
        let used = &mut self.temps[usize::from(pointer)];
        let index = used.iter().position(|used| !used).unwrap_or(used.len());
        if index == used.len() {
            used.push(true);
        }
        used[index] = true;
        Temp { pointer, index }
    }

    pub(super) fn temp_cell(&self, temp: Temp) -> Cell {
        self.frame().temps[usize::from(temp.pointer)] + temp.index as Cell
    }

    /// Resets a temporary to zero and frees it.
    pub(super) fn free(&mut self, temp: Temp) {
        let cell = self.temp_cell(temp);
        self.emit(Instr::Clear { from: cell, to: cell + 1 });
        self.temps[usize::from(temp.pointer)][temp.index] = false;
    }

    /// Prepares operands for several accesses with rest points before them.
    pub(super) fn hold(&mut self, exprs: Vec<&'c Expr>) -> Held<'c> {
        if exprs.iter().any(|e| !stable(e)) {
            Held::Kept(self.keep(&exprs))
        } else {
            Held::Again(exprs)
        }
    }

    /// The operands of one of these accesses.
    pub(super) fn held(&mut self, held: &Held<'c>) -> Vec<Value> {
        match held {
            Held::Again(exprs) => exprs.iter().map(|e| self.eval(e)).collect(),
            Held::Kept(kept) => self.look(kept),
        }
    }

    /// Frees the operands.
    pub(super) fn release(&mut self, held: Held<'c>) {
        if let Held::Kept(kept) = held {
            for temp in kept {
                if let Kept::Temp(temp) = temp {
                    self.free(temp);
                }
            }
        }
    }

    /// Evaluates the operands of one access to shared state, and starts a step if accesses are
    /// steps.
    pub(super) fn access(&mut self, exprs: &[&'c Expr]) -> Vec<Value> {
        if !self.visible() {
            return self.values(exprs);
        }
        let held = self.hold(exprs.to_vec());
        self.rest();
        let values = self.held(&held);
        self.release(held);
        values
    }

    /// The address of a place, given the values of its operands.
    pub(super) fn address(&mut self, place: &Place, operands: &[Value]) -> Address {
        let mut operands = operands.iter().copied();
        let (mut cell, mut reg, mut ty) = match &place.base {
            Base::Global(id) => {
                (self.cells.globals[*id], None, self.program.globals[*id].ty.clone())
            }
            Base::Local(id) => {
                let local = &self.program.functions[self.function].locals[*id];
                let cell = self.frame().locals[*id];
                debug_assert_ne!(cell, NO_CELL, "constant parameters have no address");
                (cell, None, local.ty.clone())
            }
            Base::Deref(pointer) => {
                let Type::Pointer(target) = &pointer.ty else {
                    unreachable!("only pointers are dereferenced")
                };
                let value = operands.next().expect("a pointer has a value");
                let addr = self.copy(value);
                let target_number = self.target(target);
                self.emit(Instr::Deref { addr, target: target_number });
                self.out.fails = true;
                (0, Some(addr), (**target).clone())
            }
        };
        for projection in &place.path {
            match projection {
                Projection::Field(record, index) => {
                    let fields = &self.program.records[*record].fields;
                    cell +=
                        fields[..*index].iter().map(|(_, ty)| size(self.program, ty)).sum::<u32>();
                    ty = fields[*index].1.clone();
                }
                Projection::Index(_, length) => {
                    let Type::Array(element, _) = ty else {
                        unreachable!("only arrays are indexed")
                    };
                    let stride = size(self.program, &element);
                    match operands.next().expect("an index has a value") {
                        Value::Const(index) if (0..*length as i64).contains(&index) => {
                            cell += index as u32 * stride
                        }
                        index => {
                            let addr = reg.unwrap_or_else(|| self.reg(Value::Const(0)));
                            let index = self.reg(index);
                            self.emit(Instr::Index { addr, index, stride, len: *length as u32 });
                            self.out.fails = true;
                            reg = Some(addr);
                        }
                    }
                    ty = *element;
                }
            }
        }
        match reg {
            None => Address::Cell(cell),
            Some(addr) => {
                if cell != 0 {
                    self.emit(Instr::Offset { addr, offset: cell });
                }
                Address::Reg(addr)
            }
        }
    }

    /// Loads the value into a register that nothing else uses.
    pub(super) fn copy(&mut self, value: Value) -> Reg {
        match value {
            Value::Const(_) => self.reg(value),
            Value::Reg(src) => {
                let dst = self.fresh();
                self.emit(Instr::Move { dst, src });
                dst
            }
        }
    }

    /// Loads the number of the cell into a register.
    pub(super) fn address_reg(&mut self, address: Address) -> Reg {
        match address {
            Address::Cell(cell) => self.reg(Value::Const(i64::from(cell))),
            Address::Reg(reg) => reg,
        }
    }

    pub(super) fn load(&mut self, address: Address) -> Value {
        let dst = self.fresh();
        match address {
            Address::Cell(cell) => self.emit(Instr::Load { dst, cell }),
            Address::Reg(addr) => self.emit(Instr::LoadAt { dst, addr }),
        };
        Value::Reg(dst)
    }

    /// Stores a value of type `from` in a place of type `to`.
    pub(super) fn store(&mut self, address: Address, to: &Type, value: Value, from: &Type) {
        let (lo, hi) = to.bounds(self.program);
        let (least, most) = match value {
            Value::Const(value) => (value, value),
            Value::Reg(_) => from.bounds(self.program),
        };
        let src = self.reg(value);
        let at = match address {
            Address::Cell(cell) => self.emit(Instr::Store { cell, src }),
            Address::Reg(addr) => self.emit(Instr::StoreAt { addr, src }),
        };
        if least < lo || most > hi {
            self.out.fails = true;
            self.narrowing.push(at);
        }
    }
}

/// Whether `e` has the same value until the end of the statement, however often it is evaluated: it
/// consists of constants and of local variables, which no other thread changes.
fn stable(e: &Expr) -> bool {
    !any(e, |e| match &e.kind {
        ExprKind::Load(place) => shared(place),
        ExprKind::Const(_) | ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::If(..) => false,
        _ => true,
    })
}

/// Whether `test` holds for `e` or an expression in it.
fn any(e: &Expr, test: impl Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    expr(e, &mut |e| found |= test(e));
    found
}

/// Whether an object is a channel without capacity.
pub(super) fn rendezvous(object: &Place) -> bool {
    matches!(object.ty, Type::Object(ObjectType::Channel { capacity: 0, .. }))
}
