//! Synchronisation objects as pure state machines.
//!
//! The state of an object is a few small unsigned numbers, its *fields*. The fields can be stored
//! in a model's packed state, in the table of objects of the Rust front end, or in the evaluation
//! of a prefix that was never executed. All three access them through [`Cells`], so blocking,
//! replies and dependence are defined once.
//!
//! # Invariants
//!
//! - Equal fields, equal futures: fields contain no history and no stale values (freed slots are
//!   0).
//! - [`Kind::access`] and [`Kind::mover`] do not depend on the state. Strategies need the class of
//!   an action in states in which it was never executed. [`Kind::access_in`] is for front ends that
//!   compute such states.
//! - Whether an action is enabled depends only on the fields of its own object, and every action
//!   that can change this for another thread conflicts with it under [`Kind::access`]. Enabling and
//!   disabling therefore follow happens-before edges, and every prefix-closed part of an execution
//!   is an execution.
//! - Actions that are independent according to their access classes commute, in state and in
//!   replies. `tests/suite/objects.rs` executes them in both orders.
//!
//! One action is one access to one object. An operation on two objects, such as a wait on a
//! condition variable that also unlocks a mutex, is a step of the front end made of two actions. It
//! is enabled iff both are.

mod action;
mod barrier;
mod cell;
mod channel;
mod condvar;
mod event;
mod mutex;
mod parker;
mod rwlock;
mod semaphore;
mod show;
mod thread;

pub use action::{Action, Misuse};

use crate::footprint::Access;
use crate::mover::Mover;
use crate::thread::ThreadId;

/// Access to the fields of one object, wherever they are stored.
pub trait Cells {
    /// The value of a field.
    fn get(&self, field: usize) -> u64;

    /// Replaces the value of a field.
    fn set(&mut self, field: usize, value: u64);
}

impl Cells for [u64] {
    #[inline]
    fn get(&self, field: usize) -> u64 {
        self[field]
    }

    #[inline]
    fn set(&mut self, field: usize, value: u64) {
        self[field] = value;
    }
}

impl Cells for Vec<u64> {
    #[inline]
    fn get(&self, field: usize) -> u64 {
        self[field]
    }

    #[inline]
    fn set(&mut self, field: usize, value: u64) {
        self[field] = value;
    }
}

/// The range of a field. Packed states derive its width from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A number below this bound. The count of a semaphore is bounded only by 2³²; a model that can
    /// repack its states may start with less.
    Below(u64),
    /// One bit per thread.
    Threads,
    /// A value of the element type of the channel or the cell, sign-extended to 64 bits.
    Payload,
}

/// The modes in which a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Shared with other threads: the thread reads.
    Shared,
    /// Exclusively.
    Exclusive,
}

/// The kinds of objects, with the parameters fixed at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mutex, not reentrant.
    Mutex,
    /// Many readers or one writer, not reentrant and without preference: any thread that can take
    /// the lock may.
    RwLock,
    /// A condition variable without spurious wakeups.
    Condvar,
    /// A counting semaphore.
    Semaphore {
        /// The initial count.
        initial: u32,
    },
    /// An event.
    Event {
        /// Whether a successful wait resets the event.
        auto: bool,
        /// Whether the event is initially set.
        set: bool,
    },
    /// A reusable barrier.
    Barrier {
        /// The number of threads that have to arrive. 0 means the same as 1.
        parties: u32,
    },
    /// A first-in, first-out channel for any number of senders and receivers.
    Channel {
        /// The number of values that it holds; with 0, sender and receiver meet.
        capacity: u32,
    },
    /// The lifecycle of a thread, as other threads observe it.
    Thread,
    /// A thread's token for `park` and `unpark`.
    Parker,
    /// An atomic cell, sequentially consistent.
    Cell {
        /// The initial value.
        initial: i64,
    },
}

/// The semantics of one kind of object, implemented by each file of this folder. The methods
/// correspond to those of [`Kind`].
trait Object {
    fn fields(&self) -> usize {
        1
    }

    fn initial(&self, _field: usize) -> u64 {
        0
    }

    fn holds(&self, field: usize, threads: usize) -> Holds;

    fn enabled<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId, action: Action) -> bool;

    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse>;

    fn alternatives<C: Cells + ?Sized>(&self, _cells: &C, _action: Action) -> u32 {
        1
    }

    fn access(&self, action: Action) -> Access;

    fn mover(&self, action: Action) -> Mover;

    fn disturbs(&self, _action: Action) -> bool {
        false
    }

    fn lock_mode<C: Cells + ?Sized>(&self, _cells: &C, _thread: ThreadId) -> Option<LockMode> {
        None
    }
}

/// Evaluates an expression for the object of a kind: a match whose arms the compiler resolves
/// statically.
macro_rules! with {
    ($kind:expr, $object:ident => $body:expr) => {
        match $kind {
            Kind::Mutex => {
                let $object = mutex::Mutex;
                $body
            }
            Kind::RwLock => {
                let $object = rwlock::RwLock;
                $body
            }
            Kind::Condvar => {
                let $object = condvar::Condvar;
                $body
            }
            Kind::Semaphore { initial } => {
                let $object = semaphore::Semaphore { initial };
                $body
            }
            Kind::Event { auto, set } => {
                let $object = event::Event { auto, set };
                $body
            }
            Kind::Barrier { parties } => {
                let $object = barrier::Barrier { parties };
                $body
            }
            Kind::Channel { capacity } => {
                let $object = channel::Channel { capacity };
                $body
            }
            Kind::Thread => {
                let $object = thread::Thread;
                $body
            }
            Kind::Parker => {
                let $object = parker::Parker;
                $body
            }
            Kind::Cell { initial } => {
                let $object = cell::Cell { initial };
                $body
            }
        }
    };
}

/// Callers may only pass actions of the same kind of object. Another action is a fault of the front
/// end, and panics wherever the answer depends on the action.
impl Kind {
    /// The number of fields of the object's state.
    #[inline]
    pub fn fields(self) -> usize {
        with!(self, object => object.fields())
    }

    /// The initial value of a field.
    #[inline]
    pub fn initial(self, field: usize) -> u64 {
        with!(self, object => object.initial(field))
    }

    /// The range of a field in a program of `threads` threads.
    #[inline]
    pub fn holds(self, field: usize, threads: usize) -> Holds {
        with!(self, object => object.holds(field, threads))
    }

    /// Whether `thread` can perform `action` now; otherwise it has to wait. An action that would be
    /// a [`Misuse`] is enabled.
    #[inline(always)]
    pub fn enabled(self, cells: &(impl Cells + ?Sized), thread: ThreadId, action: Action) -> bool {
        with!(self, object => object.enabled(cells, thread, action))
    }

    /// Performs an enabled `action` of `thread`. The reply is what the thread learns: 0 or 1 for a
    /// truth value, a number, a received or an old value; 0 if there is nothing to learn.
    #[inline]
    pub fn apply(
        self,
        cells: &mut (impl Cells + ?Sized),
        thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
        debug_assert!(
            self.enabled(cells, thread, action),
            "only an enabled action is performed: {self:?} {action:?}"
        );
        with!(self, object => object.apply(cells, thread, action))
    }

    /// The number of alternatives of `action` now; the alternative that `action` itself names does
    /// not matter. A notification has one alternative per waiting thread. Everything else has
    /// exactly one, and so has a notification for which no thread waits.
    #[inline]
    pub fn alternatives(
        self,
        cells: &(impl Cells + ?Sized),
        _thread: ThreadId,
        action: Action,
    ) -> u32 {
        with!(self, object => object.alternatives(cells, action))
    }

    /// How `action` accesses the object, in every state.
    #[inline]
    pub fn access(self, action: Action) -> Access {
        with!(self, object => object.access(action))
    }

    /// How `action` accesses the object in this state. A `try_lock` that fails only reads.
    ///
    /// # Why this is a class like any other
    ///
    /// A failed attempt changes nothing, so it commutes with everything that leaves it failing.
    /// Every action that lets it succeed must therefore be a [`Access::Write`]. The owner of a
    /// mutex and the writer of a reader-writer lock are changed by such actions only. The *readers*
    /// are not: they leave by a read, so an attempt to write that fails because of readers stays a
    /// write.
    #[inline]
    pub fn access_in(self, cells: &(impl Cells + ?Sized), action: Action) -> Access {
        match (self, action) {
            (Kind::Mutex, Action::TryLock) if mutex::is_locked(cells) => Access::Read,
            (Kind::RwLock, Action::TryWriteLock) if rwlock::has_writer(cells) => Access::Read,
            _ => self.access(action),
        }
    }

    /// The access of an attempt that has to wait. The attempt observes the object, so it must
    /// conflict with every action that could enable it. A writer waits for readers, whose own
    /// actions are reads (see [`Kind::access`]), so its attempt counts as a write.
    #[inline]
    pub fn waiting(self, action: Action) -> Access {
        match (self, action) {
            (Kind::RwLock, Action::WriteLock) => Access::Write,
            _ => Access::Read,
        }
    }

    /// How `action` commutes with the actions of other threads, on an object that no action
    /// [disturbs](Kind::disturbs).
    #[inline]
    pub fn mover(self, action: Action) -> Mover {
        with!(self, object => object.mover(action))
    }

    /// Whether `action` invalidates [`Kind::mover`] for an object on which any thread may ever
    /// perform it. All actions on such an object count as [`Mover::None`].
    #[inline]
    pub fn disturbs(self, action: Action) -> bool {
        with!(self, object => object.disturbs(action))
    }

    /// How `thread` holds the object now, if it is a lock and the thread holds it. An exclusive
    /// holder is the only holder, and only the thread's own actions change how it holds the lock.
    #[inline]
    pub fn lock_mode(self, cells: &(impl Cells + ?Sized), thread: ThreadId) -> Option<LockMode> {
        with!(self, object => object.lock_mode(cells, thread))
    }

    /// Whether an object of this kind is a lock.
    pub fn is_lock(self) -> bool {
        matches!(self, Kind::Mutex | Kind::RwLock)
    }

    /// How a thread holds the object after `action`, if the action always acquires it.
    #[inline]
    pub fn taken_by(self, action: Action) -> Option<LockMode> {
        match action {
            Action::Lock | Action::WriteLock => Some(LockMode::Exclusive),
            Action::ReadLock => Some(LockMode::Shared),
            _ => None,
        }
    }
}

/// The last arm of every `match` over actions.
#[cold]
fn foreign(object: &str, action: Action) -> ! {
    panic!("a front end asks a {object} only for its own actions, not for {action:?}")
}
