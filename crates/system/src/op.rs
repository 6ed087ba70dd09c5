//! What a thread will do next, known before it does it.
//!
//! A step is one operation followed by the local code up to the thread's next operation. So in every state the next
//! operation of every thread is at hand, whether it can be performed there or not, and a strategy may reason about
//! steps that it never takes. That works only if what an operation touches does not depend on values it has yet to meet:
//! see [`crate::object`].
//!
//! # Two happens-before relations
//!
//! Accesses come in two sorts. *Synchronisation* is access to objects and to variables that are meant to be shared
//! without a lock; *data* is access to plain variables. A location belongs to one sort for ever.
//!
//! - The order of **all** dependent operations, [`Operation::footprint`], says which executions are equivalent. It is for
//!   reductions and for fingerprints of states.
//! - The order of the **synchronisation** alone, [`Operation::synchronisation`], says which data accesses are ordered
//!   by the program's own doing. It is for races: two accesses to one plain variable, at least one of them a write, that
//!   this relation does not order. In the first relation any two conflicting accesses are ordered, by the schedule
//!   that was met, and no race would ever be seen.
//!
//! If an execution has no race, a switch before a data access changes nothing that a switch before the next
//! synchronisation would not: [`Operation::is_scheduling_point`] (paper icb, section 3.1).

use crate::footprint::{Access, Footprint, Location};
use crate::mover::Mover;
use crate::object::{Action, Kind};
use crate::thread::ThreadId;

/// What sort of operation it is. Spawning and joining are actions on objects of the kind [`Kind::Thread`], accesses to
/// atomic variables are actions on a [`Kind::Cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// An action on a synchronisation object. The step may touch other objects with it, as a wait on a condition variable
    /// touches the mutex.
    Act(Kind, Action),
    /// A plain variable is read.
    Read,
    /// A plain variable is written.
    Write,
    /// A plain variable is read and written in one step.
    Update,
    /// The thread chooses among alternatives.
    Choose,
    /// The thread offers to let others run.
    Yield,
    /// Nothing shared is touched.
    Local,
    /// A block of statements that is one step.
    Block,
}

/// The next operation of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    thread: ThreadId,
    kind: OpKind,
    footprint: Footprint,
    synchronisation: Footprint,
    mover: Mover,
}

impl Operation {
    /// An operation that touches nothing yet.
    pub fn new(thread: ThreadId, kind: OpKind) -> Operation {
        let (footprint, synchronisation) = (Footprint::new(), Footprint::new());
        Operation { thread, kind, footprint, synchronisation, mover: Mover::Both }
    }

    /// One action on one object.
    pub fn act(thread: ThreadId, location: Location, kind: Kind, action: Action) -> Operation {
        Operation::new(thread, OpKind::Act(kind, action)).and_act(location, kind, action)
    }

    /// This operation, which also performs `action` on an object. Its class as a mover is that of an object that no action
    /// [disturbs](Kind::disturbs); [`Operation::disturbed`] says otherwise.
    pub fn and_act(mut self, location: Location, kind: Kind, action: Action) -> Operation {
        let access = kind.access(action);
        self.footprint.add(location, access);
        self.synchronisation.add(location, access);
        self.mover = self.mover.and(kind.mover(action));
        self
    }

    /// This operation, which also accesses a plain variable. Its class is [`Mover::Both`] if the variable is known to
    /// be local to the thread or always protected by the same lock, else [`Mover::None`].
    pub fn and_data(mut self, location: Location, access: Access, mover: Mover) -> Operation {
        debug_assert!(
            self.synchronisation.accesses().iter().all(|&(l, _)| l != location),
            "a location is either synchronisation or data"
        );
        self.footprint.add(location, access);
        self.mover = self.mover.and(mover);
        self
    }

    /// This operation on an object that is not used with discipline: it moves nowhere.
    pub fn disturbed(mut self) -> Operation {
        self.mover = Mover::None;
        self
    }

    /// Whose operation it is.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// What sort of operation it is.
    #[inline]
    pub fn kind(&self) -> OpKind {
        self.kind
    }

    /// All that it touches.
    #[inline]
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// The part of its footprint that orders accesses of different threads.
    #[inline]
    pub fn synchronisation(&self) -> &Footprint {
        &self.synchronisation
    }

    /// The part of its footprint that can race.
    pub fn data(&self) -> impl Iterator<Item = (Location, Access)> + '_ {
        let ordering = self.synchronisation.accesses();
        let all = self.footprint.accesses().iter().copied();
        all.filter(move |(location, _)| ordering.binary_search_by_key(location, |&(l, _)| l).is_err())
    }

    /// How it moves past the operations of other threads.
    #[inline]
    pub fn mover(&self) -> Mover {
        self.mover
    }

    /// Whether a switch to another thread before it can matter in an execution without races: before synchronisation,
    /// and where the program asks for one.
    #[inline]
    pub fn is_scheduling_point(&self) -> bool {
        !self.synchronisation.accesses().is_empty() || self.kind == OpKind::Yield
    }
}

/// Whether the order of two operations matters: they are of the same thread, or their footprints conflict.
#[inline]
pub fn dependent(a: &Operation, b: &Operation) -> bool {
    a.thread == b.thread || a.footprint.depends(&b.footprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: Location = Location(9);
    const CONDVAR: Location = Location(2);
    const X: Location = Location(5);
    const Y: Location = Location(1);
    const T: ThreadId = ThreadId::new(0);
    const U: ThreadId = ThreadId::new(1);

    fn data(thread: ThreadId, kind: OpKind, location: Location, access: Access) -> Operation {
        Operation::new(thread, kind).and_data(location, access, Mover::None)
    }

    #[test]
    fn a_wait_touches_the_condition_variable_and_the_mutex() {
        let wait = Operation::act(T, CONDVAR, Kind::Condvar, Action::Wait).and_act(MUTEX, Kind::Mutex, Action::Unlock);
        assert_eq!(wait.footprint(), wait.synchronisation());
        assert_eq!(wait.footprint().accesses(), &[(CONDVAR, Access::Write), (MUTEX, Access::Write)]);
        assert_eq!(wait.mover(), Mover::None);
        let wake = Operation::act(T, CONDVAR, Kind::Condvar, Action::Wake).and_act(MUTEX, Kind::Mutex, Action::Lock);
        assert_eq!(wake.mover(), Mover::Right);
        assert_eq!(wake.clone().disturbed().mover(), Mover::None);
        assert!(dependent(&wait, &Operation::act(U, MUTEX, Kind::Mutex, Action::Lock)));
    }

    #[test]
    fn data_is_what_does_not_synchronise() {
        let step = Operation::act(T, MUTEX, Kind::Mutex, Action::Lock)
            .and_data(X, Access::Write, Mover::Both)
            .and_data(Y, Access::Read, Mover::Both);
        assert_eq!(step.data().collect::<Vec<_>>(), [(Y, Access::Read), (X, Access::Write)]);
        assert_eq!(step.synchronisation().accesses(), &[(MUTEX, Access::Write)]);
        assert_eq!((step.footprint().accesses().len(), step.mover()), (3, Mover::Right));
    }

    #[test]
    fn dependence_is_program_order_or_conflict() {
        let read = |thread| data(thread, OpKind::Read, X, Access::Read);
        let write = |thread| data(thread, OpKind::Write, X, Access::Write);
        assert!(dependent(&read(T), &read(T)));
        assert!(!dependent(&read(T), &read(U)));
        assert!(dependent(&read(T), &write(U)) && dependent(&write(T), &read(U)));
        assert!(!dependent(&write(T), &data(U, OpKind::Update, Y, Access::Write)));
        assert!(!dependent(&Operation::new(T, OpKind::Local), &write(U)));
    }

    #[test]
    fn only_synchronisation_and_yields_are_scheduling_points() {
        assert!(Operation::act(T, MUTEX, Kind::Cell { initial: 0 }, Action::Load).is_scheduling_point());
        assert!(Operation::new(T, OpKind::Yield).is_scheduling_point());
        for kind in [OpKind::Read, OpKind::Choose, OpKind::Local, OpKind::Block] {
            assert!(!data(T, kind, X, Access::Read).is_scheduling_point());
        }
    }
}
