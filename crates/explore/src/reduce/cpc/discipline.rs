//! Which variables are protected: assumed of all, checked on every access, given up where it proves wrong.
//!
//! **Paper.** cpc, section 1, the third rule: an access to a variable that is local to a thread, or always protected by the same
//! mutex, moves both ways. The paper leaves open where that is known from. Here it is an optimistic assumption.
//!
//! **The assumption.** For each location, thread and kind of access, let the *discipline* be the locks that the thread held at
//! every such access seen so far. A location is protected if any two kinds of access of different threads, one of them a write,
//! have a lock in common, which the writer holds alone. So a variable is protected that one thread has to itself, that nobody writes, that
//! is always used under one lock, or that one thread writes under a lock and reads without. In the same way every object is assumed to
//! be used without the actions that [disturb](preempt_system::Kind::disturbs) its movers.
//!
//! **Why a wrong assumption is always noticed.** Suppose the reduced search ends and every access it tried kept to the
//! discipline, as it is at the end. Let P' be the program in which a thread *goes wrong* instead of making an access outside that
//! discipline, or a disturbing action on an object assumed free of these. Which locks a thread holds is changed by its own steps only, so
//! that going wrong in this way is a local step. In P' the classes are right: two conflicting accesses that keep to the discipline need the
//! same lock, so one never comes directly after the other but for a step that gives the lock away or takes it, which has its own class.
//! Hence the search of P' is sound: if any execution of P' had a thread go wrong for the discipline, the search of P' would
//! visit such a step. But that search takes the same steps as the one of the program, for none of these went outside. So no execution of P' does,
//! P' is the program, and the classes are right in the program itself. The argument does not depend on which steps were lost before the
//! first breach: the search begins anew without the assumption, and at most as often as there are locations.
//!
//! A thread that has to wait has looked at what it waits for; that counts, or going wrong would not be local.
//!
//! **Cost.** An access asks for the locks of its discipline, most often one.

use preempt_system::{Access, Deed, Deeds, Hold, Location, Mover, Stepper, ThreadId};
use smallvec::SmallVec;

use crate::save::{Damaged, Reader, Writer, save_fields};

type Locks = SmallVec<[(Location, Hold); 2]>;

/// The assumption was wrong, and the search relied on it.
pub(super) struct Breach;

/// What is assumed of the locations of a model, and what was seen of them.
pub(super) struct Discipline {
    threads: usize,
    locations: Vec<Uses>,
    /// The searches that began anew.
    attempt: u32,
    /// Scratch memory.
    held: Vec<(Location, Hold)>,
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
        let uses = || self.locks.iter().enumerate().filter_map(|(at, locks)| Some((at, locks.as_ref()?)));
        uses().filter(|(at, _)| at % 2 == Access::Write as usize).all(|(writer, ours)| {
            let mut others = uses().filter(|(at, _)| at / 2 != writer / 2);
            others.all(|(_, theirs)| ours.iter().any(|(lock, _)| theirs.iter().any(|(other, _)| lock == other)))
        })
    }
}

impl Discipline {
    /// Assumes the best of a model with so many threads.
    pub(super) fn new(threads: usize) -> Discipline {
        Discipline { threads, locations: Vec::new(), attempt: 1, held: Vec::new() }
    }

    /// Writes what is assumed and what was seen.
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.locations);
        to.put(&self.attempt);
    }

    /// Reads it, for a model with so many threads.
    pub(super) fn load(threads: usize, from: &mut Reader) -> Result<Discipline, Damaged> {
        Ok(Discipline { threads, locations: from.get()?, attempt: from.get()?, held: Vec::new() })
    }

    /// Begins anew. What was given up stays given up, and what was seen stays seen: it was real.
    pub(super) fn again(&mut self) {
        self.attempt += 1;
    }

    /// The class of a step of `thread` from the state `before`, or of its attempt. All its deeds are looked at, whatever its class.
    #[inline(always)]
    pub(super) fn class<S: Stepper>(
        &mut self,
        stepper: &S,
        before: &[u64],
        thread: ThreadId,
        deeds: &Deeds,
    ) -> Result<Mover, Breach> {
        let mut class = Mover::Both;
        let mut taken = Locks::new();
        for deed in deeds.iter() {
            class = class.and(match deed {
                Deed::Access(location, access) => {
                    let holds = |lock: Location| {
                        let now = taken.iter().find(|&&(other, _)| other == lock).map(|&(_, hold)| hold);
                        now.max(stepper.holds(before, thread, lock))
                    };
                    match self.keeps(location, thread, access, holds) {
                        Some(moves) => moves?,
                        None => {
                            self.held.clear();
                            stepper.held(before, thread, &mut self.held);
                            self.held.extend(&taken);
                            self.first(location, thread, access)?
                        }
                    }
                }
                Deed::Act(location, kind, action) => {
                    if let Some(hold) = kind.taken_by(action) {
                        taken.push((location, hold));
                    }
                    let attempt = self.attempt;
                    let uses = self.uses(location);
                    if !uses.given_up && kind.disturbs(action) {
                        uses.given_up = true;
                        if uses.relied == attempt {
                            return Err(Breach);
                        }
                    }
                    uses.relied = attempt;
                    if uses.given_up { Mover::None } else { kind.mover(action) }
                }
                Deed::Elsewhere => Mover::None,
            });
        }
        Ok(class)
    }

    /// How an access moves of a kind that was seen before; `None` if it was not.
    #[inline(always)]
    fn keeps(
        &mut self,
        location: Location,
        thread: ThreadId,
        access: Access,
        holds: impl Fn(Location) -> Option<Hold>,
    ) -> Option<Result<Mover, Breach>> {
        let attempt = self.attempt;
        let uses = self.uses(location);
        if uses.given_up {
            return Some(Ok(Mover::None));
        }
        let locks = uses.locks.get_mut(kind_of(thread, access))?.as_mut()?;
        let seen = locks.len();
        locks.retain(|&mut (lock, _)| holds(lock) >= Some(needed(access)));
        if locks.len() == seen {
            uses.relied = attempt;
            return Some(Ok(Mover::Both));
        }
        Some(self.judge(location))
    }

    /// How an access moves that is the first of its kind: the locks in `held` are its discipline.
    #[cold]
    fn first(&mut self, location: Location, thread: ThreadId, access: Access) -> Result<Mover, Breach> {
        let locks: Locks = self.held.iter().filter(|&&(_, hold)| hold >= needed(access)).copied().collect();
        let kinds = 2 * self.threads;
        let uses = self.uses(location);
        uses.locks.resize(kinds, None);
        uses.locks[kind_of(thread, access)] = Some(locks);
        self.judge(location)
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

/// How a lock has to be held so as to protect an access.
fn needed(access: Access) -> Hold {
    match access {
        Access::Read => Hold::Shared,
        Access::Write => Hold::Exclusive,
    }
}
