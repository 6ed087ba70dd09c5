//! The reductions over executions as depth-first searches: a [`Policy`] decides which steps to
//! take.

use preempt_system::{Choice, System};

use super::trace::{ReductionStats, Trace};
use crate::codec::{Damaged, Reader, Save, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::depth_first::{self, DepthFirst, Next};
use crate::engine::execution::{Cut, ResumableSearch, Stop, Visitor, run_to_end, take_again};
use crate::plan::Dependence;

/// A new node, and the reason if no step is taken there although some thread is enabled.
pub(crate) type Entered<P, N> = Result<(P, Option<Cut>), Stop<N>>;

/// Decides which steps a reduction takes. A *node* is the reduction's data about the execution
/// before one of its steps; there is one for every step, and one for the end.
pub(crate) trait Policy<S: System> {
    type Node: Save;

    /// The data that a node passes on to the node after its next step.
    type Arrival: Default;

    /// Enters the node at the end of the execution. `nodes` are those before it.
    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        arrival: Self::Arrival,
        nodes: &mut [Self::Node],
        stats: &mut ReductionStats,
    ) -> Entered<Self::Node, S::Need>;

    /// The next step to take at the last node.
    fn next(
        &mut self,
        trace: &Trace<'_, S>,
        node: &mut Self::Node,
    ) -> Option<(Choice, Self::Arrival)>;

    /// The last step of the trace was just taken.
    fn stepped(&mut self, trace: &Trace<'_, S>) {
        let _ = trace;
    }

    /// `node` is done; the trace still ends there. `parent` is the node before it.
    fn leave(&mut self, trace: &Trace<'_, S>, node: Self::Node, parent: Option<&mut Self::Node>) {
        let _ = (trace, node, parent);
    }

    /// The number of nodes that stay when the last one is done. A policy that knows that the
    /// nodes before it are done too skips them at once.
    fn unfinished(nodes: &[Self::Node]) -> usize {
        nodes.len() - 1
    }

    /// The execution was taken back to `len` steps.
    fn rewound(&mut self, len: usize) {
        let _ = len;
    }

    /// The memory of the policy's tables.
    fn bytes(&self) -> usize {
        0
    }

    /// Writes the policy's tables.
    fn save(&self, to: &mut Writer<'_>) {
        let _ = to;
    }

    /// Reads them.
    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        let _ = from;
        Ok(())
    }
}

/// A reduction in progress.
pub(crate) struct ReducedSearch<'c, S: System, P: Policy<S>> {
    trace: Trace<'c, S>,
    pub(super) nodes: Nodes<S, P>,
    /// The execution in which the search has paused, between [`ResumableSearch::load`] and
    /// [`ResumableSearch::replay`].
    paused: Vec<Choice>,
}

/// The nodes of the current execution, and the policy.
pub(crate) struct Nodes<S: System, P: Policy<S>> {
    pub(super) policy: P,
    list: Vec<P::Node>,
    pub(super) stats: ReductionStats,
}

impl<'c, S: System, P: Policy<S>> ReducedSearch<'c, S, P> {
    /// Starts at the cursor, which must be at the beginning of an execution.
    pub(super) fn new(cursor: &'c mut Cursor<S>, dependence: Dependence, policy: P) -> Self {
        let nodes = Nodes { policy, list: Vec::new(), stats: ReductionStats::default() };
        ReducedSearch { trace: Trace::new(cursor, dependence), nodes, paused: Vec::new() }
    }

    /// Explores everything, without checkpoints.
    pub(super) fn run(
        mut self,
        visitor: &mut impl Visitor<S>,
    ) -> Result<ReductionStats, Stop<S::Need>> {
        run_to_end(&mut self, visitor)?;
        Ok(self.nodes.stats)
    }
}

impl<'c, S: System, P: Policy<S>, V: Visitor<S>> DepthFirst<S, Trace<'c, S>, V> for Nodes<S, P> {
    type Step = P::Arrival;

    #[inline]
    fn next(&mut self, trace: &mut Trace<'c, S>, _: &mut V) -> Next<P::Arrival, S::Need> {
        let Nodes { policy, list, .. } = self;
        while let Some(node) = list.last_mut() {
            if let Some(next) = policy.next(trace, node) {
                return Ok(Some(next));
            }
            let unfinished = P::unfinished(list);
            while list.len() > unfinished {
                let node = list.pop().expect("more nodes than stay");
                policy.leave(trace, node, list.last_mut());
            }
            let len = list.len().saturating_sub(1);
            trace.rewind(len);
            policy.rewound(len);
        }
        Ok(None)
    }

    #[inline]
    fn taken(&mut self, trace: &Trace<'c, S>, visitor: &mut V) {
        self.policy.stepped(trace);
        visitor.holds(0, self.policy.bytes());
    }

    fn arrive(
        &mut self,
        trace: &mut Trace<'c, S>,
        arrival: P::Arrival,
        visitor: &mut V,
    ) -> Result<(), Stop<S::Need>> {
        let Nodes { policy, list, stats } = self;
        stats.nodes += 1;
        let is_end = trace.cursor.enabled().is_empty();
        if is_end {
            stats.executions += 1;
            visitor.end(trace.cursor)?;
        }
        let (node, cut) = policy.enter(trace, arrival, list, stats)?;
        list.push(node);
        if let Some(why) = cut.filter(|_| !is_end) {
            stats.covered += u64::from(why == Cut::Covered);
            visitor.cut(trace.cursor, why)?;
        }
        Ok(())
    }
}

impl<S: System, P: Policy<S>> ResumableSearch<S> for ReducedSearch<'_, S, P> {
    fn start(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        self.nodes.arrive(&mut self.trace, P::Arrival::default(), visitor)
    }

    #[inline]
    fn advance(&mut self, visitor: &mut impl Visitor<S>) -> Result<bool, Stop<S::Need>> {
        depth_first::advance(&mut self.nodes, &mut self.trace, visitor)
    }

    fn is_cut_by_bound(&self) -> bool {
        self.nodes.stats.bounded > 0
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.trace.cursor.schedule().steps().to_vec());
        to.put(&self.nodes.list);
        to.put(&self.nodes.stats);
        self.nodes.policy.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        (self.paused, self.nodes.list, self.nodes.stats) = from.get()?;
        self.nodes.policy.load(from)
    }

    fn replay(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        for choice in std::mem::take(&mut self.paused) {
            take_again(&mut self.trace, &[choice], visitor)?;
            self.nodes.policy.stepped(&self.trace);
        }
        Ok(())
    }
}
