//! Source-DPOR with sleep sets.
//!
//! **Paper.** Abdulla, Aronis, Jonsson, Sagonas, *Optimal Dynamic Partial Order Reduction* (POPL
//! 2014), Algorithm 1; the best unbounded search that keeps no table and no tree.
//!
//! **Guarantees.** Exactly one complete execution of every trace: assertions, deadlocks and
//! terminal states survive, for every kind of object, conditions that wait, `choose` and threads
//! started at run time. Some executions may be abandoned because all enabled steps sleep. Not every
//! reachable state is visited. With a bound on preemptions it is unsound.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | backtrack(E) | `Node::backtrack` |
//! | e in a race with next(p) | `races::races` |
//! | v = notdep(e, E).p | `Reversal::sequence` |
//! | I(v) | `initials` |
//!
//! **Deviations.**
//!
//! 1. The paper's processes do not block each other. How a race is reversed where they do is in
//!    `reversal`.
//! 2. Races are searched for at the end of every execution, even an abandoned one, and not step by
//!    step: the footprint of a step after the reversal may depend on all steps that do not happen
//!    after the racing one. Checked too early, a wait for `y == 1` before a write of `x` does not
//!    conflict with another write of `x`.
//! 3. Threads are added to backtrack sets, steps to sleep sets: a thread that is tried is tried
//!    with all its alternatives, and those that sleep are left out one by one.
//! 4. A node begins with a thread none of whose alternatives sleeps, unless all of them touch the
//!    same; where there is none, with all threads that are awake.
//!
//! **What was wrong before.** A node began with any thread of which one alternative was awake. The
//! paper's proof takes an execution that is not covered, considers the event in it of the thread
//! that the node began with, and finds it in a race after the same event was explored first. Of a
//! thread with alternatives that event may be the one that sleeps: it is not explored here, the
//! alternative that is explored instead may be independent of all others, and so nothing here shows
//! the race. Deviation 4 restores the proof: either all alternatives of the first thread are
//! explored here, or the first step of every execution is tried or sleeps. If all alternatives
//! touch the same, they have the same races. The smallest program we know:
//! `atomic { choose { l = y; } or { y += 1; } }` after a read of `x`, in parallel with `y = 0` and
//! a thread that chooses between `y += 1` and `x`, loses 2 of 35 traces.
//!
//! **Cost.** Per execution O(length) for each of its races, and a re-execution of a cut for those
//! for which the execution before had another cut. No table.

use preempt_system::{Choice, System, ThreadId, ThreadSet};

use super::reversal::{Prescribe, Reversal, Reversals};
use super::wakeup::{Prescription, SequenceStep, THIS_ONE};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::plan::Dependence;
use crate::reduce::backtrack::{Backtrack, Backtracking, Node};
use crate::reduce::policy::ReducedSearch;
use crate::reduce::trace::{ReductionStats, Trace};

/// Explores every trace once.
pub fn source<S: System>(
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
) -> ReducedSearch<'_, S, Backtrack<SourceSets<S>>> {
    ReducedSearch::new(cursor, dependence, Backtrack(SourceSets(Reversals::new(dependence))))
}

/// Tries one thread, and more where races have to be reversed.
pub(crate) struct SourceSets<S: System>(Reversals<S>);

impl<S: System> Backtracking<S> for SourceSets<S> {
    const SLEEP: bool = true;

    fn begin(&mut self, trace: &Trace<'_, S>, awake: ThreadSet, sleep: &[Choice]) -> ThreadSet {
        let is_awake = |&thread: &ThreadId| {
            let whole = |thread| !trace.alternatives(thread).any(|choice| sleep.contains(&choice));
            awake.contains(thread) && (!trace.cursor.pending(thread).varies() || whole(thread))
        };
        trace.enabled().find(is_awake).map_or(awake, |thread| ThreadSet::EMPTY.with(thread))
    }

    fn finish(
        &mut self,
        trace: &mut Trace<'_, S>,
        nodes: &mut [Node],
    ) -> Result<(), Stop<S::Need>> {
        self.0.of(trace, &mut BacktrackSets(nodes))
    }
}

struct BacktrackSets<'p>(&'p mut [Node]);

impl<S: System> Prescribe<S> for BacktrackSets<'_> {
    fn prescribe(
        &mut self,
        trace: &Trace<'_, S>,
        reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
    ) -> Prescription {
        let enabled = trace.cursor.enabled_before(reversal.common);
        let sequence: Vec<SequenceStep<'_>> = reversal.sequence(trace).collect();
        let (node, initials) = (&mut self.0[reversal.common], initials(&sequence, enabled));
        let covers =
            |choice: &Choice| node.backtrack.contains(choice.thread) || node.sleep.contains(choice);
        if initials.iter().any(covers) {
            return Prescription::Covered(THIS_ONE);
        }
        // The step that was reversed, if it can come first. If that is a step of a thread that is
        // held back here, every enabled thread has to be tried instead.
        match initials.last() {
            Some(first) => node.backtrack.insert(first.thread),
            None if node.backtrack == enabled => return Prescription::Covered(THIS_ONE),
            None => node.backtrack = enabled,
        }
        Prescription::Prescribed
    }
}

/// The steps with which a sequence can begin: those that depend on none before them, of threads
/// that are there already.
fn initials(sequence: &[SequenceStep<'_>], enabled: ThreadSet) -> Vec<Choice> {
    let depends = |one: &SequenceStep<'_>, other: &SequenceStep<'_>| {
        one.choice.thread == other.choice.thread || one.footprint.depends(other.footprint)
    };
    let is_initial = |&at: &usize| {
        let step = &sequence[at];
        enabled.contains(step.choice.thread)
            && !sequence[..at].iter().any(|earlier| depends(earlier, step))
    };
    (0..sequence.len()).filter(is_initial).map(|at| sequence[at].choice).collect()
}
