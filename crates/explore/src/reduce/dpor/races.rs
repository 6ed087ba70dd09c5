//! Races between the steps of an execution.

use preempt_system::{Footprint, ThreadId};

use crate::reduce::trace::Trace;
use crate::system::System;

/// A step that was taken, or the look of a thread that has to wait: whose it is, what it touches, and how many steps come before it.
pub(super) struct Look<'f> {
    pub(super) thread: ThreadId,
    pub(super) footprint: &'f Footprint,
    pub(super) at: usize,
}

/// The steps before `look` that it races with, latest first: of another thread, dependent, and not already before the
/// thread's last step; of those only the ones after which no other of them happens.
pub(super) fn races<S: System>(trace: &Trace<'_, S>, look: &Look<'_>) -> Vec<usize> {
    let past = before(trace, look);
    let mut racing: Vec<usize> = Vec::new();
    for at in (0..look.at).rev() {
        let step = trace.graph.step(at);
        let concurrent = step.thread != look.thread && !past(at) && trace.touched(at).depends(look.footprint);
        if concurrent && !racing.iter().any(|&later| trace.graph.happens_before(at, later)) {
            racing.push(at);
        }
    }
    racing
}

/// Whether a step happens before all that the thread of `look` does from there on.
pub(super) fn before<'t, S: System>(trace: &'t Trace<'_, S>, look: &Look<'_>) -> impl Fn(usize) -> bool + 't {
    // If the look is a step of the execution, its thread's past is that of the step before.
    let own = (0..look.at).rev().find(|&at| trace.graph.step(at).thread == look.thread);
    let clock = match own {
        Some(at) => Some(trace.graph.step_clock(at)),
        None => trace.start(look.thread).map(|at| trace.graph.step_clock(at)),
    };
    move |at| clock.is_some_and(|clock| clock.includes(trace.graph.step(at).epoch()))
}
