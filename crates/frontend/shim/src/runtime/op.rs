//! One operation of a thread: what it is about to do, and what came of it.

use std::panic::Location as Site;

use preempt_system::{Action, Footprint, ThreadSet};

/// What a thread does at a scheduling point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// An atomic is read.
    Load,
    /// An atomic is changed, or may be.
    Update,
    /// A weak compare-and-exchange: alternative 1 fails for no reason.
    WeakUpdate,
    /// An action on an object.
    Object(Action),
    /// Begins to wait on a condition variable and unlocks its mutex.
    Wait,
    /// Goes on after a wait and locks the mutex. Alternative 1, if it may end early: without a
    /// notification.
    Wake {
        /// Whether the wait may end early.
        early: Early,
    },
    /// Waits for the token of `unpark`. Alternative 1, if it may end early: goes on without it.
    Park {
        /// Whether the wait may end early.
        early: Early,
    },
    /// Gives a lock back for writing and keeps it for reading.
    Downgrade,
    /// Chooses a number below this one: each is an alternative.
    Choose(u32),
    /// Lets time pass, or others run, where nothing is looked at.
    Rest,
    /// The thread has ended.
    Finish,
}

/// Whether a wait may end before what it waits for has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Never,
    /// A wake-up may be spurious. It never has to come: a thread that only this would let go on is
    /// blocked.
    Spurious,
    /// The wait has a timeout, which fires sooner or later.
    Timeout,
}

impl Early {
    /// For a wait without a timeout.
    pub(crate) fn spurious(possible: bool) -> Early {
        if possible { Early::Spurious } else { Early::Never }
    }
}

impl Act {
    #[inline(always)]
    fn touch(self) -> Touch {
        match self {
            Act::Load => Touch::Load,
            Act::Update => Touch::Update,
            Act::Object(Action::Lock) => Touch::Lock,
            Act::Object(Action::Unlock) => Touch::Unlock,
            _ => Touch::Other,
        }
    }

    #[inline(always)]
    fn is_steady(self) -> bool {
        match self {
            Act::Load | Act::Update | Act::WeakUpdate | Act::Wait | Act::Downgrade => true,
            Act::Choose(_) | Act::Rest | Act::Finish => true,
            Act::Wake { .. } | Act::Park { .. } => false,
            Act::Object(action) => {
                matches!(
                    action,
                    Action::TryLock | Action::Unlock | Action::Unpark | Action::NotifyAll
                )
            }
        }
    }

    #[inline(always)]
    fn looks(self) -> bool {
        match self {
            Act::Load
            | Act::Update
            | Act::WeakUpdate
            | Act::Wait
            | Act::Wake { .. }
            | Act::Park { .. } => true,
            Act::Downgrade | Act::Rest => true,
            Act::Object(action) => matches!(
                action,
                Action::Lock
                    | Action::TryLock
                    | Action::Unlock
                    | Action::ReadLock
                    | Action::TryReadLock
                    | Action::ReadUnlock
                    | Action::WriteLock
                    | Action::TryWriteLock
                    | Action::WriteUnlock
            ),
            Act::Choose(_) | Act::Finish => false,
        }
    }
}

/// Where no object is meant.
pub(crate) const NOTHING: u32 = u32::MAX;

/// The next operation of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) act: Act,
    /// The object, by its location.
    pub(crate) object: u32,
    /// A second one: the mutex of a wait.
    pub(crate) other: u32,
    /// The word for it.
    pub(crate) verb: &'static str,
    /// Where it stands in the program.
    pub(crate) site: &'static Site<'static>,
    /// Where the thread yielded last since its operation before, or gave up waiting: the place.
    pub(crate) yielded: Option<&'static Site<'static>>,
    /// It can be performed whatever others do, in one way.
    steady: bool,
    /// A thread that does nothing else may go round for ever: it looks, or takes locks to look at
    /// what they protect.
    looks: bool,
    /// What is known of how it touches its object.
    pub(crate) touch: Touch,
}

/// How an operation touches its object, as far as its sort tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// It reads an atomic.
    Load,
    /// It changes an atomic, or may.
    Update,
    /// It waits for a mutex.
    Lock,
    /// It gives one back.
    Unlock,
    /// Another object, or several, or in several ways.
    Other,
}

impl Op {
    /// An operation on one object. What is known of its sort is found out here, where the sort is
    /// mostly a constant.
    #[inline(always)]
    pub(crate) fn new(
        act: Act,
        object: u32,
        verb: &'static str,
        site: &'static Site<'static>,
    ) -> Op {
        let (steady, looks) = (act.is_steady(), act.looks());
        Op {
            act,
            object,
            other: NOTHING,
            verb,
            site,
            yielded: None,
            steady,
            looks,
            touch: act.touch(),
        }
    }

    /// The same, on a second one too.
    pub(crate) fn and(self, other: u32) -> Op {
        Op { other, ..self }
    }

    /// Whether it is a wait that may end by a spurious wake-up.
    fn may_wake_spuriously(&self) -> bool {
        matches!(
            self.act,
            Act::Wake { early: Early::Spurious } | Act::Park { early: Early::Spurious }
        )
    }

    /// Whether it is a wait that only a spurious wake-up ends, if these are the alternatives that
    /// it has.
    #[inline]
    pub(crate) fn is_woken_spuriously(&self, alternatives: &[(u32, Footprint)]) -> bool {
        self.may_wake_spuriously() && matches!(alternatives, [(1, _)])
    }

    /// A number for where it stands in the program.
    pub(crate) fn place(&self) -> usize {
        std::ptr::from_ref(self.site).addr()
    }

    /// Whether it can be performed whatever others do, in one way.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.steady
    }

    /// Whether a thread that does nothing else may go round for ever: it looks, or takes locks to
    /// look at what they protect.
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        self.looks
    }

    /// Whether its object is an atomic, which has no cells.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self.touch, Touch::Load | Touch::Update)
    }

    /// Whether two are the same operation in executions that are the same so far. What is stored is
    /// not compared: it may be an address.
    #[inline]
    pub(crate) fn is_same(&self, other: &Op) -> bool {
        // The words are mostly the same piece of memory, and what one place does by one word is of
        // one kind.
        let alike = std::ptr::eq(self.verb, other.verb) && std::ptr::eq(self.site, other.site);
        self.object == other.object && self.other == other.other && (alike || self.is_alike(other))
    }

    #[cold]
    fn is_alike(&self, other: &Op) -> bool {
        let kind = |op: &Op| match op.act {
            Act::Object(action) => Act::Object(without_operand(action)),
            act => act,
        };
        self.verb == other.verb && kind(self) == kind(other)
    }

    /// Whether the thread yielded before both at the same place.
    pub(crate) fn yields_as(&self, other: &Op) -> bool {
        self.yielded.zip(other.yielded).is_some_and(|(one, other)| std::ptr::eq(one, other))
    }

    /// Whether two are the same place of the program, on the same objects.
    pub(crate) fn is_again(&self, other: &Op) -> bool {
        std::ptr::eq(self.site, other.site) && self.object == other.object && self.act == other.act
    }
}

fn without_operand(action: Action) -> Action {
    match action {
        Action::Send(_) => Action::Send(0),
        other => other,
    }
}

/// The version of an object before and after an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) before: u32,
    pub(crate) after: u32,
}

/// What came of following a thread that seems to spin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Followed {
    /// It was not followed.
    #[default]
    No,
    /// The loop has no end of its own: the thread came back to a state that it was in, or waits for
    /// others inside of the loop.
    Repeats,
    /// The loop does not end soon.
    Undecided,
}

/// What came of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// The alternative that was taken.
    pub(crate) alternative: u32,
    /// Whether it changed an atomic.
    pub(crate) changed: bool,
    /// Whether the thread got somewhere by it, or by what it did after it.
    pub(crate) effective: bool,
    /// What the thread learned.
    pub(crate) value: u64,
    /// What it saw of its objects.
    pub(crate) seen: [Seen; 2],
    /// The threads that it started before its next operation.
    pub(crate) spawned: ThreadSet,
    /// If the thread spins since: how many operations one round has; 0 if it does not.
    pub(crate) round: u16,
    /// Whether that round yields and writes, so that holding the thread back relies on fairness.
    pub(crate) fair: bool,
    /// Whether it is one more round of a loop that yields, so that its changes let nobody go on who
    /// is held back.
    pub(crate) idle: bool,
    /// What is known of the end of the loop, if the thread is held back since.
    pub(crate) followed: Followed,
    /// How often the thread has yielded before its next operation, since it was started.
    pub(crate) yields: u32,
}
