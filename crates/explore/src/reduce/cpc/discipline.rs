//! The locking discipline: every variable and field is assumed to be protected, every access is
//! checked, and the assumption is dropped where it is violated.
//!
//! **Paper.** cpc, section 1, the third rule: an access to a variable that is local to a thread, or
//! always protected by the same mutex, moves both ways. The paper does not say how this is known.
//! Here it is an optimistic assumption.
//!
//! **The assumption.** For each location, thread and kind of access, let the *discipline* be the
//! locks that the thread held at every such access seen so far. A location is protected if any two
//! kinds of access of different threads, one of them a write, have a lock in common, which the
//! writer holds exclusively. So a variable is protected if only one thread uses it, if no thread
//! writes it, if it is always used under one lock, or if one thread writes it under a lock and
//! reads it without. In the same way every object is assumed to be used without the actions that
//! [disturb](preempt_system::Kind::disturbs) its movers.
//!
//! **Records on the heap** are many and change their names, so the assumption is made per field,
//! for all records of a type. The locks of its discipline are those with a name and those of the
//! *same record*: two accesses to one field of one record have then the same lock in common; two
//! accesses to different records do not conflict. An access to a record that no other thread could
//! ever reach ([`Stepper::is_private`]) moves both ways and is exempt from the discipline: records
//! are filled in before they are published, and most need no lock from then on, because no thread
//! writes to them any more. So does every access of a thread while all others have not been started
//! or have been joined ([`Stepper::is_alone`]): data is handed over by `spawn` and handed back by
//! `join`.
//!
//! *Why these two are right.* A step b of another thread that can directly follow such a step a, or
//! directly precede it, would have to reach the same record. It cannot before a, because the record
//! is private until then. After a it can only if a has made the record reachable: then b reads a
//! pointer that a has written where both can see it, and that write is an access by a with a class
//! of its own; or b is the first step of a thread that a has started, which is never moved. If the
//! thread of a is alone, there is no b before a, since the last step of a thread comes before its
//! join; and after a there is none but the first step of a thread that a has started.
//!
//! **Why a wrong assumption is always noticed.** Suppose the reduced search ends and every access
//! it tried obeyed the final discipline. Let P' be the program in which a thread *fails* instead of
//! making an access outside that discipline, or a disturbing action on an object assumed free of
//! these. Which locks a thread holds, which of the records that it can reach are private, and
//! whether it is alone is changed by its own steps only, so that failing in this way is a local
//! step, or moves like the earlier accesses of the same step. In P' the classes are right: two
//! conflicting accesses that obey the discipline need the same lock, so between them comes a step
//! that releases or acquires the lock, which has its own class. Hence the search of P' is sound: if
//! in any execution of P' a thread violated the discipline, the search of P' would visit such a
//! step. But that search takes the same steps as the search of the program, because none of them
//! violated it. So no execution of P' does, P' is the program, and the classes are right in the
//! program itself. The argument does not depend on which steps were lost before the first breach:
//! the search restarts without the assumption, at most once per location.
//!
//! It would not be enough that a record is *reachable* by one thread alone in the current state:
//! another thread may have written to it and then dropped its pointer in one step, which does not
//! depend on the thread's own steps.
//!
//! A thread that has to wait has read what it waits for; that counts as an access, otherwise
//! failing would not be local.
//!
//! **Cost.** For each access, one check per lock of its discipline, mostly one.

use preempt_system::{
    Access, Allocation, Kind, Location, LockMode, Mover, ObjectAccess, Place, StepLog, Stepper,
    ThreadId,
};
use smallvec::SmallVec;

use crate::codec::{save_fields, save_variants};
use crate::engine::mutants::seeded;

/// The name of a lock relative to the location that it protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    /// A lock with a fixed location.
    Named(Location),
    /// A lock in the same record as the location.
    Own(Location),
}

impl Lock {
    /// The name of `lock` relative to `place`, if it has one.
    fn called(lock: Place, place: Place) -> Option<Lock> {
        match lock.record {
            None => Some(Lock::Named(lock.location)),
            Some(_) => (lock.record == place.record).then_some(Lock::Own(lock.location)),
        }
    }

    /// The lock that has this name relative to `place`.
    #[inline]
    fn at(self, place: Place) -> Place {
        match self {
            Lock::Named(location) => location.into(),
            Lock::Own(location) => Place { location, record: place.record },
        }
    }
}

save_variants!(Lock { 0 => Named(location), 1 => Own(location) });

type Locks = SmallVec<[Lock; 2]>;

/// The assumption was violated, and the search has relied on it.
pub(super) struct Breach;

/// The assumptions about the locations of a model, and the accesses observed.
pub(super) struct Discipline {
    threads: usize,
    locations: Vec<Uses>,
    /// The number of restarts.
    attempt: u32,
    /// Scratch memory.
    held: Vec<(Place, LockMode)>,
}

/// The uses of one location.
#[derive(Clone, Default)]
struct Uses {
    /// Not protected, or disturbed: no access to it moves.
    given_up: bool,
    /// The last attempt in which a step moved because of the assumption.
    relied: u32,
    /// For each thread, the locks held at all its reads, and alone at all its writes.
    locks: Vec<Option<Locks>>,
}

save_fields!(Uses { given_up, relied, locks });

impl Uses {
    /// Whether any two conflicting kinds of access of different threads have a lock in common.
    fn are_protected(&self) -> bool {
        let uses =
            || self.locks.iter().enumerate().filter_map(|(at, locks)| Some((at, locks.as_ref()?)));
        uses().filter(|(at, _)| at % 2 == Access::Write as usize).all(|(writer, ours)| {
            let mut others = uses().filter(|(at, _)| at / 2 != writer / 2);
            others.all(|(_, theirs)| ours.iter().any(|lock| theirs.contains(lock)))
        })
    }
}

save_fields!(Discipline { threads, locations, attempt; held });

impl Discipline {
    /// Assumes that everything is protected, in a model with `threads`.
    pub(super) fn new(threads: usize) -> Discipline {
        Discipline { threads, locations: Vec::new(), attempt: 1, held: Vec::new() }
    }

    /// Starts again. Locations that were given up stay given up, and observed accesses stay
    /// recorded: they were real.
    pub(super) fn restart(&mut self) {
        self.attempt += 1;
    }

    /// The class of a step of `thread` from the state `before`, or of its attempt. Every
    /// entry of its log is checked, whatever its class.
    #[inline(always)]
    pub(super) fn class<S: Stepper>(
        &mut self,
        stepper: &S,
        before: &[u64],
        thread: ThreadId,
        log: &StepLog,
    ) -> Result<Mover, Breach> {
        let mut class = Mover::Both;
        let mut taken = SmallVec::<[(Place, LockMode); 2]>::new();
        let alone = stepper.is_alone(before, thread) || seeded!(AlwaysAlone);
        let private = |place: Place| stepper.is_private(before, place) || seeded!(HeapIsPrivate);
        let unseen = |place: Place| alone || place.record.is_some() && private(place);
        for entry in log.iter() {
            class = class.and(match entry {
                ObjectAccess::Access(place, _) if unseen(place) => Mover::Both,
                ObjectAccess::Act(place, kind, _) if kind != Kind::Thread && unseen(place) => {
                    Mover::Both
                }
                ObjectAccess::Access(place, access) => {
                    let holds = |lock: Lock| {
                        let lock = lock.at(place);
                        let now =
                            taken.iter().find(|&&(other, _)| other == lock).map(|&(_, hold)| hold);
                        now.max(stepper.holds(before, thread, lock))
                    };
                    match self.keeps(place.location, thread, access, holds) {
                        Some(moves) => moves?,
                        None => {
                            self.held.clear();
                            stepper.held(before, thread, place, &mut self.held);
                            self.held.extend(&taken);
                            self.first(place, thread, access)?
                        }
                    }
                }
                ObjectAccess::Act(place, kind, action) => {
                    if let Some(hold) = kind.taken_by(action) {
                        taken.push((place, hold));
                    }
                    self.undisturbed(place.location, kind.disturbs(action), kind.mover(action))?
                }
                ObjectAccess::Take(location, supply) => {
                    self.undisturbed(location, supply == Allocation::Exhausted, Mover::Both)?
                }
            });
        }
        Ok(class)
    }

    /// The class of an action that has class `mover` unless another action disturbs it.
    #[inline(always)]
    fn undisturbed(
        &mut self,
        location: Location,
        disturbs: bool,
        moves: Mover,
    ) -> Result<Mover, Breach> {
        let attempt = self.attempt;
        let uses = self.uses(location);
        if !uses.given_up && disturbs {
            uses.given_up = true;
            if uses.relied == attempt {
                return Err(Breach);
            }
        }
        uses.relied = attempt;
        Ok(if uses.given_up { Mover::None } else { moves })
    }

    /// The class of an access of a kind that was observed before; `None` if it was not.
    #[inline(always)]
    fn keeps(
        &mut self,
        location: Location,
        thread: ThreadId,
        access: Access,
        holds: impl Fn(Lock) -> Option<LockMode>,
    ) -> Option<Result<Mover, Breach>> {
        let attempt = self.attempt;
        let uses = self.uses(location);
        if uses.given_up {
            return Some(Ok(Mover::None));
        }
        let locks = uses.locks.get_mut(kind_of(thread, access))?.as_mut()?;
        let seen = locks.len();
        locks.retain(|lock| holds(*lock) >= Some(needed(access)));
        if locks.len() == seen {
            uses.relied = attempt;
            return Some(Ok(Mover::Both));
        }
        Some(self.recheck(location))
    }

    /// The class of the first access of its kind: the locks in `held` are its discipline.
    #[cold]
    fn first(&mut self, place: Place, thread: ThreadId, access: Access) -> Result<Mover, Breach> {
        let held = self.held.iter().filter(|&&(_, hold)| hold >= needed(access));
        let locks: Locks = held.filter_map(|&(lock, _)| Lock::called(lock, place)).collect();
        let kinds = 2 * self.threads;
        let uses = self.uses(place.location);
        uses.locks.resize(kinds, None);
        uses.locks[kind_of(thread, access)] = Some(locks);
        self.recheck(place.location)
    }

    /// The class of accesses to a location after its discipline has changed.
    #[cold]
    fn recheck(&mut self, location: Location) -> Result<Mover, Breach> {
        let attempt = self.attempt;
        let uses = self.uses(location);
        if uses.are_protected() {
            uses.relied = attempt;
            return Ok(Mover::Both);
        }
        uses.given_up = true;
        if uses.relied == attempt { Err(Breach) } else { Ok(Mover::None) }
    }

    #[inline(always)]
    fn uses(&mut self, location: Location) -> &mut Uses {
        let at = location.0 as usize;
        if at >= self.locations.len() {
            self.locations.resize(at + 1, Uses::default());
        }
        &mut self.locations[at]
    }
}

/// The index of a thread's kind of access.
fn kind_of(thread: ThreadId, access: Access) -> usize {
    2 * thread.index() + access as usize
}

/// The mode in which a lock protects an access.
fn needed(access: Access) -> LockMode {
    match access {
        Access::Read => LockMode::Shared,
        Access::Write => LockMode::Exclusive,
    }
}
