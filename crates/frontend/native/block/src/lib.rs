//! The memory that the controller shares with an executable under test.
//!
//! One [`Block`] per fork server, in an anonymous file (`memfd`) that both map. The controller
//! writes a request: the choices to take first, its *prefix*. The child takes them, continues
//! without preemptions, and writes a log of [`Event`]s. The two sides do not communicate during an
//! execution, only when it has ended.
//!
//! The layout is fixed (`repr(C)`, integers only) because the two sides are different binaries,
//! and the crate uses neither an allocator nor std: it is compiled into the runtime, which runs
//! inside the program under test.
#![no_std]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

mod deadline;

pub use deadline::{NEVER, may_expire};

/// Changes with the layout. The runtime writes it to [`Block::ready`].
pub const VERSION: u32 = 0x5052_0006;

/// The most thread slots, the main thread included.
pub const MAX_THREADS: usize = 64;

/// The most steps of one execution.
pub const MAX_STEPS: usize = 1 << 16;

/// The most events of one execution. A step has up to three, and more where it creates objects.
pub const MAX_EVENTS: usize = 1 << 19;

/// The most functions whose beginnings become scheduling points: see [`Entry`].
pub const MAX_ENTRIES: usize = 32;

/// The most bytes of the message of a failed assertion.
pub const MAX_TEXT: usize = 1024;

/// The most bytes of [`Block::notes`].
pub const MAX_NOTES: usize = 4096;

/// The environment variable by which the runtime knows that there is a controller. Its value is
/// [`BLOCK_FD`].
pub const FD_VARIABLE: &str = "PREEMPT_NATIVE_BLOCK";

/// An environment variable that fills the environment up to a size that does not depend on the
/// environment of the controller, so that the stack begins at the same address everywhere.
pub const PADDING_VARIABLE: &str = "PREEMPT_NATIVE_PADDING";

/// The file descriptor of the block when the program is started. It is the same for every fork
/// server, and the runtime closes it, so that the program gets the same descriptors in all of them.
pub const BLOCK_FD: i32 = 198;

/// The file descriptor of the runtime when the program is started.
pub const LIBRARY_FD: i32 = 199;

/// The file descriptor of the directory for temporary files, if there is one. It stays open: the
/// program finds the directory by this number, so that its name is the same for every fork server.
pub const TEMP_FD: i32 = 197;

/// The shared memory.
#[repr(C)]
pub struct Block {
    /// [`VERSION`] as soon as the fork server waits for requests.
    pub ready: AtomicU32,
    /// The number of the requested execution, from 1. The fork server waits for it to change.
    pub request: AtomicU32,
    /// The number of the last execution that has ended. The controller waits for it to change.
    pub done: AtomicU32,
    /// The process of the present execution.
    pub child: AtomicI32,
    /// How that process ended, as `waitpid` reports it.
    pub status: AtomicU32,
    /// The most steps of this execution.
    pub max_steps: AtomicU32,
    /// The number of choices in `prefix`.
    pub prefix_len: AtomicU32,
    /// Whether the child records the call stack of every operation (1) or not (0).
    pub stacks: AtomicU32,
    /// Whether the main thread waits for the end of the first thread that it creates before it
    /// continues (1) or not (0).
    pub join_first: AtomicU32,
    /// The longest virtual time in nanoseconds by which a thread that can run is delayed while
    /// others wait for deadlines: see [`may_expire`].
    pub max_delay: AtomicU64,
    /// Whether the program allocates by the functions of the C library (1) or by those of the
    /// runtime (0).
    pub system_heap: AtomicU32,
    /// Whether data races on plain memory are detected (1) or not (0). The runtime sets it to 0 if
    /// it has no memory for that.
    pub races: AtomicU32,
    /// How often threads were ordered by what precompiled code may have done: see the runtime's
    /// `race`.
    pub oversynchronised: AtomicU32,
    /// Whether system calls that the program makes without libc are trapped (1) or not (0). The
    /// runtime writes it before `ready`.
    pub traps: AtomicU32,
    /// The number of system calls that were trapped in this execution.
    pub trapped: AtomicU32,
    /// How the execution ended, an [`Outcome`].
    pub outcome: AtomicU32,
    /// A number that belongs to the outcome.
    pub detail: AtomicU32,
    /// The thread that was running last.
    pub running: AtomicU32,
    /// The number of steps taken, which also shows that the child makes progress.
    pub steps: AtomicU32,
    /// The number of events in `log`.
    pub events: AtomicU32,
    /// The number of entries in `slots`.
    pub slots_len: AtomicU32,
    /// The number of bytes in `text`.
    pub text_len: AtomicU32,
    /// The address of the instruction that raised a fatal signal, if it is known.
    pub fault: AtomicU64,
    /// The number of entries in `entries`.
    pub entries_len: AtomicU32,
    /// Which of `entries` are scheduling points, a bit for each. The runtime writes it before
    /// `ready`.
    pub entered: AtomicU32,
    /// The functions whose beginnings are to be scheduling points.
    pub entries: [Entry; MAX_ENTRIES],
    /// Which threads have which slots, in all executions so far: see [`Slot`].
    pub slots: [Slot; MAX_THREADS],
    /// The text of a failed assertion, or the name of a function that is not supported.
    pub text: [u8; MAX_TEXT],
    /// The number of bytes in `notes`.
    pub notes_len: AtomicU32,
    /// What the execution has done that depends on the world outside: texts, each with a zero byte
    /// after it.
    pub notes: [u8; MAX_NOTES],
    /// Whether the process that was started is the execution (1), or a server that forks executions
    /// (0).
    pub alone: AtomicU32,
    /// The number of the step before which a debugger stops, from 1; 0 if there is none.
    pub stop_before: AtomicU32,
    /// The choices to take first.
    pub prefix: [Choice; MAX_STEPS],
    /// The events of the execution.
    pub log: [Event; MAX_EVENTS],
}

/// The identity of a thread: its creator, and the number of threads that the creator had created
/// before. Both are the same in every schedule in which the creator has the same past, so a thread
/// that appears again in another execution gets the slot that it had.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The slot of the creator.
    pub creator: u32,
    /// The number of threads that the creator had created before.
    pub nth: u32,
}

/// A precompiled function whose beginning becomes a scheduling point.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its address, relative to where the executable is loaded.
    pub address: u64,
    /// The operation that its beginning is: [`Op::EnterWait`], [`Op::EnterWrite`] or [`Op::Enter`].
    pub op: u32,
    /// Its length in bytes.
    pub size: u32,
}

/// One choice of the scheduler.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The slot of the thread.
    pub thread: u32,
    /// Which alternative of its operation it takes.
    pub alternative: u32,
}

/// One entry of the log.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What is recorded, a [`Record`].
    pub record: u8,
    /// The thread.
    pub thread: u8,
    /// An [`Op`], for [`Record::Next`]; an [`ObjectKind`] for [`Record::Create`].
    pub what: u8,
    /// The size of an atomic variable in bytes, for [`Record::Next`]; otherwise 0.
    pub size: u8,
    /// A number that depends on the record.
    pub value: u32,
    /// The address of an object, or a thread slot.
    pub object: u64,
    /// The address of a second object.
    pub other: u64,
    /// An address in the program.
    pub pc: u64,
    /// The local time of the thread in nanoseconds, for [`Record::Next`].
    pub time: u64,
}

/// What an [`Event`] records.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The next operation of a thread: `what`, on `object` and `other`, called from `pc`. For an
    /// atomic, `value` has the [memory orders](orders) and `other` is a [digest] of its
    /// operands; for a futex, `value` is the expected value; for descriptors, `value` is a [`Call`]
    /// and `other` the number of the descriptor.
    Next = 1,
    /// A thread takes its next operation, by the alternative `value`.
    Step = 2,
    /// What an operation learned that does not follow from the objects: `value`.
    Learn = 3,
    /// The thread creates another one, in the slot `object`, which begins at `pc`.
    Start = 4,
    /// An object is created at the address `object`: `what`, with the parameter `value`.
    Create = 5,
    /// A caller of the operation recorded before, at `pc`; `value` counts from the innermost.
    Frame = 6,
    /// The thread raises a Rust panic.
    Panic = 7,
    /// The thread uses an object in a way that it does not permit: a [`Misuse`] in `value`.
    Misuse = 8,
    /// The value that an atomic operation has read, `object`, and the value after it, `other`: the
    /// lower 64 bits of both. `value` is 1 if it has written, and 0 if it has only read.
    Values = 9,
    /// The upper 64 bits of both, for an atomic of 16 bytes.
    UpperValues = 10,
    /// The deadline of the operation that the thread announces next: `object`, in nanoseconds of
    /// virtual time.
    Deadline = 11,
    /// The thread spins: its last `value` operations are one round of a loop that changes nothing.
    Spin = 12,
    /// Whether the descriptors for which the thread waits are ready: `value` is 1 if they are. A
    /// wait begins with descriptors that are not.
    Ready = 13,
}

/// The memory orders of an atomic operation as one number: that of a success, and that of a failed
/// compare-and-exchange. Both are numbered as C11 does.
pub fn orders(success: i32, failure: i32) -> u32 {
    (success as u32 & 0xff) | (failure as u32 & 0xff) << 8
}

/// The operands of an atomic operation as one number. Two executions in which a thread is about to
/// perform the same operation with other operands differ, although they have not touched anything
/// differently yet.
pub fn digest(first: u128, second: u128) -> u64 {
    let halves = [first as u64, (first >> 64) as u64, second as u64, (second >> 64) as u64];
    halves.into_iter().fold(0, |mixed: u64, half| {
        (mixed.rotate_left(23) ^ half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    })
}

/// Ways of misusing an object that the object's own rules do not cover.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A mutex is destroyed while a thread holds it.
    DestroyHeldMutex = 1,
    /// A reader-writer lock is destroyed while a thread holds it.
    DestroyHeldRwLock = 2,
    /// A condition variable is destroyed while threads wait on it.
    DestroyAwaitedCondvar = 3,
    /// A barrier is destroyed while threads wait at it.
    DestroyAwaitedBarrier = 4,
    /// A mutex is used after it was destroyed.
    UseDestroyedMutex = 5,
    /// Memory is used after it was freed. The event has the address as `object`, and the thread and
    /// the place of the free as `what` and `other`.
    UseAfterFree = 6,
    /// Memory is freed again; the event is as for [`Misuse::UseAfterFree`].
    DoubleFree = 7,
    /// Something is freed that is not a block of memory; `object` is the address.
    BadFree = 8,
    /// Two threads access plain memory, one of them writes, and nothing orders them. The event has
    /// the address as `object`, the place of the second access as `pc`, and the thread and the
    /// place of the first as `what` and `other`. Its `size` has bit 0 if the second access writes,
    /// and bit 1 if the first does.
    Race = 9,
}

/// The kinds of objects that exist in the memory of the program.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A mutex or a spin lock.
    Mutex = 1,
    /// A reader-writer lock.
    RwLock = 2,
    /// A condition variable.
    Condvar = 3,
    /// A semaphore; the parameter is its count.
    Semaphore = 4,
    /// A barrier; the parameter is the number of parties.
    Barrier = 5,
    /// The control of a one-time initialisation.
    Once = 6,
    /// The threads that wait on a futex word.
    Futex = 7,
    /// An atomic variable.
    Atomic = 8,
}

/// The operations of threads. Each is one scheduling point.
///
/// An operation with a time limit has a deadline ([`Record::Deadline`]). It is performed as soon as
/// that is possible without waiting, by alternative 0. Otherwise it can time out, by alternative 1,
/// when [`may_expire`] permits it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The thread starts to run.
    Begin = 1,
    /// The thread ends.
    Finish = 2,
    /// The process ends.
    Exit = 3,
    /// Waits for the end of the thread in the slot `object`.
    Join = 4,
    /// The thread has created the thread in the slot `object`, which may run first.
    Created = 5,
    /// Lets other threads run.
    Yield = 6,
    /// Sleeps until its deadline.
    Sleep = 7,
    /// Locks a mutex.
    Lock = 10,
    /// Locks a mutex if it is free.
    TryLock = 11,
    /// Locks a mutex, or times out.
    TimedLock = 12,
    /// Unlocks a mutex.
    Unlock = 13,
    /// Locks for reading.
    ReadLock = 20,
    /// Locks for reading if no thread writes.
    TryReadLock = 21,
    /// Locks for reading, or times out.
    TimedReadLock = 22,
    /// Unlocks after reading.
    ReadUnlock = 23,
    /// Locks for writing.
    WriteLock = 24,
    /// Locks for writing if the lock is free.
    TryWriteLock = 25,
    /// Locks for writing, or times out.
    TimedWriteLock = 26,
    /// Unlocks after writing.
    WriteUnlock = 27,
    /// Starts to wait on the condition variable `object` and unlocks the mutex `other`.
    Wait = 30,
    /// Continues after a wait and locks the mutex `other`.
    Wake = 31,
    /// The same, or times out.
    TimedWake = 32,
    /// Wakes one waiting thread: one alternative for each.
    NotifyOne = 33,
    /// Wakes all waiting threads.
    NotifyAll = 34,
    /// Decrements a semaphore.
    Acquire = 40,
    /// Decrements a semaphore if its count is not 0.
    TryAcquire = 41,
    /// Decrements a semaphore, or times out.
    TimedAcquire = 42,
    /// Increments a semaphore.
    Release = 43,
    /// Reads the count of a semaphore.
    Count = 44,
    /// Arrives at a barrier.
    Arrive = 50,
    /// Leaves a barrier.
    Leave = 51,
    /// Enters a one-time initialisation, and waits while another thread performs it.
    EnterOnce = 60,
    /// Leaves a one-time initialisation.
    LeaveOnce = 61,
    /// Starts to wait on the futex word `object` if it has the expected value. Learns whether it
    /// had.
    FutexWait = 70,
    /// Continues after a wait on a futex word.
    FutexWoken = 71,
    /// The same, or times out.
    TimedFutexWoken = 72,
    /// Wakes one thread that waits on a futex word: one alternative for each.
    FutexWakeOne = 73,
    /// Wakes all threads that wait on a futex word.
    FutexWakeAll = 74,
    /// Reads an atomic variable.
    Load = 80,
    /// Writes an atomic variable without reading it.
    Store = 81,
    /// Replaces the value of an atomic variable.
    Exchange = 82,
    /// Adds to an atomic variable.
    FetchAdd = 83,
    /// Subtracts from an atomic variable.
    FetchSub = 84,
    /// Computes the bitwise conjunction with an atomic variable.
    FetchAnd = 85,
    /// Computes the bitwise disjunction with an atomic variable.
    FetchOr = 86,
    /// Computes the bitwise exclusive disjunction with an atomic variable.
    FetchXor = 87,
    /// Computes the negated conjunction with an atomic variable.
    FetchNand = 88,
    /// Replaces the value of an atomic variable if it is the expected one.
    CompareExchange = 89,
    /// Continues after an operation that has changed an atomic variable. The code that follows such
    /// an operation often uses what it has just claimed, by accesses that are not visible here:
    /// other threads may run in between.
    AfterWrite = 90,
    /// Begins a precompiled function that waits on a condition variable: it reads the word of the
    /// condition variable, `other`, and unlocks the mutex whose word is `object`.
    EnterWait = 91,
    /// Begins a precompiled function that changes the object whose word is `object`.
    EnterWrite = 92,
    /// Begins a precompiled function that uses objects which are not known.
    Enter = 93,
    /// Continues after the wait that [`Op::EnterWait`] began: precompiled code locks the mutex
    /// whose word is `object`.
    Relock = 94,
    /// Operates on descriptors without waiting.
    Io = 100,
    /// Waits until descriptors are ready, and operates on them.
    IoWait = 101,
}

/// The calls that operate on descriptors.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `read` and others.
    Read = 1,
    /// `write` and others.
    Write = 2,
    /// `recv` and others.
    Receive = 3,
    /// `send` and others.
    Send = 4,
    /// `accept`, `accept4`.
    Accept = 5,
    /// `connect`.
    Connect = 6,
    /// `close`.
    Close = 7,
    /// `shutdown`.
    Shutdown = 8,
    /// `poll`, `ppoll`.
    Poll = 9,
    /// `select`, `pselect`.
    Select = 10,
    /// `epoll_wait` and others.
    EpollWait = 11,
    /// `epoll_ctl`.
    EpollControl = 12,
    /// Calls that make descriptors.
    Create = 13,
    /// `bind`.
    Bind = 14,
    /// `listen`.
    Listen = 15,
}

impl Op {
    /// The kind of the object at the address `object`; `None` where that is a thread or nothing.
    pub fn object_kind(self) -> Option<ObjectKind> {
        Some(match self {
            Op::Begin | Op::Finish | Op::Exit | Op::Join | Op::Created | Op::Yield | Op::Sleep => {
                return None;
            }
            Op::Lock | Op::TryLock | Op::TimedLock | Op::Unlock => ObjectKind::Mutex,
            Op::ReadLock | Op::TryReadLock | Op::TimedReadLock | Op::ReadUnlock => {
                ObjectKind::RwLock
            }
            Op::WriteLock | Op::TryWriteLock | Op::TimedWriteLock | Op::WriteUnlock => {
                ObjectKind::RwLock
            }
            Op::Wait | Op::Wake | Op::TimedWake | Op::NotifyOne | Op::NotifyAll => {
                ObjectKind::Condvar
            }
            Op::Acquire | Op::TryAcquire | Op::TimedAcquire | Op::Release | Op::Count => {
                ObjectKind::Semaphore
            }
            Op::Arrive | Op::Leave => ObjectKind::Barrier,
            Op::EnterOnce | Op::LeaveOnce => ObjectKind::Once,
            Op::FutexWait | Op::FutexWoken | Op::TimedFutexWoken => ObjectKind::Futex,
            Op::FutexWakeOne | Op::FutexWakeAll => ObjectKind::Futex,
            Op::Load | Op::Store | Op::Exchange | Op::CompareExchange => ObjectKind::Atomic,
            Op::FetchAdd | Op::FetchSub | Op::FetchAnd | Op::FetchOr => ObjectKind::Atomic,
            Op::FetchXor | Op::FetchNand | Op::AfterWrite => ObjectKind::Atomic,
            Op::EnterWait | Op::EnterWrite | Op::Relock => ObjectKind::Atomic,
            Op::Enter => return None,
            Op::Io | Op::IoWait => return None,
        })
    }

    /// The kind of the object at the address `other`.
    pub fn other_kind(self) -> Option<ObjectKind> {
        match self {
            Op::Wait | Op::Wake | Op::TimedWake => Some(ObjectKind::Mutex),
            // A wait reads its word, which the program changes by atomic operations. The code after
            // a wait often changes it: a lock does.
            Op::FutexWait | Op::FutexWoken | Op::TimedFutexWoken => Some(ObjectKind::Atomic),
            Op::EnterWait => Some(ObjectKind::Atomic),
            _ => None,
        }
    }

    /// Whether it is an operation on an atomic variable.
    pub fn is_atomic(self) -> bool {
        self == Op::Load || self.may_write()
    }

    /// Whether it writes an atomic variable, or may.
    pub fn may_write(self) -> bool {
        matches!(
            self,
            Op::Store
                | Op::Exchange
                | Op::FetchAdd
                | Op::FetchSub
                | Op::FetchAnd
                | Op::FetchOr
                | Op::FetchXor
                | Op::FetchNand
                | Op::CompareExchange
        )
    }
}

/// How an execution ended.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The process ended without the runtime noticing: by a signal, or by a system call of its own.
    Died = 0,
    /// The program ended its process: the status says how.
    Exited = 1,
    /// No thread can take a step.
    Deadlock = 2,
    /// A choice of the prefix cannot be taken: the thread or its alternative is not enabled. The
    /// detail is the number of the step.
    Diverged = 3,
    /// The execution has reached the most steps.
    StepLimit = 4,
    /// The program uses something that is not supported: see the text.
    Unsupported = 5,
    /// An assertion failed: its expression, file and function are in the text, separated by zero
    /// bytes, and the detail is the line.
    Assertion = 6,
    /// The runtime or the log is full: see the text.
    Full = 7,
    /// A rule of the runtime was broken: see the text.
    Fault = 8,
}

macro_rules! from_number {
    ($type:ident, $number:ty, $($name:ident)+) => {
        impl $type {
            /// The variant with this number.
            pub fn of(number: $number) -> Option<$type> {
                $(if number == $type::$name as $number {
                    return Some($type::$name);
                })+
                None
            }
        }
    };
}

from_number!(
    Record, u8,
    Next Step Learn Start Create Frame Panic Misuse Values UpperValues Deadline
    Spin Ready
);
from_number!(
    Misuse, u32,
    DestroyHeldMutex DestroyHeldRwLock DestroyAwaitedCondvar DestroyAwaitedBarrier
    UseDestroyedMutex UseAfterFree DoubleFree BadFree Race
);
from_number!(ObjectKind, u8, Mutex RwLock Condvar Semaphore Barrier Once Futex Atomic);
from_number!(Outcome, u32, Died Exited Deadlock Diverged StepLimit Unsupported Assertion Full Fault);
from_number!(
    Op, u8,
    Begin Finish Exit Join Created Yield Sleep
    Lock TryLock TimedLock Unlock
    ReadLock TryReadLock TimedReadLock ReadUnlock
    WriteLock TryWriteLock TimedWriteLock WriteUnlock
    Wait Wake TimedWake NotifyOne NotifyAll
    Acquire TryAcquire TimedAcquire Release Count
    Arrive Leave EnterOnce LeaveOnce
    FutexWait FutexWoken TimedFutexWoken FutexWakeOne FutexWakeAll
    Load Store Exchange FetchAdd FetchSub FetchAnd FetchOr FetchXor FetchNand CompareExchange
    AfterWrite EnterWait EnterWrite Enter Relock Io IoWait
);
from_number!(
    Call, u32,
    Read Write Receive Send Accept Connect Close Shutdown Poll Select EpollWait EpollControl
    Create Bind Listen
);
