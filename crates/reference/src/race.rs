//! Data races of an execution, by the definition: two accesses to a plain variable by different threads, one
//! of them a write, that no chain of program order and synchronisation orders.

use std::collections::{BTreeMap, BTreeSet};

use crate::executions::Taken;
use crate::run::Location;

/// A race: the variable that is accessed without order.
pub type Race = Location;

/// The variables of an execution on which there is a race.
pub fn races(taken: &[Taken]) -> BTreeSet<Race> {
    // Which steps happen before each step, itself included. Quadratic, and obviously right.
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    let mut found = BTreeSet::new();
    for (number, step) in taken.iter().enumerate() {
        let mut earlier = BTreeSet::from([number]);
        for (other, known) in taken[..number].iter().enumerate().rev() {
            if !earlier.contains(&other) && (known.thread == step.thread || synchronise(known, step)) {
                earlier.extend(&before[other]);
            }
        }
        for (other, known) in taken[..number].iter().enumerate() {
            if !earlier.contains(&other) {
                found.extend(conflicts(known, step));
            }
        }
        before.push(earlier);
    }
    found
}

/// Whether two steps access the same synchronisation, one of them writing.
fn synchronise(first: &Taken, second: &Taken) -> bool {
    first
        .accesses
        .iter()
        .filter(|a| a.sync)
        .any(|a| second.accesses.iter().any(|b| b.sync && a.location == b.location && (a.write || b.write)))
}

/// The plain variables that two steps access, one of them writing.
fn conflicts(first: &Taken, second: &Taken) -> Vec<Race> {
    let writes = |taken: &Taken| {
        let mut writes: BTreeMap<Location, bool> = BTreeMap::new();
        for access in taken.accesses.iter().filter(|access| !access.sync) {
            *writes.entry(access.location.clone()).or_default() |= access.write;
        }
        writes
    };
    let (first, second) = (writes(first), writes(second));
    let both = first.iter().filter(|(location, wrote)| second.get(location).is_some_and(|w| *w || **wrote));
    both.map(|(location, _)| location.clone()).collect()
}
