//! Executes statements.

use preempt_lang::syntax::ast::{BinaryOp, Pattern, Stmt, StmtKind};

use crate::model::operate;
use crate::run::{Failure, Kind, Location, Run, Stop};
use crate::types::Type;
use crate::value::{At, Data, Life, Local, Operand, Task, Value};

impl<'p> Run<'_, 'p> {
    /// Begins a statement.
    pub fn exec(&mut self, stmt: &'p Stmt) -> Result<(), Stop> {
        self.model.begun.borrow_mut().insert(self.model.line(stmt.span));
        let at = At(stmt);
        let operands = match &stmt.kind {
            StmtKind::Assign { target, op, value } if self.is_shared_place(target) => {
                let mut operands = self.operands_of(target);
                operands.extend(op.is_none().then_some(value));
                operands
            }
            StmtKind::Join(thread) => vec![thread],
            _ => Vec::new(),
        };
        if self.fails_at_access(&operands) {
            return Ok(());
        }
        let todo = &mut self.me.todo;
        match &stmt.kind {
            StmtKind::Var { init: Some(e), .. } => {
                todo.extend([Task::Declare(at), Task::Eval(At(e))])
            }
            StmtKind::Var { name, ty, init: None } => {
                let ty = ty.as_ref().expect("a variable has a type or a value");
                let ty = self.model.type_of_expr(ty);
                let data = self.model.zero(ty);
                self.bind(Local { name: &name.text, ty, data });
            }
            StmtKind::Assign { target, op: None, value } => {
                todo.extend([
                    Task::Write(At(target)),
                    Task::Eval(At(value)),
                    Task::Place(At(target)),
                ]);
            }
            StmtKind::Assign { target, op: Some(_), value } => todo.extend([
                Task::Write(At(target)),
                Task::Combine(at),
                Task::Eval(At(value)),
                Task::ReadKept(At(target)),
                Task::Place(At(target)),
            ]),
            StmtKind::Expr(e) => {
                let before = self.result_of(e);
                if before {
                    self.me.todo.push(Task::Drop);
                }
                self.me.todo.push(Task::Eval(At(e)));
            }
            StmtKind::If { condition, .. } | StmtKind::Match { scrutinee: condition, .. } => {
                todo.extend([Task::Branch(at), Task::Eval(At(condition))]);
            }
            StmtKind::While { .. } | StmtKind::Loop { .. } => todo.push(Task::Again(at)),
            StmtKind::For { range, .. } => {
                todo.extend([
                    Task::ForBegin(at),
                    Task::Eval(At(&range.hi)),
                    Task::Eval(At(&range.lo)),
                ]);
            }
            StmtKind::Break => {
                self.unwind_to_loop();
                self.me.todo.pop();
            }
            StmtKind::Continue => self.unwind_to_loop(),
            StmtKind::Return(None) => self.unwind_to_call(),
            StmtKind::Return(Some(e)) => todo.extend([Task::Return(at), Task::Eval(At(e))]),
            StmtKind::Assert { condition, .. } => {
                todo.extend([Task::Assert(at), Task::Eval(At(condition))]);
            }
            StmtKind::Await(e) | StmtKind::Assume(e) => {
                if !self.at_once(e)?.bool() {
                    let resting = self.me.marks > 0 || matches!(stmt.kind, StmtKind::Assume(_));
                    return Err(Stop::Blocked { resting });
                }
            }
            StmtKind::Choose(blocks) => {
                let taken = self.choose(blocks.len());
                self.block(&blocks[taken]);
            }
            StmtKind::Skip | StmtKind::Yield => {}
            StmtKind::Atomic(block) => {
                self.me.atomic += 1;
                self.me.todo.push(Task::EndAtomic);
                self.block(block);
            }
            StmtKind::Join(e) => todo.extend([Task::Join(at), Task::Eval(At(e))]),
            StmtKind::End(inner) => {
                self.me.marks += 1;
                todo.extend([Task::PopMark, Task::Exec(At(inner))]);
            }
            StmtKind::Block(block) => self.block(block),
        }
        Ok(())
    }

    /// Executes the later parts of statements.
    pub fn go_on(&mut self, task: Task<'p>) -> Result<(), Stop> {
        match task {
            Task::Declare(stmt) => self.declare(stmt.0),
            Task::Branch(stmt) => {
                let value = self.value();
                self.branch(stmt.0, &value);
                Ok(())
            }
            Task::Again(stmt) => {
                match &stmt.0.kind {
                    StmtKind::Loop { body } => {
                        self.me.todo.push(task);
                        self.block(body);
                    }
                    StmtKind::While { condition, .. } => {
                        self.me.todo.extend([Task::Branch(stmt), Task::Eval(At(condition))]);
                    }
                    other => panic!("{other:?} is not a loop"),
                }
                Ok(())
            }
            Task::ForBegin(stmt) => {
                let StmtKind::For { name, range, body } = &stmt.0.kind else {
                    panic!("only a for has bounds")
                };
                let (hi, lo) = (self.value().int(), self.value().int());
                let last = if range.inclusive { hi } else { hi - 1 };
                if lo <= last {
                    let (ty, data) = (self.model.int(), Data::Scalar(Value::Int(lo)));
                    self.frame().push(vec![Local { name: &name.text, ty, data }]);
                    self.me.todo.extend([Task::PopScope, Task::ForNext(stmt, last)]);
                    self.block(body);
                }
                Ok(())
            }
            Task::ForNext(stmt, last) => {
                let StmtKind::For { body, .. } = &stmt.0.kind else {
                    panic!("only a for advances")
                };
                let local = &mut self.frame().last_mut().expect("the scope of the variable")[0];
                let Data::Scalar(Value::Int(value)) = &mut local.data else {
                    panic!("it is a number")
                };
                if *value < last {
                    *value += 1;
                    self.me.todo.push(task);
                    self.block(body);
                }
                Ok(())
            }
            Task::Return(stmt) => self.return_value(stmt.0),
            Task::Assert(stmt) => {
                if self.value().bool() {
                    return Ok(());
                }
                let StmtKind::Assert { condition, message } = &stmt.0.kind else {
                    panic!("only an assert asserts")
                };
                let words = message
                    .clone()
                    .unwrap_or_else(|| self.model.source.slice(condition.span).to_owned());
                Err(Stop::Failed(Failure {
                    kind: Kind::Assertion,
                    line: self.model.line(stmt.0.span),
                    message: format!("assertion failed: {words}"),
                }))
            }
            Task::Combine(stmt) => {
                let StmtKind::Assign { op: Some(op), .. } = &stmt.0.kind else {
                    panic!("only an assignment combines")
                };
                let (right, left) = (self.value(), self.value());
                let result = combine(*op, &left, &right).map_err(|m| self.fail(stmt.0.span, m))?;
                self.push(result);
                Ok(())
            }
            Task::Join(stmt) => match self.value() {
                Value::Thread(number) => {
                    self.touch(Location::Thread(number), false, true);
                    match self.state.threads[number].life {
                        Life::Ended => Ok(()),
                        _ => Err(Stop::Blocked { resting: self.me.marks > 0 }),
                    }
                }
                _ => Err(self.fail(stmt.0.span, "there is no thread to join: it is null")),
            },
            other => panic!("{other:?} is not part of a statement"),
        }
    }

    fn declare(&mut self, stmt: &'p Stmt) -> Result<(), Stop> {
        let StmtKind::Var { name, ty, init: Some(e) } = &stmt.kind else {
            panic!("a declaration with a value")
        };
        let ty = match ty {
            Some(ty) => self.model.type_of_expr(ty),
            None => self.widened(self.static_type(e)),
        };
        let value = self.value();
        self.check_range(ty, &value, stmt.span)?;
        self.bind(Local { name: &name.text, ty, data: Data::Scalar(value) });
        Ok(())
    }

    fn branch(&mut self, stmt: &'p Stmt, value: &Value) {
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => match (value.bool(), otherwise) {
                (true, _) => self.block(then),
                (false, Some(block)) => self.block(block),
                (false, None) => {}
            },
            StmtKind::While { body, .. } => {
                if value.bool() {
                    self.me.todo.push(Task::Again(At(stmt)));
                    self.block(body);
                }
            }
            StmtKind::Match { arms, .. } => {
                let fits = |pattern: &'p Pattern| match pattern {
                    Pattern::Value(e) => self.model.constant(e) == *value,
                    Pattern::Range(range) => {
                        let (lo, hi) = self.model.constant_range(range);
                        (lo..=hi).contains(&value.int())
                    }
                };
                let arm = arms
                    .iter()
                    .find(|arm| arm.patterns.is_empty() || arm.patterns.iter().any(fits))
                    .expect("every value is covered");
                self.block(&arm.body);
            }
            other => panic!("{other:?} has no branches"),
        }
    }

    fn return_value(&mut self, stmt: &'p Stmt) -> Result<(), Stop> {
        let value = self.value();
        self.unwind_to_call();
        match self.me.todo.last() {
            // A call needs its result; a spawned thread drops it.
            Some(Task::Leave(call)) => {
                if let Some(ty) = self.called(call.0).result {
                    self.check_result(ty, &value, stmt.span)?;
                }
            }
            _ => {
                if let Some(ty) = self.me.result {
                    self.check_result(ty, &value, stmt.span)?;
                }
                return Ok(());
            }
        }
        self.push(value);
        Ok(())
    }

    /// Removes all tasks up to the innermost loop, whose next iteration is then the next task.
    fn unwind_to_loop(&mut self) {
        while !matches!(self.me.todo.last(), Some(Task::Again(_) | Task::ForNext(..)) | None) {
            self.leave_one();
        }
    }

    /// Removes all tasks up to the end of the innermost call.
    fn unwind_to_call(&mut self) {
        while !matches!(self.me.todo.last(), Some(Task::Leave(_)) | None) {
            self.leave_one();
        }
    }

    fn leave_one(&mut self) {
        match self.me.todo.pop() {
            Some(Task::PopScope) => {
                self.frame().pop();
            }
            Some(Task::EndAtomic) => self.me.atomic -= 1,
            Some(Task::PopMark) => self.me.marks -= 1,
            _ => {}
        }
    }

    /// Whether an expression statement leaves a value on the stack.
    fn result_of(&self, e: &preempt_lang::syntax::ast::Expr) -> bool {
        use preempt_lang::syntax::ast::ExprKind;
        match &e.kind {
            ExprKind::Call(name, _) => {
                self.model.functions.get(name.text.as_str()).is_none_or(|f| f.result.is_some())
            }
            ExprKind::Method(_, name, _) => crate::objects::has_result(&name.text),
            _ => true,
        }
    }

    /// The type of a variable declared without a type, with a value of type `ty`: `int` for every
    /// range.
    fn widened(&self, ty: usize) -> usize {
        match self.model.ty(ty) {
            Type::Int(..) => self.model.int(),
            _ => ty,
        }
    }

    /// The operand on top of the stack.
    pub fn top(&self) -> &Operand {
        self.me.operands.last().expect("the operand was pushed")
    }
}

/// The operator of a compound assignment.
fn combine(op: BinaryOp, left: &Value, right: &Value) -> Result<Value, &'static str> {
    operate(op, left, right)
}
