//! Checks statements.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Block, Expr, Stmt, StmtKind, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::initial::widened;
use super::scopes::{Outcome, Role};
use super::types::aggregate;
use crate::syntax::ast;

impl<'a> Checker<'a> {
    /// Translates a block, in its own scope. Statements with errors are left out.
    pub(super) fn block(&mut self, block: &'a ast::Block) -> Block {
        self.frame.open();
        let mut stmts: Block = block.stmts.iter().filter_map(|stmt| self.stmt(stmt)).collect();
        // As in the parser: most blocks have fewer statements than a new vector has room for.
        stmts.shrink_to_fit();
        self.frame.close();
        stmts
    }

    fn loop_body(&mut self, block: &'a ast::Block) -> Block {
        self.frame.loops += 1;
        let body = self.block(block);
        self.frame.loops -= 1;
        body
    }

    fn stmt(&mut self, stmt: &'a ast::Stmt) -> Option<Stmt> {
        let span = stmt.span;
        let kind = match &stmt.kind {
            ast::StmtKind::Var { name, ty, init } => {
                self.declaration(name, ty.as_ref(), init.as_ref())
            }
            ast::StmtKind::Assign { target, op, value } => self.assignment(target, *op, value),
            // The parser has refused expressions without an effect.
            ast::StmtKind::Expr(expr) => self.expr(expr, None).map(StmtKind::Expr),
            ast::StmtKind::If { condition, then, otherwise } => {
                let condition = self.condition(condition);
                let then = self.block(then);
                let otherwise = otherwise.as_ref().map_or_else(Vec::new, |block| self.block(block));
                Some(StmtKind::If { condition: condition?, then, otherwise })
            }
            ast::StmtKind::While { condition, body } => {
                let condition = self.condition(condition);
                let body = self.loop_body(body);
                Some(StmtKind::While { condition: condition?, body })
            }
            ast::StmtKind::Loop { body } => Some(StmtKind::Loop(self.loop_body(body))),
            ast::StmtKind::For { name, range, body } => {
                let (from, to) = self.range(range);
                self.frame.open();
                let local = self.local(name, Some(Type::Int), Role::Loop);
                let body = self.loop_body(body);
                self.frame.close();
                Some(StmtKind::For {
                    local,
                    from: from?,
                    to: to?,
                    inclusive: range.inclusive,
                    body,
                })
            }
            ast::StmtKind::Match { scrutinee, arms } => self.matching(scrutinee, arms, span),
            ast::StmtKind::Break => self.inside_loop("break", span).map(|()| StmtKind::Break),
            ast::StmtKind::Continue => {
                self.inside_loop("continue", span).map(|()| StmtKind::Continue)
            }
            ast::StmtKind::Return(value) => self.return_stmt(value.as_ref(), span),
            ast::StmtKind::Assert { condition, message } => {
                let condition = self.condition(condition)?;
                Some(StmtKind::Assert { condition, message: message.clone() })
            }
            ast::StmtKind::Await(condition) => {
                let condition = self.pure_condition(condition, "an `await`")?;
                Some(StmtKind::Await { condition, assume: false })
            }
            ast::StmtKind::Assume(condition) => {
                let condition = self.pure_condition(condition, "an `assume`")?;
                Some(StmtKind::Await { condition, assume: true })
            }
            ast::StmtKind::Choose(blocks) => {
                Some(StmtKind::Choose(blocks.iter().map(|block| self.block(block)).collect()))
            }
            ast::StmtKind::Skip => Some(StmtKind::Skip),
            ast::StmtKind::Yield => Some(StmtKind::Yield),
            ast::StmtKind::Atomic(block) => Some(StmtKind::Atomic(self.block(block))),
            ast::StmtKind::Join(thread) => {
                Some(StmtKind::Join(self.typed(thread, &Type::Thread, "`join`")?))
            }
            ast::StmtKind::End(inner) => {
                use ast::StmtKind::{
                    Block, Break, Choose, Continue, For, If, Loop, Match, Return, Skip, While,
                };
                let idle = matches!(inner.kind, Skip | Break | Continue | Return(_));
                let compound = matches!(
                    inner.kind,
                    Loop { .. }
                        | Block(_)
                        | If { .. }
                        | While { .. }
                        | For { .. }
                        | Match { .. }
                        | Choose(_)
                );
                if idle || compound {
                    self.report(
                        Diagnostic::new(inner.span, "a thread does not wait at this statement")
                            .label("no thread waits here")
                            .hint(
                                "put `end:` before the statement that waits: `end: \
                                   request.wait();`",
                            ),
                    );
                }
                return self.stmt(inner).map(|stmt| Stmt { end: true, ..stmt });
            }
            ast::StmtKind::Block(block) => Some(StmtKind::Block(self.block(block))),
        };
        Some(Stmt { kind: kind?, span, end: false })
    }

    /// `var t: int = e;` The name is declared even if there is an error, and only after its initial
    /// value was checked.
    fn declaration(
        &mut self,
        name: &'a ast::Name,
        ty: Option<&'a ast::TypeExpr>,
        init: Option<&'a ast::Expr>,
    ) -> Option<StmtKind> {
        let declared = match ty {
            Some(written) => {
                self.resolve(written).filter(|ty| self.local_type(name, ty, written.span))
            }
            None => None,
        };
        let value = match (&declared, init) {
            (_, None) => None,
            (Some(ty), Some(init)) if !ty.is_scalar() => self.aggregate_init(name, init, ty),
            (Some(ty), Some(init)) => self.typed(init, ty, &format!("`{}`", name.text)),
            (None, Some(init)) if ty.is_none() => self.value(init, None),
            (None, Some(init)) => self.look_into(init),
        };
        let known = match (ty, init) {
            (Some(_), _) => declared,
            (None, Some(_)) => value.as_ref().map(|value| widened(value.ty.clone())),
            (None, None) => self.untyped(name),
        };
        let known_is_some = known.is_some();
        let local = self.local(name, known, Role::Variable);
        if init.is_some() != value.is_some() || !known_is_some {
            return None;
        }
        Some(StmtKind::Let { local, init: value })
    }

    fn local_type(&mut self, name: &ast::Name, ty: &Type, span: Span) -> bool {
        if !self.has_objects(ty) {
            return true;
        }
        let found = self.name_of(ty);
        self.report(
            Diagnostic::new(
                span,
                format!("local variable `{}` cannot be of type `{found}`", name.text),
            )
            .label("synchronisation objects are shared")
            .hint("declare it outside of the function, or use a pointer to one"),
        );
        false
    }

    fn aggregate_init(&mut self, name: &ast::Name, init: &ast::Expr, ty: &Type) -> Option<Expr> {
        self.refuse(
            Diagnostic::new(
                init.span,
                format!(
                    "local variable `{}` is {} and cannot have an initial value",
                    name.text,
                    aggregate(ty)
                ),
            )
            .label("no initial value is possible here")
            .hint("leave it out, and assign to its parts"),
        )
    }

    fn assignment(
        &mut self,
        target: &'a ast::Expr,
        op: Option<ast::BinaryOp>,
        value: &'a ast::Expr,
    ) -> Option<StmtKind> {
        let Some(place) = self.target(target) else { return self.look_into(value) };
        let Some(op) = op else {
            let role = format!("`{}`", self.excerpt(target.span));
            let value = self.typed(value, &place.ty, &role)?;
            return Some(StmtKind::Assign { place, value });
        };
        let role = format!("the operand of `{}=`", op.text());
        let found = place.ty.clone();
        let matches = self.assignable(&found, &Type::Int, target, &role);
        let value = self.int(value, &role);
        matches?;
        Some(StmtKind::Update { place, op, value: value? })
    }

    fn inside_loop(&mut self, word: &str, span: Span) -> Option<()> {
        if self.frame.loops > 0 {
            return Some(());
        }
        self.refuse(
            Diagnostic::new(span, format!("`{word}` outside of a loop"))
                .label("no `while`, `loop` or `for` around this")
                .hint("`return` leaves a function, or ends a thread"),
        )
    }

    fn return_stmt(&mut self, value: Option<&'a ast::Expr>, span: Span) -> Option<StmtKind> {
        match (self.frame.outcome.clone(), value) {
            (Outcome::Nothing, None) => Some(StmtKind::Return(None)),
            (Outcome::Value(Some(ty)), Some(value)) => Some(StmtKind::Return(Some(self.typed(
                value,
                &ty,
                "the result of this function",
            )?))),
            (Outcome::Value(None), Some(value)) => self.look_into(value),
            (Outcome::Value(_), None) => self.refuse(
                Diagnostic::new(span, "`return` without a value in a function with a result")
                    .label("a value is needed")
                    .hint("write `return e;`"),
            ),
            (Outcome::Nothing, Some(value)) => self.refuse(
                Diagnostic::new(value.span, "`return` with a value where there is no result")
                    .label("this value is never used")
                    .hint(
                        "threads and `init` have no result; a function has one with `fn f(…) -> \
                           int`",
                    ),
            ),
        }
    }
}
