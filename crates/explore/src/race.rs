//! Data races of an execution.
//!
//! **Paper.** icb, section 3.1.
//!
//! **Guarantees.** Precise for the execution given: two accesses to a plain variable by different threads, at least one of them a
//! write, are reported iff no chain of program order and synchronisation orders them. The first race is the one whose second access
//! comes first.
//!
//! **Map.** Happens-before of the paper, restricted to synchronisation: program order, and any two accesses of the same
//! synchronisation location of which one is a write, in the order in which they were made.
//!
//! **Deviations.** 1. At least one write is needed: the printed definition reports read-only sharing. 2. Two reads of a synchronisation
//! location are not ordered: which of them came first is nothing that a thread can tell, and executions with the same
//! happens-before graph have the same races only then.
//!
//! **Cost.** O(threads) for every access; nothing is kept between executions.

use std::collections::HashMap;
use std::ops::ControlFlow;

use preempt_system::clock::{Epoch, VectorClock};
use preempt_system::{Access, Failure, FailureKind, Footprint, Location, Sort, ThreadId};

use crate::cursor::Cursor;
use crate::system::System;

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// What is accessed.
    pub location: Location,
    /// The step of the earlier access, from 0.
    pub earlier: usize,
    /// The step of the later one.
    pub later: usize,
}

/// The accesses to one plain variable that a next one may race with: the last write, and the last read of each thread, with
/// their steps.
#[derive(Default)]
struct History {
    write: Option<(Epoch, usize)>,
    reads: HashMap<ThreadId, (Epoch, usize)>,
}

/// What happens before a next access to a synchronisation location.
#[derive(Default)]
struct Object {
    /// Before any: the last write, and all that happened before it.
    writes: VectorClock,
    /// Before a write: also the reads since.
    accesses: VectorClock,
}

impl Object {
    fn note(&mut self, access: Access, clock: &VectorClock) {
        self.accesses.join(clock);
        if access == Access::Write {
            self.writes = self.accesses.clone();
        }
    }
}

/// The failure that a race of the execution at whose end a cursor stands is. It names both accesses where the system knows their places.
pub fn failure<S: System>(cursor: &Cursor<S>, race: Race) -> Failure {
    let system = cursor.system();
    let name = system.location_name(race.location);
    let site = |at: usize| system.site(at, cursor.choice(at));
    let verb = |at: usize| {
        let mut accesses = cursor.taken(at).accesses().iter();
        let write = accesses.any(|&(location, access)| location == race.location && access == Access::Write);
        if write { "writes" } else { "reads" }
    };
    let message = match (site(race.earlier), site(race.later)) {
        (Some(earlier), Some(later)) => format!(
            "one thread {} `{name}` ({earlier}), another {} it ({later}), and no synchronisation orders them",
            verb(race.earlier),
            verb(race.later)
        ),
        _ => format!("two threads access `{name}`, one of them writes, and no synchronisation orders them"),
    };
    Failure { kind: FailureKind::Race, message, site: site(race.later) }
}

/// The first race of the execution that a cursor stands at the end of, among accesses of these sorts.
pub fn at<S: System>(cursor: &Cursor<S>, sort: impl Fn(Location) -> Sort + Copy) -> Option<Race> {
    let steps = (0..cursor.len()).map(|at| (cursor.choice(at).thread, cursor.taken(at)));
    first(steps, sort)
}

/// All races of the execution that a cursor stands at the end of: for each access that races, the last one before it that it races with.
pub fn all<S: System>(cursor: &Cursor<S>, sort: impl Fn(Location) -> Sort + Copy) -> Vec<Race> {
    let steps = (0..cursor.len()).map(|at| (cursor.choice(at).thread, cursor.taken(at)));
    let mut races = Vec::new();
    look::<()>(steps, sort, |race| {
        races.push(race);
        ControlFlow::Continue(())
    });
    races
}

/// The first race of an execution, given the thread and the footprint of each of its steps.
pub fn first<'f>(
    steps: impl Iterator<Item = (ThreadId, &'f Footprint)>,
    sort: impl Fn(Location) -> Sort + Copy,
) -> Option<Race> {
    look(steps, sort, ControlFlow::Break)
}

/// Tells of one race after the other, until that is enough.
fn look<'f, B>(
    steps: impl Iterator<Item = (ThreadId, &'f Footprint)>,
    sort: impl Fn(Location) -> Sort + Copy,
    mut tell: impl FnMut(Race) -> ControlFlow<B>,
) -> Option<B> {
    let mut threads: HashMap<ThreadId, VectorClock> = HashMap::new();
    let mut objects: HashMap<Location, Object> = HashMap::new();
    let mut data: HashMap<Location, History> = HashMap::new();
    for (at, (thread, footprint)) in steps.enumerate() {
        let clock = threads.entry(thread).or_default();
        clock.tick(thread);
        let sorted = || footprint.accesses().iter().map(|&(location, access)| (location, access, sort(location)));
        for (location, access, _) in sorted().filter(|&(_, _, sort)| sort != Sort::Data) {
            let object = objects.entry(location).or_default();
            clock.join(if access == Access::Write { &object.accesses } else { &object.writes });
        }
        let own = Sort::Life(thread);
        for (location, access, _) in sorted().filter(|&(_, _, sort)| sort != Sort::Data && sort != own) {
            objects.entry(location).or_default().note(access, clock);
        }
        // The data accesses of a step come after its synchronisation: who synchronises with that is not ordered after them.
        clock.tick(thread);
        for (location, access, _) in sorted().filter(|&(_, _, sort)| sort == Sort::Data) {
            let history = data.entry(location).or_default();
            let unordered = |&&(epoch, _): &&(Epoch, usize)| epoch.thread != thread && !clock.includes(epoch);
            let mut racing: Vec<usize> = history.write.iter().filter(unordered).map(|&(_, step)| step).collect();
            if access == Access::Write {
                racing.extend(history.reads.values().filter(unordered).map(|&(_, step)| step));
            }
            if let Some(earlier) = racing.into_iter().max()
                && let ControlFlow::Break(enough) = tell(Race { location, earlier, later: at })
            {
                return Some(enough);
            }
            let here = (clock.epoch(thread), at);
            match access {
                Access::Write => *history = History { write: Some(here), reads: HashMap::new() },
                Access::Read => {
                    history.reads.insert(thread, here);
                }
            }
        }
        // The end of a thread comes after all it did.
        for (location, access, _) in sorted().filter(|&(_, _, sort)| sort == own) {
            objects.entry(location).or_default().note(access, clock);
        }
    }
    None
}
