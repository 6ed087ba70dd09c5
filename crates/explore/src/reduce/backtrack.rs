//! Depth-first search with backtrack sets and sleep sets: a [`Backtracking`] decides which threads
//! are tried at a node, this module which steps sleep there.
//!
//! A step *sleeps* at a node if executions explored before cover everything that it leads to: it
//! was taken at an earlier node, and only steps independent of it came since. Steps sleep, not
//! threads: a thread may have several alternatives, and another step may depend on one of them
//! only. A sleeping step keeps the footprint that it had when it fell asleep, because nothing that
//! it reads has changed.

use preempt_system::{Choice, System, ThreadSet};

use super::policy::{Entered, Policy};
use super::trace::{ReductionStats, Trace};
use crate::codec::save_fields;
use crate::engine::execution::{Cut, Stop};

/// The execution before one of its steps.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The threads to try here.
    pub(super) backtrack: ThreadSet,
    /// The steps that sleep here: inherited ones, and those that were taken here.
    pub(super) sleep: Vec<Choice>,
    /// The steps that were taken here.
    taken: Vec<Choice>,
}

save_fields!(Node { backtrack, sleep, taken });

/// Chooses the threads to try at each node: the part in which the reductions differ.
pub(crate) trait Backtracking<S: System> {
    /// Whether steps sleep.
    const SLEEP: bool;

    /// The threads to try at a new node: the steps in `sleep` sleep, the threads in `awake` have
    /// other steps.
    fn begin(&mut self, trace: &Trace<'_, S>, awake: ThreadSet, sleep: &[Choice]) -> ThreadSet;

    /// A step was taken from the last of `nodes`. Adds threads that have to be tried there or
    /// before.
    fn reconsider(&mut self, _trace: &Trace<'_, S>, _nodes: &mut [Node]) {}

    /// An execution has ended or was abandoned; `nodes` are those before its steps. Adds threads
    /// that have to be tried there.
    fn finish(
        &mut self,
        _trace: &mut Trace<'_, S>,
        _nodes: &mut [Node],
    ) -> Result<(), Stop<S::Need>> {
        Ok(())
    }
}

/// Takes the steps of the threads in the backtrack sets, except for those that sleep.
pub(crate) struct Backtrack<B>(pub(super) B);

impl<S: System, B: Backtracking<S>> Policy<S> for Backtrack<B> {
    type Node = Node;
    /// The steps that sleep.
    type Arrival = Vec<Choice>;

    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        sleep: Vec<Choice>,
        nodes: &mut [Node],
        _: &mut ReductionStats,
    ) -> Entered<Node, S::Need> {
        if !nodes.is_empty() {
            self.0.reconsider(trace, nodes);
        }
        let awake: ThreadSet = trace
            .enabled()
            .filter(|&thread| trace.alternatives(thread).any(|choice| !sleep.contains(&choice)))
            .collect();
        let (mut backtrack, mut cut) = (ThreadSet::EMPTY, None);
        if awake.is_empty() {
            self.0.finish(trace, nodes)?;
            cut = Some(Cut::Covered);
        } else {
            backtrack = self.0.begin(trace, awake, &sleep);
        }
        Ok((Node { backtrack, sleep, taken: Vec::new() }, cut))
    }

    /// The running thread's step first, then the lowest thread's.
    fn next(&mut self, trace: &Trace<'_, S>, node: &mut Node) -> Option<(Choice, Vec<Choice>)> {
        let done = if B::SLEEP { &node.sleep } else { &node.taken };
        let choice = trace
            .enabled()
            .filter(|&thread| node.backtrack.contains(thread))
            .flat_map(|thread| trace.alternatives(thread))
            .find(|choice| !done.contains(choice))?;
        let sleep = if B::SLEEP { inherit(trace, &node.sleep, choice) } else { Vec::new() };
        node.sleep.push(choice);
        node.taken.push(choice);
        Some((choice, sleep))
    }
}

/// The steps that still sleep after `choice`.
pub(super) fn inherit<S: System>(
    trace: &Trace<'_, S>,
    sleep: &[Choice],
    choice: Choice,
) -> Vec<Choice> {
    let taken = trace.footprint(choice);
    let others = sleep.iter().filter(|other| other.thread != choice.thread);
    others.filter(|&&other| !trace.footprint(other).depends(&taken)).copied().collect()
}
