//! What every synchronisation object is: a pure state machine.
//!
//! An object's state is a few small unsigned numbers, its *fields*. Where they are kept is not decided here: packed in
//! a model's state, in the Rust mirrors' table of objects, or in the evaluation of a prefix that was never executed. All
//! three reach them through [`Cells`], so that blocking, replies and dependence are defined once.
//!
//! # Invariants
//!
//! - Equal fields, equal futures: fields hold no history and no unused rests (freed slots are 0).
//! - [`Kind::access`] and [`Kind::mover`] see no state. The class of an action is needed in states in which it
//!   was never executed; if it depended on the values met there, it would be a guess.
//! - Every condition for an action to be enabled is read from the object's own fields, and every action that can change
//!   the answer for another thread conflicts with it under [`Kind::access`]. So enabling and disabling follow
//!   happens-before edges, and every prefix-closed part of an execution is an execution.
//! - Actions that the access classes call independent commute, in state and in replies. `tests/suite/objects.rs` executes them
//!   in both orders.
//!
//! One action is one access to one object. What touches two, such as the wait on a condition variable that also
//! unlocks a mutex, is a step of the front end made of two actions, enabled iff both are.

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

use crate::deed::Hold;
use crate::footprint::Access;
use crate::mover::Mover;
use crate::thread::ThreadId;

/// The fields of one object.
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

/// What a field can hold. Packed states choose their widths by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A number below this one. The count of a semaphore has no bound but 2³²; who can repack states may begin smaller.
    Below(u64),
    /// A bit for every thread.
    Threads,
    /// A value of the type of the channel's elements or of the cell, sign-extended to 64 bits.
    Payload,
}

/// The kinds of objects, with what is fixed when one is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Mutual exclusion, not reentrant.
    Mutex,
    /// Many readers or one writer, not reentrant. No thread is preferred: any that can take it may.
    RwLock,
    /// A condition variable without spurious wake-ups.
    Condvar,
    /// A counting semaphore.
    Semaphore {
        /// Its count at the start.
        initial: u32,
    },
    /// An event.
    Event {
        /// One wait unsets it.
        auto: bool,
        /// It is set at the start.
        set: bool,
    },
    /// A barrier that can be used again and again.
    Barrier {
        /// How many threads have to come. 0 means the same as 1.
        parties: u32,
    },
    /// A first-in, first-out channel for any number of senders and receivers.
    Channel {
        /// How many values it holds; 0 makes sender and receiver meet.
        capacity: u32,
    },
    /// The life of a thread, as others see it.
    Thread,
    /// A thread's token for `park` and `unpark`.
    Parker,
    /// An atomic cell, sequentially consistent.
    Cell {
        /// Its value at the start.
        initial: i64,
    },
}

/// What each of the files in this folder says about its object. The methods mean what those of [`Kind`] mean.
trait Object {
    fn fields(&self) -> usize {
        1
    }

    fn initial(&self, _field: usize) -> u64 {
        0
    }

    fn holds(&self, field: usize, threads: usize) -> Holds;

    fn enabled<C: Cells + ?Sized>(&self, cells: &C, thread: ThreadId, action: Action) -> bool;

    fn apply<C: Cells + ?Sized>(&self, cells: &mut C, thread: ThreadId, action: Action) -> Result<i64, Misuse>;

    fn alternatives<C: Cells + ?Sized>(&self, _cells: &C, _action: Action) -> u32 {
        1
    }

    fn access(&self, action: Action) -> Access;

    fn mover(&self, action: Action) -> Mover;

    fn disturbs(&self, _action: Action) -> bool {
        false
    }

    fn hold<C: Cells + ?Sized>(&self, _cells: &C, _thread: ThreadId) -> Option<Hold> {
        None
    }
}

/// Evaluates an expression with the object of a kind: a match, resolved at compile time in each of its arms.
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

/// Only actions of this kind of object may be asked for. Another one is a fault of the front end, and a panic wherever the
/// answer depends on the action.
impl Kind {
    /// How many fields the object's state has.
    #[inline]
    pub fn fields(self) -> usize {
        with!(self, object => object.fields())
    }

    /// The value of a field at the start.
    #[inline]
    pub fn initial(self, field: usize) -> u64 {
        with!(self, object => object.initial(field))
    }

    /// What a field can hold in a program of `threads` threads.
    #[inline]
    pub fn holds(self, field: usize, threads: usize) -> Holds {
        with!(self, object => object.holds(field, threads))
    }

    /// Whether `thread` can perform `action` now. If not, it waits. Actions that can be misused are enabled
    /// where they are misused.
    #[inline(always)]
    pub fn enabled(self, cells: &(impl Cells + ?Sized), thread: ThreadId, action: Action) -> bool {
        with!(self, object => object.enabled(cells, thread, action))
    }

    /// Performs an enabled `action` of `thread`. The reply is what the thread learns: a truth as 0 or 1, a number, a
    /// received or an old value; 0 where there is nothing to learn.
    #[inline]
    pub fn apply(self, cells: &mut (impl Cells + ?Sized), thread: ThreadId, action: Action) -> Result<i64, Misuse> {
        debug_assert!(self.enabled(cells, thread, action), "only an enabled action is performed: {self:?} {action:?}");
        with!(self, object => object.apply(cells, thread, action))
    }

    /// How many ways there are to perform `action` now, whichever way it names. A notification has one for each
    /// waiting thread; everything else, and a notification that nobody waits for, has one.
    #[inline]
    pub fn alternatives(self, cells: &(impl Cells + ?Sized), _thread: ThreadId, action: Action) -> u32 {
        with!(self, object => object.alternatives(cells, action))
    }

    /// How `action` touches the object, in whatever state.
    #[inline]
    pub fn access(self, action: Action) -> Access {
        with!(self, object => object.access(action))
    }

    /// The access of an attempt that has to wait: it looks at the object, and what lets it go on must not commute with that.
    /// A writer waits for readers, whose own actions are reads (see [`Kind::access`]), so its attempt counts as a write.
    #[inline]
    pub fn waiting(self, action: Action) -> Access {
        match (self, action) {
            (Kind::RwLock, Action::WriteLock) => Access::Write,
            _ => Access::Read,
        }
    }

    /// How `action` moves past the actions of other threads, on an object that no action [disturbs](Kind::disturbs).
    #[inline]
    pub fn mover(self, action: Action) -> Mover {
        with!(self, object => object.mover(action))
    }

    /// Whether `action`, if any thread may ever perform it on this object, makes [`Kind::mover`] wrong for it. All
    /// actions on such an object are to be taken as [`Mover::None`].
    #[inline]
    pub fn disturbs(self, action: Action) -> bool {
        with!(self, object => object.disturbs(action))
    }

    /// How `thread` holds the object now, if it is a lock and the thread does. While a thread holds it alone, no other thread
    /// holds it; nobody but the thread itself changes how it holds it.
    #[inline]
    pub fn hold(self, cells: &(impl Cells + ?Sized), thread: ThreadId) -> Option<Hold> {
        with!(self, object => object.hold(cells, thread))
    }

    /// Whether an object of this kind can be held.
    pub fn is_lock(self) -> bool {
        matches!(self, Kind::Mutex | Kind::RwLock)
    }

    /// How a thread holds the object after it has performed `action`, if the action takes it without fail.
    #[inline]
    pub fn taken_by(self, action: Action) -> Option<Hold> {
        match action {
            Action::Lock | Action::WriteLock => Some(Hold::Exclusive),
            Action::ReadLock => Some(Hold::Shared),
            _ => None,
        }
    }
}

/// The end of every `match` over actions.
#[cold]
fn foreign(object: &str, action: Action) -> ! {
    panic!("a front end asks a {object} only for its own actions, not for {action:?}")
}
