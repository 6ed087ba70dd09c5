//! Races between the steps of an execution.

use preempt_system::{Footprint, HbGraph, System, ThreadId};
use smallvec::SmallVec;

use crate::reduce::trace::Trace;

/// Some steps of an execution.
pub(super) type Steps = SmallVec<[usize; 8]>;

/// A step that was taken, or the one that a waiting thread attempts: its thread, its footprint, and
/// the number of steps before it.
pub(super) struct Attempt<'f> {
    pub(super) thread: ThreadId,
    pub(super) footprint: &'f Footprint,
    pub(super) at: usize,
}

/// The steps before `attempt` that it races with, latest first: steps of other threads that are
/// dependent and do not happen before the thread's previous step, and of these the maximal ones
/// under happens-before. For each location its frontier is enough: everything else that the attempt
/// depends on there happens before the frontier.
pub(super) fn races<S: System>(trace: &Trace<'_, S>, attempt: &Attempt<'_>) -> Steps {
    let (past, graph) = (before(trace, attempt), trace.graph());
    let frontier = |&(location, access)| graph.frontier(attempt.at, location, access);
    let concurrent = |&at: &usize| graph.thread(at) != attempt.thread && !past(at);
    maximal(graph, attempt.footprint.accesses().iter().flat_map(frontier).filter(concurrent))
}

/// The maximal elements of some steps under happens-before, latest first.
pub(super) fn maximal(graph: &HbGraph, steps: impl Iterator<Item = usize>) -> Steps {
    let mut candidates = Steps::new();
    // There are few: pushing them is faster than collecting.
    steps.for_each(|at| candidates.push(at));
    if candidates.len() < 2 {
        return candidates;
    }
    candidates.sort_unstable_by(|one, other| other.cmp(one));
    candidates.dedup();
    let mut maximal = Steps::new();
    for at in candidates {
        if !maximal.iter().any(|&later| graph.happens_before(at, later)) {
            maximal.push(at);
        }
    }
    maximal
}

/// Whether a step happens before everything that the thread of `attempt` does from there on.
pub(super) fn before<'t, S: System>(
    trace: &'t Trace<'_, S>,
    attempt: &Attempt<'_>,
) -> impl Fn(usize) -> bool + 't {
    // If the attempt is a step of the execution, its thread's past is that of the step before.
    let graph = trace.graph();
    let own = match attempt.at < trace.len() && graph.thread(attempt.at) == attempt.thread {
        true => graph.previous(attempt.at),
        false => graph.last_of(attempt.thread, |at| at < attempt.at),
    };
    past(trace, attempt.thread, own)
}

/// Whether a step happens before everything that a thread does after its step `own`, or after its
/// start.
pub(super) fn past<'t, S: System>(
    trace: &'t Trace<'_, S>,
    thread: ThreadId,
    own: Option<usize>,
) -> impl Fn(usize) -> bool + 't {
    let graph = trace.graph();
    let clock = own.or_else(|| trace.start(thread)).map(|at| graph.step_clock(at));
    move |at| clock.is_some_and(|clock| clock.includes(graph.epoch(at)))
}

#[cfg(test)]
mod tests {
    use preempt_system::{Access, Choice, Location};

    use super::*;

    #[test]
    fn of_ordered_steps_the_last_is_maximal_and_each_is_listed_once() {
        let mut graph = HbGraph::new();
        // The second step happens after the first, the third is independent of both.
        for (thread, location) in [(0, 7), (1, 7), (2, 8)] {
            let choice = Choice::of(ThreadId::new(thread));
            graph.push(choice, &Footprint::one(Location(location), Access::Write));
        }
        let of = |steps: &[usize]| maximal(&graph, steps.iter().copied()).to_vec();
        assert_eq!(of(&[0, 1, 2, 1]), [2, 1]);
        assert_eq!(of(&[2, 0]), [2, 0]);
        assert_eq!(of(&[0, 1]), [1]);
        assert_eq!(of(&[0]), [0]);
    }
}
