//! Data races of an execution, by the footprints of its steps.
//!
//! **Paper.** icb, section 3.1.
//!
//! **Guarantees.** Precise for the execution given: two accesses to a plain variable by different
//! threads, at least one of them a write, are reported iff no chain of program order and
//! synchronisation orders them. The first race is the one whose second access comes first.
//!
//! **Map.** Happens-before of the paper, restricted to synchronisation: program order, and any two
//! accesses of the same synchronisation location of which one is a write, in the order in which
//! they were made. The clocks are those of [`RaceDetector`]: a read of a synchronisation location
//! acquires and releases it shared, a write exclusively.
//!
//! **Deviations.** 1. At least one write is needed: the printed definition reports read-only
//! sharing. 2. Two reads of a synchronisation location are not ordered: no thread can tell which of
//! them came first, and executions with the same happens-before graph have the same races only
//! then.
//!
//! **Cost.** O(threads) for every access; nothing is kept between executions.

use std::collections::HashMap;
use std::ops::ControlFlow;

use preempt_system::race::RaceDetector;
use preempt_system::{
    Access, Failure, FailureKind, Footprint, Location, LocationKind, System, ThreadId,
};

use crate::engine::cursor::Cursor;

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The plain variable.
    pub location: Location,
    /// The step of the earlier access, from 0.
    pub earlier: usize,
    /// The step of the later one.
    pub later: usize,
}

/// The failure of a race in the cursor's execution. It names both accesses where the system knows
/// their source positions.
pub fn failure<S: System>(cursor: &Cursor<S>, race: Race) -> Failure {
    let system = cursor.system();
    let name = system.location_name(race.location);
    let site = |at: usize| system.site(at, cursor.choice(at));
    let verb = |at: usize| verb(cursor.taken(at), race.location);
    let message = match (site(race.earlier), site(race.later)) {
        (Some(earlier), Some(later)) => format!(
            "one thread {} `{name}` ({earlier}), another {} it ({later}), and no synchronisation \
             orders them",
            verb(race.earlier),
            verb(race.later)
        ),
        _ => format!(
            "two threads access `{name}`, one of them writes, and no synchronisation orders them"
        ),
    };
    Failure { kind: FailureKind::Race, message, site: site(race.later) }
}

/// What a step does to a location that it accesses.
fn verb(footprint: &Footprint, location: Location) -> &'static str {
    if footprint.accesses().contains(&(location, Access::Write)) { "writes" } else { "reads" }
}

/// The first race of the cursor's execution, among accesses of these kinds.
pub fn at<S: System>(
    cursor: &Cursor<S>,
    kind: impl Fn(Location) -> LocationKind + Copy,
) -> Option<Race> {
    let steps = (0..cursor.len()).map(|at| (cursor.choice(at).thread, cursor.taken(at)));
    first(steps, kind)
}

/// All races of the cursor's execution: for each access that races, the last earlier access that it
/// races with.
pub fn all<S: System>(
    cursor: &Cursor<S>,
    kind: impl Fn(Location) -> LocationKind + Copy,
) -> Vec<Race> {
    all_of((0..cursor.len()).map(|at| (cursor.choice(at).thread, cursor.taken(at))), kind)
}

/// All races of an execution, given the thread and the footprint of each of its steps.
fn all_of<'f>(
    steps: impl Iterator<Item = (ThreadId, &'f Footprint)>,
    kind: impl Fn(Location) -> LocationKind + Copy,
) -> Vec<Race> {
    let mut races = Vec::new();
    for_each_race::<()>(steps, kind, |race| {
        races.push(race);
        ControlFlow::Continue(())
    });
    races
}

/// The first race of an execution, given the thread and the footprint of each of its steps.
pub fn first<'f>(
    steps: impl Iterator<Item = (ThreadId, &'f Footprint)>,
    kind: impl Fn(Location) -> LocationKind + Copy,
) -> Option<Race> {
    for_each_race(steps, kind, ControlFlow::Break)
}

/// Calls `found` for one race after the other, until it breaks.
fn for_each_race<'f, B>(
    steps: impl Iterator<Item = (ThreadId, &'f Footprint)>,
    kind: impl Fn(Location) -> LocationKind + Copy,
    mut found: impl FnMut(Race) -> ControlFlow<B>,
) -> Option<B> {
    let mut detector = RaceDetector::new();
    let mut objects: HashMap<Location, u32> = HashMap::new();
    let mut variables: HashMap<Location, u32> = HashMap::new();
    for (at, (thread, footprint)) in steps.enumerate() {
        let own = LocationKind::Life(thread);
        // Synchronisation first, then data, then the end of the thread: data accesses of a step
        // come after its synchronisation, so a thread that synchronises with it is not ordered
        // after them. The end of a thread comes after everything that it did.
        let of = |wanted: fn(LocationKind, LocationKind) -> bool| {
            let accesses = footprint.accesses().iter().copied();
            accesses.filter(move |&(location, _)| wanted(kind(location), own))
        };
        let mut number = |location| {
            let next = objects.len() as u32;
            *objects.entry(location).or_insert(next)
        };
        for (location, access) in of(|kind, _| kind != LocationKind::Data) {
            match access {
                Access::Read => detector.clocks.acquire(thread, number(location)),
                Access::Write => detector.clocks.acquire_exclusive(thread, number(location)),
            }
        }
        let mut release = |detector: &mut RaceDetector<usize>, location, access| match access {
            Access::Read => detector.clocks.release_shared(thread, number(location)),
            Access::Write => detector.clocks.release(thread, number(location)),
        };
        for (location, access) in of(|kind, own| kind != LocationKind::Data && kind != own) {
            release(&mut detector, location, access);
        }
        for (location, access) in of(|kind, _| kind == LocationKind::Data) {
            let variable = *variables.entry(location).or_insert_with(|| detector.variable());
            let conflicts = detector.conflicts(thread, variable, access);
            if let Some(earlier) = conflicts.map(|conflict| conflict.about).max()
                && let ControlFlow::Break(enough) = found(Race { location, earlier, later: at })
            {
                return Some(enough);
            }
            detector.record(thread, variable, access, at);
        }
        for (location, access) in of(|kind, own| kind == own) {
            release(&mut detector, location, access);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "xyz";
    const OBJECTS: &str = "mn";

    /// A location by its name: a plain variable, an object, or the number of a thread for its life.
    fn location(name: char) -> Location {
        Location(u32::from(name))
    }

    fn kind(Location(number): Location) -> LocationKind {
        let name = char::from_u32(number).expect("a location is a name");
        match name.to_digit(10) {
            Some(thread) => LocationKind::Life(ThreadId::new(thread as usize)),
            None if DATA.contains(name) => LocationKind::Data,
            None => {
                assert!(OBJECTS.contains(name), "{name}");
                LocationKind::Synchronisation
            }
        }
    }

    /// An execution: each step is its thread and its accesses, `R` or `W` and a location.
    fn execution(text: &str) -> Vec<(ThreadId, Footprint)> {
        let step = |step: &str| {
            let (thread, accesses) = step.split_once(':').expect("a thread and its accesses");
            let access = |access: &str| {
                let (kind, name) = access.split_at(1);
                let kind = if kind == "W" { Access::Write } else { Access::Read };
                (location(name.chars().next().expect("an access has a location")), kind)
            };
            let thread = ThreadId::new(thread.parse().expect("the number of a thread"));
            (thread, accesses.split(',').map(access).collect())
        };
        text.split_whitespace().map(step).collect()
    }

    /// All races of an execution: the variable and the two steps.
    fn races(text: &str) -> Vec<(char, usize, usize)> {
        let name = |Location(number)| char::from_u32(number).expect("a location is a name");
        let steps = execution(text);
        let found = all_of(steps.iter().map(|(thread, footprint)| (*thread, footprint)), kind);
        found.iter().map(|race| (name(race.location), race.earlier, race.later)).collect()
    }

    #[test]
    fn a_step_that_reads_and_writes_a_variable_writes_it() {
        let steps = execution("0:Rx,Wx,Ry 0:Rx");
        assert_eq!(verb(&steps[0].1, location('x')), "writes");
        assert_eq!(verb(&steps[0].1, location('y')), "reads");
        assert_eq!(verb(&steps[1].1, location('x')), "reads");
    }

    #[test]
    fn two_accesses_race_unless_both_read_or_one_thread_makes_them() {
        assert_eq!(races("0:Wx 1:Wx"), [('x', 0, 1)]);
        assert_eq!(races("0:Wx 1:Rx"), [('x', 0, 1)]);
        assert_eq!(races("0:Rx 1:Wx"), [('x', 0, 1)]);
        assert_eq!(races("0:Rx 1:Rx"), []);
        assert_eq!(races("0:Rx 0:Wx 0:Wx 0:Rx"), []);
        assert_eq!(races("0:Wx 1:Wy"), []);
        assert_eq!(races("0:Wx 0:Wy 1:Wx,Ry"), [('x', 0, 2), ('y', 1, 2)]);
    }

    #[test]
    fn synchronisation_orders_threads_unless_both_read() {
        assert_eq!(races("0:Wx 0:Wm 1:Wm 1:Wx"), []);
        assert_eq!(races("0:Wx 0:Wm 1:Rm 1:Wx"), []);
        assert_eq!(races("0:Wx 0:Rm 1:Wm 1:Wx"), []);
        assert_eq!(races("0:Wx 0:Rm 1:Rm 1:Wx"), [('x', 0, 3)]);
        assert_eq!(races("0:Wx 0:Wm 1:Wn 1:Wx"), [('x', 0, 3)]);
        assert_eq!(races("0:Wm 0:Wx 1:Wm 1:Wx"), [('x', 1, 3)]);
        // Accesses to objects never race.
        assert_eq!(races("0:Wm 1:Wm 0:Rn 1:Wn"), []);
    }

    #[test]
    fn order_is_transitive() {
        assert_eq!(races("0:Wx 0:Wm 1:Wm 1:Wn 2:Rn 2:Rx"), []);
        // The write comes after the read, and the second read after the write.
        assert_eq!(races("0:Wx 0:Rm 1:Wm 2:Rm 2:Rx"), []);
        // A read in between does not hide the write.
        assert_eq!(races("0:Wx 0:Wm 1:Rm 2:Rm 2:Rx"), []);
        // A second read is not ordered after the first one by a write that came before both.
        assert_eq!(races("2:Wm 0:Wx 0:Rm 1:Rm 1:Rx"), [('x', 1, 4)]);
    }

    #[test]
    fn data_accesses_of_a_step_come_after_its_synchronisation() {
        assert_eq!(races("0:Wx 0:Wm 1:Wm,Wx"), []);
        assert_eq!(races("0:Wx,Wm 1:Wm 1:Wx"), [('x', 0, 2)]);
        // The next synchronisation of the thread orders them.
        assert_eq!(races("0:Wx,Wm 0:Wm 1:Wm 1:Wx"), []);
    }

    #[test]
    fn the_end_of_a_thread_comes_after_all_it_did_and_its_start_before() {
        assert_eq!(races("0:Wx,W0 1:R0 1:Rx"), []);
        assert_eq!(races("0:Wx 0:W1 1:R1,Rx"), []);
        // The accesses of the step that starts a thread come after the start.
        assert_eq!(races("0:Wx,W1 1:R1,Rx"), [('x', 0, 1)]);
        assert_eq!(races("0:W1 0:Wx 1:R1,Rx"), [('x', 1, 2)]);
    }

    #[test]
    fn a_race_is_with_the_last_access_that_is_not_ordered() {
        assert_eq!(races("0:Rx 1:Rx 2:Wx"), [('x', 1, 2)]);
        assert_eq!(races("0:Rx 1:Rx 0:Wm 2:Wm 2:Wx"), [('x', 1, 4)]);
        assert_eq!(races("0:Rx 0:Wm 0:Rx 1:Wm 1:Wx"), [('x', 2, 4)]);
        // After a write only that write counts: the second one does not race with the read again.
        assert_eq!(races("0:Rx 1:Wx 1:Wx"), [('x', 0, 1)]);
        // A read leaves the write before it in place.
        assert_eq!(races("0:Wx 1:Rx 2:Rx"), [('x', 0, 1), ('x', 0, 2)]);
    }

    #[test]
    fn the_first_race_is_the_one_whose_second_access_comes_first() {
        let steps = execution("0:Wx 0:Wy 1:Wy 1:Wx");
        let race = first(steps.iter().map(|(thread, footprint)| (*thread, footprint)), kind);
        assert_eq!(race, Some(Race { location: location('y'), earlier: 1, later: 2 }));
        let ordered = execution("0:Wx 0:Wm 1:Wm 1:Wx");
        assert_eq!(
            first(ordered.iter().map(|(thread, footprint)| (*thread, footprint)), kind),
            None
        );
    }
}
