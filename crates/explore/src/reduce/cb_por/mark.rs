//! Mark: which states are covered, going back from the end of an execution over prefixes that may
//! never have been executed.

use preempt_system::{System, ThreadId};
use smallvec::SmallVec;

use super::cuts::predecessors;
use super::log::Cut;
use super::name::Name;
use super::search::Search;
use crate::engine::mutants::seeded;

/// A call of Mark: the preceding states, and how many of them were tried.
struct Call<N> {
    before: SmallVec<[(ThreadId, Cut, N); 4]>,
    tried: usize,
}

impl<S: System, N: Name> Search<S, N> {
    /// Marks a state all of whose successors within the bound are marked, and all states before it
    /// of which that is then true.
    pub(super) fn mark(&mut self, cut: Cut, name: N) {
        let mut calls = vec![self.begin(&cut, &name)];
        while let Some(call) = calls.last_mut() {
            let Some((thread, cut, name)) = call.before.get(call.tried).cloned() else {
                calls.pop();
                continue;
            };
            call.tried += 1;
            if self.is_covered(thread, &cut, &name) {
                calls.push(self.begin(&cut, &name));
            }
        }
    }

    fn begin(&mut self, cut: &[u32], name: &N) -> Call<N> {
        self.counts.marks += 1;
        self.visit(name);
        Call { before: predecessors(&self.log, cut, name), tried: 0 }
    }

    /// Whether the state of `cut`, from which a step of `thread` led to a marked one, is reached by
    /// that step within the bound and has no successor within the bound that is not marked.
    fn is_covered(&mut self, thread: ThreadId, cut: &[u32], name: &N) -> bool {
        // A cut that was not evaluated is beyond the bound, and so are all steps from it.
        let Some(known) = self.cuts.find(name) else { return seeded!(MarkBeyondBound) };
        let step = known.possible.iter().find(|step| step.choice.thread == thread);
        if !step.is_some_and(|step| self.is_within(step.bound) || seeded!(MarkBeyondBound)) {
            return false;
        }
        self.counts.evaluations += 1;
        known.possible.iter().all(|step| {
            let overlooked = seeded!(MarkAsksNothing)
                || seeded!(MarkAsksLaterOnly) && !self.log.continues(cut, step.choice.thread);
            overlooked || !self.is_within(step.bound) || self.visited.contains(&step.next)
        })
    }
}
