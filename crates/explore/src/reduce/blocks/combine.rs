//! Steps 3 and 4: the orders of the blocks that access a variable, and their combinations.
//!
//! The paper lists all orders of each variable, forms the product of these lists, and drops what
//! contradicts itself at the end. Here an order grows access by access, one variable after the
//! other, in one graph. To choose an access as the next in its variable's order means to order it
//! before all remaining accesses of the variable that conflict with it; so it can be next iff none
//! of them is ordered before it already. An acyclic graph can always be continued, because its
//! topological sort is one way to do so: **neither a contradictory combination nor a prefix of one
//! is ever formed**. The work between two PO graphs is polynomial.
//!
//! Where reads commute, reads between two writes are taken in the order of their threads. To take a
//! read of a later thread is to decide that the reads of earlier threads which could come next come
//! after another write. That is allowed iff a write remains which none of them is ordered before.
//! This preserves the invariant.

use preempt_system::Access;

use super::block::{BlockId, Blocks, Variable};
use super::graph::PoGraph;
use crate::engine::mutants::seeded;

/// A combination before an access is chosen.
#[derive(Debug)]
struct Place {
    /// The threads whose next access of the variable can come next.
    choices: Vec<usize>,
    /// The number of these that were tried.
    tried: usize,
    /// The graph so far.
    mark: usize,
}

/// All PO graphs, one after the other.
#[derive(Debug)]
pub(super) struct Combinations<'b> {
    blocks: &'b Blocks,
    graph: PoGraph<'b>,
    /// The variables whose orders are combined.
    variables: &'b [Variable],
    /// The number of accesses of each thread in the order of each variable.
    heads: Vec<Vec<usize>>,
    places: Vec<Place>,
    /// The choices: variable and thread, from the first place on.
    chosen: Vec<(usize, usize)>,
    started: bool,
    pub(super) dead_ends: u64,
}

impl<'b> Combinations<'b> {
    pub(super) fn new(blocks: &'b Blocks) -> Combinations<'b> {
        let variables = &blocks.variables[..];
        let variables = match variables {
            [_, rest @ ..] if seeded!(FirstVariableSkipped) => rest,
            _ => variables,
        };
        Combinations {
            blocks,
            graph: PoGraph::new(blocks),
            variables,
            heads: vec![vec![0; blocks.threads.len()]; variables.len()],
            places: Vec::new(),
            chosen: Vec::new(),
            started: false,
            dead_ends: 0,
        }
    }

    /// The choices that lead to the last graph: variables and threads.
    pub(super) fn chosen(&self) -> &[(usize, usize)] {
        &self.chosen
    }

    /// Continues after the graph to which these choices lead. `None` if they do not lead to a
    /// graph.
    pub(super) fn resume_after(&mut self, chosen: &[(usize, usize)]) -> Option<()> {
        self.started = true;
        let mut is_open = self.enter(0, None);
        for &(variable, thread) in chosen {
            if !is_open || variable != self.variable() {
                return None;
            }
            let place = self.places.last_mut()?;
            place.tried = place.choices.iter().position(|&choice| choice == thread)? + 1;
            let access = self.choose(variable, thread);
            is_open = self.enter(variable, (access == Access::Read).then_some(thread));
        }
        (!is_open).then_some(())
    }

    /// The order of the blocks in the last graph.
    pub(super) fn last_order(&self) -> Vec<BlockId> {
        self.graph.sort().expect("a PO graph has no cycle")
    }

    /// The next PO graph.
    pub(super) fn next(&mut self) -> Option<&PoGraph<'b>> {
        if !std::mem::replace(&mut self.started, true) {
            if seeded!(NoVariableNoGraph) && self.variables.is_empty() {
                return None;
            }
            if !self.enter(0, None) {
                return Some(&self.graph);
            }
        }
        while let Some(place) = self.places.last_mut() {
            let mark = place.mark;
            let choice = place.choices.get(place.tried).copied();
            place.tried += 1;
            // Undoes the previous choice at this place and its edges.
            self.graph.take_back(mark);
            if self.chosen.len() == self.places.len() {
                let (variable, thread) =
                    self.chosen.pop().expect("there is one choice for each place but the last");
                self.leave(variable, thread);
            }
            let Some(thread) = choice else {
                self.places.pop();
                continue;
            };
            let variable = self.variable();
            let access = self.choose(variable, thread);
            if !self.enter(variable, (access == Access::Read).then_some(thread)) {
                return Some(&self.graph);
            }
        }
        None
    }

    /// The first variable with accesses that are not in its order.
    fn variable(&self) -> usize {
        let left = |variable: &usize| {
            self.heads[*variable]
                .iter()
                .zip(&self.variables[*variable].accesses)
                .any(|(&head, list)| head < list.len())
        };
        // All variables before the one that was chosen last are done.
        let from = self.chosen.last().map_or(0, |&(variable, _)| variable);
        (from..self.variables.len()).find(left).unwrap_or(self.variables.len())
    }

    /// Creates the next place; `false` if there is nothing left to choose, so that the graph is
    /// complete. `last` is the variable of the access that was chosen last, and `reader` its thread
    /// if it is a read.
    fn enter(&mut self, last: usize, reader: Option<usize>) -> bool {
        let variable = self.variable();
        if variable == self.variables.len() {
            return false;
        }
        let reader = reader.filter(|_| variable == last);
        let threads = 0..self.blocks.threads.len();
        let choices: Vec<usize> =
            threads.filter(|&thread| self.fits(variable, thread, reader)).collect();
        self.dead_ends += u64::from(choices.is_empty());
        self.places.push(Place { choices, tried: 0, mark: self.graph.mark() });
        true
    }

    /// A thread's next access that is not in the order of the variable.
    fn head(&self, variable: usize, thread: usize) -> Option<(BlockId, Access)> {
        self.variables[variable].accesses[thread].get(self.heads[variable][thread]).copied()
    }

    /// A thread's next write that is not in the order of the variable.
    fn write(&self, variable: usize, thread: usize) -> Option<BlockId> {
        let left =
            self.variables[variable].accesses[thread].iter().skip(self.heads[variable][thread]);
        left.into_iter().find(|&&(_, access)| access == Access::Write).map(|&(id, _)| id)
    }

    /// The first remaining accesses of other threads that conflict with an access of this thread.
    fn rivals(
        &self,
        variable: usize,
        thread: usize,
        access: Access,
    ) -> impl Iterator<Item = BlockId> + '_ {
        let others = (0..self.blocks.threads.len()).filter(move |&other| other != thread);
        others.filter_map(move |other| match access {
            Access::Write => self.head(variable, other).map(|(id, _)| id),
            Access::Read => self.write(variable, other),
        })
    }

    /// Whether the next access of a thread can come next in the order of the variable.
    fn fits(&self, variable: usize, thread: usize, reader: Option<usize>) -> bool {
        let Some((id, access)) = self.head(variable, thread) else { return false };
        let possible =
            !self.rivals(variable, thread, access).any(|rival| self.graph.reaches(rival, id));
        if !possible && !self.overlooks_contradictions() {
            return false;
        }
        if access == Access::Write {
            return true;
        }
        if reader.is_some_and(|reader| thread < reader) {
            return false;
        }
        let passed: Vec<BlockId> = (0..thread)
            .filter_map(|other| self.head(variable, other))
            .filter(|&(_, access)| access == Access::Read)
            .map(|(id, _)| id)
            .collect();
        let behind = |write: BlockId| !passed.iter().any(|&read| self.graph.reaches(read, write));
        let mut writes =
            (0..self.blocks.threads.len()).filter_map(|other| self.write(variable, other));
        passed.is_empty() || (behind(id) && writes.any(behind))
    }

    fn overlooks_contradictions(&self) -> bool {
        let single = self.blocks.all.iter().all(|block| block.shared.accesses().len() < 2);
        seeded!(SingleAccessesNeverContradict) && single
    }

    /// Puts the next access of a thread into the order of the variable.
    fn choose(&mut self, variable: usize, thread: usize) -> Access {
        let (id, access) = self.head(variable, thread).expect("only remaining accesses are chosen");
        let rivals: Vec<BlockId> = self.rivals(variable, thread, access).collect();
        if access == Access::Write || !seeded!(ReadsUnordered) {
            rivals.into_iter().for_each(|rival| self.graph.add(id, rival));
        }
        self.heads[variable][thread] += 1;
        if seeded!(AllHeadsRemoved) {
            let others = (0..self.blocks.threads.len()).filter(|&other| other != thread);
            others.for_each(|other| self.heads[variable][other] += 1);
        }
        self.chosen.push((variable, thread));
        access
    }

    fn leave(&mut self, variable: usize, thread: usize) {
        self.heads[variable][thread] -= 1;
        if seeded!(AllHeadsRemoved) {
            let others = (0..self.blocks.threads.len()).filter(|&other| other != thread);
            others.for_each(|other| self.heads[variable][other] -= 1);
        }
    }
}
