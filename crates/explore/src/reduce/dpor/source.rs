//! Source-DPOR with sleep sets.
//!
//! **Paper.** Abdulla, Aronis, Jonsson, Sagonas, *Optimal Dynamic Partial Order Reduction* (POPL 2014), Algorithm 1; the best
//! unbounded search that keeps no table and no tree.
//!
//! **Guarantees.** Exactly one complete execution of every trace: assertions, deadlocks and terminal states survive, for every kind of
//! object, conditions that wait, `choose` and threads started at run time. Some executions may be given up asleep.
//! Not every reachable state is visited. With a bound on preemptions it is unsound.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | backtrack(E) | `Place::backtrack` |
//! | e in a race with next(p) | `races::races` |
//! | I_{E'}(v) with v = notdep(e, E).p | `races::initials` |
//!
//! **Deviations.**
//!
//! 1. The paper's processes do not block each other. Here the look of a thread that has to wait counts as a step that it takes and
//!    after which nothing comes: if it races with a step of the execution, that race is reversed like any other. This is what
//!    finds the order of two acquisitions behind the release that lies between them.
//! 2. If the reversed look would be the first thing at a place and its thread has to wait there too, all enabled threads are tried:
//!    one of them may be the one that ends the wait, and what the thread looks at does not say which.
//! 3. Threads are added to backtrack sets, steps to sleep sets: a thread that is tried is tried with all its
//!    alternatives, and those that sleep are left out one by one.
//!
//! **Cost.** Per step O(length · threads) for its races, O(length²) for each race that has to be reversed. No table.

use preempt_system::{Model, ThreadSet};

use super::races::{Look, initials, is_covered, races};
use crate::cursor::Cursor;
use crate::execution::{Stop, Visitor};
use crate::reduce::trace::{Dependence, Tally, Trace};
use crate::reduce::walk::{Place, Policy, walk};

/// Explores every trace once.
pub fn source<M: Model>(
    cursor: &mut Cursor<'_, M>,
    visitor: &mut impl Visitor<M>,
    dependence: Dependence,
) -> Result<Tally, Stop> {
    walk(&mut Trace::new(cursor, dependence), visitor, &mut SourceSets)
}

struct SourceSets;

impl<M: Model> Policy<M> for SourceSets {
    const SLEEP: bool = true;

    fn begin(&mut self, trace: &Trace<'_, '_, M>, awake: ThreadSet) -> ThreadSet {
        trace.enabled().find(|&thread| awake.contains(thread)).into_iter().collect()
    }

    fn reconsider(&mut self, trace: &Trace<'_, '_, M>, places: &mut [Place]) {
        let here = trace.len() - 1;
        let (thread, footprint) = (trace.graph.step(here).thread, trace.touched(here));
        reverse(trace, places, &Look { thread, footprint, at: here });
        for waiting in trace.slots() {
            // Else the same look was had before.
            if let Some(look) = trace.waits_for(waiting)
                && trace.is_news(waiting, &look)
            {
                reverse(trace, places, &Look { thread: waiting, footprint: &look, at: here + 1 });
            }
        }
    }
}

/// Sees to it that every race of `look` is reversed somewhere.
fn reverse<M: Model>(trace: &Trace<'_, '_, M>, places: &mut [Place], look: &Look<'_>) {
    for race in races(trace, look) {
        let (place, enabled) = (&mut places[race], trace.cursor.enabled_before(race));
        let initials = initials(trace, race, look);
        if is_covered(place, &initials) {
            continue;
        }
        let possible = || initials.iter().map(|&(thread, _)| thread).filter(|&thread| enabled.contains(thread));
        match possible().find(|&thread| thread == look.thread).or_else(|| possible().next()) {
            Some(thread) => place.backtrack.insert(thread),
            None => place.backtrack = enabled,
        }
    }
}
