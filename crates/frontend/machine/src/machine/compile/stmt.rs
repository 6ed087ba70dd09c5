//! Compiles statements.

use super::place::{Temp, operands, shared};
use super::{Loop, Slot, Value};
use crate::machine::cells::size;
use crate::machine::code::{Address, Instr, Reg};
use crate::machine::reached::Item;
use crate::program::{
    Arm, BinaryOp, Expr, ExprKind, Granularity, LocalId, Place, Stmt, StmtKind, Type,
};

impl<'c> Slot<'c> {
    /// Compiles a block; its names go out of scope at its end.
    pub(super) fn block(&mut self, block: &'c [Stmt]) {
        self.scopes.push(Vec::new());
        for stmt in block {
            self.stmt(stmt);
        }
        let scope = self.scopes.pop().expect("the block's own scope");
        // The outermost block of a function ends with its frame, or with the thread, whose locals
        // remain.
        if !self.scopes.is_empty() {
            self.forget(&scope);
        }
    }

    fn forget(&mut self, locals: &[LocalId]) {
        let function = &self.program.functions[self.function];
        for &local in locals {
            let from = self.frame().locals[local];
            let to = from + size(self.program, &function.locals[local].ty);
            self.emit(Instr::Clear { from, to });
        }
    }

    fn declare(&mut self, local: LocalId) {
        self.scopes.last_mut().expect("a statement is in a block").push(local);
    }

    fn stmt(&mut self, stmt: &'c Stmt) {
        if self.budget.is_exhausted(self.code.instrs.len()) {
            self.too_large.get_or_insert(stmt.span);
            return;
        }
        self.span = stmt.span;
        self.end = stmt.end;
        self.regs = 0;
        self.mark(Item { span: stmt.span, outcome: None });
        if !is_straight(&stmt.kind) {
            self.emit_marks();
        }
        let start = self.here();
        if !self.atomic && self.program.granularity == Granularity::Statement && is_step(&stmt.kind)
        {
            self.rest();
        }
        match &stmt.kind {
            StmtKind::Let { local, init } => {
                if let Some(init) = init {
                    let value = self.eval(init);
                    self.set_local(*local, value, &init.ty);
                }
                self.declare(*local);
            }
            StmtKind::Assign { place, value } => self.assign(place, value),
            StmtKind::Update { place, op, value } => self.update_place(place, *op, value),
            StmtKind::Expr(e) => {
                self.eval(e);
            }
            StmtKind::If { condition, then, otherwise } => self.if_else(condition, then, otherwise),
            StmtKind::While { condition, body } => self.while_loop(start, condition, body),
            StmtKind::Loop(body) => self.rounds(start, Branch::Always, body),
            StmtKind::For { local, from, to, inclusive, body } => {
                self.for_loop(*local, (from, to), *inclusive, body);
            }
            StmtKind::Match { scrutinee, arms, otherwise } => {
                self.match_arms(scrutinee, arms, otherwise.as_deref())
            }
            StmtKind::Break => self.jump_out(|around| &mut around.breaks),
            StmtKind::Continue => self.jump_out(|around| &mut around.continues),
            StmtKind::Return(value) => {
                if let Some(e) = value {
                    let value = self.eval(e);
                    let src = self.reg(value);
                    let result = self.program.functions[self.function].result.as_ref();
                    let bounds =
                        result.expect("the checker lets only functions with results return values");
                    self.code.ranges.push(bounds.bounds(self.program));
                    let range = self.code.ranges.len() as u32 - 1;
                    self.emit(Instr::Result { src, range });
                    self.out.fails = true;
                }
                // A call ends with its frame. At its end a thread keeps only the locals of its
                // outermost block: a `return` from inner blocks leaves these blocks too.
                if self.is_thread_body() {
                    let inner: Vec<LocalId> = self.scopes[1..].concat();
                    self.forget(&inner);
                }
                self.leave();
            }
            StmtKind::Assert { condition, message } => {
                let value = self.eval(condition);
                let condition = self.reg(value);
                let message = message.as_ref().map_or(0, |text| self.message(text));
                self.emit(Instr::Assert { condition, message });
                self.out.fails = true;
            }
            StmtKind::Await { condition, assume } => {
                if self.visible() {
                    self.rest();
                }
                // One step reads everything that the condition needs.
                let atomic = std::mem::replace(&mut self.atomic, true);
                let value = self.eval(condition);
                self.atomic = atomic;
                let condition = self.reg(value);
                self.emit(Instr::Await { condition, resting: *assume });
                self.out.waits_late |= self.atomic;
            }
            StmtKind::Choose(blocks) => self.choose(blocks),
            StmtKind::Skip => {}
            StmtKind::Yield => {
                if self.visible() {
                    self.rest();
                }
            }
            StmtKind::Atomic(block) => {
                if self.atomic {
                    return self.block(block);
                }
                // A trace shows the statements inside.
                self.span = block.last().map_or(stmt.span, |last| stmt.span.to(last.span));
                self.rest();
                let point = self.out.rests.last_mut().expect("the one just made");
                point.tail = match block.last() {
                    None => "",
                    Some(last) if is_compound(&last.kind) => " { … } }",
                    Some(_) => "; }",
                };
                self.atomic = true;
                self.block(block);
                self.atomic = false;
            }
            StmtKind::Join(thread) => {
                let values = self.access(&[thread]);
                let thread = self.reg(values[0]);
                self.emit(Instr::Join { thread });
                self.out.fails = true;
                self.out.waits_late |= !self.visible();
            }
            StmtKind::Block(block) => self.block(block),
        }
        self.end = false;
    }

    fn set_local(&mut self, local: LocalId, value: Value, from: &Type) {
        let program = self.program;
        let ty = &program.functions[self.function].locals[local].ty;
        let cell = self.frame().locals[local];
        self.store(super::place::Address::Cell(cell), ty, value, from);
    }

    pub(super) fn assign(&mut self, place: &'c Place, value: &'c Expr) {
        let mut all = operands(place);
        let first = all.len();
        all.push(value);
        let values = if shared(place) { self.access(&all) } else { self.values(&all) };
        let address = self.address(place, &values[..first]);
        self.store(address, &place.ty, values[first], &value.ty);
    }

    /// `place op= value`: a read access and a write access.
    fn update_place(&mut self, place: &'c Place, op: BinaryOp, value: &'c Expr) {
        let held = self.hold(operands(place));
        let visible = shared(place) && self.visible();
        if visible {
            self.rest();
        }
        let values = self.held(&held);
        let address = self.address(place, &values);
        let mut old = self.load(address);
        let temp = (self.rests(value)).then(|| self.spill(old));
        let by = self.eval(value);
        if let Some(temp) = temp {
            old = self.unspill(temp);
        }
        let mut new = self.binary(op, old, by);
        if visible {
            let temp = self.spill(new);
            self.rest();
            new = self.unspill(temp);
        }
        let values = self.held(&held);
        let address = self.address(place, &values);
        self.release(held);
        self.store(address, &place.ty, new, &Type::Int);
    }

    /// Keeps a number across a rest point.
    pub(super) fn spill(&mut self, value: Value) -> Temp {
        let temp = self.temp(false);
        let cell = self.temp_cell(temp);
        let src = self.reg(value);
        self.emit(Instr::Store { cell, src });
        temp
    }

    pub(super) fn unspill(&mut self, temp: Temp) -> Value {
        let dst = self.fresh();
        let cell = self.temp_cell(temp);
        self.emit(Instr::Load { dst, cell });
        self.free(temp);
        Value::Reg(dst)
    }

    /// Jumps if `condition` is false; emits nothing if it is known to be true.
    fn unless(&mut self, condition: &'c Expr) -> Branch {
        match self.eval(condition) {
            Value::Const(0) => Branch::Never,
            Value::Const(_) => Branch::Always,
            Value::Reg(condition) => {
                Branch::Jump(self.emit(Instr::JumpUnless { condition, to: 0 }))
            }
        }
    }

    fn if_else(&mut self, condition: &'c Expr, then: &'c [Stmt], otherwise: &'c [Stmt]) {
        let span = self.span;
        let branch = |taken: bool| if taken { then } else { otherwise };
        match self.unless(condition) {
            known @ (Branch::Always | Branch::Never) => {
                let taken = matches!(known, Branch::Always);
                self.branch(branch(taken), Item { span, outcome: Some(taken) });
                if branch(!taken).is_empty() {
                    self.pass_over(Item { span, outcome: Some(!taken) });
                }
            }
            Branch::Jump(jump) => {
                self.branch(then, Item { span, outcome: Some(true) });
                let end = (!leaves(then)).then(|| self.emit(Instr::Jump(0)));
                self.land(jump);
                self.branch(otherwise, Item { span, outcome: Some(false) });
                end.into_iter().for_each(|end| self.land(end));
            }
        }
    }

    /// Compiles the statements of a branch. An empty branch has its own mark.
    fn branch(&mut self, block: &'c [Stmt], outcome: Item) {
        if block.is_empty() {
            self.mark(outcome);
        }
        self.block(block);
    }

    /// Every iteration goes back to `head`: to the rest point before the test, if it has one.
    fn while_loop(&mut self, head: Address, condition: &'c Expr, body: &'c [Stmt]) {
        let span = self.span;
        match self.unless(condition) {
            // No iteration: the code after the loop follows the test. Compiling it like any other
            // loop, without the exit that a constant condition does not need, would make it an
            // endless loop and hide every error after it.
            Branch::Never => {
                if body.is_empty() {
                    self.pass_over(Item { span, outcome: Some(true) });
                }
            }
            exit => {
                if body.is_empty() {
                    self.mark(Item { span, outcome: Some(true) });
                }
                self.rounds(head, exit, body);
            }
        }
    }

    /// Compiles the iterations of a loop that starts at `head`, and is left by `exit` or a `break`.
    fn rounds(&mut self, head: Address, exit: Branch, body: &'c [Stmt]) {
        let around = self.round(body);
        around.continues.into_iter().for_each(|jump| self.land(jump));
        self.out.fails |= !self.rests_soon(head, &exit);
        self.emit(Instr::Jump(head));
        if let Branch::Jump(exit) = exit {
            self.land(exit);
        }
        around.breaks.into_iter().for_each(|jump| self.land(jump));
    }

    fn for_loop(
        &mut self,
        local: LocalId,
        (from, to): (&'c Expr, &'c Expr),
        inclusive: bool,
        body: &'c [Stmt],
    ) {
        let span = self.span;
        let values = self.values(&[from, to]);
        self.set_local(local, values[0], &from.ty);
        let limit = match values[1] {
            Value::Const(limit) => Limit::Const(limit),
            value => Limit::Temp(self.spill(value)),
        };
        let first = if inclusive {
            self.regs = 0;
            let condition = self.compare(local, BinaryOp::Le, limit);
            self.emit(Instr::JumpUnless { condition, to: 0 })
        } else {
            self.emit(Instr::Jump(0))
        };
        let head = self.here();
        // A scope of its own around the body: a `return` from inside also leaves the variable.
        self.scopes.push(vec![local]);
        let around = self.round(body);
        self.scopes.pop();
        around.continues.into_iter().for_each(|jump| self.land(jump));
        self.span = span;
        if !self.atomic && self.program.granularity == Granularity::Statement {
            self.rest();
        }
        if inclusive {
            // The last value may be the greatest int, so it is compared before it is incremented.
            self.regs = 0;
            let condition = self.compare(local, BinaryOp::Lt, limit);
            let last = self.emit(Instr::JumpUnless { condition, to: 0 });
            self.increment(local);
            self.emit(Instr::Jump(head));
            self.land(first);
            self.land(last);
        } else {
            self.increment(local);
            self.land(first);
            self.regs = 0;
            let condition = self.compare(local, BinaryOp::Lt, limit);
            self.emit(Instr::JumpIf { condition, to: head });
        }
        self.out.fails = true;
        around.breaks.into_iter().for_each(|jump| self.land(jump));
        if let Limit::Temp(temp) = limit {
            self.free(temp);
        }
        self.forget(&[local]);
    }

    /// Adds one to the variable of a `for`.
    fn increment(&mut self, local: LocalId) {
        self.regs = 0;
        let cell = self.frame().locals[local];
        let at = self.load(super::place::Address::Cell(cell));
        let next = self.binary(BinaryOp::Add, at, Value::Const(1));
        self.set_local(local, next, &Type::Int);
    }

    /// Compares the variable of a `for` with its limit.
    fn compare(&mut self, local: LocalId, op: BinaryOp, limit: Limit) -> Reg {
        let cell = self.frame().locals[local];
        let at = self.load(super::place::Address::Cell(cell));
        let limit = match limit {
            Limit::Const(limit) => Value::Const(limit),
            Limit::Temp(temp) => {
                let dst = self.fresh();
                let cell = self.temp_cell(temp);
                self.emit(Instr::Load { dst, cell });
                Value::Reg(dst)
            }
        };
        let condition = self.binary(op, at, limit);
        self.reg(condition)
    }

    /// Whether every iteration of the loop at `head` passes a rest point. Otherwise the loop may
    /// never end.
    fn rests_soon(&self, head: Address, exit: &Branch) -> bool {
        let body = &self.code.instrs[head as usize..];
        let ahead = body.iter().zip(head..).find(|&(instr, at)| match instr {
            Instr::Rest(_) => true,
            Instr::JumpUnless { .. } => !matches!(exit, Branch::Jump(exit) if *exit == at),
            Instr::Jump(_)
            | Instr::JumpIf { .. }
            | Instr::JumpUnlessWithin { .. }
            | Instr::JumpTable { .. } => true,
            Instr::Return(_) | Instr::End => true,
            _ => false,
        });
        matches!(ahead, Some((Instr::Rest(_), _)))
    }

    /// The body of a loop.
    fn round(&mut self, body: &'c [Stmt]) -> Loop {
        let around = Loop {
            breaks: Vec::new(),
            continues: Vec::new(),
            scopes: self.scopes.len(),
            atomic: self.atomic,
        };
        self.loops.push(around);
        self.block(body);
        self.loops.pop().expect("the loop just pushed")
    }

    /// Leaves the blocks up to the innermost loop.
    fn jump_out(&mut self, list: impl Fn(&mut Loop) -> &mut Vec<Address>) {
        let around =
            self.loops.last().expect("the checker allows `break` and `continue` in loops only");
        debug_assert!(
            !around.atomic || self.atomic,
            "no loop is inside an atomic block that it contains"
        );
        let scopes: Vec<LocalId> = self.scopes[around.scopes..].concat();
        self.forget(&scopes);
        let jump = self.emit(Instr::Jump(0));
        list(self.loops.last_mut().expect("still there")).push(jump);
    }

    fn match_arms(&mut self, scrutinee: &'c Expr, arms: &'c [Arm], otherwise: Option<&'c [Stmt]>) {
        let value = self.eval(scrutinee);
        let value = self.reg(value);
        let mut ends = Vec::new();
        for (ranges, body) in arms {
            let mut inside = Vec::new();
            let mut next = None;
            for &range in ranges {
                if let Some(miss) = next.take() {
                    self.land(miss);
                }
                self.code.ranges.push(range);
                let range = self.code.ranges.len() as u32 - 1;
                next = Some(self.emit(Instr::JumpUnlessWithin { value, range, to: 0 }));
                inside.push(self.emit(Instr::Jump(0)));
            }
            inside.into_iter().for_each(|jump| self.land(jump));
            self.block(body);
            ends.push(self.emit(Instr::Jump(0)));
            if let Some(miss) = next {
                self.land(miss);
            }
        }
        if let Some(body) = otherwise {
            self.block(body);
        }
        ends.into_iter().for_each(|jump| self.land(jump));
    }

    fn choose(&mut self, blocks: &'c [Vec<Stmt>]) {
        if self.visible() {
            self.rest();
        }
        let (lo, hi) = (self.reg(Value::Const(0)), self.reg(Value::Const(blocks.len() as i64)));
        let dst = self.fresh();
        self.emit(Instr::Choose { dst, lo, hi });
        let table = self.code.tables.len() as u32;
        self.code.tables.push(Vec::new());
        self.emit(Instr::JumpTable { index: dst, table });
        let mut ends = Vec::new();
        for block in blocks {
            let here = self.here();
            self.code.tables[table as usize].push(here);
            self.block(block);
            ends.push(self.emit(Instr::Jump(0)));
        }
        ends.into_iter().for_each(|jump| self.land(jump));
    }
}

/// The upper bound of a `for`.
#[derive(Clone, Copy)]
enum Limit {
    Const(i64),
    Temp(Temp),
}

/// The compiled test of a condition.
enum Branch {
    /// It is known to be true.
    Always,
    /// It is known to be false.
    Never,
    /// The jump that is taken if it is false.
    Jump(Address),
}

/// Whether no code follows a block: it ends with a jump.
fn leaves(block: &[Stmt]) -> bool {
    let last = block.last().map(|stmt| &stmt.kind);
    matches!(last, Some(StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue))
}

/// Whether the code of a statement is a straight line: only errors and rest points keep a thread
/// from completing it.
fn is_straight(kind: &StmtKind) -> bool {
    match kind {
        StmtKind::Skip | StmtKind::Yield | StmtKind::Let { init: None, .. } => true,
        StmtKind::Let { init: Some(value), .. } | StmtKind::Assert { condition: value, .. } => {
            is_straight_expr(value)
        }
        StmtKind::Assign { place, value } | StmtKind::Update { place, value, .. } => {
            is_straight_place(place) && is_straight_expr(value)
        }
        _ => false,
    }
}

fn is_straight_expr(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Const(_) => true,
        ExprKind::Load(place) | ExprKind::AddressOf(place) => is_straight_place(place),
        ExprKind::Unary(_, a) => is_straight_expr(a),
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, ..) => false,
        ExprKind::Binary(_, a, b) => is_straight_expr(a) && is_straight_expr(b),
        _ => false,
    }
}

fn is_straight_place(place: &Place) -> bool {
    operands(place).into_iter().all(is_straight_expr)
}

/// Whether a statement contains blocks, so that its place is only its head.
fn is_compound(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::Loop(_)
            | StmtKind::For { .. }
            | StmtKind::Match { .. }
            | StmtKind::Choose(_)
            | StmtKind::Block(_)
    )
}

/// Whether a statement is a step of its own when steps are statements.
fn is_step(kind: &StmtKind) -> bool {
    match kind {
        StmtKind::Let { init, .. } => init.is_some(),
        StmtKind::Return(value) => value.is_some(),
        StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Loop(_)
        | StmtKind::Block(_)
        | StmtKind::Atomic(_) => false,
        StmtKind::Assign { .. }
        | StmtKind::Update { .. }
        | StmtKind::Expr(_)
        | StmtKind::If { .. }
        | StmtKind::While { .. }
        | StmtKind::For { .. }
        | StmtKind::Match { .. }
        | StmtKind::Assert { .. }
        | StmtKind::Await { .. }
        | StmtKind::Choose(_)
        | StmtKind::Skip
        | StmtKind::Yield
        | StmtKind::Join(_) => true,
    }
}
