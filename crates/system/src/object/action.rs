//! The actions on synchronisation objects, and how a program can misuse them.

use std::fmt;

/// One indivisible action on one object. It does not say which object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Mutex: acquire it; waits until it is free.
    Lock,
    /// Mutex: acquire it if it is free. Replies whether it was.
    TryLock,
    /// Mutex: release it.
    Unlock,
    /// Reader-writer lock: become a reader; waits while a thread writes, and while this thread
    /// already reads.
    ReadLock,
    /// Reader-writer lock: become a reader if no thread writes. Replies whether it succeeded.
    TryReadLock,
    /// Reader-writer lock: stop reading.
    ReadUnlock,
    /// Reader-writer lock: become the writer; waits for the writer and all readers.
    WriteLock,
    /// Reader-writer lock: become the writer if no thread reads or writes. Replies whether it
    /// succeeded.
    TryWriteLock,
    /// Reader-writer lock: stop writing.
    WriteUnlock,
    /// Condition variable: start waiting. The front end unlocks the mutex in the same step.
    Wait,
    /// Condition variable: continue after a notification. The front end locks the mutex in the same
    /// step.
    Wake,
    /// Condition variable: wake the `nth` waiting thread, counted from 0 in the order of thread
    /// slots. If no thread waits, only 0 is possible and it has no effect.
    NotifyOne {
        /// The position among the waiting threads.
        nth: u32,
    },
    /// Condition variable: wake all waiting threads.
    NotifyAll,
    /// Semaphore: decrement the count (P); waits while it is 0.
    Acquire,
    /// Semaphore: decrement the count unless it is 0. Replies whether it did.
    TryAcquire,
    /// Semaphore: increment the count (V).
    Release,
    /// Event: set it.
    Set,
    /// Event: reset it.
    Reset,
    /// Event: wait until it is set; resets it if it is automatic.
    Await,
    /// Barrier: arrive. Replies whether this arrival completes the parties.
    Arrive,
    /// Barrier: continue once all parties have arrived.
    Leave,
    /// Channel: append a value; waits until there is room. On a channel without capacity: offer the
    /// value; [`Action::Sent`] must follow.
    Send(i64),
    /// Channel: the second half of a send, after [`Action::Send`]. On a channel without capacity it
    /// waits until a receiver has taken the value.
    Sent,
    /// Channel: append a value if there is room. Replies whether there was.
    TrySend(i64),
    /// Channel: remove the oldest value and reply it; waits until there is one.
    Recv,
    /// Channel: remove the oldest value and reply it, or reply 0 if the channel is empty. To
    /// distinguish an empty channel from a value of 0, check first whether [`Action::Recv`] is
    /// enabled.
    TryRecv,
    /// Channel: reply the number of values in it.
    Len,
    /// Thread: start it. Performed by the thread that spawns it.
    Start,
    /// Thread: observe its own start. Performed by the thread itself, as part of its first step.
    Begin,
    /// Thread: end. Performed by the thread itself, as part of its last step.
    Finish,
    /// Thread: wait until it has ended.
    Join,
    /// Parker: wait for the token and consume it.
    Park,
    /// Parker: make the token available.
    Unpark,
    /// Cell: reply its value.
    Load,
    /// Cell: replace its value.
    Store(i64),
    /// Cell: replace its value and reply the old one.
    Swap(i64),
    /// Cell: replace its value by `new` if it is `old`. Replies the value it had.
    CompareExchange {
        /// The value it must have.
        old: i64,
        /// The value it gets.
        new: i64,
    },
    /// Cell: add, wrapping at 64 bits; reply the old value. Front ends implement other widths as a
    /// [`Action::Load`] and a [`Action::Store`] in one step, which makes the same access.
    FetchAdd(i64),
    /// Cell: subtract, wrapping at 64 bits; reply the old value.
    FetchSub(i64),
    /// Cell: bitwise and; reply the old value.
    FetchAnd(i64),
    /// Cell: bitwise or; reply the old value.
    FetchOr(i64),
    /// Cell: bitwise exclusive or; reply the old value.
    FetchXor(i64),
}

impl Action {
    /// Whether this action has to wait in some state of the object.
    pub fn may_wait(self) -> bool {
        matches!(
            self,
            Action::Lock
                | Action::ReadLock
                | Action::WriteLock
                | Action::Wake
                | Action::Acquire
                | Action::Await
                | Action::Leave
                | Action::Send(_)
                | Action::Sent
                | Action::Recv
                | Action::Join
                | Action::Park
        )
    }
}

/// An action that the program must not perform in this state: a finding. The object is unchanged.
///
/// Locking a lock that the thread already holds is not a misuse. Locks are not reentrant, so the
/// thread waits for itself, and the search finds the deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// Unlocked a mutex that this thread does not hold.
    NotHeld,
    /// Ended a read lock that this thread does not hold.
    NotReading,
    /// Ended a write lock that this thread does not hold.
    NotWriting,
    /// Released a semaphore whose count is already at its maximum.
    Overflow,
    /// Tried to send without waiting on a channel without capacity. Success depends on whether a
    /// receiver waits, and waiting receivers leave no trace in the channel's state.
    TryRendezvous,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misuse::NotHeld => "the thread unlocks a mutex that it does not hold",
            Misuse::NotReading => {
                "the thread ends reading under a lock that it does not hold for reading"
            }
            Misuse::NotWriting => {
                "the thread ends writing under a lock that it does not hold for writing"
            }
            Misuse::Overflow => "the semaphore is released more often than it can count",
            Misuse::TryRendezvous => {
                "a conditional send is not possible on a channel without capacity"
            }
        })
    }
}
