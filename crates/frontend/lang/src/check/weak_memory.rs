//! Checks what a model with `memory weak;` cannot contain.
//!
//! Under weak memory a state does not determine what a variable contains: two threads may read
//! different values of it at the same time. So nothing can read several variables at once, neither
//! an invariant nor a condition that a thread waits for, and a step is one access.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Base, Expr, ExprKind, Function, Place, Stmt, StmtKind};
use preempt_machine::source::Span;
use preempt_machine::walk;
use preempt_system::MemoryModel;

use super::Checker;
use super::names::Items;

impl<'a> Checker<'a> {
    /// The memory model that `memory …;` declares.
    pub(super) fn memory_model(&mut self, items: &Items<'a>) -> MemoryModel {
        let Some((first, rest)) = items.memory.split_first() else { return MemoryModel::Sc };
        for second in rest {
            self.report(
                Diagnostic::new(second.span, "`memory` occurs twice")
                    .label("a second time")
                    .related(first.span, "first here")
                    .hint("a model has one memory model: remove one of the two"),
            );
        }
        // The parser knows both words, and reports any other.
        if first.text == "weak" { MemoryModel::Weak } else { MemoryModel::Sc }
    }

    /// Reports what weak memory does not allow.
    pub(super) fn check_weak_memory(&mut self, items: &Items<'a>, functions: &[Option<Function>]) {
        if let Some(steps) = items.steps.iter().find(|steps| steps.text == "statement") {
            self.not_weak(steps.span, "`steps statement`", "a step is one access: remove it");
        }
        for invariant in &items.invariants {
            let hint = "assert it in a thread, for example after it has joined the others";
            self.not_weak(invariant.condition.span, "an invariant", hint);
        }
        for function in functions.iter().flatten() {
            self.check_weak_block(&function.body);
            walk::exprs(&function.body, &mut |expr| self.check_weak_access(expr));
        }
    }

    fn not_weak(&mut self, span: Span, what: &str, hint: &str) {
        self.report(
            Diagnostic::new(span, format!("{what} has no meaning under weak memory"))
                .label("not with `memory weak;`")
                .hint(hint.to_owned()),
        );
    }

    fn check_weak_block(&mut self, block: &[Stmt]) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Atomic(_) => self.not_weak(
                    stmt.span,
                    "an `atomic` block",
                    "use one access such as `fetch_add` or `cas`, or a mutex",
                ),
                StmtKind::Await { condition, .. } if reads_shared(condition) => self.not_weak(
                    condition.span,
                    "a wait for shared variables",
                    "loop until a load returns the value: `while load(x, acquire) == 0 { yield; }`",
                ),
                StmtKind::If { then, otherwise, .. } => {
                    self.check_weak_block(then);
                    self.check_weak_block(otherwise);
                }
                StmtKind::Match { arms, otherwise, .. } => {
                    arms.iter().for_each(|(_, block)| self.check_weak_block(block));
                    otherwise.iter().for_each(|block| self.check_weak_block(block));
                }
                StmtKind::Choose(blocks) => {
                    blocks.iter().for_each(|block| self.check_weak_block(block));
                }
                StmtKind::While { body, .. }
                | StmtKind::Loop(body)
                | StmtKind::For { body, .. }
                | StmtKind::Block(body) => self.check_weak_block(body),
                _ => {}
            }
        }
    }

    /// Reports an indivisible update of a variable that is not atomic: plain accesses are not
    /// indivisible.
    fn check_weak_access(&mut self, expr: &Expr) {
        let (ExprKind::CompareAndSwap { place, .. }
        | ExprKind::Swap { place, .. }
        | ExprKind::Fetch { place, .. }
        | ExprKind::AtomicLoad { place, .. }
        | ExprKind::AtomicStore { place, .. }) = &expr.kind
        else {
            return;
        };
        if let Base::Global(id) = place.base
            && !self.shared[id].atomic
        {
            let declared = self.shared[id].span;
            let text = self.excerpt(place.span);
            self.report(
                Diagnostic::new(expr.span, format!("`{text}` is not atomic"))
                    .label("under weak memory this needs an atomic variable")
                    .related(declared, "declared here")
                    .hint("declare it with `atomic var`"),
            );
        }
    }
}

/// Whether a condition depends on anything that other threads can change.
fn reads_shared(condition: &Expr) -> bool {
    let is_shared = |place: &Place| !matches!(place.base, Base::Local(_));
    let mut found = false;
    walk::expr(condition, &mut |expr| {
        found |= match &expr.kind {
            ExprKind::Load(place) => is_shared(place),
            ExprKind::Method { .. } => true,
            _ => false,
        };
    });
    found
}
