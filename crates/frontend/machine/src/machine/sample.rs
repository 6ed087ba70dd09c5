//! Programs without source, for tests of the inside a machine.

use preempt_system::MemoryModel;

use super::Machine;
use crate::program::{
    Base, BinaryOp, Block, Expr, ExprKind, Function, Global, Granularity, Local, Place, Program,
    Projection, Stmt, StmtKind, Thread, Type, UnaryOp,
};
use crate::source::{Source, Span};

const NOWHERE: Span = Span { start: 0, end: 0 };

/// A program with these variables, given by their types and initial values, and threads.
pub(super) fn program(globals: Vec<(Type, i64)>, threads: Vec<Block>) -> Program {
    let global = |(index, (ty, init)): (usize, (Type, i64))| {
        let init = if ty.is_scalar() { vec![init] } else { Vec::new() };
        Global { name: format!("g{index}"), ty, atomic: true, init, span: NOWHERE }
    };
    let function = |body: Block| Function {
        name: "t".into(),
        params: 0,
        locals: Vec::new(),
        result: None,
        body,
        span: NOWHERE,
    };
    Program {
        source: Source::new("sample", ""),
        granularity: Granularity::Access,
        memory: MemoryModel::Sc,
        enums: Vec::new(),
        records: Vec::new(),
        threads: (0..threads.len())
            .map(|function| Thread { function, params: Vec::new() })
            .collect(),
        globals: globals.into_iter().enumerate().map(global).collect(),
        functions: threads.into_iter().map(function).collect(),
        init: None,
        invariants: Vec::new(),
    }
}

pub(super) fn machine(program: Program) -> Machine {
    Machine::new(program).expect("the states of a sample are small")
}

/// `lo..=hi`
pub(super) fn range(lo: i64, hi: i64) -> Type {
    Type::Range { lo, hi }
}

/// Adds a local variable to the only thread; it is the first one.
pub(super) fn with_local(mut program: Program, ty: Type) -> Program {
    program.functions[0].locals = vec![Local { name: "l".into(), ty }];
    program
}

/// A shared variable.
pub(super) fn var(global: usize, ty: Type) -> Place {
    Place { base: Base::Global(global), path: Vec::new(), ty, span: NOWHERE }
}

/// The local variable.
pub(super) fn local(ty: Type) -> Place {
    Place { base: Base::Local(0), path: Vec::new(), ty, span: NOWHERE }
}

/// An element of a shared array of `len` bools.
pub(super) fn element(global: usize, index: i64, len: usize) -> Place {
    Place { path: vec![Projection::Index(int(index), len)], ..var(global, Type::Bool) }
}

pub(super) fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr { kind, ty, span: NOWHERE }
}

pub(super) fn int(value: i64) -> Expr {
    expr(ExprKind::Const(value), Type::Int)
}

pub(super) fn bool(value: bool) -> Expr {
    expr(ExprKind::Const(value.into()), Type::Bool)
}

pub(super) fn load(place: Place) -> Expr {
    let ty = place.ty.clone();
    expr(ExprKind::Load(place), ty)
}

pub(super) fn not(a: Expr) -> Expr {
    expr(ExprKind::Unary(UnaryOp::Not, a.into()), Type::Bool)
}

/// An operation on two numbers, or on two bools.
pub(super) fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    use BinaryOp::*;
    let ty =
        if matches!(op, Eq | Ne | Lt | Le | Gt | Ge | And | Or) { Type::Bool } else { Type::Int };
    expr(ExprKind::Binary(op, a.into(), b.into()), ty)
}

pub(super) fn all(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    conditions
        .into_iter()
        .reduce(|a, b| binary(BinaryOp::And, a, b))
        .expect("a sample has conditions")
}

pub(super) fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: NOWHERE, end: false }
}

pub(super) fn assign(place: Place, value: Expr) -> Stmt {
    stmt(StmtKind::Assign { place, value })
}

pub(super) fn wait(condition: Expr) -> Stmt {
    stmt(StmtKind::Await { condition, assume: false })
}

/// `loop { atomic { … } }`
pub(super) fn forever(body: Block) -> Block {
    vec![stmt(StmtKind::Loop(vec![stmt(StmtKind::Atomic(body))]))]
}
