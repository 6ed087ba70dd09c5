//! Which variables and fields are protected: assumed of all, checked on every access, given up
//! where it proves wrong.
//!
//! **Paper.** cpc, section 1, the third rule: an access to a variable that is local to a thread, or
//! always protected by the same mutex, moves both ways. The paper leaves open where that is known
//! from. Here it is an optimistic assumption.
//!
//! **The assumption.** For each location, thread and kind of access, let the *discipline* be the
//! locks that the thread held at every such access seen so far. A location is protected if any two
//! kinds of access of different threads, one of them a write, have a lock in common, which the
//! writer holds exclusively. So a variable is protected if one thread has it to itself, if no thread
//! writes it, if it is always used under one lock, or if one thread writes it under a lock and reads
//! it without. In the same way every object is assumed to be used without the actions that
//! [disturb](preempt_system::Kind::disturbs) its movers.
//!
//! **Records on the heap** are many and change their names, so the assumption is one of a field of
//! all records of a type. The locks of its discipline are those with a name and those of the *same
//! record*: two accesses to one field of one record have then the same lock in common; two accesses
//! to different records do not conflict. An access to a record that no other thread could ever
//! reach ([`Stepper::is_private`]) moves both ways and is not held to the discipline: records are
//! filled in before they are shown to others, and most need no lock from then on, because no
//! thread writes to them any more. So does every access of a thread while all others have not been started or
//! have been joined ([`Stepper::is_alone`]): data is handed over by `spawn` and handed back by
//! `join`.
//!
//! *Why these two are right.* A step b of another thread that can directly follow such a step a, or
//! directly precede it, would have to reach the same record. It cannot before a, for the record is
//! private until then. After a it can only if a has made a way to the record: then b reads a
//! pointer that a has written where both can see it, and that write is an access by a with a class
//! of its own; or b is the first step of a thread that a has started, which is never moved. If the
//! thread of a is alone, there is no b before a, since the last step of a thread comes before its
//! join; and after a there is none but the first step of a thread that a has started.
//!
//! **Why a wrong assumption is always noticed.** Suppose the reduced search ends and every access
//! it tried kept to the discipline, as it is at the end. Let P' be the program in which a thread
//! *goes wrong* instead of making an access outside that discipline, or a disturbing action on an
//! object assumed free of these. Which locks a thread holds, which of the records that it can reach
//! are private, and whether it is alone is changed by its own steps only, so that going wrong in
//! this way is a local step, or one that moves as what the thread has looked at before in the same
//! step. In P' the classes are right: two conflicting accesses that keep to the discipline need the
//! same lock, so one never comes directly after the other but for a step that gives the lock away
//! or takes it, which has its own class. Hence the search of P' is sound: if any execution of P'
//! had a thread go wrong for the discipline, the search of P' would visit such a step. But that
//! search takes the same steps as the one of the program, for none of these went outside. So no
//! execution of P' does, P' is the program, and the classes are right in the program itself. The
//! argument does not depend on which steps were lost before the first breach: the search begins
//! anew without the assumption, and at most as often as there are locations.
//!
//! That a record is *reachable* by one thread alone in the present state would not do in place of
//! what is private forever: another thread may have written to it and then have forgotten it in
//! one step, and whether it has is not a matter of the thread's own steps.
//!
//! A thread that has to wait has looked at what it waits for; that counts, or going wrong would not
//! be local.
//!
//! **Cost.** An access asks for the locks of its discipline, most often one.

use preempt_system::{
    Access, Allocation, Kind, Location, LockMode, Mover, ObjectAccess, Place, StepLog, Stepper,
    ThreadId,
};
use smallvec::SmallVec;

use crate::codec::{save_fields, save_variants};
use crate::engine::mutants::seeded;

/// A lock as it is called where it protects something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    /// The same everywhere.
    Named(Location),
    /// The one of the same record.
    Own(Location),
}

impl Lock {
    /// What a lock is called at `place`, if it has a name there.
    fn called(lock: Place, place: Place) -> Option<Lock> {
        match lock.record {
            None => Some(Lock::Named(lock.location)),
            Some(_) => (lock.record == place.record).then_some(Lock::Own(lock.location)),
        }
    }

    /// The lock that is called so at `place`.
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

/// The assumption was wrong, and the search relied on it.
pub(super) struct Breach;

/// What is assumed of the locations of a model, and what was seen of them.
pub(super) struct Discipline {
    threads: usize,
    locations: Vec<Uses>,
    /// The searches that began anew.
    attempt: u32,
    /// Scratch memory.
    held: Vec<(Place, LockMode)>,
}

/// How one location is used.
#[derive(Clone, Default)]
struct Uses {
    /// Not protected, or disturbed: nothing moves.
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

    /// Starts again. Locations that were given up stay given up, and observed accesses stay recorded:
    /// they were real.
    pub(super) fn again(&mut self) {
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

    /// The class of an action that has this class unless another one ever disturbs it.
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

    /// The class of an access of a kind that was seen before; `None` if it was not.
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
        Some(self.judge(location))
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
        self.judge(place.location)
    }

    /// Whether a location is still protected after its discipline was changed.
    #[cold]
    fn judge(&mut self, location: Location) -> Result<Mover, Breach> {
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

/// Where a kind of access of a thread stands among all.
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
