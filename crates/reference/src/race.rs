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

/// A part of a step.
struct Event<'t> {
    thread: usize,
    accesses: Vec<&'t Access>,
}

/// The variables on which an execution has a race.
pub fn races(taken: &[Taken]) -> BTreeSet<Race> {
    let mut events: Vec<Event<'_>> = Vec::new();
    for step in taken {
        let part = |access: &Access| match &access.location {
            Location::Thread(number) if *number == step.thread && access.write => 2,
            _ if !access.sync => 1,
            _ => 0,
        };
        for number in 0..3 {
            let accesses = step.accesses.iter().filter(|access| part(access) == number).collect();
            events.push(Event { thread: step.thread, accesses });
        }
    }
    // The set of events that happen before each event, including itself. Quadratic, but obviously
    // correct.
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    let mut found = BTreeSet::new();
    for (number, event) in events.iter().enumerate() {
        let mut earlier = BTreeSet::from([number]);
        for (other, known) in events[..number].iter().enumerate().rev() {
            if !earlier.contains(&other)
                && (known.thread == event.thread || synchronise(known, event))
            {
                earlier.extend(&before[other]);
            }
        }
        for (other, known) in events[..number].iter().enumerate() {
            if !earlier.contains(&other) {
                found.extend(conflicts(known, event));
            }
        }
        before.push(earlier);
    }
    found
}

/// Whether two events access the same synchronisation location, at least one of them writing.
fn synchronise(first: &Event<'_>, second: &Event<'_>) -> bool {
    first.accesses.iter().filter(|a| a.sync).any(|a| {
        second.accesses.iter().any(|b| b.sync && a.location == b.location && (a.write || b.write))
    })
}

/// The plain variables that two events access, at least one of them writing.
fn conflicts(first: &Event<'_>, second: &Event<'_>) -> Vec<Race> {
    let writes = |event: &Event<'_>| {
        let mut writes: BTreeMap<Location, bool> = BTreeMap::new();
        for access in event.accesses.iter().filter(|access| !access.sync) {
            *writes.entry(access.location.clone()).or_default() |= access.write;
        }
        writes
    };
    let (first, second) = (writes(first), writes(second));
    let both = first
        .iter()
        .filter(|(location, wrote)| second.get(location).is_some_and(|w| *w || **wrote));
    both.map(|(location, _)| location.clone()).collect()
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
