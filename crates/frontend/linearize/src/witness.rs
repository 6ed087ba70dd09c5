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
use crate::serial::{CallOutcome, SerialTree};

/// Serial behaviour: a tree whose points are reached by sequences of calls with their outcomes. A
/// [`SerialTree`] has all of its points; another specification may compute them on demand.
pub trait Specification {
    /// The outcomes of a call at a point, each with the point after it: several if the
    /// specification is not deterministic.
    fn outcomes(&mut self, from: usize, call: usize) -> Vec<(CallOutcome, usize)>;

    /// The results of an observer at a point.
    fn observed(&mut self, at: usize) -> Vec<u32>;
}

impl Specification for &SerialTree {
    fn outcomes(&mut self, from: usize, call: usize) -> Vec<(CallOutcome, usize)> {
        self.next(from, call).collect()
    }

    fn observed(&mut self, at: usize) -> Vec<u32> {
        SerialTree::observed(self, at).to_vec()
    }
}

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
    pub next: Vec<(usize, Vec<CallOutcome>)>,
    /// The observer's results after these calls, if all calls fit and only the observer does not.
    pub observed: Vec<u32>,
    /// The points of the tree that were visited.
    pub nodes: u64,
}

/// Searches for a serial execution that explains `history`.
pub fn search(
    history: &History,
    specification: impl Specification,
    criterion: Criterion,
) -> Result<Witness, Box<Unexplained>> {
    search_ignoring(history, specification, criterion, 0)
}

/// Like [`search`], but ignores the results of a set of complete calls. The calls still count.
pub fn search_ignoring(
    history: &History,
    specification: impl Specification,
    criterion: Criterion,
    ignored: u64,
) -> Result<Witness, Box<Unexplained>> {
    let pending: Vec<Option<usize>> = match history.pending().next() {
        None => vec![None],
        Some(_) => history.pending().map(Some).collect(),
    };
    let mut search = Search {
        history,
        specification,
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

struct Search<'a, S> {
    history: &'a History,
    specification: S,
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

impl<S: Specification> Search<'_, S> {
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
            let is_ignored = self.ignored >> call & 1 == 1;
            let fits = |outcome: &CallOutcome| match *outcome {
                CallOutcome::Returned(serial) => serial == result || is_ignored,
                CallOutcome::Blocks => false,
            };
            let outcomes = self.specification.outcomes(at, call).into_iter();
            for (_, next) in outcomes.filter(|(outcome, _)| fits(outcome)) {
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
            (Some(call), _) => self.outcomes(at, call).contains(&CallOutcome::Blocks),
            (None, Some(seen)) => self.specification.observed(at).contains(&seen),
            (None, None) => true,
        };
        match (ends, pending) {
            (true, Some(call)) => self.placed.push(call),
            (true, None) => {}
            (false, Some(call)) if self.is_longer() => {
                self.best.longest = self.placed.clone();
                self.best.next = vec![(call, self.outcomes(at, call))];
            }
            (false, _) if self.is_longer() => {
                self.best.longest = self.placed.clone();
                self.best.next = Vec::new();
                self.best.observed = self.specification.observed(at);
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
        let is_open = |call: &usize| {
            self.all >> call & 1 == 1
                && done >> call & 1 == 0
                && self.order[*call] & self.all & !done == 0
        };
        let open: Vec<usize> = (0..self.history.calls()).filter(is_open).collect();
        self.best.next = open.into_iter().map(|call| (call, self.outcomes(at, call))).collect();
        self.best.longest = self.placed.clone();
    }

    /// The outcomes of a call at a point.
    fn outcomes(&mut self, at: usize, call: usize) -> Vec<CallOutcome> {
        let outcomes = self.specification.outcomes(at, call);
        outcomes.into_iter().map(|(outcome, _)| outcome).collect()
    }

    fn is_longer(&self) -> bool {
        self.best.longest.len() < self.placed.len()
            || self.best.next.is_empty() && self.best.observed.is_empty()
    }
}
