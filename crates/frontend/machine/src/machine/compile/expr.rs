//! Compiles expressions.

use std::sync::atomic::Ordering;

use preempt_system::MemoryModel;
use preempt_system::object::Action;

use super::place::{Address, operands, rendezvous, shared};
use super::{Slot, Value};
use crate::arith;
use crate::diagnostic::Diagnostic;
use crate::machine::cells::{NO_CELL, Root, kind, size};
use crate::machine::code::{Instr, Operation, Reg, id16};
use crate::program::{
    Base, BinaryOp, ExchangeResult, Expr, ExprKind, FunctionId, LocalId, Method, Place, Quantifier,
    RecordId, Type, UnaryOp,
};

/// The most cases that the quantifiers of one slot are unrolled into.
const MAX_UNROLLED: usize = 100_000;

impl<'c> Slot<'c> {
    /// Evaluates `e`. No rest point comes after its last access.
    pub(super) fn eval(&mut self, e: &'c Expr) -> Value {
        match &e.kind {
            ExprKind::Const(value) => Value::Const(*value),
            ExprKind::Load(place) => self.eval_load(place),
            ExprKind::AddressOf(place) => {
                let values = self.values(&operands(place));
                match self.address(place, &values) {
                    Address::Cell(cell) => Value::Const(i64::from(cell) + 1),
                    Address::Reg(a) => {
                        let dst = self.fresh();
                        self.emit(Instr::BinaryConst { op: BinaryOp::Add, dst, a, b: 1 });
                        Value::Reg(dst)
                    }
                }
            }
            ExprKind::Unary(op, a) => {
                let a = self.eval(a);
                self.unary(*op, a)
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.eval_short(*op, a, b)
            }
            ExprKind::Binary(op, a, b) => {
                let values = self.values(&[&**a, &**b]);
                self.binary(*op, values[0], values[1])
            }
            ExprKind::If(c, a, b) => self.eval_if(c, a, b),
            ExprKind::Call(function, args) => self.eval_call(*function, args),
            ExprKind::Method { object, method, args } => self.eval_method(object, *method, args),
            ExprKind::CondWait { condvar, mutex } => self.eval_wait(condvar, mutex),
            ExprKind::AtomicLoad { place, order } => {
                let value = self.eval_load(place);
                self.order((*order, *order));
                value
            }
            ExprKind::AtomicStore { place, value, order } => {
                self.assign(place, value);
                self.order((*order, *order));
                Value::Const(0)
            }
            ExprKind::CompareAndSwap { place, old, new, result, orders } => {
                let (values, addr) = self.update(place, &[&**old, &**new]);
                let (old, new) = (self.reg(values[0]), self.reg(values[1]));
                let dst = self.fresh();
                self.emit(match result {
                    ExchangeResult::Succeeded => Instr::CompareAndSwap { dst, addr, old, new },
                    ExchangeResult::Old => Instr::CompareExchange { dst, addr, old, new },
                });
                self.order(*orders);
                Value::Reg(dst)
            }
            ExprKind::Swap { place, value, order } => {
                let (values, addr) = self.update(place, &[&**value]);
                let src = self.reg(values[0]);
                let dst = self.fresh();
                self.emit(Instr::Swap { dst, addr, src });
                self.order((*order, *order));
                Value::Reg(dst)
            }
            ExprKind::Fetch { place, op, value, order } => {
                let (values, addr) = self.update(place, &[&**value]);
                let src = self.reg(values[0]);
                let dst = self.fresh();
                self.emit(Instr::Fetch { op: *op, dst, addr, src });
                self.order((*order, *order));
                Value::Reg(dst)
            }
            ExprKind::Fence(order) => {
                // Under sequential consistency a fence has no effect, so it is not a step.
                if self.program.memory == MemoryModel::Weak && self.visible() {
                    self.rest();
                    self.emit(Instr::Fence(*order));
                }
                Value::Const(0)
            }
            ExprKind::Spawn(function, args) => self.eval_spawn(*function, args),
            ExprKind::New(record, fields) => self.eval_new(*record, fields),
            ExprKind::Choose { lo, hi, inclusive } => {
                let values = self.access(&[&**lo, &**hi]);
                let (lo, hi) = (self.reg(values[0]), self.reg(values[1]));
                if *inclusive {
                    // Not an addition of the program: the end of a range after the greatest int
                    // does not overflow.
                    self.emit(Instr::Offset { addr: hi, offset: 1 });
                }
                let dst = self.fresh();
                self.emit(Instr::Choose { dst, lo, hi });
                self.out.fails = true;
                Value::Reg(dst)
            }
            ExprKind::Quantifier { kind, local, lo, hi, body } => {
                self.eval_quantifier(*kind, *local, (*lo, *hi), body)
            }
        }
    }

    /// Gives the last instruction, which accesses shared state, its orderings.
    fn order(&mut self, orders: (Ordering, Ordering)) {
        if orders != (Ordering::SeqCst, Ordering::SeqCst) {
            let last = self.here() - 1;
            self.code.orders.insert(last, orders);
        }
    }

    fn eval_load(&mut self, place: &'c Place) -> Value {
        if let (Base::Local(local), true) = (&place.base, place.path.is_empty()) {
            if let Some(&value) = self.bound.get(local) {
                return Value::Const(value);
            }
            if let (Root::Thread(body, params), NO_CELL) =
                (&self.cells().root, self.frame().locals[*local])
            {
                debug_assert_eq!(
                    *body, self.function,
                    "only a thread's own parameters are constants"
                );
                return Value::Const(params[*local]);
            }
        }
        let operands = operands(place);
        let values = if shared(place) { self.access(&operands) } else { self.values(&operands) };
        let address = self.address(place, &values);
        self.load(address)
    }

    /// An access that reads and writes a place: the values of its operands, and the number of the
    /// cell.
    fn update(&mut self, place: &'c Place, exprs: &[&'c Expr]) -> (Vec<Value>, Reg) {
        let mut all = operands(place);
        let first = all.len();
        all.extend(exprs);
        let mut values = if shared(place) { self.access(&all) } else { self.values(&all) };
        let address = self.address(place, &values[..first]);
        self.out.fails = true;
        (values.split_off(first), self.address_reg(address))
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        if let Value::Const(a) = a
            && let Ok(value) = arith::unary(op, a)
        {
            return Value::Const(value);
        }
        let (src, dst) = (self.reg(a), self.fresh());
        self.emit(Instr::Unary { op, dst, src });
        self.out.fails |= op == UnaryOp::Neg;
        Value::Reg(dst)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        if let (Value::Const(a), Value::Const(b)) = (a, b)
            && let Ok(value) = arith::binary(op, a, b)
        {
            return Value::Const(value);
        }
        self.out.fails |= arith::may_fail(op);
        if let (Value::Reg(a), Value::Const(b)) = (a, b)
            && let Ok(b) = i32::try_from(b)
        {
            let dst = self.fresh();
            self.emit(Instr::BinaryConst { op, dst, a, b });
            return Value::Reg(dst);
        }
        let (a, b) = (self.reg(a), self.reg(b));
        let dst = self.fresh();
        self.emit(Instr::Binary { op, dst, a, b });
        Value::Reg(dst)
    }

    /// `&&` and `||`: the right side is evaluated only if the left one does not decide.
    fn eval_short(&mut self, op: BinaryOp, a: &'c Expr, b: &'c Expr) -> Value {
        let decisive = i64::from(op == BinaryOp::Or);
        match self.eval(a) {
            Value::Const(value) if value == decisive => Value::Const(value),
            Value::Const(_) => self.eval(b),
            Value::Reg(src) => {
                let dst = self.fresh();
                self.emit(Instr::Move { dst, src });
                let jump = match op {
                    BinaryOp::Or => Instr::JumpIf { condition: dst, to: 0 },
                    _ => Instr::JumpUnless { condition: dst, to: 0 },
                };
                let jump = self.emit(jump);
                let b = self.eval(b);
                self.move_to(dst, b);
                self.land(jump);
                Value::Reg(dst)
            }
        }
    }

    fn eval_if(&mut self, c: &'c Expr, a: &'c Expr, b: &'c Expr) -> Value {
        match self.eval(c) {
            Value::Const(c) => self.eval(if c != 0 { a } else { b }),
            Value::Reg(condition) => {
                let dst = self.fresh();
                let otherwise = self.emit(Instr::JumpUnless { condition, to: 0 });
                let a = self.eval(a);
                self.move_to(dst, a);
                let end = self.emit(Instr::Jump(0));
                self.land(otherwise);
                let b = self.eval(b);
                self.move_to(dst, b);
                self.land(end);
                Value::Reg(dst)
            }
        }
    }

    fn move_to(&mut self, dst: Reg, value: Value) {
        match value {
            Value::Const(value) => self.emit(Instr::Const { dst, value }),
            Value::Reg(src) => self.emit(Instr::Move { dst, src }),
        };
    }

    fn eval_call(&mut self, callee: FunctionId, args: &'c [Expr]) -> Value {
        let values = self.values(&args.iter().collect::<Vec<_>>());
        let number = self.frames[&callee];
        let frame = &self.cells().frames[&callee];
        let program = self.program;
        let function = &program.functions[callee];
        if frame.stack.is_some() {
            self.emit(Instr::Save(number));
            self.out.fails = true;
        }
        for (i, value) in values.into_iter().enumerate() {
            self.store(Address::Cell(frame.locals[i]), &function.locals[i].ty, value, &args[i].ty);
        }
        let site = self.code.frames[number as usize].sites.len();
        if let Some(cell) = frame.selector {
            let src = self.reg(Value::Const(site as i64));
            self.emit(Instr::Store { cell, src });
        }
        let version = (callee, self.atomic);
        let jump = self.emit(Instr::Jump(0));
        self.calls.push((jump, version));
        self.todo.push(version);
        let back = self.here();
        self.code.frames[number as usize].sites.push(back);
        let dst = self.fresh();
        if function.result.is_some() {
            self.emit(Instr::TakeResult { dst });
        }
        Value::Reg(dst)
    }

    fn eval_method(&mut self, object: &'c Place, method: Method, args: &'c [Expr]) -> Value {
        let Type::Object(ty) = &object.ty else { unreachable!("methods belong to objects") };
        let kind = kind(ty);
        let action = action(method);
        // Operations of two steps return to their object after a rest point.
        let second = match method {
            Method::BarrierWait => Some(Action::Leave),
            Method::Send if rendezvous(object) => Some(Action::Sent),
            _ => None,
        };
        let mut all = operands(object);
        let first = all.len();
        let place_operands = all.clone();
        all.extend(args);
        let Some(second) = second else {
            let values = self.access(&all);
            let address = self.address(object, &values[..first]);
            return self.object(Operation { kind, action }, address, values.get(first).copied());
        };
        let held = self.hold(place_operands);
        let arg = self.hold(args.iter().collect());
        if self.visible() {
            self.rest();
        }
        let values = self.held(&held);
        let address = self.address(object, &values);
        let arg_value = self.held(&arg).first().copied();
        self.release(arg);
        self.object(Operation { kind, action }, address, arg_value);
        self.rest();
        let values = self.held(&held);
        let address = self.address(object, &values);
        self.release(held);
        self.object(Operation { kind, action: second }, address, None)
    }

    fn eval_wait(&mut self, condvar: &'c Place, mutex: &'c Place) -> Value {
        let (Type::Object(c), Type::Object(m)) = (&condvar.ty, &mutex.ty) else {
            unreachable!("both are objects")
        };
        let (c, m) = (kind(c), kind(m));
        let (held_c, held_m) = (self.hold(operands(condvar)), self.hold(operands(mutex)));
        if self.visible() {
            self.rest();
        }
        let values = self.held(&held_m);
        let address = self.address(mutex, &values);
        self.object(Operation { kind: m, action: Action::Unlock }, address, None);
        let values = self.held(&held_c);
        let address = self.address(condvar, &values);
        self.object(Operation { kind: c, action: Action::Wait }, address, None);
        self.rest();
        let values = self.held(&held_c);
        let wait = self.address(condvar, &values);
        let addr = self.address_reg(wait);
        let wake = self.operation(Operation { kind: c, action: Action::Wake });
        self.emit(Instr::Guard { operation: wake, addr });
        let values = self.held(&held_m);
        let address = self.address(mutex, &values);
        self.object(Operation { kind: m, action: Action::Lock }, address, None);
        let arg = addr;
        let dst = self.fresh();
        self.emit(Instr::Object { dst, arg, operation: wake, addr });
        self.release(held_c);
        self.release(held_m);
        Value::Const(0)
    }

    fn object(&mut self, operation: Operation, address: Address, arg: Option<Value>) -> Value {
        let addr = self.address_reg(address);
        let arg = arg.map_or(addr, |arg| self.reg(arg));
        let dst = self.fresh();
        let operation = self.operation(operation);
        self.emit(Instr::Object { dst, arg, operation, addr });
        self.out.fails = true;
        self.out.waits_late |= !self.visible();
        Value::Reg(dst)
    }

    fn eval_spawn(&mut self, function: FunctionId, args: &'c [Expr]) -> Value {
        let values = self.access(&args.iter().collect::<Vec<_>>());
        // The arguments go to neighbouring registers.
        let first = self.regs as Reg;
        for value in values {
            let dst = self.fresh();
            self.move_to(dst, value);
        }
        let dst = self.fresh();
        self.emit(Instr::Spawn { dst, function: id16(function), args: first });
        self.out.fails = true;
        Value::Reg(dst)
    }

    fn eval_new(&mut self, record: RecordId, fields: &'c [Option<Expr>]) -> Value {
        let given: Vec<&Expr> = fields.iter().flatten().collect();
        let mut values = self.access(&given).into_iter();
        let dst = self.fresh();
        self.emit(Instr::New { dst, record: id16(record) });
        self.out.fails = true;
        let program = self.program;
        let types = &program.records[record].fields;
        let mut offset = 0;
        for (field, (_, ty)) in fields.iter().zip(types) {
            if let Some(e) = field {
                let value = values.next().expect("every given field has a value");
                let addr = self.fresh();
                // A pointer is the number of a cell plus one.
                self.emit(Instr::BinaryConst {
                    op: BinaryOp::Add,
                    dst: addr,
                    a: dst,
                    b: offset as i32 - 1,
                });
                self.store(Address::Reg(addr), ty, value, &e.ty);
            }
            offset += size(self.program, ty);
        }
        Value::Reg(dst)
    }

    fn eval_quantifier(
        &mut self,
        kind: Quantifier,
        local: LocalId,
        (lo, hi): (i64, i64),
        body: &'c Expr,
    ) -> Value {
        let (op, unit) = match kind {
            Quantifier::All => (BinaryOp::And, 1),
            Quantifier::Any => (BinaryOp::Or, 0),
            Quantifier::Count => (BinaryOp::Add, 0),
        };
        // `count` continues across rest points; `all` and `any` may be decided before the last
        // body.
        let kept =
            (kind == Quantifier::Count && self.rests(body)).then(|| self.spill(Value::Const(unit)));
        let dst = self.fresh();
        self.emit(Instr::Const { dst, value: unit });
        let mut decided = Vec::new();
        for i in lo..hi {
            self.unrolled += 1;
            if self.unrolled > MAX_UNROLLED {
                self.too_complex.get_or_insert(self.span);
                break;
            }
            self.bound.insert(local, i);
            let regs = self.regs;
            let value = self.eval(body);
            if let Some(temp) = kept {
                let cell = self.temp_cell(temp);
                let b = self.reg(value);
                self.emit(Instr::Load { dst, cell });
                self.emit(Instr::Binary { op, dst, a: dst, b });
                self.emit(Instr::Store { cell, src: dst });
            } else if kind == Quantifier::Count {
                let b = self.reg(value);
                self.emit(Instr::Binary { op, dst, a: dst, b });
            } else {
                self.move_to(dst, value);
                decided.push(match kind {
                    Quantifier::All => self.emit(Instr::JumpUnless { condition: dst, to: 0 }),
                    _ => self.emit(Instr::JumpIf { condition: dst, to: 0 }),
                });
            }
            self.regs = regs;
        }
        self.bound.remove(&local);
        decided.into_iter().for_each(|jump| self.land(jump));
        match kept {
            Some(temp) => self.unspill(temp),
            None => Value::Reg(dst),
        }
    }

    /// The code of an invariant.
    pub(super) fn invariant(
        &mut self,
        condition: &'c Expr,
        message: u32,
    ) -> Result<(), Diagnostic> {
        self.atomic = true;
        let value = self.eval(condition);
        let condition = self.reg(value);
        self.emit(Instr::Assert { condition, message });
        self.emit(Instr::End);
        match self.too_complex {
            Some(span) => Err(super::too_complex(span)),
            None => Ok(()),
        }
    }
}

/// The action of a method on its object.
fn action(method: Method) -> Action {
    match method {
        Method::Lock => Action::Lock,
        Method::TryLock => Action::TryLock,
        Method::Unlock => Action::Unlock,
        Method::ReadLock => Action::ReadLock,
        Method::TryReadLock => Action::TryReadLock,
        Method::ReadUnlock => Action::ReadUnlock,
        Method::WriteLock => Action::WriteLock,
        Method::TryWriteLock => Action::TryWriteLock,
        Method::WriteUnlock => Action::WriteUnlock,
        Method::NotifyOne => Action::NotifyOne { nth: 0 },
        Method::NotifyAll => Action::NotifyAll,
        Method::Acquire => Action::Acquire,
        Method::TryAcquire => Action::TryAcquire,
        Method::Release => Action::Release,
        Method::Set => Action::Set,
        Method::Reset => Action::Reset,
        Method::EventWait => Action::Await,
        Method::BarrierWait => Action::Arrive,
        Method::Send => Action::Send(0),
        Method::TrySend => Action::TrySend(0),
        Method::Recv => Action::Recv,
        Method::Len => Action::Len,
    }
}
