//! Data races of an execution, by definition: two accesses to a plain variable by different
//! threads, at least one of them a write, that no chain of program order and synchronisation
//! orders.
//!
//! A step may do several things at once. Its synchronisation comes first, then its accesses to
//! plain variables, then the end of its thread. A thread that synchronises with a step is therefore
//! not ordered after the plain accesses of that step.

use std::collections::{BTreeMap, BTreeSet};

use crate::executions::Taken;
use crate::run::{Access, Location};

/// A race, identified by the variable.
pub type Race = Location;

/// The locations that an event accesses, and whether it writes them.
type Accesses<'t> = BTreeMap<&'t Location, bool>;

/// A part of a step: its synchronisation, its accesses to plain variables, or its end.
struct Event<'t> {
    thread: usize,
    plain: bool,
    accesses: Accesses<'t>,
}

/// The variables on which an execution has a race.
pub fn races(taken: &[Taken]) -> BTreeSet<Race> {
    let events = events(taken);
    // For each event, which events happen before it, including itself. Quadratic, but obviously
    // correct; the number of steps is limited.
    let mut before: Vec<Vec<bool>> = Vec::new();
    let mut found = BTreeSet::new();
    for (number, event) in events.iter().enumerate() {
        let mut earlier = vec![false; number + 1];
        earlier[number] = true;
        for (other, known) in events[..number].iter().enumerate().rev() {
            if !earlier[other] && (known.thread == event.thread || synchronise(known, event)) {
                let marks = earlier.iter_mut().zip(&before[other]);
                marks.for_each(|(mark, &known)| *mark |= known);
            }
        }
        for (other, known) in events[..number].iter().enumerate() {
            if !earlier[other] && known.plain && event.plain {
                found.extend(conflicts(known, event).cloned());
            }
        }
        before.push(earlier);
    }
    found
}

/// The parts of all steps, in order.
fn events(taken: &[Taken]) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    for step in taken {
        let part = |access: &Access| match &access.location {
            Location::Thread(number) if *number == step.thread && access.write => 2,
            _ if !access.sync => 1,
            _ => 0,
        };
        for number in 0..3 {
            let mut accesses = Accesses::new();
            for access in step.accesses.iter().filter(|access| part(access) == number) {
                *accesses.entry(&access.location).or_default() |= access.write;
            }
            if !accesses.is_empty() {
                events.push(Event { thread: step.thread, plain: number == 1, accesses });
            }
        }
    }
    events
}

/// Whether two events access the same synchronisation location, at least one of them writing.
fn synchronise(first: &Event<'_>, second: &Event<'_>) -> bool {
    !first.plain && !second.plain && conflicts(first, second).next().is_some()
}

/// The locations that two events access, at least one of them writing.
fn conflicts<'t>(
    first: &'t Event<'_>,
    second: &'t Event<'_>,
) -> impl Iterator<Item = &'t Location> {
    let both = first.accesses.iter().filter(|(location, wrote)| {
        second.accesses.get(*location).is_some_and(|writes| *writes || **wrote)
    });
    both.map(|(location, _)| *location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Root;

    fn step(thread: usize, accesses: &[(usize, bool, bool)]) -> Taken {
        let access = |&(number, write, sync): &(usize, bool, bool)| Access {
            location: Location::Shared(Root::Global(number), Vec::new()),
            write,
            sync,
        };
        Taken { thread, alternative: 0, accesses: accesses.iter().map(access).collect() }
    }

    #[test]
    fn synchronisation_orders_what_comes_before_it() {
        let (write, read, sync) = ((0, true, false), (0, false, false), (1, true, true));
        assert_eq!(races(&[step(0, &[write]), step(1, &[read])]).len(), 1);
        assert_eq!(races(&[step(0, &[read]), step(1, &[read])]).len(), 0);
        let ordered = [step(0, &[write]), step(0, &[sync]), step(1, &[sync]), step(1, &[read])];
        assert_eq!(races(&ordered).len(), 0);
        // The synchronisation of a step comes before its plain accesses.
        assert_eq!(races(&[step(0, &[write, sync]), step(1, &[sync, read])]).len(), 1);
    }
}
