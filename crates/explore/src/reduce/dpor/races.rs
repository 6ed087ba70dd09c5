//! Races between the steps of an execution, and which thread has to be tried to reverse one.

use preempt_system::{Choice, Footprint, Model, ThreadId, ThreadSet};

use crate::reduce::trace::Trace;
use crate::reduce::walk::Place;

/// A step that was taken, or the look of a thread that has to wait: whose it is, what it touches, and how many steps come before it.
pub(super) struct Look<'f> {
    pub(super) thread: ThreadId,
    pub(super) footprint: &'f Footprint,
    pub(super) at: usize,
}

/// The steps before `look` that it races with, latest first: of another thread, dependent, and not already before the
/// thread's last step; of those only the ones after which no other of them happens.
pub(super) fn races<M: Model>(trace: &Trace<'_, '_, M>, look: &Look<'_>) -> Vec<usize> {
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
pub(super) fn before<'t, M: Model>(trace: &'t Trace<'_, '_, M>, look: &Look<'_>) -> impl Fn(usize) -> bool + 't {
    // If the look is a step of the execution, its thread's past is that of the step before.
    let own = (0..look.at).rev().find(|&at| trace.graph.step(at).thread == look.thread);
    let clock = match own {
        Some(at) => Some(trace.graph.step_clock(at)),
        None => trace.start(look.thread).map(|at| trace.graph.step_clock(at)),
    };
    move |at| clock.is_some_and(|clock| clock.includes(trace.graph.step(at).epoch()))
}

/// The threads with which an execution can begin that has the look before the step `race`: what happens not after `race`,
/// then the look. For each the step it begins with, if it is not the look.
pub(super) fn initials<M: Model>(
    trace: &Trace<'_, '_, M>,
    race: usize,
    look: &Look<'_>,
) -> Vec<(ThreadId, Option<Choice>)> {
    let mut rest: Vec<usize> = Vec::new();
    let (mut seen, mut initials) = (ThreadSet::EMPTY, Vec::new());
    for at in race + 1..look.at {
        if trace.graph.happens_before(race, at) {
            continue;
        }
        let thread = trace.graph.step(at).thread;
        if !seen.contains(thread) && !rest.iter().any(|&earlier| trace.graph.happens_before(earlier, at)) {
            initials.push((thread, Some(trace.cursor.choice(at))));
        }
        seen.insert(thread);
        rest.push(at);
    }
    let after = before(trace, look);
    let depends = |at: usize| after(at) || trace.touched(at).depends(look.footprint);
    if !seen.contains(look.thread) && !rest.iter().any(|&earlier| depends(earlier)) {
        initials.push((look.thread, None));
    }
    initials
}

/// Whether an execution that begins with one of these threads is explored from a place, or was before it.
pub(super) fn is_covered(place: &Place, initials: &[(ThreadId, Option<Choice>)]) -> bool {
    initials.iter().any(|(thread, step)| {
        place.backtrack.contains(*thread) || step.is_some_and(|choice| place.sleep.contains(&choice))
    })
}
