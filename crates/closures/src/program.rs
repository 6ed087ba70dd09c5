//! Closure programs as data: threads of statements over shared objects.
//!
//! The data has no meaning of its own. [`mirror`](crate::mirror) executes it through the library, and
//! [`reference`](crate::reference) gives it a meaning that shares no code with the library.
//!
//! Objects are numbered and always exist; a program merely uses some of them:
//!
//! | object | numbers |
//! | --- | --- |
//! | atomics | 0 and 1 beside each other in an `Arc`, 2 and 3 in a `Vec`, 4 in a `Box` |
//! | mutexes, reader-writer locks, condition variables, cells, barriers, `Once`s, wakers | 0 and 1 |
//! | channel, counted `Arc`, pointer | one each |

use std::fmt;

/// How many atomics there are.
pub const ATOMICS: usize = 5;
/// How many there are of every other kind of which there are several.
pub const PAIR: usize = 2;

/// The memory ordering of an operation on an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// `Relaxed`.
    Relaxed,
    /// `Acquire` where it reads, `Release` where it writes.
    AcquireRelease,
    /// `SeqCst`.
    SeqCst,
}

/// An operation on an atomic. All but `Store` observe the value that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// `load`.
    Load,
    /// `store`.
    Store(i64),
    /// `swap`.
    Swap(i64),
    /// `compare_exchange`: expected and new value.
    CompareExchange(i64, i64),
    /// `compare_exchange_weak`: expected and new value.
    CompareExchangeWeak(i64, i64),
    /// `fetch_add`.
    Add(i64),
    /// `fetch_sub`.
    Sub(i64),
    /// `fetch_and`.
    And(i64),
    /// `fetch_nand`.
    Nand(i64),
    /// `fetch_or`.
    Or(i64),
    /// `fetch_xor`.
    Xor(i64),
    /// `fetch_max`.
    Max(i64),
    /// `fetch_min`.
    Min(i64),
    /// `fetch_update` by a function that adds 1 to even values and refuses odd ones.
    Update,
}

/// A loop that waits until an atomic is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// `spin_loop` after every load.
    Spin,
    /// `yield_now` after every load.
    Yield,
    /// Every round counts in an atomic that nobody reads, then yields.
    Counting,
    /// Every round takes and releases a flag of the thread's own, then yields.
    Flag,
    /// Every round loads while it holds a mutex of the thread's own, then yields.
    Locked,
    /// A future that wakes itself when it is not ready.
    Future,
}

/// One statement. What a thread observes is appended to its list of values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// An operation on an atomic.
    Atomic(usize, AtomicOp, Ordering),
    /// A fence: acquire and release.
    Fence,
    /// Takes a mutex for a block; observes whether it is poisoned, and its value, which it changes.
    Lock(usize, Vec<Statement>),
    /// The same if the mutex is free; observes whether it was.
    TryLock(usize, Vec<Statement>),
    /// Takes two mutexes and releases the first one taken first.
    Crossed(usize, usize),
    /// Reads under a reader-writer lock for a block; observes its value.
    Read(usize, Vec<Statement>),
    /// Writes under a reader-writer lock for a block.
    Write(usize, Vec<Statement>),
    /// Reads if the lock is free for that.
    TryRead(usize),
    /// Writes if the lock is free for that.
    TryWrite(usize),
    /// Writes, then goes on as a reader for a block.
    Downgrade(usize, Vec<Statement>),
    /// Takes mutex `mutex` and waits once on a condition variable.
    Wait {
        /// The condition variable.
        condvar: usize,
        /// The mutex.
        mutex: usize,
        /// Whether a timeout may end the wait; observes whether it did.
        timeout: bool,
    },
    /// Takes a mutex and waits on a condition variable while its value is 0.
    WaitWhile(usize, usize),
    /// `notify_one`.
    NotifyOne(usize),
    /// `notify_all`.
    NotifyAll(usize),
    /// Waits at a barrier for two; observes whether it is the leader.
    Barrier(usize),
    /// `park`.
    Park,
    /// `park_timeout`.
    ParkTimeout,
    /// Unparks the main thread.
    UnparkMain,
    /// Unparks a thread that this one has started.
    Unpark(usize),
    /// Starts a thread.
    Spawn(usize),
    /// Joins a thread and panics if it panicked.
    Join(usize),
    /// Observes whether a thread has ended.
    IsFinished(usize),
    /// Starts threads in a scope, executes a block there, and leaves the scope.
    Scope(Vec<usize>, Vec<Statement>),
    /// Observes a number that the search chooses.
    Choose(u32),
    /// Reads a cell.
    CellRead(usize),
    /// Writes a cell.
    CellWrite(usize),
    /// Observes how often this thread has come here, from a thread-local counter.
    Local,
    /// `yield_now` outside of a loop.
    YieldNow,
    /// Waits until an atomic is not 0.
    WaitFor(usize, Wait),
    /// Executes a block several times.
    Repeat(u32, Vec<Statement>),
    /// Panics if an atomic has this value.
    PanicIf(usize, i64),
    /// Catches a panic of a block; observes whether there was one.
    Catch(Vec<Statement>),
    /// A value whose destructor asserts that the block was executed to its end.
    Invariant(Vec<Statement>),
    /// Executes a block unless somebody has, or waits while somebody does.
    CallOnce(usize, Vec<Statement>),
    /// `OnceLock::get_or_init`; observes the value.
    GetOrInit(usize, i64),
    /// Sends a value; observes whether there is a receiver.
    Send(i64),
    /// Receives a value; observes it, or that there will be none.
    Receive,
    /// Receives a value if there is one; observes what came of it.
    TryReceive,
    /// Drops this thread's reference to the counted `Arc`, whose destructor changes atomic 1.
    DropArc,
    /// Observes the count of the `Arc`.
    CountArc,
    /// Exchanges the shared pointer for one to a new node; observes and frees the old node.
    Exchange(i64),
    /// Exchanges the shared pointer for one to a new node if it is still what was loaded before.
    ExchangeIfSame(i64),
    /// Makes an atomic in a box of its own, uses it, and frees it.
    BoxedAtomic,
    /// A future that is pending so many times and wakes itself, polled to its end.
    SelfWaking(u32),
    /// A future that registers a waker and is ready when an atomic is not 0.
    Awaits(usize, usize),
    /// Stores 1 in an atomic and calls the waker.
    Wakes(usize, usize),
}

impl Statement {
    /// The blocks that belong to it.
    pub fn blocks(&self) -> Option<&Vec<Statement>> {
        use Statement as S;
        match self {
            S::Lock(_, block) | S::TryLock(_, block) | S::Read(_, block) | S::Write(_, block) => Some(block),
            S::Downgrade(_, block) | S::Scope(_, block) | S::Repeat(_, block) | S::Catch(block) => Some(block),
            S::Invariant(block) | S::CallOnce(_, block) => Some(block),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> Option<&mut Vec<Statement>> {
        use Statement as S;
        match self {
            S::Lock(_, block) | S::TryLock(_, block) | S::Read(_, block) | S::Write(_, block) => Some(block),
            S::Downgrade(_, block) | S::Scope(_, block) | S::Repeat(_, block) | S::Catch(block) => Some(block),
            S::Invariant(block) | S::CallOnce(_, block) => Some(block),
            _ => None,
        }
    }

    /// The word for its construct, by which coverage is measured.
    pub fn construct(&self) -> &'static str {
        use Statement as S;
        match self {
            S::Atomic(_, op, _) => match op {
                AtomicOp::Load => "load",
                AtomicOp::Store(_) => "store",
                AtomicOp::Swap(_) => "swap",
                AtomicOp::CompareExchange(..) => "compare_exchange",
                AtomicOp::CompareExchangeWeak(..) => "compare_exchange_weak",
                AtomicOp::Add(_) => "fetch_add",
                AtomicOp::Sub(_) => "fetch_sub",
                AtomicOp::And(_) => "fetch_and",
                AtomicOp::Nand(_) => "fetch_nand",
                AtomicOp::Or(_) => "fetch_or",
                AtomicOp::Xor(_) => "fetch_xor",
                AtomicOp::Max(_) => "fetch_max",
                AtomicOp::Min(_) => "fetch_min",
                AtomicOp::Update => "fetch_update",
            },
            S::Fence => "fence",
            S::Lock(..) => "lock",
            S::TryLock(..) => "try_lock",
            S::Crossed(..) => "two guards",
            S::Read(..) => "read",
            S::Write(..) => "write",
            S::TryRead(_) => "try_read",
            S::TryWrite(_) => "try_write",
            S::Downgrade(..) => "downgrade",
            S::Wait { timeout: false, .. } => "wait",
            S::Wait { timeout: true, .. } => "wait_timeout",
            S::WaitWhile(..) => "wait_while",
            S::NotifyOne(_) => "notify_one",
            S::NotifyAll(_) => "notify_all",
            S::Barrier(_) => "barrier",
            S::Park => "park",
            S::ParkTimeout => "park_timeout",
            S::UnparkMain => "unpark main",
            S::Unpark(_) => "unpark",
            S::Spawn(_) => "spawn",
            S::Join(_) => "join",
            S::IsFinished(_) => "is_finished",
            S::Scope(..) => "scope",
            S::Choose(_) => "choose",
            S::CellRead(_) => "cell read",
            S::CellWrite(_) => "cell write",
            S::Local => "thread local",
            S::YieldNow => "yield_now",
            S::WaitFor(_, wait) => match wait {
                Wait::Spin => "spin loop",
                Wait::Yield => "yield loop",
                Wait::Counting => "yield loop that counts",
                Wait::Flag => "yield loop that takes a flag",
                Wait::Locked => "yield loop that takes a lock",
                Wait::Future => "future that polls itself",
            },
            S::Repeat(..) => "repeat",
            S::PanicIf(..) => "panic",
            S::Catch(_) => "catch_unwind",
            S::Invariant(_) => "asserting destructor",
            S::CallOnce(..) => "call_once",
            S::GetOrInit(..) => "get_or_init",
            S::Send(_) => "send",
            S::Receive => "recv",
            S::TryReceive => "try_recv",
            S::DropArc => "drop of an Arc",
            S::CountArc => "strong_count",
            S::Exchange(_) => "pointer swap and free",
            S::ExchangeIfSame(_) => "pointer compare_exchange",
            S::BoxedAtomic => "atomic in a freed box",
            S::SelfWaking(_) => "future that wakes itself",
            S::Awaits(..) => "future with a waker",
            S::Wakes(..) => "wake",
        }
    }
}

/// A program. Thread 0 is the closure itself; every other one is started once, by a thread with a smaller number, in a
/// statement of its outermost block. Threads that are not joined explicitly are joined at the end of their parent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The statements of each thread.
    pub threads: Vec<Vec<Statement>>,
    /// The capacity of the channel; `None`: any number of values.
    pub capacity: Option<usize>,
    /// The thread that has the channel's receiver. It has no sender; all others have one.
    pub receiver: usize,
    /// Whether waits may end without a notification.
    pub spurious_wakeups: bool,
    /// Whether weak exchanges may fail for no reason.
    pub weak_failures: bool,
}

impl Program {
    /// Calls `f` for every statement, blocks included.
    pub fn visit(&self, mut f: impl FnMut(&Statement)) {
        fn walk(block: &[Statement], f: &mut impl FnMut(&Statement)) {
            for statement in block {
                f(statement);
                if let Some(block) = statement.blocks() {
                    walk(block, f);
                }
            }
        }
        self.threads.iter().for_each(|thread| walk(thread, &mut f));
    }

    /// Whether some statement is like this.
    pub fn any(&self, mut is: impl FnMut(&Statement) -> bool) -> bool {
        let mut found = false;
        self.visit(|statement| found |= is(statement));
        found
    }

    /// Whether the channel is used.
    pub fn has_channel(&self) -> bool {
        self.any(|statement| matches!(statement, Statement::Send(_) | Statement::Receive | Statement::TryReceive))
    }

    /// Whether the counted `Arc` is used.
    pub fn has_arc(&self) -> bool {
        self.any(|statement| matches!(statement, Statement::DropArc | Statement::CountArc))
    }

    /// How many statements it has, blocks included.
    pub fn size(&self) -> usize {
        let mut size = 0;
        self.visit(|_| size += 1);
        size
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn block(f: &mut fmt::Formatter<'_>, statements: &[Statement], indent: usize) -> fmt::Result {
            for statement in statements {
                let Some(inner) = statement.blocks() else {
                    writeln!(f, "{:indent$}{statement:?};", "")?;
                    continue;
                };
                let mut head = statement.clone();
                if let Some(inner) = head.blocks_mut() {
                    inner.clear();
                }
                writeln!(f, "{:indent$}{} {{", "", format!("{head:?}").replace(", []", "").replace("([])", ""))?;
                block(f, inner, indent + 4)?;
                writeln!(f, "{:indent$}}}", "")?;
            }
            Ok(())
        }
        if self.has_channel() {
            writeln!(f, "channel of capacity {:?}, received by thread {}", self.capacity, self.receiver)?;
        }
        if self.spurious_wakeups {
            writeln!(f, "with spurious wakeups")?;
        }
        if self.weak_failures {
            writeln!(f, "with weak exchanges that may fail")?;
        }
        for (thread, statements) in self.threads.iter().enumerate() {
            writeln!(f, "thread {thread} {{")?;
            block(f, statements, 4)?;
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}
