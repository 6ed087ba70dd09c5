//! Optimal DPOR.
//!
//! **Paper.** Abdulla, Aronis, Jonsson, Sagonas, *Optimal Dynamic Partial Order Reduction* (POPL
//! 2014), Algorithm 2.
//!
//! **Guarantees.** Exactly one execution of every trace, and none that is abandoned: assertions,
//! deadlocks and terminal states survive, for every kind of object, conditions that wait, `choose`
//! and threads started at run time. Not every reachable state is visited. With a bound on
//! preemptions it is unsound.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | wut(E) | `Node::tree` |
//! | insert | [`WakeupTree::insert`] |
//! | WI | `covers`, and `wakeup::strip` |
//! | sleep(E) | `Node::sleep` |
//! | v = notdep(e, E).p | [`Reversal::sequence`] |
//!
//! **Deviations.**
//!
//! 1. The paper's processes do not block each other. How a race is reversed where they do is in
//!    `reversal`: no execution is started that would have to be abandoned.
//! 2. Where the search is free to choose a thread, all alternatives of that thread are prescribed;
//!    so are those of the reversed step. The steps between keep their alternatives: others were
//!    prescribed where they were first chosen.
//! 3. Events are steps with their alternative, and each alternative has a footprint of its own.
//!    Where a *weak* initial, which has no step in the sequence, is one of several alternatives,
//!    the sequence is continued with each alternative of its thread, and each continuation is
//!    covered or prescribed by itself ([`Prescription::Open`]). A system that cannot answer for the
//!    continuations (a closure, whose alternatives all touch the same) is spared this.
//!
//! **Alternatives.** The paper's processes are deterministic, and its proof uses this in one place.
//! Let the search be done with a node E, and w be a continuation that was not explored, such that
//! no explored or sleeping event is an initial of w. Of the explored events take the p that
//! commutes with the longest part of w. The next event of w depends on p; the search saw this race
//! after p and prescribed the reverse v, a part of w. So some explored or sleeping event q is a
//! weak initial of v. If q is in v it is an initial of w, against the assumption. If not, q
//! commutes with more of w than p does, against the choice of p: *because the event of q's thread
//! in w, which must come some time, is q*.
//!
//! With alternatives it may be another one, which was not explored at E, or does not commute with v
//! at all. An earlier version overlooked that, and treated v as covered by q. In
//! `atomic { choose { skip; } or { y += 1; } }` in parallel with `y = 2`, after `skip` and after
//! `y += 1` were explored first, the race of `y += 1` with `y = 2` was dropped because `skip`
//! commutes with `y = 2`, and nothing ever did `y += 1` last.
//!
//! Now v is continued by q', for each alternative q' that the thread has after v. Let q* be the
//! event of this thread in w. If it is one of these and commutes with what w has before it beyond
//! v, then v.q* is a part of w, longer than v, that is covered by something, and the argument
//! continues from there; it ends because each time one thread more has a step in the sequence. Else
//! some event g of w depends on one of the alternatives: otherwise the thread would have the same
//! alternatives, with the same footprints, when its turn comes in w. That alternative is explored
//! too, after v or, if it commutes with v, at E; its race with g is seen there, and prescribes a
//! part of w that is longer than v. It is not enough to continue where alternatives touch different
//! things: of alternatives that touch the same, one may have been prescribed at E by itself, as a
//! step between, and then no race shows the others at E (one such program lost 5 of 49 traces).
//!
//! Nothing is explored twice: what is prescribed has no explored or sleeping event as a weak
//! initial, as in the paper, and is the beginning of an execution. `bench/tests/suite/points.rs`
//! compares the number of executions with all happens-before graphs.
//!
//! **Cost.** Races are searched for at the end of every execution: O(length) for each race of the
//! steps that it does not share with the previous execution, and for those earlier races that are
//! not settled, and a re-execution of the cut where it is not known whether the step could come
//! first. The trees hold what is still to be explored.

use preempt_system::{Choice, System};

use super::reversal::{Prescribe, Reversal, Reversals};
use super::wakeup::{Event, Prescription, THIS_ONE, WakeupTree};
use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Cut, Stop, Visitor};
use crate::plan::Dependence;
use crate::reduce::policy::{Entered, Policy, ReducedSearch};
use crate::reduce::trace::{ReductionStats, Trace};

/// The execution before one of its steps.
#[derive(Default)]
pub(crate) struct Node {
    tree: WakeupTree,
    sleep: Vec<Event>,
}

save_fields!(Node { tree, sleep });

/// Explores every trace exactly once.
pub fn optimal<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    dependence: Dependence,
) -> Result<ReductionStats, Stop<S::Need>> {
    strategy(cursor, dependence).run(visitor)
}

/// The search as a strategy.
pub(crate) fn strategy<S: System>(
    cursor: &mut Cursor<S>,
    dependence: Dependence,
) -> ReducedSearch<'_, S, WakeupTrees<S>> {
    let policy = WakeupTrees { reversals: Reversals::new(dependence), left: Vec::new() };
    ReducedSearch::new(cursor, dependence, policy)
}

/// Takes the steps that the wakeup trees prescribe, and where they prescribe none, all of one
/// thread.
pub(crate) struct WakeupTrees<S: System> {
    reversals: Reversals<S>,
    /// Nodes that the search has left, kept to reuse their memory.
    left: Vec<Node>,
}

impl<S: System> Policy<S> for WakeupTrees<S> {
    type Node = Node;
    type Arrival = Node;

    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        mut node: Node,
        nodes: &mut [Node],
        _: &mut ReductionStats,
    ) -> Entered<Node, S::Need> {
        if trace.cursor.enabled().is_empty() {
            self.reversals.of(trace, &mut Trees(nodes))?;
            return Ok((node, None));
        }
        let Node { tree, sleep } = &mut node;
        let mut threads = trace.enabled();
        while tree.is_empty() {
            let Some(thread) = threads.next() else { return Ok((node, Some(Cut::Covered))) };
            let chooses = trace.chooses(trace.cursor.pending(thread));
            for (choice, footprint) in trace.next_steps(thread) {
                if !sleep.iter().any(|other| other.choice == choice) {
                    tree.push(Event { choice, footprint: footprint.into_owned(), chooses });
                }
            }
        }
        Ok((node, None))
    }

    fn next(&mut self, _: &Trace<'_, S>, node: &mut Node) -> Option<(Choice, Node)> {
        let (event, tree) = node.tree.pop()?;
        let mut next = self.left.pop().unwrap_or_default();
        if !tree.is_empty() {
            next.tree = tree;
        }
        next.sleep.clear();
        debug_assert!(
            !node.sleep.iter().any(|other| other.choice == event.choice),
            "a sleeping step is never taken"
        );
        let stays = |other: &&Event| !other.is_related(event.choice, &event.footprint);
        next.sleep.extend(node.sleep.iter().filter(stays).cloned());
        let choice = event.choice;
        node.sleep.push(event);
        Some((choice, next))
    }

    fn leave(&mut self, _: &Trace<'_, S>, node: Node, _: Option<&mut Node>) {
        self.left.push(node);
    }

    /// Nothing is prescribed at a node whose tree is empty.
    fn unfinished(nodes: &[Node]) -> usize {
        nodes.iter().rposition(|node| !node.tree.is_empty()).map_or(0, |open| open + 1)
    }
}

/// The wakeup trees along the execution.
struct Trees<'p>(&'p mut [Node]);

impl<S: System> Prescribe<S> for Trees<'_> {
    fn prescribe(
        &mut self,
        trace: &Trace<'_, S>,
        reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
    ) -> Prescription {
        let Node { tree, sleep } = &mut self.0[reversal.common];
        let mut open = None;
        for asleep in sleep.iter() {
            match covers(asleep, trace, reversal) {
                Some(Prescription::Open { also, thread }) => {
                    open = Some(Prescription::Open { also, thread })
                }
                Some(covered) => return covered,
                None => {}
            }
        }
        open.unwrap_or_else(|| tree.insert(reversal.sequence(trace)))
    }
}

/// Whether a sleeping step is a weak initial of a reversal, and how many steps of the execution
/// show that.
fn covers<S: System>(
    asleep: &Event,
    trace: &Trace<'_, S>,
    reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
) -> Option<Prescription> {
    let Reversal { between, last, .. } = reversal;
    let (last, more) = last.split_first().expect("a reversal ends with the step that was reversed");
    let shown = last.shows(asleep);
    let mut between = between.clone().take_while(|&at| at < shown);
    match between.find(|&at| asleep.is_related(trace.cursor.choice(at), trace.touched(at))) {
        Some(at) => {
            (trace.cursor.choice(at) == asleep.choice).then_some(Prescription::Covered(at + 1))
        }
        None if last.choice == asleep.choice => Some(Prescription::Covered(shown)),
        None if asleep.is_related(last.choice, last.footprint) => None,
        None => match more.iter().find(|step| asleep.is_related(step.choice, step.footprint)) {
            Some(step) => (step.choice == asleep.choice).then_some(Prescription::Covered(THIS_ONE)),
            None if asleep.chooses => {
                Some(Prescription::Open { also: Vec::new(), thread: asleep.choice.thread })
            }
            None => Some(Prescription::Covered(THIS_ONE)),
        },
    }
}
