//! The search for a serial witness: Wing and Gong, *Testing and verifying concurrent objects*
//! (1993), over the tree of serial executions.
//!
//! A witness of a complete history is a serial execution of the same calls with the same results
//! in an order that satisfies the [criterion](Criterion). A history in which calls are
//! pending and no thread can step is *stuck*; it needs a witness for each pending call: a
//! serial execution of the complete calls after which the pending one blocks (Line-Up, §4). The
//! other pending calls are taken to have had no effect.
//!
//! States of the structure are not known, so there is nothing to memoise: a point of the tree is
//! reached by one sequence of calls.

use crate::history::{Answer, Criterion, History};
use crate::serial::{Outcome, SerialTree};

/// The serial executions that explain a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// For a complete history, one order of its calls. For a stuck one, an order for each pending
    /// call, which is the last of it.
    pub orders: Vec<Vec<usize>>,
    /// The points of the tree that were visited.
    pub nodes: u64,
}

/// A history without a witness: how far a serial execution can follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unexplained {
    /// The pending call that blocks in no serial execution, if the history is stuck.
    pub pending: Option<usize>,
    /// The longest sequence of calls that a serial execution makes with the same results.
    pub longest: Vec<usize>,
    /// The calls that could come next, with what they return serially.
    pub next: Vec<(usize, Vec<Outcome>)>,
    /// The observer's results after these calls, if all calls fit and only the observer does not.
    pub observed: Vec<u32>,
    /// The points of the tree that were visited.
    pub nodes: u64,
}

/// Searches for a serial execution that explains `history`.
pub fn search(
    history: &History,
    tree: &SerialTree,
    criterion: Criterion,
) -> Result<Witness, Box<Unexplained>> {
    search_ignoring(history, tree, criterion, 0)
}

/// Like [`search`], but ignores the results of a set of complete calls. The calls still count.
pub fn search_ignoring(
    history: &History,
    tree: &SerialTree,
    criterion: Criterion,
    ignored: u64,
) -> Result<Witness, Box<Unexplained>> {
    let pending: Vec<Option<usize>> = match history.pending().next() {
        None => vec![None],
        Some(_) => history.pending().map(Some).collect(),
    };
    let mut search = Search {
        history,
        tree,
        order: history.order(criterion),
        all: history.complete(),
        ignored,
        placed: Vec::new(),
        nodes: 0,
        best: Box::default(),
    };
    let mut witness = Witness::default();
    for pending in pending {
        search.best = Box::default();
        if !search.extend(SerialTree::ROOT, 0, pending) {
            let Search { mut best, nodes, .. } = search;
            (best.pending, best.nodes) = (pending, nodes);
            return Err(best);
        }
        witness.orders.push(std::mem::take(&mut search.placed));
    }
    witness.nodes = search.nodes;
    Ok(witness)
}

struct Search<'a> {
    history: &'a History,
    tree: &'a SerialTree,
    /// For each call, the calls that come before it.
    order: Vec<u64>,
    /// The calls to be placed.
    all: u64,
    /// The calls whose results do not matter.
    ignored: u64,
    placed: Vec<usize>,
    nodes: u64,
    /// The longest sequence so far, for an explanation.
    best: Box<Unexplained>,
}

impl Search<'_> {
    /// Whether the calls that are not in `done` can follow, at point `at` of the tree; `placed`
    /// then has all of them, and the pending call.
    fn extend(&mut self, at: usize, done: u64, pending: Option<usize>) -> bool {
        self.nodes += 1;
        if done == self.all {
            return self.ends(at, pending);
        }
        for call in 0..self.history.calls() {
            let is_open = self.all >> call & 1 == 1 && done >> call & 1 == 0;
            if !is_open || self.order[call] & self.all & !done != 0 {
                continue;
            }
            let Answer::Returned(result) = self.history.answer(call) else { continue };
            let fits = |outcome: Outcome| match outcome {
                Outcome::Returned(serial) => serial == result || self.ignored >> call & 1 == 1,
                Outcome::Blocks => false,
            };
            let outcomes: Vec<Outcome> =
                self.tree.outcomes(at, call).filter(|&o| fits(o)).collect();
            for next in outcomes.into_iter().filter_map(|o| self.tree.after(at, call, o)) {
                self.placed.push(call);
                if self.extend(next, done | 1 << call, pending) {
                    return true;
                }
                self.placed.pop();
            }
        }
        self.note(at, done);
        false
    }

    /// Whether a serial execution may end here.
    fn ends(&mut self, at: usize, pending: Option<usize>) -> bool {
        let ends = match (pending, self.history.observed()) {
            (Some(call), _) => self.tree.after(at, call, Outcome::Blocks).is_some(),
            (None, Some(seen)) => self.tree.observed(at).contains(&seen),
            (None, None) => true,
        };
        match (ends, pending) {
            (true, Some(call)) => self.placed.push(call),
            (true, None) => {}
            (false, Some(call)) if self.is_longer() => {
                self.best.longest = self.placed.clone();
                self.best.next = vec![(call, self.tree.outcomes(at, call).collect())];
            }
            (false, _) if self.is_longer() => {
                self.best.longest = self.placed.clone();
                self.best.next = Vec::new();
                self.best.observed = self.tree.observed(at).to_vec();
            }
            _ => {}
        }
        ends
    }

    /// Records where a sequence ends, if it is the longest so far.
    fn note(&mut self, at: usize, done: u64) {
        if !self.is_longer() {
            return;
        }
        let open = (0..self.history.calls()).filter(|&call| {
            self.all >> call & 1 == 1
                && done >> call & 1 == 0
                && self.order[call] & self.all & !done == 0
        });
        let next = open.map(|call| (call, self.tree.outcomes(at, call).collect()));
        self.best.next = next.collect();
        self.best.longest = self.placed.clone();
    }

    fn is_longer(&self) -> bool {
        self.best.longest.len() < self.placed.len()
            || self.best.next.is_empty() && self.best.observed.is_empty()
    }
}
