//! Visitors of the expressions of a checked program.

use crate::program::{Base, Expr, ExprKind, Place, Projection, Stmt, StmtKind};

/// Calls `visit` for every expression in `block`, outer expressions first.
pub fn exprs<'p>(block: &'p [Stmt], visit: &mut impl FnMut(&'p Expr)) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::Let { init, .. } => init.iter().for_each(|e| expr(e, visit)),
            StmtKind::Assign { place: target, value }
            | StmtKind::Update { place: target, value, .. } => {
                place(target, visit);
                expr(value, visit);
            }
            StmtKind::Expr(e) | StmtKind::Join(e) => expr(e, visit),
            StmtKind::If { condition, then, otherwise } => {
                expr(condition, visit);
                exprs(then, visit);
                exprs(otherwise, visit);
            }
            StmtKind::While { condition, body } => {
                expr(condition, visit);
                exprs(body, visit);
            }
            StmtKind::For { from, to, body, .. } => {
                expr(from, visit);
                expr(to, visit);
                exprs(body, visit);
            }
            StmtKind::Match { scrutinee, arms, otherwise } => {
                expr(scrutinee, visit);
                arms.iter().for_each(|(_, body)| exprs(body, visit));
                otherwise.iter().for_each(|body| exprs(body, visit));
            }
            StmtKind::Return(value) => value.iter().for_each(|e| expr(e, visit)),
            StmtKind::Assert { condition, .. } | StmtKind::Await { condition, .. } => {
                expr(condition, visit)
            }
            StmtKind::Choose(blocks) => blocks.iter().for_each(|b| exprs(b, visit)),
            StmtKind::Loop(body) | StmtKind::Atomic(body) | StmtKind::Block(body) => {
                exprs(body, visit)
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Skip | StmtKind::Yield => {}
        }
    }
}

/// Calls `visit` for `e` and every expression in it, outer expressions first.
pub fn expr<'p>(e: &'p Expr, visit: &mut impl FnMut(&'p Expr)) {
    visit(e);
    parts(e, &mut |part| match part {
        Part::Expr(e) => expr(e, visit),
        Part::Place(p) => place(p, visit),
    });
}

/// Calls `visit` for every expression in the place.
pub fn place<'p>(p: &'p Place, visit: &mut impl FnMut(&'p Expr)) {
    if let Base::Deref(pointer) = &p.base {
        expr(pointer, visit);
    }
    for projection in &p.path {
        if let Projection::Index(index, _) = projection {
            expr(index, visit);
        }
    }
}

/// A part of an expression.
pub enum Part<'p> {
    /// An operand.
    Expr(&'p Expr),
    /// A place that is read, written or pointed to.
    Place(&'p Place),
}

/// Calls `visit` for the immediate parts of `e`, in the order of evaluation.
pub fn parts<'p>(e: &'p Expr, visit: &mut impl FnMut(Part<'p>)) {
    match &e.kind {
        ExprKind::Const(_) | ExprKind::Fence(_) => {}
        ExprKind::Load(place) | ExprKind::AddressOf(place) => visit(Part::Place(place)),
        ExprKind::Unary(_, a) => visit(Part::Expr(a)),
        ExprKind::Binary(_, a, b) => {
            visit(Part::Expr(a));
            visit(Part::Expr(b));
        }
        ExprKind::If(c, a, b) => [c, a, b].into_iter().for_each(|e| visit(Part::Expr(e))),
        ExprKind::Call(_, args) | ExprKind::Spawn(_, args) => {
            args.iter().for_each(|e| visit(Part::Expr(e)))
        }
        ExprKind::Method { object, args, .. } => {
            visit(Part::Place(object));
            args.iter().for_each(|e| visit(Part::Expr(e)));
        }
        ExprKind::CondWait { condvar, mutex } => {
            visit(Part::Place(condvar));
            visit(Part::Place(mutex));
        }
        ExprKind::CompareAndSwap { place, old, new, .. } => {
            visit(Part::Place(place));
            visit(Part::Expr(old));
            visit(Part::Expr(new));
        }
        ExprKind::AtomicLoad { place, .. } => visit(Part::Place(place)),
        ExprKind::AtomicStore { place, value, .. }
        | ExprKind::Swap { place, value, .. }
        | ExprKind::Fetch { place, value, .. } => {
            visit(Part::Place(place));
            visit(Part::Expr(value));
        }
        ExprKind::New(_, fields) => fields.iter().flatten().for_each(|e| visit(Part::Expr(e))),
        ExprKind::Choose { lo, hi, .. } => {
            visit(Part::Expr(lo));
            visit(Part::Expr(hi));
        }
        ExprKind::Quantifier { body, .. } => visit(Part::Expr(body)),
    }
}
