//! Races between the steps of an execution.

use preempt_system::{Footprint, HbGraph, System, ThreadId};
use smallvec::SmallVec;

use crate::reduce::trace::Trace;

/// Some steps of an execution.
pub(super) type Steps = SmallVec<[usize; 8]>;

/// A step that was taken, or the look of a thread that has to wait: whose it is, what it touches,
/// and how many steps come before it.
pub(super) struct Look<'f> {
    pub(super) thread: ThreadId,
    pub(super) footprint: &'f Footprint,
    pub(super) at: usize,
}

/// The steps before `look` that it races with, latest first: of another thread, dependent, and not
/// already before the thread's last step; of those only the ones after which no other of them
/// happens. Of the steps at one location the frontier is enough: whatever else it depends on there
/// happens before these.
pub(super) fn races<S: System>(trace: &Trace<'_, S>, look: &Look<'_>) -> Steps {
    let (past, graph) = (before(trace, look), trace.graph());
    let frontier = |&(location, access)| graph.frontier(look.at, location, access);
    let concurrent = |&at: &usize| graph.thread(at) != look.thread && !past(at);
    maximal(graph, look.footprint.accesses().iter().flat_map(frontier).filter(concurrent))
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

/// Whether a step happens before all that the thread of `look` does from there on.
pub(super) fn before<'t, S: System>(
    trace: &'t Trace<'_, S>,
    look: &Look<'_>,
) -> impl Fn(usize) -> bool + 't {
    // If the look is a step of the execution, its thread's past is that of the step before.
    let graph = trace.graph();
    let own = match look.at < trace.len() && graph.thread(look.at) == look.thread {
        true => graph.previous(look.at),
        false => graph.last_of(look.thread, |at| at < look.at),
    };
    past(trace, look.thread, own)
}

/// Whether a step happens before all that a thread does after its step `own`, or after it was
/// started.
pub(super) fn past<'t, S: System>(
    trace: &'t Trace<'_, S>,
    thread: ThreadId,
    own: Option<usize>,
) -> impl Fn(usize) -> bool + 't {
    let graph = trace.graph();
    let clock = own.or_else(|| trace.start(thread)).map(|at| graph.step_clock(at));
    move |at| clock.is_some_and(|clock| clock.includes(graph.epoch(at)))
}
