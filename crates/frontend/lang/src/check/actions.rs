//! The actions of a block that matter for the step it belongs to: blocking, choosing, calling.
//!
//! An action is the *first* of a block if only its own operands, constants and local variables are
//! evaluated before it. A step that cannot perform it has then done nothing, and the whole block
//! waits. Reading the operands is part of the action: they are read again whenever the block is
//! tried.

use preempt_machine::program::{
    Base, BinaryOp, Expr, ExprKind, FunctionId, Method, ObjectType, Place, Projection, Stmt,
    StmtKind, Type,
};
use preempt_machine::source::Span;
use preempt_machine::walk::{Part, parts};

/// An action.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub(super) kind: ActionKind,
    /// Whether it is the first action of its block.
    pub(super) first: bool,
    pub(super) span: Span,
}

/// The kinds of actions.
#[derive(Clone, Copy, Debug)]
pub(super) enum ActionKind {
    /// An operation that is not allowed in every step.
    Does(Effect),
    /// A call: whatever the function does.
    Call(FunctionId),
}

/// An operation that is not allowed in every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Blocks until it is enabled; its description.
    Wait(&'static str),
    /// Takes two steps, one to start waiting and one to wake up; its description.
    TwoSteps(&'static str),
    /// Is a step of its own.
    Atomic,
    /// Has several outcomes.
    Choose,
    /// May acquire a lock for its thread; its description.
    Hold(&'static str),
}

impl Effect {
    /// Its description in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Effect::Wait(name) | Effect::TwoSteps(name) | Effect::Hold(name) => name,
            Effect::Atomic => "`atomic`",
            Effect::Choose => "`choose`",
        }
    }
}

/// The actions of a block, in the order of the text.
pub(super) fn actions(block: &[Stmt]) -> Vec<Action> {
    let mut walk = Walk { actions: Vec::new(), progress: Progress::Nothing };
    walk.block(block);
    walk.actions
}

/// The `atomic` blocks in a block, each with the span of its head. Nested ones are not searched.
pub(super) fn atomics<'p>(block: &'p [Stmt], found: &mut Vec<(&'p [Stmt], Span)>) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::Atomic(body) => found.push((body, stmt.span)),
            StmtKind::If { then, otherwise, .. } => {
                atomics(then, found);
                atomics(otherwise, found);
            }
            StmtKind::While { body, .. }
            | StmtKind::Loop(body)
            | StmtKind::For { body, .. }
            | StmtKind::Block(body) => atomics(body, found),
            StmtKind::Match { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| atomics(body, found));
                otherwise.iter().for_each(|body| atomics(body, found));
            }
            StmtKind::Choose(blocks) => blocks.iter().for_each(|body| atomics(body, found)),
            _ => {}
        }
    }
}

/// The kinds of expressions that were evaluated so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Only constants and local variables.
    Nothing,
    /// Also shared variables.
    Read,
    /// Anything.
    Acted,
}

struct Walk {
    actions: Vec<Action>,
    progress: Progress,
}

impl Walk {
    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
            self.progress = Progress::Acted;
        }
    }

    /// A block that is reached only after other actions, or more than once.
    fn later(&mut self, block: &[Stmt]) {
        self.progress = Progress::Acted;
        self.block(block);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { init, .. } => init.iter().for_each(|value| self.expr(value)),
            StmtKind::Assign { place, value } => {
                self.place(place);
                self.expr(value);
            }
            StmtKind::Update { place, value, .. } => {
                self.place(place);
                self.read(place);
                self.expr(value);
            }
            StmtKind::Expr(expr)
            | StmtKind::Return(Some(expr))
            | StmtKind::Assert { condition: expr, .. } => {
                self.expr(expr);
            }
            StmtKind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.later(then);
                self.later(otherwise);
            }
            StmtKind::While { condition, body } => {
                self.progress = Progress::Acted;
                self.expr(condition);
                self.later(body);
            }
            StmtKind::Loop(body) => self.later(body),
            StmtKind::For { from, to, body, .. } => {
                self.expr(from);
                self.expr(to);
                self.later(body);
            }
            StmtKind::Match { scrutinee, arms, otherwise } => {
                self.expr(scrutinee);
                arms.iter().for_each(|(_, body)| self.later(body));
                otherwise.iter().for_each(|body| self.later(body));
            }
            StmtKind::Await { assume, .. } => {
                let what = if *assume { "`assume`" } else { "`await`" };
                self.effect(Effect::Wait(what), self.progress, stmt.span);
            }
            StmtKind::Choose(blocks) => {
                self.effect(Effect::Choose, self.progress, stmt.span);
                blocks.iter().for_each(|body| self.later(body));
            }
            StmtKind::Atomic(_) => self.effect(Effect::Atomic, self.progress, stmt.span),
            StmtKind::Join(thread) => {
                let before = self.progress;
                self.expr(thread);
                self.effect(Effect::Wait("`join`"), before, stmt.span);
            }
            StmtKind::Block(body) => self.block(body),
            StmtKind::Return(None)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Skip
            | StmtKind::Yield => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        let before = self.progress;
        match &expr.kind {
            ExprKind::Binary(BinaryOp::And | BinaryOp::Or, left, right) => {
                self.expr(left);
                self.progress = Progress::Acted;
                return self.expr(right);
            }
            ExprKind::If(condition, then, otherwise) => {
                self.expr(condition);
                self.progress = Progress::Acted;
                self.expr(then);
                return self.expr(otherwise);
            }
            _ => parts(expr, &mut |part| match part {
                Part::Expr(expr) => self.expr(expr),
                Part::Place(place) => self.place(place),
            }),
        }
        match &expr.kind {
            ExprKind::Load(place) => self.read(place),
            ExprKind::Call(function, _) => {
                self.action(ActionKind::Call(*function), before, expr.span)
            }
            ExprKind::Choose { .. } => self.effect(Effect::Choose, before, expr.span),
            ExprKind::CondWait { .. } => {
                self.effect(Effect::TwoSteps("the wait of a condvar"), before, expr.span);
            }
            ExprKind::Method { object, method, .. } => match effect_of(*method, &object.ty) {
                Some(effect) => self.effect(effect, before, expr.span),
                None => self.progress = Progress::Acted,
            },
            ExprKind::AtomicLoad { place, .. } => self.read(place),
            ExprKind::AtomicStore { .. }
            | ExprKind::CompareAndSwap { .. }
            | ExprKind::Swap { .. }
            | ExprKind::Fetch { .. }
            | ExprKind::Spawn(..)
            | ExprKind::New(..) => self.progress = Progress::Acted,
            _ => {}
        }
    }

    /// Evaluates the operands of a place.
    fn place(&mut self, place: &Place) {
        if let Base::Deref(pointer) = &place.base {
            self.expr(pointer);
        }
        for projection in &place.path {
            if let Projection::Index(index, _) = projection {
                self.expr(index);
            }
        }
    }

    fn read(&mut self, place: &Place) {
        if !matches!(place.base, Base::Local(_)) {
            self.progress = self.progress.max(Progress::Read);
        }
    }

    fn effect(&mut self, effect: Effect, before: Progress, span: Span) {
        self.action(ActionKind::Does(effect), before, span);
    }

    /// Adds an action whose operands were evaluated since `before`.
    fn action(&mut self, kind: ActionKind, before: Progress, span: Span) {
        let first = before == Progress::Nothing && self.progress != Progress::Acted;
        self.actions.push(Action { kind, first, span });
        self.progress = Progress::Acted;
    }
}

/// The effect of a method: how it blocks, or acquires a lock for its thread.
fn effect_of(method: Method, object: &Type) -> Option<Effect> {
    let rendezvous = matches!(object, Type::Object(ObjectType::Channel { capacity: 0, .. }));
    Some(match method {
        Method::Lock => Effect::Wait("`lock`"),
        Method::ReadLock => Effect::Wait("`read`"),
        Method::WriteLock => Effect::Wait("`write`"),
        Method::Acquire => Effect::Wait("`acquire`"),
        Method::EventWait => Effect::Wait("`wait`"),
        Method::Recv => Effect::Wait("`recv`"),
        Method::Send if rendezvous => Effect::TwoSteps("the send on a rendezvous channel"),
        Method::Send => Effect::Wait("`send`"),
        Method::BarrierWait => Effect::TwoSteps("the wait at a barrier"),
        Method::TryLock => Effect::Hold("`try_lock`"),
        Method::TryReadLock => Effect::Hold("`try_read`"),
        Method::TryWriteLock => Effect::Hold("`try_write`"),
        _ => return None,
    })
}
