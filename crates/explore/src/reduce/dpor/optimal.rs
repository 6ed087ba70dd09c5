//! Optimal DPOR.
//!
//! **Paper.** Abdulla, Aronis, Jonsson, Sagonas, *Optimal Dynamic Partial Order Reduction* (POPL 2014), Algorithm 2.
//!
//! **Guarantees.** Exactly one execution of every trace, and none that is given up: assertions, deadlocks and terminal states survive, for
//! every kind of object, conditions that wait, `choose` and threads started at run time. Not every reachable
//! state is visited. With a bound on preemptions it is unsound.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | wut(E) | `Place::tree` |
//! | insert | [`WakeupTree::insert`] |
//! | WI | `covers`, and `wakeup::strip` |
//! | sleep(E) | `Place::sleep` |
//! | v = notdep(e, E).p | [`Reversal::sequence`] |
//!
//! **Deviations.**
//!
//! 1. The paper's processes do not block each other. How a race is reversed where they do is in `reversal`: no
//!    execution is begun that would have to be given up.
//! 2. Where the search is free to choose a thread, all alternatives of that thread are prescribed; so are those of the reversed step. The
//!    steps between keep their alternatives: others were prescribed where they were first chosen.
//!
//! **Cost.** Races are looked for at the end of every execution: O(length) for each race of the steps that it has not in common with the
//! one before, and for those others that are not settled, and a re-execution of the cut where it is not known whether the step could come
//! first. The trees hold what is still to be explored.

use super::reversal::{Owed, Reversal, Reversals};
use super::wakeup::{Event, THIS_ONE, WakeupTree};
use crate::cursor::Cursor;
use crate::execution::{Cut, Stop, Visitor};
use crate::reduce::trace::{Dependence, Tally, Trace};
use crate::save::save_fields;
use crate::system::System;

/// A place of the search.
#[derive(Default)]
struct Place {
    tree: WakeupTree,
    sleep: Vec<Event>,
}

save_fields!(Place { tree, sleep });

/// Explores every trace once, and nothing else.
pub fn optimal<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    dependence: Dependence,
) -> Result<Tally, Stop> {
    let mut reversals = Reversals::new(dependence);
    let (trace, mut tally) = (&mut Trace::new(cursor, dependence), Tally::default());
    // Places that were left: their memory is used again.
    let (mut places, mut left): (_, Vec<Place>) = (vec![Place::default()], Vec::new());
    match trace.resume(visitor)? {
        Some(paused) => (places, tally) = paused,
        None => enter(trace, visitor, &mut reversals, &mut tally, &mut places)?,
    }
    loop {
        trace.pause(&places, &tally, visitor)?;
        let Some(place) = places.last_mut() else { break };
        let Some((event, tree)) = place.tree.pop() else {
            let open = places.iter().rposition(|place| !place.tree.is_empty()).map_or(0, |open| open + 1);
            left.extend(places.drain(open..).rev());
            trace.rewind(open.saturating_sub(1));
            continue;
        };
        let mut next = left.pop().unwrap_or_default();
        if !tree.is_empty() {
            next.tree = tree;
        }
        next.sleep.clear();
        let stays = |other: &&Event| !other.is_related(event.choice, &event.footprint) || other.choice == event.choice;
        next.sleep.extend(place.sleep.iter().filter(stays).cloned());
        let failure = trace.step(event.choice)?;
        place.sleep.push(event);
        visitor.step(trace.cursor, failure)?;
        places.push(next);
        enter(trace, visitor, &mut reversals, &mut tally, &mut places)?;
    }
    Ok(tally)
}

/// Decides what to do at a new place.
fn enter<S: System>(
    trace: &mut Trace<'_, S>,
    visitor: &mut impl Visitor<S>,
    reversals: &mut Reversals<S>,
    tally: &mut Tally,
    places: &mut [Place],
) -> Result<(), Stop> {
    tally.nodes += 1;
    if trace.cursor.enabled().is_empty() {
        tally.executions += 1;
        visitor.end(trace.cursor)?;
        return reversals.of(trace, &mut Trees(places));
    }
    let Place { tree, sleep } = places.last_mut().expect("there is a place for every step, and one more");
    if !tree.is_empty() {
        return Ok(());
    }
    for thread in trace.enabled() {
        for (choice, footprint) in trace.next_steps(thread) {
            if !sleep.iter().any(|other| other.choice == choice) {
                tree.push(Event { choice, footprint: footprint.into_owned() });
            }
        }
        if !tree.is_empty() {
            return Ok(());
        }
    }
    tally.covered += 1;
    visitor.cut(trace.cursor, Cut::Covered)
}

/// What is prescribed along the execution.
struct Trees<'p>(&'p mut [Place]);

impl<S: System> Owed<S> for Trees<'_> {
    fn reversed(
        &mut self,
        trace: &Trace<'_, S>,
        reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
    ) -> Option<usize> {
        let Place { tree, sleep } = &mut self.0[reversal.common];
        let covered = sleep.iter().find_map(|asleep| covers(asleep, trace, reversal));
        covered.or_else(|| tree.insert(reversal.sequence(trace)))
    }
}

/// Whether a sleeping step is a weak initial of a reversal, and how many steps of the execution show that.
fn covers<S: System>(
    asleep: &Event,
    trace: &Trace<'_, S>,
    reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
) -> Option<usize> {
    let Reversal { between, last, .. } = reversal;
    let shown = last.shows(asleep);
    let mut between = between.clone().take_while(|&at| at < shown);
    match between.find(|&at| asleep.is_related(trace.cursor.choice(at), trace.touched(at))) {
        Some(at) => (trace.cursor.choice(at) == asleep.choice).then_some(at + 1),
        None if last.choice == asleep.choice => Some(shown),
        None => (!asleep.is_related(last.choice, last.footprint)).then_some(THIS_ONE),
    }
}
