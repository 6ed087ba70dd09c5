//! One operation of a thread, and its outcome.

use std::sync::atomic::Ordering;

use preempt_system::{Action, Footprint, ThreadSet};

use crate::site::SiteId;

/// The kinds of operations at scheduling points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads an atomic.
    Load(Ordering),
    /// Writes an atomic without reading it.
    Store(Ordering),
    /// Reads and writes an atomic.
    Update(Ordering),
    /// Reads an atomic and writes it if the value is the expected one.
    CompareExchange {
        /// The ordering if it writes.
        success: Ordering,
        /// The ordering if it only reads.
        failure: Ordering,
    },
    /// The same, but alternative 1 fails spuriously.
    WeakCompareExchange {
        /// The ordering if it writes.
        success: Ordering,
        /// The ordering if it only reads.
        failure: Ordering,
    },
    /// Changes something that is neither memory nor an object with rules of its own: the count of
    /// references, the order of first uses.
    Touch,
    /// Reads something that is neither memory nor changed by an action: whether a thread has ended.
    Peek,
    /// Performs an action on an object.
    Object(Action),
    /// Starts waiting on a condition variable and unlocks its mutex.
    Wait,
    /// Continues after a wait and locks the mutex. Alternative 1, if the wait may end early:
    /// without a notification. A wait that times out does not lock the mutex: see
    /// [`EarlyWake::Timeout`].
    Wake {
        /// Whether the wait may end early.
        early: EarlyWake,
    },
    /// Waits for the token of `unpark`. Alternative 1, if the wait may end early: without the
    /// token.
    Park {
        /// Whether the wait may end early.
        early: EarlyWake,
    },
    /// Exchanges a write lock for a read lock.
    Downgrade,
    /// Chooses a number below this one. Each number is an alternative.
    Choose(u32),
    /// A sequentially consistent fence of weak memory.
    Fence,
    /// Begins an operation of a data structure: reads which operations of the other threads have
    /// returned. The returns of a thread are an object without fields.
    Call(Returns),
    /// Ends such an operation: writes the returns of its own thread.
    Return,
    /// Lets other threads run, without accessing anything.
    Yield,
    /// An assumption of the thread has failed: it never takes another step, and the execution is
    /// discarded.
    Assume,
    /// The thread ends.
    Finish,
}

/// The objects that the threads of a test of a data structure write when an operation returns, and
/// read when one is called.
///
/// A call reads the returns of all other threads in one step, and a return writes those of its own
/// thread. So calls are independent of calls and returns of returns, and a happens-before graph
/// determines which operations had returned before which others were called, which is all that
/// linearizability depends on: a search that explores every graph explores every real-time order.
/// Neither synchronises anything, so they hide no data race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returns {
    /// The object of the first thread; those of the others follow it.
    pub first: u32,
    /// The number of threads.
    pub threads: u8,
    /// The thread that makes the call, counted from 0, which does not read its own returns.
    pub caller: u8,
}

impl Returns {
    /// The objects that the call reads.
    pub fn read(self) -> impl Iterator<Item = u32> {
        let Returns { first, threads, caller } = self;
        (0..threads).filter(move |&thread| thread != caller).map(move |nth| first + u32::from(nth))
    }
}

/// Whether a wait may end before what it waits for has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyWake {
    /// The wait ends only when what it waits for happens.
    Never,
    /// The wait may end by a spurious wakeup. A spurious wakeup never has to come, so a thread that
    /// could continue only by one is blocked.
    ///
    /// A wait on a condition variable ends spuriously only where its mutex is free, in one step
    /// with locking it. No outcome is lost: a thread that leaves earlier, while another one holds
    /// the mutex, can do nothing until it locks the mutex. If it stays in the set of waiting
    /// threads until then, every notification can still wake the thread that it wakes without it,
    /// because `notify_one` chooses among all that wait. A notification that would wake no thread
    /// then wakes this one, which continues anyway and does not learn why.
    Spurious,
    /// The wait has a timeout, which fires sooner or later. On a condition variable it may fire
    /// while another thread holds the mutex. The thread then knows that it was not notified, and
    /// what the mutex protects may change before it locks the mutex, which is an operation of its
    /// own.
    Timeout,
}

impl OpKind {
    #[inline(always)]
    fn class(self) -> OpClass {
        match self {
            OpKind::Load(_) | OpKind::Peek => OpClass::Load,
            OpKind::Store(_) | OpKind::Update(_) => OpClass::Write,
            OpKind::CompareExchange { .. } | OpKind::Touch => OpClass::Write,
            OpKind::Return => OpClass::Write,
            OpKind::Call(_) => OpClass::Call,
            OpKind::Object(Action::Lock) => OpClass::Lock,
            OpKind::Object(Action::Unlock) => OpClass::Unlock,
            _ => OpClass::Other,
        }
    }

    #[inline(always)]
    fn is_always_enabled(self) -> bool {
        match self {
            OpKind::Load(_) | OpKind::Store(_) | OpKind::Update(_) => true,
            OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. } => true,
            OpKind::Touch | OpKind::Peek | OpKind::Wait | OpKind::Downgrade => true,
            OpKind::Choose(_) | OpKind::Fence | OpKind::Yield | OpKind::Finish => true,
            OpKind::Call(_) | OpKind::Return => true,
            OpKind::Wake { .. } | OpKind::Park { .. } | OpKind::Assume => false,
            OpKind::Object(action) => {
                matches!(
                    action,
                    Action::TryLock | Action::Unlock | Action::Unpark | Action::NotifyAll
                )
            }
        }
    }

    /// Whether it has the same footprint in every state, provided that it is always enabled.
    #[inline(always)]
    fn is_uniform(self) -> bool {
        // A failed attempt only reads.
        self.is_always_enabled() && self != OpKind::Object(Action::TryLock)
    }

    #[inline(always)]
    fn may_spin(self) -> bool {
        match self {
            OpKind::Load(_) | OpKind::Store(_) | OpKind::Update(_) => true,
            OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. } => true,
            OpKind::Touch | OpKind::Peek | OpKind::Downgrade => true,
            OpKind::Fence | OpKind::Yield => true,
            OpKind::Wait | OpKind::Wake { .. } | OpKind::Park { .. } => true,
            OpKind::Object(action) => matches!(
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
            OpKind::Choose(_) | OpKind::Finish | OpKind::Assume => false,
            OpKind::Call(_) | OpKind::Return => false,
        }
    }
}

/// The number of no object.
pub const NO_OBJECT: u32 = u32::MAX;

/// The next operation of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Its kind.
    pub kind: OpKind,
    /// The location of its object, or [`NO_OBJECT`].
    pub object: u32,
    /// The location of a second object, the mutex of a wait, or [`NO_OBJECT`].
    pub other: u32,
    /// Its name in reports.
    pub verb: &'static str,
    /// Its place in the program.
    pub site: SiteId,
    /// Where the thread yielded last since its previous operation, or where a wait of it timed out.
    pub yielded: Option<SiteId>,
    /// The value that a compare-exchange expects, if its class is [`OpClass::Exchange`].
    expected: u64,
    always_enabled: bool,
    uniform: bool,
    may_spin: bool,
    pub(crate) class: OpClass,
}

/// The classes of operations that [`State::ask`](crate::State::ask) answers without looking at the
/// kind of the object: together they are almost all operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpClass {
    /// Reads an object without fields.
    Load,
    /// Writes an object without fields, in one way.
    Write,
    /// Writes an atomic if it has the expected value, and otherwise only reads it.
    Exchange,
    /// Waits for a mutex.
    Lock,
    /// Unlocks a mutex.
    Unlock,
    /// Reads several objects without fields.
    Call,
    /// All others.
    Other,
}

impl Op {
    /// An operation on one object. The properties of its kind are computed here, where the kind is
    /// mostly a constant, and not at every question.
    #[inline(always)]
    pub fn new(kind: OpKind, object: u32, verb: &'static str, site: SiteId) -> Op {
        Op {
            kind,
            object,
            other: NO_OBJECT,
            verb,
            site,
            yielded: None,
            expected: 0,
            always_enabled: kind.is_always_enabled(),
            uniform: kind.is_uniform(),
            may_spin: kind.may_spin(),
            class: kind.class(),
        }
    }

    /// The same compare-exchange of an atomic whose [value](crate::State::value) is known. If it is
    /// not `expected`, the operation only reads.
    #[inline(always)]
    pub fn expecting(self, expected: u64) -> Op {
        debug_assert!(matches!(
            self.kind,
            OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. }
        ));
        Op { expected, class: OpClass::Exchange, uniform: false, ..self }
    }

    /// The value that it expects, if it is [known](Op::expecting).
    #[inline]
    pub fn expected(&self) -> Option<u64> {
        (self.class == OpClass::Exchange).then_some(self.expected)
    }

    /// The same operation on a second object too.
    pub fn and(self, other: u32) -> Op {
        Op { other, ..self }
    }

    /// The same operation as performed by an alternative, without the object that it did not
    /// access: a wait on a condition variable that times out leaves the mutex alone. Its version at
    /// that time differs between executions with the same happens-before graph.
    #[inline]
    pub fn performed(self, alternative: u32) -> Op {
        if self.times_out(alternative) { Op { other: NO_OBJECT, ..self } } else { self }
    }

    /// Whether an alternative is the timeout of a wait on a condition variable.
    #[inline]
    pub fn times_out(&self, alternative: u32) -> bool {
        alternative == 1 && self.kind == OpKind::Wake { early: EarlyWake::Timeout }
    }

    /// Its objects, each with its position in [`Outcome::versions`]. Those of a
    /// [call](OpKind::Call) have no versions: a return does not count as a change, since no thread
    /// waits for one.
    pub fn objects(&self) -> impl Iterator<Item = (usize, u32)> + use<> {
        let no_returns = Returns { first: 0, threads: 0, caller: 0 };
        let returns = if let OpKind::Call(returns) = self.kind { returns } else { no_returns };
        let own = [(0, self.object), (1, self.other)];
        let own = own.into_iter().filter(|&(_, object)| object != NO_OBJECT);
        own.chain(returns.read().map(|object| (0, object)))
    }

    /// Whether it accesses an atomic, whose values are in [memory](preempt_system::memory).
    #[inline]
    pub fn is_atomic(&self) -> bool {
        matches!(
            self.kind,
            OpKind::Load(_)
                | OpKind::Store(_)
                | OpKind::Update(_)
                | OpKind::CompareExchange { .. }
                | OpKind::WeakCompareExchange { .. }
        )
    }

    /// The number of the first alternative of an access to weak memory that does not see the newest
    /// store. An odd alternative of a weak exchange is a spurious failure.
    #[inline]
    pub fn stale_from(&self) -> u32 {
        if matches!(self.kind, OpKind::WeakCompareExchange { .. }) { 2 } else { 1 }
    }

    /// Whether an alternative is an access that does not see the newest store.
    #[inline]
    pub fn is_stale(&self, alternative: u32) -> bool {
        alternative >= self.stale_from() && self.is_atomic()
    }

    /// Whether it only reads.
    #[inline]
    pub fn is_load(&self) -> bool {
        matches!(self.class, OpClass::Load | OpClass::Call)
    }

    /// Whether it and `other` touch the same object and do not both only read it, so that the one
    /// that comes second depends on the first.
    pub fn conflicts(&self, other: &Op) -> bool {
        let shared =
            self.objects().any(|(_, object)| other.objects().any(|(_, same)| same == object));
        shared && !(self.is_load() && other.is_load())
    }

    /// Whether it is a wait that only a spurious wakeup ends, given its alternatives.
    #[inline]
    pub(crate) fn is_woken_spuriously(&self, alternatives: &[(u32, Footprint)]) -> bool {
        let may_wake_spuriously = matches!(
            self.kind,
            OpKind::Wake { early: EarlyWake::Spurious }
                | OpKind::Park { early: EarlyWake::Spurious }
        );
        may_wake_spuriously && matches!(alternatives, [(1, _)])
    }

    /// Whether it is enabled in every state and has the same alternatives in each.
    #[inline]
    pub fn is_always_enabled(&self) -> bool {
        self.always_enabled
    }

    /// Whether it also has the same footprint in every state.
    #[inline]
    pub fn is_uniform(&self) -> bool {
        self.uniform
    }

    /// Whether a loop of such operations may spin: it reads, or takes locks to read what they
    /// protect.
    #[inline]
    pub fn may_spin(&self) -> bool {
        self.may_spin
    }

    /// Whether its object has no fields, so that the operation changes no [state](crate::State)
    /// except the version of the object.
    #[inline]
    pub(crate) fn has_no_fields(&self) -> bool {
        matches!(self.class, OpClass::Load | OpClass::Write | OpClass::Exchange | OpClass::Call)
    }

    /// Whether it is the same operation as `other`, performed in another execution with the same
    /// past. Values are not compared: they may be addresses.
    #[inline]
    pub fn is_same(&self, other: &Op) -> bool {
        // Fast path: the same code has the same verb, in the same memory, and is of one kind.
        let same_code = std::ptr::eq(self.verb, other.verb) && self.site == other.site;
        self.object == other.object
            && self.other == other.other
            && (same_code || self.is_same_kind(other))
    }

    #[cold]
    fn is_same_kind(&self, other: &Op) -> bool {
        let kind = |op: &Op| match op.kind {
            OpKind::Object(Action::Send(_)) => OpKind::Object(Action::Send(0)),
            kind => kind,
        };
        self.verb == other.verb && kind(self) == kind(other)
    }

    /// Whether the thread yielded at the same place before this operation and before `other`.
    pub fn yields_as(&self, other: &Op) -> bool {
        self.yielded.is_some() && self.yielded == other.yielded
    }

    /// Whether `other` is the same operation at the same place, so that the thread may be in the
    /// next round of a loop.
    pub fn is_again(&self, other: &Op) -> bool {
        self.site == other.site && self.object == other.object && self.kind == other.kind
    }
}

/// The version of an object before and after an operation. A version counts the changes of an
/// object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Versions {
    /// Before the operation.
    pub before: u32,
    /// After it.
    pub after: u32,
}

/// The result of letting a thread that seems to spin run alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookahead {
    /// The thread did not run alone.
    #[default]
    Skipped,
    /// The loop does not end by itself: the thread came back to an earlier state, or waits for
    /// other threads inside the loop.
    Repeats,
    /// The loop did not end, and no state was seen twice.
    Undecided,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The alternative that was taken.
    pub alternative: u32,
    /// Whether the operation changed an object without fields, such as an atomic.
    pub changed: bool,
    /// Whether the thread made progress by the operation, or by its local code after it. A thread
    /// that makes none may be spinning.
    pub progress: bool,
    /// The value that the thread learned: one that it read, or whether an attempt succeeded.
    pub value: u64,
    /// The newest value of the atomic that it accessed, if values are
    /// [known](crate::State::value).
    pub newest: Option<u64>,
    /// The versions of its objects.
    pub versions: [Versions; 2],
    /// The threads that the thread started between this operation and its next one.
    pub spawned: ThreadSet,
    /// If the thread spins after the operation, the number of operations of one round; else 0.
    pub round: u16,
    /// Whether that round yields and writes, so that holding the thread back relies on fairness.
    pub fair: bool,
    /// Whether the operation is one more round of a loop that yields. Its changes then wake no
    /// thread that is held back.
    pub idle: bool,
    /// If the thread is held back after the operation, whether its loop is known to end.
    pub lookahead: Lookahead,
    /// The number of yields of the thread up to its next operation.
    pub yields: u32,
}
