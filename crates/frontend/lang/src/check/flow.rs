//! Whether the end of a block is reachable.
//!
//! This works on the syntax tree: a statement with an error has no translation, but a `return` in
//! it still counts.

use crate::syntax::ast::{Block, ExprKind, Stmt, StmtKind};

/// Whether the end of a block may be reached, judged by the form of its statements.
pub(super) fn falls_through(block: &Block) -> bool {
    block.stmts.iter().all(passes)
}

/// Whether the end of a statement may be reached.
fn passes(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => false,
        StmtKind::If { then, otherwise, .. } => {
            falls_through(then) || otherwise.as_ref().is_none_or(falls_through)
        }
        StmtKind::While { condition, body } => {
            condition.kind != ExprKind::Bool(true) || breaks(body)
        }
        StmtKind::Loop { body } => breaks(body),
        // The arms cover all values; otherwise an error was reported.
        StmtKind::Match { arms, .. } => {
            arms.is_empty() || arms.iter().any(|arm| falls_through(&arm.body))
        }
        StmtKind::Choose(blocks) => blocks.is_empty() || blocks.iter().any(falls_through),
        StmtKind::Atomic(block) | StmtKind::Block(block) => falls_through(block),
        StmtKind::End(stmt) => passes(stmt),
        _ => true,
    }
}

/// Whether the body of a loop contains a `break` of that loop.
fn breaks(body: &Block) -> bool {
    body.stmts.iter().any(breaks_stmt)
}

fn breaks_stmt(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break => true,
        StmtKind::If { then, otherwise, .. } => {
            breaks(then) || otherwise.as_ref().is_some_and(breaks)
        }
        StmtKind::Match { arms, .. } => arms.iter().any(|arm| breaks(&arm.body)),
        StmtKind::Choose(blocks) => blocks.iter().any(breaks),
        StmtKind::Atomic(block) | StmtKind::Block(block) => breaks(block),
        StmtKind::End(stmt) => breaks_stmt(stmt),
        _ => false,
    }
}
