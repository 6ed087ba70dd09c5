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
//! | v = notdep(e, E).p | `Reversal::sequence` |
//! | I(v) | `initials` |
//!
//! **Deviations.**
//!
//! 1. The paper's processes do not block each other. How a race is reversed where they do is in `reversal`.
//! 2. Races are looked for at the end of every execution, also of one that is given up, not step by step: what a thread
//!    touches after the reversal may depend on all steps that do not happen after the racing one. Seen too early, a wait for
//!    `y == 1` before a write of `x` does not conflict with another write of `x`.
//! 3. Threads are added to backtrack sets, steps to sleep sets: a thread that is tried is tried with all its
//!    alternatives, and those that sleep are left out one by one.
//!
//! **Cost.** Per execution O(length²) for its races, and a re-execution of a cut for each. No table.

use preempt_system::ThreadSet;

use super::reversal::{Reversal, Reversals};
use super::wakeup::Event;
use crate::cursor::Cursor;
use crate::execution::{Stop, Visitor};
use crate::reduce::trace::{Dependence, Tally, Trace};
use crate::reduce::walk::{Place, Policy, walk};
use crate::system::System;

/// Explores every trace once.
pub fn source<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    dependence: Dependence,
) -> Result<Tally, Stop> {
    walk(&mut Trace::new(cursor, dependence), visitor, &mut SourceSets(Reversals::new(dependence)))
}

struct SourceSets<S: System>(Reversals<S>);

impl<S: System> Policy<S> for SourceSets<S> {
    const SLEEP: bool = true;

    fn begin(&mut self, trace: &Trace<'_, S>, awake: ThreadSet) -> ThreadSet {
        trace.enabled().find(|&thread| awake.contains(thread)).into_iter().collect()
    }

    fn finish(&mut self, trace: &mut Trace<'_, S>, places: &mut [Place]) -> Result<(), Stop> {
        for Reversal { common, sequence } in self.0.of(trace, |_, _, _| false)? {
            let (place, initials) = (&mut places[common], initials(&sequence, trace.cursor.enabled_before(common)));
            let covers =
                |event: &&Event| place.backtrack.contains(event.choice.thread) || place.sleep.contains(&event.choice);
            if !initials.iter().any(covers) {
                // The step that was reversed, if it can come first.
                // If it begins with a thread that is held back here, whatever is possible has to be tried instead.
                match initials.last() {
                    Some(first) => place.backtrack.insert(first.choice.thread),
                    None => place.backtrack = trace.cursor.enabled_before(common),
                }
            }
        }
        Ok(())
    }
}

/// The steps with which a sequence can begin: those that depend on none before them, of threads that are there already.
fn initials(sequence: &[Event], enabled: ThreadSet) -> Vec<&Event> {
    let is_initial = |&at: &usize| {
        let event = &sequence[at];
        enabled.contains(event.choice.thread) && !sequence[..at].iter().any(|earlier| earlier.depends(event))
    };
    (0..sequence.len()).filter(is_initial).map(|at| &sequence[at]).collect()
}
