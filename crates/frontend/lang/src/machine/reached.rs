//! Which statements of a program were reached.
//!
//! A statement is reached when a thread comes to it. The code says so with [`Instr::Mark`](super::code::Instr::Mark), at the beginning of
//! every statement that does not follow from the one before: at the beginning of a block, and behind what may fail, wait or leave. Branches
//! without a statement of their own (a missing `else`, an empty block) have marks, too. Copies of a function (for several threads,
//! inside and outside of `atomic`) share them.
//!
//! **Cost.** A step that is a [diagram](super::diagram) sets one flag, that of the node at which its tests end; which marks lie on the way there
//! is known. The interpreter sets one flag for each mark. Every stepper has flags of its own and adds them to those of the program when it is
//! dropped, so nothing is shared while a search runs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Machine;
use super::run::Stepper;
use crate::arith;
use crate::program::{Base, Block, Expr, ExprKind, Program, Stmt, StmtKind, UnaryOp};
use crate::source::Span;

/// Something that is reached or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The statement; of one with blocks, its head.
    pub span: Span,
    /// `None` for the statement itself, else for this outcome of its condition, which has no statement of its own.
    pub outcome: Option<bool>,
}

/// All items of a program in the order of the text, and which of them were reached.
#[derive(Debug)]
pub struct Items {
    items: Vec<Item>,
    /// For each item, the number of the one whose mark it follows from, or its own.
    implied_by: Vec<u32>,
    reached: Vec<AtomicBool>,
}

impl Items {
    /// Those of a program, none of which was reached.
    pub fn new(program: &Program) -> Items {
        let mut found = Vec::new();
        program.functions.iter().for_each(|function| collect(&function.body, &mut found));
        found.sort_unstable();
        found.dedup_by_key(|(item, _)| *item);
        let items: Vec<Item> = found.iter().map(|&(item, _)| item).collect();
        let number = |item: Item| items.binary_search(&item).expect("it was collected") as u32;
        let mut implied_by: Vec<u32> = Vec::with_capacity(items.len());
        for &(item, before) in &found {
            // What an item follows from comes before it, and may follow from something itself.
            implied_by.push(before.map_or_else(|| number(item), |before| implied_by[number(before) as usize]));
        }
        let reached = items.iter().map(|_| AtomicBool::new(false)).collect();
        Items { items, implied_by, reached }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The number of the mark of an item. `None` if it follows from another one.
    pub fn mark(&self, item: Item) -> Option<u32> {
        let number = self.items.binary_search(&item).expect("all statements of the program are items");
        (self.implied_by[number] == number as u32).then_some(number as u32)
    }

    /// Notes that the item with this mark was reached.
    pub fn reach(&self, mark: usize) {
        self.reached[mark].store(true, Relaxed);
    }

    fn is_reached(&self, number: usize) -> bool {
        self.reached[self.implied_by[number] as usize].load(Relaxed)
    }
}

/// Adds the items of a block, each with the one that it follows from.
fn collect(block: &Block, found: &mut Vec<(Item, Option<Item>)>) {
    let mut before = None;
    for stmt in block {
        let item = Item { span: stmt.span, outcome: None };
        let mut missing = |outcome: bool| found.push((Item { outcome: Some(outcome), ..item }, None));
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                if then.is_empty() {
                    missing(true);
                }
                if otherwise.is_empty() {
                    missing(false);
                }
                collect(then, found);
                collect(otherwise, found);
            }
            StmtKind::While { body, .. } if body.is_empty() => missing(true),
            StmtKind::While { body, .. } | StmtKind::Loop(body) | StmtKind::For { body, .. } => collect(body, found),
            StmtKind::Match { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| collect(body, found));
                otherwise.iter().for_each(|body| collect(body, found));
            }
            StmtKind::Choose(blocks) => blocks.iter().for_each(|body| collect(body, found)),
            StmtKind::Atomic(body) | StmtKind::Block(body) => collect(body, found),
            _ => {}
        }
        found.push((item, before));
        before = always_passes(stmt).then_some(item);
    }
}

/// Whether a thread that comes to a statement certainly comes to the one behind it: it neither waits, fails nor leaves.
fn always_passes(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Skip | StmtKind::Yield | StmtKind::Let { init: None, .. } => true,
        StmtKind::Let { init: Some(value), .. } | StmtKind::Assign { value, .. } => is_plain(value),
        _ => false,
    }
}

/// Whether evaluating an expression neither waits nor fails: constants, variables without indices and pointers, comparisons.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => true,
        ExprKind::Load(place) => !matches!(place.base, Base::Deref(_)) && place.path.is_empty(),
        ExprKind::Unary(UnaryOp::Not, a) => is_plain(a),
        ExprKind::Binary(op, a, b) => !arith::may_fail(*op) && is_plain(a) && is_plain(b),
        _ => false,
    }
}

/// Lines that were not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The first line, from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// `None` for statements; else the condition on these lines never had this value.
    pub outcome: Option<bool>,
}

impl Machine {
    /// The statements that no stepper of this machine, nor of one that it was made from, has reached, in the order of the text; and
    /// the branches without statements that were never taken. Steppers that still exist do not count.
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
                        Some(before) if goes_on || before.outcome.is_none() && before.last == first => {
                            before.last = before.last.max(last);
                        }
                        _ => found.push(Unreached { first, last, outcome: None }),
                    }
                    (goes_on, statement) = (!is_reached, is_reached);
                }
                // Nobody came to the condition.
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
        let marks = self.reached.iter().enumerate().filter(|&(_, &reached)| reached).map(|(mark, _)| mark);
        marks.for_each(|mark| items.reach(mark));
        self.machine.diagrams.marks(&self.taken).for_each(|mark| items.reach(mark as usize));
    }
}
