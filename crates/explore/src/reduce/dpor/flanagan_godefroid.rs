//! Dynamic partial-order reduction as it was first published: the papers' baseline.
//!
//! **Paper.** Flanagan, Godefroid, *Dynamic Partial-Order Reduction for Model Checking Software*
//! (POPL 2005), Figure 3.
//!
//! **Guarantees.** Without sleep sets, every trace at least once: assertions, deadlocks and
//! terminal states survive. **With sleep sets it is incomplete**: it loses one of the four traces
//! of program N of the zoo, because it considers the last race only; it exists to show that. Use
//! [`source`](super::source()) instead.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | backtrack(s) | `Node::backtrack` |
//! | next(s, p) | the next step of a thread, enabled or not |
//! | the last transition i that is dependent and not before p | `reverse` |
//!
//! **Deviations.**
//!
//! 1. "May be co-enabled" is not asked: which objects exclude each other is not known here.
//!    Instead, where the thread is not enabled before the last race, the race before that is
//!    considered too. With steps that touch several locations this is necessary: a thread that
//!    waits for `x` and then writes `a` would never be moved before an access to `a`, because the
//!    last race is always the one that ends its wait.
//! 2. Of the threads in the paper's set E the one that moves next is taken if it is in it, else the
//!    first.
//! 3. A step with several accesses is reversed before *every* step that it races with, by trying
//!    all enabled threads there. The paper's transitions touch the same wherever they are taken, so
//!    that the last race is enough: the others are seen again from its reverse. Here `a[y] = 1` in
//!    one step touches `a[0]` after `y = 0` and `a[1]` before it. Its last race may be with that
//!    very write, and from its reverse no race at `a[0]` is ever seen. (Found with `l = a[x]` in
//!    parallel with `y = 0; l = x % z` and `a[y] = 1`, at points of synchronisation: one of three
//!    traces was lost.)
//! 4. The paper looks for the last race of every thread's next transition in every state. Here that
//!    is skipped for a thread if the last step neither changed the thread's next step nor depends
//!    on it: then its last race is the one that was found before that step. The first half of the
//!    condition matters for threads that wait for one thing after another. A thread in `wait` reads
//!    the condition variable until it is notified, and the mutex from then on. The notification is
//!    independent of the mutex; it still reveals a race with the last owner of the mutex, which the
//!    first attempt did not have. (An earlier version compared the last step with the new attempt
//!    only, and lost one of four traces, with an assertion in it, of
//!    `m.lock(); c.wait(m); assert false` in parallel with `m.lock()` and `c.notify_one()`.)
//!
//! **Cost.** Per step O(length · threads). No table. Many times the traces where there are locks.

use preempt_system::{Access, Choice, Location, LocationKind, System, ThreadSet};

use super::races::{Attempt, before};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::plan::Dependence;
use crate::reduce::backtrack::{Backtrack, Backtracking, Node};
use crate::reduce::policy::ReducedSearch;
use crate::reduce::trace::{ReductionStats, Trace};

/// Whether steps that were explored sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sleep {
    /// They do not.
    #[default]
    Never,
    /// They do, and traces are lost.
    Incomplete,
}

/// Explores every trace at least once, or, with sleep sets, at most once.
pub fn flanagan_godefroid<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    dependence: Dependence,
    sleep: Sleep,
) -> Result<ReductionStats, Stop<S::Need>> {
    match sleep {
        Sleep::Never => strategy(cursor, dependence).run(visitor),
        Sleep::Incomplete => {
            ReducedSearch::new(cursor, dependence, Backtrack(LastRace::<true>)).run(visitor)
        }
    }
}

/// The complete variant as a strategy.
pub(crate) fn strategy<S: System>(
    cursor: &mut Cursor<S>,
    dependence: Dependence,
) -> ReducedSearch<'_, S, Backtrack<LastRace<false>>> {
    ReducedSearch::new(cursor, dependence, Backtrack(LastRace))
}

/// Tries one thread, and more where the last race has to be reversed.
pub(crate) struct LastRace<const SLEEP: bool>;

impl<S: System, const SLEEP: bool> Backtracking<S> for LastRace<SLEEP> {
    const SLEEP: bool = SLEEP;

    fn begin(&mut self, trace: &Trace<'_, S>, awake: ThreadSet, _: &[Choice]) -> ThreadSet {
        trace.enabled().find(|&thread| awake.contains(thread)).into_iter().collect()
    }

    fn reconsider(&mut self, trace: &Trace<'_, S>, nodes: &mut [Node]) {
        for thread in trace.slots() {
            for footprint in trace.attempts(thread) {
                // Otherwise its last race was found before (deviation 4).
                if trace.may_change_last_race(thread, &footprint) {
                    let attempt = Attempt { thread, footprint: &footprint, at: trace.len() };
                    reverse(trace, nodes, &attempt);
                }
            }
        }
    }
}

/// Adds to the node before the last race of `attempt` a thread that leads to its reverse. Where
/// there is none, all are added, and the race before it is considered too.
fn reverse<S: System>(trace: &Trace<'_, S>, nodes: &mut [Node], attempt: &Attempt<'_>) {
    let past = before(trace, attempt);
    let races = |&at: &usize| {
        trace.graph().thread(at) != attempt.thread
            && !past(at)
            && trace.touched(at).depends(attempt.footprint)
    };
    // Its own start and end are part of a step wherever it is taken.
    let is_other = |&&(location, _): &&(Location, Access)| {
        trace.cursor.system().location_kind(location) != LocationKind::Life(attempt.thread)
    };
    let has_several = attempt.footprint.accesses().iter().filter(is_other).nth(1).is_some();
    for race in (0..attempt.at).rev().filter(races) {
        let enabled = trace.cursor.enabled_before(race);
        // The thread itself, or one whose step after the race happens before the attempt.
        let helps = |at: usize| past(at) && enabled.contains(trace.graph().thread(at));
        let helper =
            (race + 1..attempt.at).find(|&at| helps(at)).map(|at| trace.graph().thread(at));
        let node = &mut nodes[race];
        if has_several {
            node.backtrack = enabled;
            continue;
        }
        match Some(attempt.thread).filter(|&thread| enabled.contains(thread)).or(helper) {
            Some(thread) => return node.backtrack.insert(thread),
            None => node.backtrack = enabled,
        }
    }
}
