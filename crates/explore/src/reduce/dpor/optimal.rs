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
//! | WI | `wakeup::is_weak_initial` |
//! | sleep(E) | `Place::sleep` |
//! | v = notdep(e, E).p | `Reversal::sequence` |
//!
//! **Deviations.**
//!
//! 1. The paper's processes do not block each other. How a race is reversed where they do is in `reversal`: no
//!    execution is begun that would have to be given up.
//! 2. Where the search is free to choose a thread, all alternatives of that thread are prescribed; so are those of the reversed step. The
//!    steps between keep their alternatives: others were prescribed where they were first chosen.
//!
//! **Cost.** Races are looked for at the end of every execution: O(length²) and a re-execution of the cut for each. The
//! trees hold what is still to be explored.

use preempt_system::Choice;
use smallvec::SmallVec;

use super::reversal::{Reversal, Reversals};
use super::wakeup::{Event, WakeupTree, is_weak_initial, is_weak_initial_of};
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
            left.extend(places.pop());
            trace.rewind(places.len().saturating_sub(1));
            continue;
        };
        let mut next = left.pop().unwrap_or_default();
        if !tree.is_empty() {
            next.tree = tree;
        }
        next.sleep.clear();
        let stays = |other: &&Event| is_weak_initial(other, std::slice::from_ref(&event));
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
    let place = places.last_mut().expect("there is a place for every step, and one more");
    if trace.cursor.enabled().is_empty() {
        tally.executions += 1;
        visitor.end(trace.cursor)?;
        let covered = |trace: &Trace<'_, S>, common: usize, steps: &[usize]| {
            let steps = steps.iter().map(|&at| (trace.cursor.choice(at), trace.touched(at)));
            places[common].sleep.iter().any(|asleep| is_weak_initial_of(asleep, steps.clone()))
        };
        for Reversal { common, sequence } in reversals.of(trace, covered)? {
            let Place { tree, sleep } = &mut places[common];
            if !sleep.iter().any(|asleep| is_weak_initial(asleep, &sequence)) {
                tree.insert(&sequence);
            }
        }
        return Ok(());
    }
    if !place.tree.is_empty() {
        return Ok(());
    }
    let awake = |&choice: &Choice| !place.sleep.iter().any(|other| other.choice == choice);
    let free = trace.enabled().map(|thread| trace.alternatives(thread).filter(awake).collect::<SmallVec<[_; 2]>>());
    let chosen = free.into_iter().find(|choices| !choices.is_empty()).unwrap_or_default();
    if chosen.is_empty() {
        tally.covered += 1;
        visitor.cut(trace.cursor, Cut::Covered)?;
    }
    for choice in chosen {
        place.tree.push(Event { choice, footprint: trace.footprint(choice).into_owned() });
    }
    Ok(())
}
