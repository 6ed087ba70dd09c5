//! Statement coverage: which statements of a program were reached.
//!
//! A statement is reached when a thread arrives at it. Every statement that is not implied by the
//! one before has a *mark*: the first of a block, and those after a statement that may fail, block
//! or leave. Branches without a statement (a missing `else`, an empty block) have marks too. Copies
//! of a function (for several threads, inside and outside `atomic`) share them.
//!
//! The code sets the marks of a straight line together, with one
//! [`Instr::Mark`](super::code::Instr::Mark) at its end. Only an error keeps a step from getting
//! there, and a step that fails sets the marks up to the statement that failed
//! ([`Machine::reach_until`]).
//!
//! **Cost.** A step by a [diagram](super::diagram) sets one flag, that of the node at which its
//! tests end; the marks on the path to it are known. The interpreter sets one flag for each
//! straight line. Every stepper has its own flags and adds them to those of the program when it is
//! dropped; only steps that fail write to the program's flags, once each.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Machine;
use super::code::Address;
use super::run::Stepper;
use crate::arith;
use crate::program::{
    Base, Block, Expr, ExprKind, Function, Place, Program, Stmt, StmtKind, Type, UnaryOp,
};
use crate::source::Span;

/// A statement or a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// The statement; for one with blocks, its head.
    pub span: Span,
    /// `None` for the statement itself, otherwise for this outcome of its condition, which has no
    /// statement of its own.
    pub outcome: Option<bool>,
}

/// All items of a program in the order of the text, and which of them were reached.
#[derive(Debug)]
pub(super) struct Items {
    items: Vec<Item>,
    /// For each item, the number of the item whose mark implies it, or its own.
    implied_by: Vec<u32>,
    reached: Vec<AtomicBool>,
}

impl Items {
    /// The items of a program, none of which was reached.
    pub(super) fn new(program: &Program) -> Items {
        let mut found = Vec::new();
        program.functions.iter().for_each(|function| {
            Collect { function, found: &mut found }.block(&function.body, None)
        });
        found.sort_unstable();
        found.dedup_by_key(|(item, _)| *item);
        let items: Vec<Item> = found.iter().map(|&(item, _)| item).collect();
        let number =
            |item: Item| items.binary_search(&item).expect("every item was collected") as u32;
        let mut implied_by: Vec<u32> = Vec::with_capacity(items.len());
        for &(item, before) in &found {
            // An item comes after the one that implies it, which may be implied by another one.
            // Statements to which a reader assigned the same place are one item.
            let before = before.filter(|&before| before < item);
            implied_by.push(
                before.map_or_else(|| number(item), |before| implied_by[number(before) as usize]),
            );
        }
        let reached = items.iter().map(|_| AtomicBool::new(false)).collect();
        Items { items, implied_by, reached }
    }

    /// The number of the mark of an item; `None` if another item implies it.
    pub(super) fn mark(&self, item: Item) -> Option<u32> {
        let number =
            self.items.binary_search(&item).expect("all statements of the program are items");
        (self.implied_by[number] == number as u32).then_some(number as u32)
    }

    /// Records that the item with this mark was reached.
    pub(super) fn reach(&self, mark: u32) {
        let reached = &self.reached[mark as usize];
        // Workers share the flags: a write would take the line from the caches of all others.
        if !reached.load(Relaxed) {
            reached.store(true, Relaxed);
        }
    }

    fn is_reached(&self, number: usize) -> bool {
        self.reached[self.implied_by[number] as usize].load(Relaxed)
    }
}

/// Finds the items of a function.
struct Collect<'p> {
    function: &'p Function,
    /// Each with the item that implies it.
    found: &'p mut Vec<(Item, Option<Item>)>,
}

impl Collect<'_> {
    /// Adds the items of a block; `before` implies the first.
    fn block(&mut self, block: &Block, mut before: Option<Item>) {
        for stmt in block {
            let item = Item { span: stmt.span, outcome: None };
            self.inner(stmt, item);
            self.found.push((item, before));
            before = self.always_passes(stmt).then_some(item);
        }
    }

    /// Adds the items inside a statement.
    fn inner(&mut self, stmt: &Stmt, item: Item) {
        let mut missing =
            |outcome: bool| self.found.push((Item { outcome: Some(outcome), ..item }, None));
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                if then.is_empty() {
                    missing(true);
                }
                if otherwise.is_empty() {
                    missing(false);
                }
                self.block(then, None);
                self.block(otherwise, None);
            }
            StmtKind::While { body, .. } if body.is_empty() => missing(true),
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => self.block(body, None),
            // Nothing happens between the head and the first statement.
            StmtKind::Loop(body) | StmtKind::Block(body) => self.block(body, Some(item)),
            StmtKind::Match { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| self.block(body, None));
                otherwise.iter().for_each(|body| self.block(body, None));
            }
            StmtKind::Choose(blocks) => blocks.iter().for_each(|body| self.block(body, None)),
            StmtKind::Atomic(body) => self.block(body, None),
            _ => {}
        }
    }

    /// Whether a thread that reaches a statement certainly reaches the next one: it neither blocks,
    /// fails nor leaves.
    fn always_passes(&self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Skip | StmtKind::Yield | StmtKind::Let { init: None, .. } => true,
            StmtKind::Let { local, init: Some(value) } => {
                fits(&self.function.locals[*local].ty, value) && is_plain(value)
            }
            StmtKind::Assign { place, value } => {
                is_plain_place(place) && fits(&place.ty, value) && is_plain(value)
            }
            _ => false,
        }
    }
}

/// Whether a variable can hold every value of an expression.
fn fits(ty: &Type, value: &Expr) -> bool {
    match (ty, &value.kind) {
        (Type::Range { lo, hi }, ExprKind::Const(value)) => (lo..=hi).contains(&value),
        (Type::Range { .. }, _) => *ty == value.ty,
        _ => true,
    }
}

fn is_plain_place(place: &Place) -> bool {
    !matches!(place.base, Base::Deref(_)) && place.path.is_empty()
}

/// Whether evaluating an expression neither blocks nor fails: constants, variables without indices
/// and pointers, comparisons.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => true,
        ExprKind::Load(place) => is_plain_place(place),
        ExprKind::Unary(UnaryOp::Not, a) => is_plain(a),
        ExprKind::Binary(op, a, b) => !arith::may_fail(*op) && is_plain(a) && is_plain(b),
        _ => false,
    }
}

/// Lines that were not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The first line, counted from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// `None` for statements; otherwise the condition on these lines never had this value.
    pub outcome: Option<bool>,
}

impl Machine {
    /// Records what a step has reached that fails at `at`, inside a straight line.
    pub(super) fn reach_until(&self, at: Address) {
        let late = &self.code.late_marks;
        let line = &late[late.partition_point(|(range, _)| range.end <= at)..];
        line.iter()
            .take_while(|(range, _)| range.start <= at)
            .for_each(|&(_, mark)| self.facts.items.reach(mark));
    }

    /// The statements that no stepper of this machine, nor of one that it was made from, has
    /// reached, in the order of the text, and the branches without statements that were never
    /// taken. Steppers that still exist do not count.
    pub fn unreached(&self) -> Vec<Unreached> {
        let items = &self.facts.items;
        let mut found: Vec<Unreached> = Vec::new();
        let (mut goes_on, mut statement) = (false, false);
        for (number, item) in items.items.iter().enumerate() {
            let is_reached = items.is_reached(number);
            let line = |at: u32| self.program.source.site(Span { start: at, end: at }).line;
            let (first, last) = (line(item.span.start), line(item.span.end.max(1) - 1));
            match (item.outcome, found.last_mut()) {
                (None, before) => {
                    match before {
                        _ if is_reached => {}
                        Some(before)
                            if goes_on || before.outcome.is_none() && before.last == first =>
                        {
                            before.last = before.last.max(last);
                        }
                        _ => found.push(Unreached { first, last, outcome: None }),
                    }
                    (goes_on, statement) = (!is_reached, is_reached);
                }
                // No thread reached the condition.
                (Some(_), _) if is_reached || !statement => {}
                (outcome, _) => {
                    found.push(Unreached { first, last, outcome });
                    goes_on = false;
                }
            }
        }
        found
    }
}

impl Drop for Stepper<'_> {
    /// Adds what this stepper has reached to what others have.
    fn drop(&mut self) {
        let items = &self.machine.facts.items;
        let lines =
            self.machine.code.marks.iter().zip(&self.reached).filter(|&(_, &reached)| reached);
        lines.flat_map(|(marks, _)| marks).for_each(|&mark| items.reach(mark));
        self.machine.diagrams.marks(&self.taken).for_each(|mark| items.reach(mark));
    }
}
