//! What can be done to synchronisation objects, and what can be done wrong.

use std::fmt;

/// One indivisible action on one object. Which object is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Mutex: take it; waits until it is free.
    Lock,
    /// Mutex: take it if it is free. Replies whether it was.
    TryLock,
    /// Mutex: give it back.
    Unlock,
    /// Reader-writer lock: become a reader; waits for the writer, and for oneself.
    ReadLock,
    /// Reader-writer lock: become a reader if nobody writes. Replies whether that was so.
    TryReadLock,
    /// Reader-writer lock: stop reading.
    ReadUnlock,
    /// Reader-writer lock: become the writer; waits for the writer and for all readers.
    WriteLock,
    /// Reader-writer lock: become the writer if nobody reads or writes. Replies whether that was so.
    TryWriteLock,
    /// Reader-writer lock: stop writing.
    WriteUnlock,
    /// Condition variable: begin to wait. The front end unlocks the mutex in the same step.
    Wait,
    /// Condition variable: go on after a notification. The front end locks the mutex in the same step.
    Wake,
    /// Condition variable: end the wait of the `nth` waiting thread, lowest thread first, from 0. Nothing happens if
    /// nobody waits; then only 0 is possible.
    NotifyOne {
        /// Which of the waiting threads.
        nth: u32,
    },
    /// Condition variable: end all waits.
    NotifyAll,
    /// Semaphore: take one (P); waits until there is one.
    Acquire,
    /// Semaphore: take one if there is one. Replies whether there was.
    TryAcquire,
    /// Semaphore: add one (V).
    Release,
    /// Event: set it.
    Set,
    /// Event: unset it.
    Reset,
    /// Event: wait until it is set; unsets it if it is an automatic one.
    Await,
    /// Barrier: come to it. Replies whether all are there now.
    Arrive,
    /// Barrier: go on when all have come.
    Leave,
    /// Channel: put a value in; waits until there is room. Without capacity: offer it, to be followed by [`Action::Sent`].
    Send(i64),
    /// Channel: what a sender does after [`Action::Send`]. Without capacity: waits until somebody took the value.
    Sent,
    /// Channel: put a value in if there is room. Replies whether there was.
    TrySend(i64),
    /// Channel: take the oldest value out, and reply it; waits until there is one.
    Recv,
    /// Channel: take the oldest value out, and reply it, if there is one, else reply 0. Who has to tell an empty channel
    /// from a 0 asks before whether [`Action::Recv`] is enabled.
    TryRecv,
    /// Channel: reply how many values are in it.
    Len,
    /// Thread: start it. Done by the thread that spawns it.
    Start,
    /// Thread: be started. Done by the thread itself, as part of its first step.
    Begin,
    /// Thread: end. Done by the thread itself, as part of its last step.
    Finish,
    /// Thread: wait until it has ended.
    Join,
    /// Parker: wait for the token and use it up.
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
    /// Cell: add, wrapping around at 64 bits; reply the old value. The other widths are the front end's: they are a
    /// [`Action::Load`] and a [`Action::Store`] in one step, which has the same access.
    FetchAdd(i64),
    /// Cell: subtract, wrapping around at 64 bits; reply the old value.
    FetchSub(i64),
    /// Cell: bitwise and; reply the old value.
    FetchAnd(i64),
    /// Cell: bitwise or; reply the old value.
    FetchOr(i64),
    /// Cell: bitwise exclusive or; reply the old value.
    FetchXor(i64),
}

impl Action {
    /// Whether there are states of the object in which a thread has to wait before it can do this.
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

/// An action that the program must not do in this state: a finding. The object is unchanged by it.
///
/// To lock what one holds already is not among these: the locks are not reentrant, so the thread waits for itself,
/// and the search finds the deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// Unlock of a mutex that this thread does not hold.
    NotHeld,
    /// End of reading by a thread that does not read.
    NotReading,
    /// End of writing by a thread that does not write.
    NotWriting,
    /// Release of a semaphore whose count is the greatest possible.
    Overflow,
    /// A conditional send on a channel without capacity. Whether it succeeds depends on whether a receiver waits, and
    /// waiting receivers leave no trace in the channel's state.
    TryRendezvous,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misuse::NotHeld => "the thread unlocks a mutex that it does not hold",
            Misuse::NotReading => "the thread ends reading under a lock that it does not hold for reading",
            Misuse::NotWriting => "the thread ends writing under a lock that it does not hold for writing",
            Misuse::Overflow => "the semaphore is released more often than it can count",
            Misuse::TryRendezvous => "a conditional send is not possible on a channel without capacity",
        })
    }
}
