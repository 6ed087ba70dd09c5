//! The memory that the controller shares with an executable under test.
//!
//! There is one [`Block`] per fork server, in an anonymous file (`memfd`) that both sides map. The
//! controller writes a request, whose *prefix* is the list of choices to take first. The child
//! takes them, continues without preemptions, and writes a log of [`Event`]s. The two sides do not
//! communicate during an execution, only when it has ended.
//!
//! The layout is fixed (`repr(C)`, integers only) because the two sides are different binaries. The
//! crate uses neither an allocator nor std, because it is compiled into the runtime, which runs
//! inside the program under test.
#![no_std]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

mod deadline;
mod locked;

pub use deadline::{NEVER, may_expire};
pub use locked::{IMMEDIATE, INSTRUCTION_POINTER, Locked, LockedKind, MAX_LOCKED, NO_REGISTER};

/// The version of the layout. The runtime writes it to [`Block::ready`].
pub const VERSION: u32 = 0x5052_0007;

/// The maximal number of thread slots, the main thread included.
pub const MAX_THREADS: usize = 64;

/// The maximal number of steps of one execution.
pub const MAX_STEPS: usize = 1 << 16;

/// The maximal number of events of one execution. A step usually has up to three, and more if it
/// creates objects.
pub const MAX_EVENTS: usize = 1 << 19;

/// The maximal number of functions that get a scheduling point at their entry: see [`Entry`].
pub const MAX_ENTRIES: usize = 32;

/// The size of [`Block::text`] in bytes.
pub const MAX_TEXT: usize = 1024;

/// The size of [`Block::notes`] in bytes.
pub const MAX_NOTES: usize = 4096;

/// The greatest count of a semaphore, `SEM_VALUE_MAX`. Incrementing it further is an error that the
/// program sees, and changes nothing.
pub const MAX_COUNT: u32 = i32::MAX as u32;

/// The environment variable that tells the runtime that there is a controller. Its value is
/// [`BLOCK_FD`].
pub const FD_VARIABLE: &str = "PREEMPT_NATIVE_BLOCK";

/// An environment variable that pads the environment to a size that does not depend on that of the
/// controller, so that the stack always begins at the same address.
pub const PADDING_VARIABLE: &str = "PREEMPT_NATIVE_PADDING";

/// The file descriptor of the block when the program is started. It is the same for every fork
/// server, and the runtime closes it, so that the program gets the same descriptors in all of them.
pub const BLOCK_FD: i32 = 198;

/// The file descriptor of the runtime when the program is started.
pub const LIBRARY_FD: i32 = 199;

/// The file descriptor of the directory for temporary files, if there is one. It stays open, and
/// `TMPDIR` refers to it by number, so that the path is the same for every fork server.
pub const TEMP_FD: i32 = 197;

/// The shared memory.
#[repr(C)]
pub struct Block {
    /// [`VERSION`] once the fork server waits for requests.
    pub ready: AtomicU32,
    /// The number of the requested execution, from 1. The fork server waits for it to change.
    pub request: AtomicU32,
    /// The number of the last execution that has ended. The controller waits for it to change.
    pub done: AtomicU32,
    /// The process id of the current execution.
    pub child: AtomicI32,
    /// How that process ended, as `waitpid` reports it.
    pub status: AtomicU32,
    /// The maximal number of steps of this execution.
    pub max_steps: AtomicU32,
    /// The number of choices in `prefix`.
    pub prefix_len: AtomicU32,
    /// Whether the child records the call stack of every operation (1) or not (0).
    pub stacks: AtomicU32,
    /// Whether the main thread waits for the end of the first thread that it creates before it
    /// continues (1) or not (0).
    pub join_first: AtomicU32,
    /// The maximal virtual time in nanoseconds by which a thread that can run is delayed while
    /// others wait for deadlines: see [`may_expire`].
    pub max_delay: AtomicU64,
    /// Whether the program uses the allocator of the C library (1) or of the runtime (0).
    pub system_heap: AtomicU32,
    /// Whether data races on plain memory are detected (1) or not (0). The runtime sets it to 0 if
    /// it cannot map the memory for that.
    pub races: AtomicU32,
    /// Whether the controller may ask for stale accesses of weak memory (1) or not (0).
    pub weak: AtomicU32,
    /// How often the race detector ordered threads because precompiled code may have synchronised
    /// them: see the runtime's `race`.
    pub oversynchronised: AtomicU32,
    /// Whether system calls that the program makes without libc are trapped (1) or not (0). The
    /// runtime writes it before `ready`.
    pub traps: AtomicU32,
    /// The number of system calls that were trapped in this execution.
    pub trapped: AtomicU32,
    /// How the execution ended, an [`ExecutionEnd`].
    pub outcome: AtomicU32,
    /// A number whose meaning depends on the outcome.
    pub detail: AtomicU32,
    /// The slot of the thread that took the last step.
    pub running: AtomicU32,
    /// The number of steps so far, which also shows that the child makes progress.
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
    /// The functions that should get a scheduling point at their entry.
    pub entries: [Entry; MAX_ENTRIES],
    /// The number of instructions in `locked`.
    pub locked_len: AtomicU32,
    /// The number of instructions that the runtime has replaced by breakpoints. It writes this
    /// before `ready`.
    pub patched: AtomicU32,
    /// The atomic instructions to replace by breakpoints, by address.
    pub locked: [Locked; MAX_LOCKED],
    /// The identities of all threads so far except the main thread: that of slot 1 first.
    pub slots: [Slot; MAX_THREADS],
    /// A text whose meaning depends on the outcome.
    pub text: [u8; MAX_TEXT],
    /// The number of bytes in `notes`.
    pub notes_len: AtomicU32,
    /// Actions of the execution that depend on the world outside of the process, as texts that end
    /// with a zero byte each.
    pub notes: [u8; MAX_NOTES],
    /// Whether the process that was started is itself the execution (1) or a server that forks
    /// executions (0).
    pub no_fork: AtomicU32,
    /// The number of the step before which a debugger stops, from 1; 0 if there is none.
    pub stop_before: AtomicU32,
    /// The choices to take first.
    pub prefix: [Choice; MAX_STEPS],
    /// For each choice of the prefix that is a stale access, the value that it reads: see
    /// [`Record::Stale`].
    pub stale_values: [u64; MAX_STEPS],
    /// The events of the execution.
    pub log: [Event; MAX_EVENTS],
}

/// The identity of a thread: its creator, and the number of threads that the creator had created
/// before. Both are the same in every schedule in which the creator has the same past, so a thread
/// gets the same slot in every execution.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The slot of the creator.
    pub creator: u32,
    /// The number of threads that the creator had created before.
    pub nth: u32,
}

/// A precompiled function that gets a scheduling point at its entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its address, relative to the address at which the executable is loaded.
    pub address: u64,
    /// The operation at its entry: [`Op::EnterWait`], [`Op::EnterWrite`] or [`Op::Enter`].
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
    /// The alternative of its operation.
    pub alternative: u32,
}

/// One entry of the log.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// A [`Record`].
    pub record: u8,
    /// The slot of the thread.
    pub thread: u8,
    /// An [`Op`] for [`Record::Next`], an [`ObjectKind`] for [`Record::Create`]; see [`Misuse`] for
    /// [`Record::Misuse`].
    pub what: u8,
    /// The size of an atomic variable in bytes for [`Record::Next`]; see [`Misuse::Race`].
    pub size: u8,
    /// A number whose meaning depends on the record.
    pub value: u32,
    /// The address of an object, or a thread slot.
    pub object: u64,
    /// The address of a second object.
    pub other: u64,
    /// An address in the code of the program, usually a return address.
    pub pc: u64,
    /// The local time of the thread in nanoseconds, for [`Record::Next`].
    pub time: u64,
}

/// What an [`Event`] records.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The next operation of a thread: `what`, on `object` and `other`, in a call that returns to
    /// `pc`. For an atomic operation, `value` has the [memory orders](orders) and `other` is a
    /// [digest] of its operands; for a futex, `value` is the expected value; for descriptors,
    /// `value` is a [`Call`] and `other` the number of the descriptor.
    Next = 1,
    /// A thread performs its next operation, with the alternative `value`.
    Step = 2,
    /// The result `value` of an operation, which does not follow from the states of the objects.
    Learn = 3,
    /// The thread creates another one, in the slot `object`, which begins at `pc`.
    Start = 4,
    /// An object is created at the address `object`: `what`, with the parameter `value`.
    Create = 5,
    /// A caller of the operation recorded before, at `pc`; `value` counts from the innermost.
    Frame = 6,
    /// The thread raises a Rust panic.
    Panic = 7,
    /// The thread misuses an object or memory: `value` is a [`Misuse`].
    Misuse = 8,
    /// The values before (`object`) and after (`other`) an atomic operation, the lower 64 bits of
    /// both. `value` is 1 if the operation has written, and 0 if it has only read.
    Values = 9,
    /// The upper 64 bits of the two values, for an atomic variable of 16 bytes.
    UpperValues = 10,
    /// The deadline of the operation that the thread announces next: `object`, in nanoseconds of
    /// virtual time.
    Deadline = 11,
    /// The thread spins: its last `value` operations are one round of a loop that changes nothing,
    /// or that yields.
    Spin = 12,
    /// The descriptors for which the thread waits have become ready (`value` is 1) or are no longer
    /// ready (0). At the beginning of a wait they are not ready.
    Ready = 13,
    /// Under weak memory, the value that the compare-and-exchange which the thread announces next
    /// expects: `object`.
    Expected = 14,
    /// The last atomic operation was *stale*: its alternative is not 0. It has read the value that
    /// the controller named instead of the newest one, and has left the memory as it was, because
    /// its store is not the last in modification order. `object` is the value in memory.
    Stale = 15,
    /// Under weak memory, the thread performs a fence with the memory order `value`.
    Fence = 16,
    /// The last operation of the thread was one more round of a loop that yields: what it changed
    /// does not release threads that are held back.
    Idle = 17,
}

/// The memory orders of an atomic operation as one number: the order of a success, and that of a
/// failed compare-and-exchange. Both are numbered as in C11.
pub fn orders(success: i32, failure: i32) -> u32 {
    (success as u32 & 0xff) | (failure as u32 & 0xff) << 8
}

/// A hash of the operands of an atomic operation. It distinguishes executions in which a thread is
/// about to perform the same operation with other operands.
pub fn digest(first: u128, second: u128) -> u64 {
    let halves = [first as u64, (first >> 64) as u64, second as u64, (second >> 64) as u64];
    halves.into_iter().fold(0, |mixed: u64, half| {
        (mixed.rotate_left(23) ^ half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    })
}

/// Misuses of objects and memory that the semantics of the objects do not detect.
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
    /// Memory is used after it was freed. `object` is its address; `what` and `other` are the slot
    /// of the thread that freed it and the return address of that call.
    UseAfterFree = 6,
    /// Memory is freed again; the event is as for [`Misuse::UseAfterFree`].
    DoubleFree = 7,
    /// The freed address, `object`, is not that of an allocated block.
    BadFree = 8,
    /// Two threads access plain memory, at least one of them writes, and no synchronisation orders
    /// them. `object` is the address of the memory, `pc` the return address of the second access,
    /// and `what` and `other` are the slot of the thread of the first access and its return
    /// address. `size` has bit 0 if the second access writes, and bit 1 if the first does.
    Race = 9,
}

/// The kinds of objects in the memory of the program.
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
/// An operation with a time limit has a deadline ([`Record::Deadline`]). If it can be performed
/// without waiting, it is performed with alternative 0. Otherwise it can time out with alternative
/// 1 when [`may_expire`] permits it.
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
    /// Starts to wait on the condition variable `object` and unlocks the mutex `other`. If `other`
    /// is 0, the thread keeps its mutex, which is recursive and was locked more than once; so it
    /// does for the two operations below.
    Wait = 30,
    /// Continues after a wait and locks the mutex `other`.
    Wake = 31,
    /// Continues after a wait and locks the mutex `other`, or times out.
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
    /// Starts to wait on the futex word `object` if it has the expected value. Its result says
    /// whether it had.
    FutexWait = 70,
    /// Continues after a wait on a futex word.
    FutexWoken = 71,
    /// Continues after a wait on a futex word, or times out.
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
    /// Bitwise and with an atomic variable.
    FetchAnd = 85,
    /// Bitwise or with an atomic variable.
    FetchOr = 86,
    /// Bitwise exclusive or with an atomic variable.
    FetchXor = 87,
    /// Bitwise nand with an atomic variable.
    FetchNand = 88,
    /// Replaces the value of an atomic variable if it is the expected one.
    CompareExchange = 89,
    /// Continues after an operation that has changed an atomic variable. The code after such an
    /// operation often uses the data that the operation has claimed, by invisible accesses, and
    /// other threads must be able to run before it.
    AfterWrite = 90,
    /// Enters a precompiled function that waits on a condition variable: it reads the word of the
    /// condition variable, `other`, and unlocks the mutex whose word is `object`.
    EnterWait = 91,
    /// Enters a precompiled function that changes the object whose word is `object`.
    EnterWrite = 92,
    /// Enters a precompiled function whose objects are not known.
    Enter = 93,
    /// Continues after the wait that [`Op::EnterWait`] began: precompiled code locks the mutex
    /// whose word is `object`.
    Relock = 94,
    /// An operation on descriptors that does not wait.
    Io = 100,
    /// An operation on descriptors that waits until they are ready.
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
    /// `pipe`, `socket` and others that make descriptors.
    Create = 13,
    /// `bind`.
    Bind = 14,
    /// `listen`.
    Listen = 15,
}

impl Op {
    /// The kind of the object at the address `object`; `None` if that is a thread or not used.
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

    /// The kind of the object at the address `other`; `None` if there is none.
    pub fn other_kind(self, other: u64) -> Option<ObjectKind> {
        match self {
            Op::Wait | Op::Wake | Op::TimedWake => (other != 0).then_some(ObjectKind::Mutex),
            // A wait reads its word, which the program changes by atomic operations. The code after
            // a wait may change the word, as a lock does.
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
pub enum ExecutionEnd {
    /// The process ended without the runtime: by a signal, or by a system call that is not
    /// controlled.
    Died = 0,
    /// The program ended its process; the status is in [`Block::status`].
    Exited = 1,
    /// No thread can take a step.
    Deadlock = 2,
    /// A choice of the prefix cannot be taken: the thread or its alternative is not enabled. The
    /// detail is the number of the step.
    Diverged = 3,
    /// The execution has reached the maximal number of steps.
    StepLimit = 4,
    /// The program uses something that is not supported, which the text names.
    Unsupported = 5,
    /// An assertion failed: its expression, file and function are in the text, separated by zero
    /// bytes, and the detail is the line.
    Assertion = 6,
    /// A table of the runtime or the log is full; the text says which.
    Full = 7,
    /// An invariant of the runtime was violated, which the text names.
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
    Spin Ready Expected Stale Fence Idle
);
from_number!(
    Misuse, u32,
    DestroyHeldMutex DestroyHeldRwLock DestroyAwaitedCondvar DestroyAwaitedBarrier
    UseDestroyedMutex UseAfterFree DoubleFree BadFree Race
);
from_number!(ObjectKind, u8, Mutex RwLock Condvar Semaphore Barrier Once Futex Atomic);
from_number!(
    ExecutionEnd, u32,
    Died Exited Deadlock Diverged StepLimit Unsupported Assertion Full Fault
);
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
