//! Races between the steps of an execution.

use preempt_system::{Footprint, ThreadId};
use smallvec::SmallVec;

use crate::reduce::trace::Trace;
use crate::system::System;

/// Some steps of an execution.
pub(super) type Steps = SmallVec<[usize; 8]>;

/// A step that was taken, or the look of a thread that has to wait: whose it is, what it touches, and how many steps come before it.
pub(super) struct Look<'f> {
    pub(super) thread: ThreadId,
    pub(super) footprint: &'f Footprint,
    pub(super) at: usize,
}

/// The steps before `look` that it races with, latest first: of another thread, dependent, and not already before the
/// thread's last step; of those only the ones after which no other of them happens. Of the steps at one location the frontier is enough:
/// whatever else it depends on there happens before these.
pub(super) fn races<S: System>(trace: &Trace<'_, S>, look: &Look<'_>) -> Steps {
    let (past, graph, accesses) = (before(trace, look), trace.graph(), look.footprint.accesses());
    let mut candidates = Steps::new();
    for &(location, access) in accesses {
        candidates.extend(graph.frontier(look.at, location, access));
    }
    if accesses.len() > 1 {
        candidates.sort_unstable_by(|one, other| other.cmp(one));
        candidates.dedup();
    }
    let mut racing = Steps::new();
    for at in candidates {
        let concurrent = graph.step(at).thread != look.thread && !past(at);
        if concurrent && !racing.iter().any(|&later| graph.happens_before(at, later)) {
            racing.push(at);
        }
    }
    racing
}

/// Whether a step happens before all that the thread of `look` does from there on.
pub(super) fn before<'t, S: System>(trace: &'t Trace<'_, S>, look: &Look<'_>) -> impl Fn(usize) -> bool + 't {
    // If the look is a step of the execution, its thread's past is that of the step before.
    let graph = trace.graph();
    let own = match look.at < trace.len() && graph.step(look.at).thread == look.thread {
        true => graph.previous(look.at),
        false => (0..look.at).rev().find(|&at| graph.step(at).thread == look.thread),
    };
    let clock = own.or_else(|| trace.start(look.thread)).map(|at| graph.step_clock(at));
    move |at| clock.is_some_and(|clock| clock.includes(graph.step(at).epoch()))
}
