//! Prints statements.

use super::exprs::{self, expr, operand};
use super::{Printer, bound, variable};
use crate::syntax::ast::{Arm, Block, ExprKind, Pattern, Stmt, StmtKind};
use crate::syntax::lexer::quote;

impl Printer {
    /// The statement after `labels` on its line.
    pub(super) fn stmt(&mut self, stmt: &Stmt, labels: &str) {
        let line = match &stmt.kind {
            StmtKind::Var { name, ty, init } => {
                variable(name, ty.as_ref(), init.as_ref().map(expr))
            }
            StmtKind::Assign { target, op, value } => {
                let op = op.map_or("", |op| op.text());
                format!("{} {op}= {}", operand(target), expr(value))
            }
            StmtKind::Expr(effect) => operand(effect),
            StmtKind::Break => "break".to_owned(),
            StmtKind::Continue => "continue".to_owned(),
            StmtKind::Return(None) => "return".to_owned(),
            StmtKind::Return(Some(value)) => format!("return {}", expr(value)),
            StmtKind::Assert { condition, message } => {
                let message = message
                    .as_ref()
                    .map(|message| format!(", {}", quote(message)))
                    .unwrap_or_default();
                format!("assert {}{message}", expr(condition))
            }
            StmtKind::Await(condition) => format!("await {}", expr(condition)),
            StmtKind::Assume(condition) => format!("assume {}", expr(condition)),
            StmtKind::Skip => "skip".to_owned(),
            StmtKind::Yield => "yield".to_owned(),
            StmtKind::Join(thread) => format!("join {}", expr(thread)),
            StmtKind::End(inner) => return self.stmt(inner, &format!("{labels}end: ")),
            _ => return self.compound(stmt, labels),
        };
        self.line(&format!("{labels}{line};"));
    }

    /// A statement with blocks.
    fn compound(&mut self, stmt: &Stmt, labels: &str) {
        match &stmt.kind {
            StmtKind::If { .. } => self.if_stmt(stmt, labels),
            StmtKind::While { condition, body } => {
                self.block(&format!("{labels}while {} ", operand(condition)), body)
            }
            StmtKind::Loop { body } => self.block(&format!("{labels}loop "), body),
            StmtKind::For { name, range, body } => {
                self.block(&format!("{labels}for {} ", bound(name, range)), body)
            }
            StmtKind::Match { scrutinee, arms } => {
                self.line(&format!("{labels}match {} {{", operand(scrutinee)));
                self.depth += 1;
                for arm in arms {
                    self.block(&format!("{} => ", patterns(arm)), &arm.body);
                }
                self.depth -= 1;
                self.line("}");
            }
            StmtKind::Choose(blocks) => {
                self.line(&format!("{labels}choose {{"));
                for (at, block) in blocks.iter().enumerate() {
                    if at > 0 {
                        self.line("} or {");
                    }
                    self.body(block);
                }
                self.line("}");
            }
            StmtKind::Atomic(body) => self.block(&format!("{labels}atomic "), body),
            StmtKind::Block(body) => self.block(labels, body),
            _ => unreachable!("statements without blocks are printed by `stmt`"),
        }
    }

    /// `if e { … } else if e { … } else { … }`
    fn if_stmt(&mut self, stmt: &Stmt, labels: &str) {
        let mut head = labels.to_owned();
        let mut next = Some(stmt);
        while let Some(Stmt { kind: StmtKind::If { condition, then, otherwise }, .. }) = next.take()
        {
            self.line(&format!("{head}if {} {{", operand(condition)));
            self.body(then);
            match otherwise {
                Some(Block { stmts, .. })
                    if matches!(&**stmts, [Stmt { kind: StmtKind::If { .. }, .. }]) =>
                {
                    head = "} else ".to_owned();
                    next = stmts.first();
                }
                Some(block) => {
                    self.line("} else {");
                    self.body(block);
                }
                None => {}
            }
        }
        self.line("}");
    }
}

fn patterns(arm: &Arm) -> String {
    match &*arm.patterns {
        [] => "_".to_owned(),
        // Alone and without parentheses it would be the catch-all pattern.
        [Pattern::Value(value)] if matches!(&value.kind, ExprKind::Name(name) if name == "_") => {
            "(_)".to_owned()
        }
        patterns => patterns.iter().map(pattern).collect::<Vec<_>>().join(" | "),
    }
}

fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Value(value) => exprs::pattern_value(value),
        Pattern::Range(range) => {
            let (lo, hi) = (exprs::pattern_value(&range.lo), exprs::pattern_value(&range.hi));
            format!("{lo}{}{hi}", exprs::dots(range))
        }
    }
}
