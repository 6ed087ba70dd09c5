//! One path through the code of a step, with unknown cells.
//!
//! A value is a constant, a cell plus a constant, or the answer to a test of a cell. Cells have
//! their values before the step; writes are kept separately until its end. An instruction that
//! needs to know more returns what it needs ([`Turn`]): the path forks, and the instruction is
//! executed again on every branch.

use super::super::Machine;
use super::super::code::{Cell, Reg};
use super::super::layout::Field;
use super::facts::{Condition, Facts, Question, Raws};
use super::{INTERPRET, NodeId};
use crate::arith;
use crate::program::{BinaryOp, UnaryOp};

/// A symbolic value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Const(i64),
    /// The value of the cell before the step, plus a constant.
    Cell {
        cell: Cell,
        add: i64,
    },
    /// 1 if the answer to the test is `yes`, otherwise 0.
    Answer {
        condition: Condition,
        yes: bool,
    },
}

/// Why an instruction does not simply complete.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// The path ends.
    End(NodeId),
    /// It depends on a test.
    Fork(Condition),
    /// It depends on the value of a cell.
    Split(Cell),
    /// It depends on a digit of the alternative, in this base.
    Choose(u32),
}

/// The path ends because a diagram cannot express it.
pub(super) const STUCK: Turn = Turn::End(INTERPRET);

/// Cells with more values are not used in calculations.
const NARROW: u64 = 1 << 40;

/// The state of a path before an instruction.
#[derive(Clone)]
pub(super) struct Path<'m> {
    fields: &'m [Field],
    /// The instruction.
    pub(super) at: usize,
    facts: Facts,
    regs: Vec<Option<Value>>,
    pub(super) result: Option<Value>,
    /// Whether a pointer was dereferenced.
    pub(super) dereferenced: bool,
    /// The new values of cells.
    pub(super) written: Vec<(Cell, Value)>,
    /// The digit of the alternative that the instruction asked for.
    pub(super) digit: Option<u32>,
    /// The product of the bases of these digits so far.
    pub(super) alternatives: u32,
    /// The number of forks.
    pub(super) splits: usize,
    /// The number of branches by the values of cells.
    pub(super) width: u32,
    /// The marks that were passed, the lowest first.
    pub(super) marks: Vec<u32>,
}

impl<'m> Path<'m> {
    pub(super) fn new(machine: &'m Machine, at: usize) -> Path<'m> {
        Path {
            fields: &machine.layout.fields,
            at,
            facts: Facts::default(),
            regs: Vec::new(),
            result: None,
            dereferenced: false,
            written: Vec::new(),
            digit: None,
            alternatives: 1,
            splits: 0,
            width: 1,
            marks: Vec::new(),
        }
    }

    /// Passes a mark, possibly again: a loop may repeat it.
    pub(super) fn reach(&mut self, mark: u32) {
        if let Err(at) = self.marks.binary_search(&mark) {
            self.marks.insert(at, mark);
        }
    }

    pub(super) fn field(&self, cell: Cell) -> &'m Field {
        &self.fields[cell as usize]
    }

    /// The answer to a test, if it is known.
    fn answer(&self, condition: Condition) -> Option<bool> {
        self.facts.answer(condition, self.fields)
    }

    /// The same path with this answer.
    pub(super) fn assuming(&self, condition: Condition, answer: bool) -> Path<'m> {
        let mut path = self.clone();
        path.facts.assume(condition, answer, self.fields);
        path.splits += 1;
        path
    }

    /// The possible bits of a cell.
    pub(super) fn raws(&self, cell: Cell) -> Raws {
        self.facts.raws(cell, self.fields)
    }

    /// Assumes the bits of a cell.
    pub(super) fn know(&mut self, cell: Cell, raw: u64) {
        self.facts.assume(Condition { cell, question: Question::Is(raw) }, true, self.fields);
    }

    /// The same path with these bits of a cell.
    pub(super) fn knowing(&self, cell: Cell, raw: u64) -> Path<'m> {
        self.assuming(Condition { cell, question: Question::Is(raw) }, true)
    }

    /// The same path with this digit of the alternative.
    pub(super) fn choosing(&self, digit: u32, alternatives: u32) -> Path<'m> {
        Path { digit: Some(digit), alternatives, splits: self.splits + 1, ..self.clone() }
    }

    /// Simplifies a value by the facts.
    pub(super) fn simplify(&self, value: Value) -> Value {
        match value {
            Value::Cell { cell, add } => match self.facts.raws(cell, self.fields).only() {
                Some(raw) => {
                    Value::Const((raw as i64).wrapping_add(self.field(cell).lo).wrapping_add(add))
                }
                None => value,
            },
            Value::Answer { condition, yes } => self
                .answer(condition)
                .map_or(value, |answer| Value::Const(i64::from(answer == yes))),
            Value::Const(_) => value,
        }
    }

    pub(super) fn reg(&self, reg: Reg) -> Result<Value, Turn> {
        let value = self.regs.get(reg as usize).copied().flatten();
        value.map(|value| self.simplify(value)).ok_or(STUCK)
    }

    /// The cell whose number is in a register. The range of a pointer cell may exceed the number of
    /// cells.
    pub(super) fn cell(&self, reg: Reg) -> Result<Cell, Turn> {
        let cell = self.number(self.reg(reg)?)?;
        if (0..self.fields.len() as i64).contains(&cell) { Ok(cell as Cell) } else { Err(STUCK) }
    }

    /// The first cell of an object. A pointer may not lead to an object, since the range of a
    /// pointer cell may exceed the pointers.
    pub(super) fn object_at(&self, reg: Reg) -> Result<Cell, Turn> {
        if self.dereferenced { Err(STUCK) } else { self.cell(reg) }
    }

    pub(super) fn set(&mut self, reg: Reg, value: Value) {
        if self.regs.len() <= reg as usize {
            self.regs.resize(reg as usize + 1, None);
        }
        self.regs[reg as usize] = Some(value);
    }

    pub(super) fn load(&self, cell: Cell) -> Value {
        let written = self.written.iter().find(|&&(written, _)| written == cell);
        self.simplify(written.map_or(Value::Cell { cell, add: 0 }, |&(_, value)| value))
    }

    /// Writes a value to a cell; it must fit.
    pub(super) fn store(&mut self, cell: Cell, value: Value) -> Result<(), Turn> {
        let field = self.field(cell);
        let value = self.simplify(value);
        let fits = match value {
            Value::Const(value) => (value as u64).wrapping_sub(field.lo as u64) <= field.span,
            Value::Answer { condition, .. } => return Err(Turn::Fork(condition)),
            Value::Cell { .. } if field.span >= NARROW => return Err(STUCK),
            Value::Cell { .. } => {
                self.is_within(value, (field.lo, field.lo + field.span as i64))?
            }
        };
        if !fits {
            return Err(STUCK);
        }
        self.write(cell, value);
        Ok(())
    }

    fn write(&mut self, cell: Cell, value: Value) {
        match self.written.iter_mut().find(|(written, _)| *written == cell) {
            Some((_, old)) => *old = value,
            None => self.written.push((cell, value)),
        }
    }

    /// The value of a cell to which nothing was assigned.
    pub(super) fn zero(&self, cell: Cell) -> Value {
        Value::Const((self.field(cell).zero as i64).wrapping_add(self.field(cell).lo))
    }

    pub(super) fn clear(&mut self, cell: Cell) {
        self.write(cell, self.zero(cell));
    }

    /// A possible value of a cell before the step.
    pub(super) fn lowest(&self, cell: Cell) -> i64 {
        (self.raws(cell).lowest() as i64).wrapping_add(self.field(cell).lo)
    }

    /// The lowest and the highest value of a cell plus a constant.
    fn bounds(&self, cell: Cell, add: i64) -> Result<(i64, i64), Turn> {
        let (raws, field) = (self.facts.raws(cell, self.fields), self.field(cell));
        if field.span >= NARROW {
            return Err(STUCK);
        }
        let base = field.lo + add;
        Ok((base + raws.lowest() as i64, base + raws.highest() as i64))
    }

    /// Whether a value is between `lo` and `hi`.
    pub(super) fn is_within(&self, value: Value, (lo, hi): (i64, i64)) -> Result<bool, Turn> {
        match self.simplify(value) {
            Value::Const(value) => Ok((lo..=hi).contains(&value)),
            Value::Answer { condition, .. } => Err(Turn::Fork(condition)),
            value @ Value::Cell { cell, add } => {
                let (least, most) = self.bounds(cell, add)?;
                if least >= lo && most <= hi {
                    Ok(true)
                } else if most < lo || least > hi {
                    Ok(false)
                } else {
                    let (op, limit) =
                        if least < lo { (BinaryOp::Ge, lo) } else { (BinaryOp::Le, hi) };
                    match self.binary(op, value, Value::Const(limit))? {
                        Value::Answer { condition, .. } => Err(Turn::Fork(condition)),
                        other => unreachable!("the bounds do not decide, but {other:?} does"),
                    }
                }
            }
        }
    }

    /// The number, if the value is constant.
    pub(super) fn number(&self, value: Value) -> Result<i64, Turn> {
        match self.simplify(value) {
            Value::Const(value) => Ok(value),
            Value::Cell { cell, .. } => Err(Turn::Split(cell)),
            Value::Answer { condition, .. } => Err(Turn::Fork(condition)),
        }
    }

    /// Whether a value is not 0.
    pub(super) fn truth(&self, value: Value) -> Result<bool, Turn> {
        match self.simplify(value) {
            value @ Value::Cell { .. } => {
                self.number(self.binary(BinaryOp::Ne, value, Value::Const(0))?)
            }
            value => self.number(value),
        }
        .map(|value| value != 0)
    }

    pub(super) fn unary(&self, op: UnaryOp, a: Value) -> Result<Value, Turn> {
        match (op, self.simplify(a)) {
            (op, Value::Const(a)) => arith::unary(op, a).map(Value::Const).map_err(|_| STUCK),
            (UnaryOp::Not, Value::Answer { condition, yes }) => {
                Ok(Value::Answer { condition, yes: !yes })
            }
            (UnaryOp::Not, a) => self.binary(BinaryOp::Eq, a, Value::Const(0)),
            (op @ UnaryOp::Neg, a) => {
                arith::unary(op, self.number(a)?).map(Value::Const).map_err(|_| STUCK)
            }
        }
    }

    pub(super) fn binary(&self, op: BinaryOp, a: Value, b: Value) -> Result<Value, Turn> {
        match (self.simplify(a), self.simplify(b)) {
            (Value::Const(a), Value::Const(b)) => {
                arith::binary(op, a, b).map(Value::Const).map_err(|_| STUCK)
            }
            (Value::Answer { condition, .. }, _) | (_, Value::Answer { condition, .. }) => {
                Err(Turn::Fork(condition))
            }
            (Value::Cell { cell, add }, Value::Const(by)) => self.with_const(op, cell, add, by),
            (Value::Const(by), Value::Cell { cell, add }) => match mirrored(op) {
                Some(op) => self.with_const(op, cell, add, by),
                None => Err(Turn::Split(cell)),
            },
            (Value::Cell { cell: a, .. }, Value::Cell { cell: b, .. }) => {
                let span = |cell| self.field(cell).span;
                Err(Turn::Split(if span(a) <= span(b) { a } else { b }))
            }
        }
    }

    /// An operation on a cell plus `add`, and a constant.
    fn with_const(&self, op: BinaryOp, cell: Cell, add: i64, by: i64) -> Result<Value, Turn> {
        let field = self.field(cell);
        if field.span >= NARROW {
            return Err(STUCK);
        }
        let asks = |question, yes| {
            self.simplify(Value::Answer { condition: Condition { cell, question }, yes })
        };
        // The bits with which the comparison is one for equality.
        let raw = by - add - field.lo;
        let below = |limit: i64, yes: bool| match u64::try_from(limit) {
            Ok(limit @ 1..) => asks(Question::Below(limit), yes),
            _ => Value::Const(i64::from(!yes)),
        };
        let is = |yes: bool| match u64::try_from(raw) {
            Ok(raw) => asks(Question::Is(raw), yes),
            Err(_) => Value::Const(i64::from(!yes)),
        };
        Ok(match op {
            BinaryOp::Add | BinaryOp::Sub => {
                let add = if op == BinaryOp::Add { add + by } else { add - by };
                let (least, most) = self.bounds(cell, add)?;
                if i32::try_from(least).is_err() || i32::try_from(most).is_err() {
                    return Err(STUCK);
                }
                Value::Cell { cell, add }
            }
            BinaryOp::Eq => is(true),
            BinaryOp::Ne => is(false),
            BinaryOp::Lt => below(raw, true),
            BinaryOp::Le => below(raw + 1, true),
            BinaryOp::Gt => below(raw + 1, false),
            BinaryOp::Ge => below(raw, false),
            _ => return Err(Turn::Split(cell)),
        })
    }
}

/// The operator with swapped operands.
fn mirrored(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Add | BinaryOp::Eq | BinaryOp::Ne => op,
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ => return None,
    })
}
