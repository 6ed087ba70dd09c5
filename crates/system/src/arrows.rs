//! The arrows of a happens-before graph that a picture of it has to show.
//!
//! Most of the steps that happen before a step do so through other steps. Leaving those out gives
//! the transitive reduction: the smallest set of arrows from which the whole order follows. It is
//! unique because the order has no cycles.
//!
//! Among the steps of one thread that happen before a given step, the last one implies all the
//! others. A step therefore has at most one incoming arrow per thread, and only one candidate per
//! thread has to be compared: O(s·t²) for s steps of t threads.

use crate::hb::HbGraph;
use crate::thread::ThreadId;

impl HbGraph {
    /// For each step, its immediate predecessors in ascending order: the steps that happen before
    /// it, but not before another of its predecessors.
    pub fn arrows(&self) -> Vec<Vec<usize>> {
        let mut of_thread: Vec<Vec<usize>> = Vec::new();
        let mut arrows = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            let thread = self.thread(at);
            if of_thread.len() <= thread.index() {
                of_thread.resize(thread.index() + 1, Vec::new());
            }
            let clock = self.step_clock(at);
            let last_known = |(slot, steps): (usize, &Vec<usize>)| {
                let slot = ThreadId::new(slot);
                // The step's own clock already counts the step, but the step is not yet in the
                // list.
                let known = clock.time(slot) - u32::from(slot == thread);
                known.checked_sub(1).map(|last| steps[last as usize])
            };
            let before: Vec<usize> = of_thread.iter().enumerate().filter_map(last_known).collect();
            let direct =
                |&&step: &&usize| !before.iter().any(|&other| self.happens_before(step, other));
            let mut direct: Vec<usize> = before.iter().filter(direct).copied().collect();
            direct.sort_unstable();
            arrows.push(direct);
            of_thread[thread.index()].push(at);
        }
        arrows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::footprint::{Access, Footprint, Location};
    use crate::schedule::Choice;

    fn graph(steps: &[(usize, Vec<(u32, bool)>)]) -> HbGraph {
        let mut graph = HbGraph::new();
        for (thread, touched) in steps {
            let mut footprint = Footprint::new();
            for &(location, writes) in touched {
                footprint
                    .add(Location(location), if writes { Access::Write } else { Access::Read });
            }
            graph.push(Choice::of(ThreadId::new(*thread)), &footprint);
        }
        graph
    }

    #[test]
    fn what_follows_from_others_has_no_arrow() {
        let write = |thread, location| (thread, vec![(location, true)]);
        // 0 → 1 → 2 through x. Step 3, of the first thread, touches what step 2 wrote last.
        let graph =
            graph(&[write(0, 0), write(1, 0), (2, vec![(0, true), (1, true)]), write(0, 1)]);
        assert_eq!(graph.arrows(), [vec![], vec![0], vec![1], vec![2]]);
    }

    proptest! {
        #[test]
        fn the_arrows_are_the_transitive_reduction(
            steps in prop::collection::vec((0..4usize, prop::collection::vec((0..4u32, any::<bool>()), 0..3)), 0..24)
        ) {
            let graph = graph(&steps);
            let before = |a: usize, b: usize| graph.happens_before(a, b);
            for (at, found) in graph.arrows().into_iter().enumerate() {
                let between = |from: usize| (from + 1..at).any(|middle| before(from, middle) && before(middle, at));
                let expected: Vec<usize> = (0..at).filter(|&from| before(from, at) && !between(from)).collect();
                prop_assert_eq!(found, expected, "step {}", at);
            }
        }
    }
}
