//! Closure programs as data: threads of statements over shared objects.
//!
//! The data itself has no semantics. [`mirror`](crate::mirror) executes it with the library, and
//! [`reference`](crate::reference) interprets it without any code of the library.
//!
//! Objects are numbered and always exist; each program uses some of them:
//!
//! | object | numbers |
//! | --- | --- |
//! | atomics | 0 and 1 beside each other in an `Arc`, 2 and 3 in a `Vec`, 4 in a `Box` |
//! | mutexes, reader-writer locks, condition variables, cells, barriers, `Once`s, wakers | 0 and 1 |
//! | channel, counted `Arc`, pointer | one each |

use std::fmt;

/// The number of atomics.
pub const ATOMICS: usize = 5;
/// The number of objects of every other kind that exists more than once.
pub const PAIR: usize = 2;

/// The number of iterations for which the library follows a loop that seems to spin.
pub const LOOKED_AHEAD: u32 = 100;

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

/// An operation on an atomic. All except `Store` observe the previous value.
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
    /// Loads and nothing else.
    Bare,
    /// Every iteration allocates memory and frees it again, without a yield.
    Allocating,
    /// Every iteration increments an atomic that no thread reads, then yields.
    Counting,
    /// Every iteration sets and clears a flag of the thread's own, then yields.
    Flag,
    /// Every iteration loads while it holds a mutex of the thread's own, then yields.
    Locked,
    /// A future that wakes itself when it is not ready.
    Future,
}

/// Where a loop counts its iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// On the stack of its thread.
    Stack,
    /// In a box.
    Heap,
    /// In a variable of the thread.
    Local,
}

/// One statement. The values that a thread observes are appended to its list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// An operation on an atomic.
    Atomic(usize, AtomicOp, Ordering),
    /// A fence: acquire and release.
    Fence,
    /// A fence that only acquires.
    AcquireFence,
    /// A fence that only releases.
    ReleaseFence,
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
    /// Reads if the lock is available for reading.
    TryRead(usize),
    /// Writes if the lock is available for writing.
    TryWrite(usize),
    /// Writes, then downgrades to a reader for a block.
    Downgrade(usize, Vec<Statement>),
    /// Locks a mutex and waits once on a condition variable.
    Wait {
        /// The condition variable to wait on.
        condvar: usize,
        /// The mutex to lock.
        mutex: usize,
        /// Whether a timeout may end the wait; observes whether it did.
        timeout: bool,
    },
    /// Locks a mutex and waits on a condition variable while the mutex's value is 0.
    WaitWhile(usize, usize),
    /// The same with a timeout; observes the value, and whether the wait ended because of it.
    WaitTimeoutWhile(usize, usize),
    /// `notify_one`.
    NotifyOne(usize),
    /// `notify_all`.
    NotifyAll(usize),
    /// Waits at a barrier for two threads; observes whether it is the leader.
    Barrier(usize),
    /// `park`.
    Park,
    /// `park_timeout`.
    ParkTimeout,
    /// Unparks the main thread.
    UnparkMain,
    /// Unparks a thread that this one has spawned.
    Unpark(usize),
    /// Spawns a thread.
    Spawn(usize),
    /// Joins a thread and panics if it panicked.
    Join(usize),
    /// Drops the handle of a thread, which then runs on its own.
    Detach(usize),
    /// Observes whether a thread has ended.
    IsFinished(usize),
    /// Spawns threads in a scope, executes a block there, and leaves the scope.
    Scope(Vec<usize>, Vec<Statement>),
    /// Observes a number that the search chooses.
    Choose(u32),
    /// Loads an atomic, and assumes that it does not have this value.
    Assume(usize, i64),
    /// Reads a cell.
    CellRead(usize),
    /// Writes a cell.
    CellWrite(usize),
    /// Increments a thread-local counter and observes it.
    Local,
    /// Gives the thread a thread-local value whose destructor increments atomic 0.
    LocalGuard,
    /// `yield_now` outside a loop.
    YieldNow,
    /// Waits until an atomic is not 0.
    WaitFor(usize, Wait),
    /// Loads an atomic, without a yield, until it is not 0 or `rounds` loads were made; observes
    /// how many were made, and the last value.
    Poll {
        /// The atomic to load.
        atomic: usize,
        /// The maximum number of loads.
        rounds: u32,
        /// Where the loads are counted.
        counter: Counter,
    },
    /// Executes a block `n` times.
    Repeat(u32, Vec<Statement>),
    /// Panics if an atomic has this value.
    PanicIf(usize, i64),
    /// Catches a panic of a block; observes whether there was one.
    Catch(Vec<Statement>),
    /// Creates a value whose destructor asserts that the block was executed to its end.
    Invariant(Vec<Statement>),
    /// Executes a block unless a thread already has, or waits while a thread does.
    CallOnce(usize, Vec<Statement>),
    /// `OnceLock::get_or_init`; observes the value.
    GetOrInit(usize, i64),
    /// `OnceLock::set`; observes whether it was the first.
    SetOnce(usize, i64),
    /// `OnceLock::get`; observes the value, or -1.
    GetOnce(usize),
    /// Sends a value; observes whether there is still a receiver.
    Send(i64),
    /// Sends a value if there is room in a channel of capacity 1; observes the outcome.
    TrySend(i64),
    /// Receives a value; observes it, or that all senders are gone.
    Receive,
    /// Receives a value if there is one; observes the outcome.
    TryReceive,
    /// Receives a value or stops waiting; observes the outcome.
    ReceiveTimeout,
    /// Drops this thread's reference to the counted `Arc`, whose destructor changes atomic 1.
    DropArc,
    /// Observes the count of the `Arc`.
    CountArc,
    /// Upgrades a weak reference to the counted `Arc`, observes whether it can, and drops the
    /// result.
    Upgrade,
    /// `Arc::into_inner` of this thread's reference; observes whether it was the last one.
    IntoInner,
    /// `Arc::try_unwrap` of this thread's reference; observes whether it is the only one.
    TryUnwrap,
    /// Replaces the shared pointer by one to a new node; observes and frees the old node.
    Exchange(i64),
    /// Replaces the shared pointer by one to a new node if it still equals the value loaded before.
    ExchangeIfSame(i64),
    /// Loads the shared pointer, then increments an atomic in the node; observes the old value, or
    /// -1 without a node. Another thread may free the node in between.
    UseNode,
    /// Allocates an atomic in a box of its own, uses it, and frees it.
    BoxedAtomic,
    /// Polls a future that is pending `n` times and wakes itself.
    SelfWaking(u32),
    /// A future that registers a waker and is ready when an atomic is not 0.
    Awaits(usize, usize),
    /// Stores 1 in an atomic and calls the waker.
    Wakes(usize, usize),
}

impl Statement {
    /// The block inside the statement.
    pub fn blocks(&self) -> Option<&Vec<Statement>> {
        use Statement as S;
        match self {
            S::Lock(_, block) | S::TryLock(_, block) | S::Read(_, block) | S::Write(_, block) => {
                Some(block)
            }
            S::Downgrade(_, block) | S::Scope(_, block) | S::Repeat(_, block) | S::Catch(block) => {
                Some(block)
            }
            S::Invariant(block) | S::CallOnce(_, block) => Some(block),
            _ => None,
        }
    }

    /// The block inside the statement, mutably.
    pub fn blocks_mut(&mut self) -> Option<&mut Vec<Statement>> {
        use Statement as S;
        match self {
            S::Lock(_, block) | S::TryLock(_, block) | S::Read(_, block) | S::Write(_, block) => {
                Some(block)
            }
            S::Downgrade(_, block) | S::Scope(_, block) | S::Repeat(_, block) | S::Catch(block) => {
                Some(block)
            }
            S::Invariant(block) | S::CallOnce(_, block) => Some(block),
            _ => None,
        }
    }

    /// The name of the construct, for measuring coverage.
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
            S::AcquireFence => "acquire fence",
            S::ReleaseFence => "release fence",
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
            S::WaitTimeoutWhile(..) => "wait_timeout_while",
            S::NotifyOne(_) => "notify_one",
            S::NotifyAll(_) => "notify_all",
            S::Barrier(_) => "barrier",
            S::Park => "park",
            S::ParkTimeout => "park_timeout",
            S::UnparkMain => "unpark main",
            S::Unpark(_) => "unpark",
            S::Spawn(_) => "spawn",
            S::Join(_) => "join",
            S::Detach(_) => "detach",
            S::IsFinished(_) => "is_finished",
            S::Scope(..) => "scope",
            S::Choose(_) => "choose",
            S::Assume(..) => "assume",
            S::CellRead(_) => "cell read",
            S::CellWrite(_) => "cell write",
            S::Local => "thread local",
            S::LocalGuard => "thread local with a destructor",
            S::YieldNow => "yield_now",
            S::WaitFor(_, wait) => match wait {
                Wait::Spin => "spin loop",
                Wait::Yield => "yield loop",
                Wait::Bare => "loop without a yield",
                Wait::Allocating => "loop without a yield that allocates",
                Wait::Counting => "yield loop that counts",
                Wait::Flag => "yield loop that takes a flag",
                Wait::Locked => "yield loop that takes a lock",
                Wait::Future => "future that polls itself",
            },
            S::Poll { rounds: ..=LOOKED_AHEAD, .. } => "loop that ends by itself",
            S::Poll { .. } => "long loop that ends by itself",
            S::Repeat(..) => "repeat",
            S::PanicIf(..) => "panic",
            S::Catch(_) => "catch_unwind",
            S::Invariant(_) => "asserting destructor",
            S::CallOnce(..) => "call_once",
            S::GetOrInit(..) => "get_or_init",
            S::SetOnce(..) => "set of a OnceLock",
            S::GetOnce(_) => "get of a OnceLock",
            S::Send(_) => "send",
            S::TrySend(_) => "try_send",
            S::Receive => "recv",
            S::TryReceive => "try_recv",
            S::ReceiveTimeout => "recv_timeout",
            S::DropArc => "drop of an Arc",
            S::CountArc => "strong_count",
            S::Upgrade => "upgrade of a Weak",
            S::IntoInner => "into_inner of an Arc",
            S::TryUnwrap => "try_unwrap of an Arc",
            S::Exchange(_) => "pointer swap and free",
            S::ExchangeIfSame(_) => "pointer compare_exchange",
            S::UseNode => "use of a node that may be freed",
            S::BoxedAtomic => "atomic in a freed box",
            S::SelfWaking(_) => "future that wakes itself",
            S::Awaits(..) => "future with a waker",
            S::Wakes(..) => "wake",
        }
    }
}

/// A program. Thread 0 is the closure itself. Every other thread is spawned once, by a thread with
/// a smaller number, in a statement of its outermost block. Threads that are not joined explicitly
/// are joined at the end of their parent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The statements of each thread.
    pub threads: Vec<Vec<Statement>>,
    /// The capacity of the channel; `None` if it is unbounded.
    pub capacity: Option<usize>,
    /// The thread that owns the channel's receiver. It has no sender; every other thread has one.
    pub receiver: usize,
    /// Whether waits may end without a notification (spurious wakeups).
    pub spurious_wakeups: bool,
    /// Whether weak exchanges may fail spuriously.
    pub weak_failures: bool,
}

impl Program {
    /// Calls `f` for every statement, including those in blocks.
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

    /// Whether a statement satisfies `is`.
    pub fn any(&self, mut is: impl FnMut(&Statement) -> bool) -> bool {
        let mut found = false;
        self.visit(|statement| found |= is(statement));
        found
    }

    /// The threads that this one starts, in the order of its statements.
    pub fn started_by(&self, thread: usize) -> Vec<usize> {
        let mut started = Vec::new();
        for statement in &self.threads[thread] {
            match statement {
                Statement::Spawn(child) => started.push(*child),
                Statement::Scope(children, _) => started.extend(children),
                _ => {}
            }
        }
        started
    }

    /// The threads whose observed values are lost: those that are detached, and all that
    /// they start.
    pub fn unobserved(&self) -> Vec<usize> {
        let mut unobserved = Vec::new();
        self.visit(|statement| {
            if let Statement::Detach(child) = statement {
                unobserved.push(*child);
            }
        });
        let mut next = 0;
        while let Some(&thread) = unobserved.get(next) {
            unobserved.extend(self.started_by(thread));
            next += 1;
        }
        unobserved
    }

    /// Whether a scope or `is_finished` observes that the function of a thread has returned.
    pub fn observes_ends(&self) -> bool {
        self.any(|statement| matches!(statement, Statement::Scope(..) | Statement::IsFinished(_)))
    }

    /// Whether the program uses the channel.
    pub fn has_channel(&self) -> bool {
        self.any(|statement| {
            matches!(
                statement,
                Statement::Send(_)
                    | Statement::TrySend(_)
                    | Statement::Receive
                    | Statement::TryReceive
                    | Statement::ReceiveTimeout
            )
        })
    }

    /// Whether the program uses the counted `Arc`.
    pub fn has_arc(&self) -> bool {
        self.any(|statement| {
            matches!(
                statement,
                Statement::DropArc
                    | Statement::CountArc
                    | Statement::Upgrade
                    | Statement::IntoInner
                    | Statement::TryUnwrap
            )
        })
    }

    /// The number of statements, including those in blocks.
    pub fn size(&self) -> usize {
        let mut size = 0;
        self.visit(|_| size += 1);
        size
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn block(
            f: &mut fmt::Formatter<'_>,
            statements: &[Statement],
            indent: usize,
        ) -> fmt::Result {
            for statement in statements {
                let Some(inner) = statement.blocks() else {
                    writeln!(f, "{:indent$}{statement:?};", "")?;
                    continue;
                };
                let mut head = statement.clone();
                if let Some(inner) = head.blocks_mut() {
                    inner.clear();
                }
                writeln!(
                    f,
                    "{:indent$}{} {{",
                    "",
                    format!("{head:?}").replace(", []", "").replace("([])", "")
                )?;
                block(f, inner, indent + 4)?;
                writeln!(f, "{:indent$}}}", "")?;
            }
            Ok(())
        }
        if self.has_channel() {
            writeln!(
                f,
                "channel of capacity {:?}, received by thread {}",
                self.capacity, self.receiver
            )?;
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
