//! The next operation of a thread, as a function of the replies of its operations so far.
//!
//! The interpreter runs a thread's code from its beginning with the recorded replies, and stops at
//! the first operation that has no reply yet. This is slow, but needs no coroutines, no saved
//! stacks and no state besides the list of replies, which makes it easy to trust.

use crate::program::{AtomicOp, Ordering, Program, Statement, Wait};

/// An operation on shared state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Accesses an atomic; replies the old value, plus [`FAILED`] if an exchange failed.
    Atomic(usize, AtomicOp, Ordering),
    /// Accesses an object that no other thread can reach.
    Private,
    /// Locks a mutex and changes its value if `change` is set; replies the value, plus
    /// [`POISONED`].
    Lock { mutex: usize, change: bool },
    /// Locks a mutex if it is free; replies -1 otherwise.
    TryLock(usize),
    /// Unlocks a mutex.
    Unlock { mutex: usize, poison: bool },
    /// Acquires a lock for reading; replies the value, plus [`POISONED`].
    Read(usize),
    /// Like `Read`, without waiting; replies -1 if the lock is not available.
    TryRead(usize),
    /// Releases a read lock.
    ReadUnlock(usize),
    /// Acquires a lock for writing and changes its value; replies it, plus [`POISONED`].
    Write(usize),
    /// Like `Write`, without waiting; replies -1 if the lock is not available.
    TryWrite(usize),
    /// Releases a write lock.
    WriteUnlock { lock: usize, poison: bool },
    /// Turns a write lock into a read lock.
    Downgrade(usize),
    /// Starts waiting on a condition variable and unlocks the mutex.
    Wait(usize, usize),
    /// Ends the wait and locks the mutex; replies its value, plus [`POISONED`], plus [`FAILED`] if
    /// it was not notified. A wait that times out replies [`FAILED`] and locks nothing.
    Wake { condvar: usize, mutex: usize, end: WaitEnd },
    /// Wakes one waiting thread.
    NotifyOne(usize),
    /// Wakes all waiting threads.
    NotifyAll(usize),
    /// Arrives at a barrier; replies whether this completes it.
    Arrive(usize),
    /// Leaves a barrier that another thread has completed.
    Leave(usize),
    /// Waits for the token; with `early` it may continue without it.
    Park { early: bool },
    /// Makes the token of a thread available.
    Unpark(usize),
    /// Waits for the end of a thread; replies whether it panicked.
    Join(usize),
    /// Replies whether a thread has ended.
    IsFinished(usize),
    /// The function of a thread returns before its thread-local values are dropped; whether it
    /// panicked.
    Return(bool),
    /// Waits for the function of a thread to return; replies whether it panicked.
    JoinScope(usize),
    /// Replies a number below this bound.
    Choose(u32),
    /// Waits until an atomic is not 0.
    Await(usize, Wait),
    /// Enters a `Once`; replies whether the thread has to execute its block.
    OnceEnter(usize),
    /// Ends the block of a `Once`.
    OnceExit(usize),
    /// Initialises a `OnceLock` unless it has a value; replies its value.
    GetOrInit(usize, i64),
    /// The same; replies whether it had none.
    SetOnce(usize, i64),
    /// Replies the value of a `OnceLock`, or -1.
    GetOnce(usize),
    /// Sends a value; replies whether there is a receiver.
    Send(i64),
    /// Sends a value if there is room for one; replies 0 if there is none, -1 without a receiver.
    TrySend(i64),
    /// Waits until this thread's value was received; replies whether it was.
    Sent,
    /// Receives a value; replies -1 if all senders are gone.
    Receive,
    /// Like `Receive`, without waiting; replies -2 if there is no value yet.
    TryReceive,
    /// Drops a sender.
    DropSender,
    /// Drops the receiver.
    DropReceiver,
    /// Drops a reference to the `Arc`; replies whether it was the last.
    DropArc,
    /// Replies the count of the `Arc`.
    CountArc,
    /// Makes another reference to the `Arc` if there is one; replies whether there is.
    Upgrade,
    /// Drops a reference to the `Arc` if it is the only one; replies whether it is.
    TryUnwrap,
    /// Replaces the pointer; replies the value of the old node, or 0.
    Exchange(i64),
    /// Loads the pointer; replies the name of the node, or 0.
    LoadPointer,
    /// Replaces the pointer if it still has this value; replies the value of the old node, or -1.
    ExchangeIfSame(i64, i64),
    /// Loads the pointer; replies the serial number of the node, or 0.
    LoadNode,
    /// Increments the count in the node with this serial number; replies the old count, or
    /// [`FREED`].
    UseNode(i64),
    /// Never continues: the thread has used freed memory.
    Stopped,
    /// Registers the waker of the thread's future with this number.
    Register(usize, i64),
    /// Waits until the waker of this future was called.
    AwaitWaker(i64),
    /// Takes the registered waker; replies its owner, or -1.
    TakeWaker(usize),
    /// Calls the waker that [`Op::TakeWaker`] replied.
    CallWaker(i64),
    /// Waits forever: an assumption has failed.
    Assume,
    /// The end of the thread.
    Finish,
    /// Spawns a thread.
    Spawn(usize),
    /// Reads a cell.
    CellRead(usize),
    /// Writes a cell.
    CellWrite(usize),
    /// An acquire-release fence.
    Fence,
    /// A fence that only acquires.
    AcquireFence,
    /// A fence that only releases.
    ReleaseFence,
}

/// What ends a wait on a condition variable besides a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// Nothing.
    Notification,
    /// A spurious wakeup.
    Spurious,
    /// A timeout.
    Timeout,
}

/// Added to a reply if a lock is poisoned.
pub const POISONED: i64 = 100;
/// Added to a reply if an exchange failed or a wait was not notified.
pub const FAILED: i64 = 1000;
/// The reply of a use of freed memory.
pub const FREED: i64 = -2;

impl Op {
    /// Whether the operation is a scheduling point. The others belong to the step before them.
    pub fn is_step(self) -> bool {
        let fence = matches!(self, Op::Fence | Op::AcquireFence | Op::ReleaseFence);
        !fence && !matches!(self, Op::Spawn(_) | Op::CellRead(_) | Op::CellWrite(_))
    }
}

/// The position at which the interpretation of a thread stops.
#[derive(Clone, Debug)]
pub enum Next {
    /// Before this operation.
    At(Op),
    /// At its end, with the values observed, or `None` if it panicked.
    Ended(Option<Vec<i64>>),
}

/// Why a statement does not complete.
enum Stop {
    /// It needs the reply of this operation.
    At(Op),
    /// It panicked.
    Panic,
}

type Done = Result<(), Stop>;

/// Interprets the code of thread `me` with these replies.
pub fn next(program: &Program, me: usize, replies: &[i64]) -> Next {
    let mut thread = Thread {
        program,
        me,
        replies: replies.iter(),
        seen: Vec::new(),
        open: Vec::new(),
        passes: 0,
        futures: 0,
        arc: program.has_arc(),
        guard: false,
    };
    let finished = match thread.run() {
        Err(Stop::At(op)) => return Next::At(op),
        Err(Stop::Panic) => None,
        Ok(()) => Some(thread.seen),
    };
    Next::Ended(finished)
}

struct Thread<'a> {
    program: &'a Program,
    me: usize,
    replies: std::slice::Iter<'a, i64>,
    seen: Vec<i64>,
    /// The threads that it has spawned and not joined.
    open: Vec<usize>,
    /// The thread-local counter.
    passes: i64,
    /// The number of futures with wakers that it has started to poll.
    futures: i64,
    /// Whether it still owns its reference to the `Arc`.
    arc: bool,
    /// Whether it has a thread-local value with a destructor.
    guard: bool,
}

impl Thread<'_> {
    fn ask(&mut self, op: Op) -> Result<i64, Stop> {
        self.replies.next().copied().ok_or(Stop::At(op))
    }

    fn see(&mut self, op: Op) -> Done {
        let reply = self.ask(op)?;
        self.seen.push(reply);
        Ok(())
    }

    /// Runs the whole thread: its statements, the joins of the remaining children, and the drops of
    /// its values.
    fn run(&mut self) -> Done {
        let mut result = self.block(&self.program.threads[self.me]);
        while result.is_ok() && !self.open.is_empty() {
            result = self.join(self.open[0]);
        }
        if let Err(Stop::At(_)) = result {
            return result;
        }
        self.drop_arc()?;
        if self.program.has_channel() {
            self.ask(if self.me == self.program.receiver {
                Op::DropReceiver
            } else {
                Op::DropSender
            })?;
        }
        if self.guard {
            if self.me != 0 && self.program.observes_ends() {
                self.ask(Op::Return(result.is_err()))?;
            }
            self.ask(Op::Atomic(0, AtomicOp::Add(1), Ordering::SeqCst))?;
        }
        result
    }

    fn block(&mut self, statements: &[Statement]) -> Done {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    /// Executes a block and then `cleanup`, even if the block panics; the argument of `cleanup` is
    /// whether it did.
    fn then(&mut self, block: &[Statement], cleanup: impl FnOnce(bool) -> Op) -> Done {
        let result = self.block(block);
        match result {
            Err(Stop::At(_)) => result,
            _ => {
                self.ask(cleanup(result.is_err()))?;
                result
            }
        }
    }

    fn join(&mut self, thread: usize) -> Done {
        let panicked = self.ask(Op::Join(thread))? == 1;
        self.open.retain(|&other| other != thread);
        if panicked { Err(Stop::Panic) } else { Ok(()) }
    }

    fn drop_arc(&mut self) -> Done {
        if std::mem::take(&mut self.arc) && self.ask(Op::DropArc)? == 1 {
            self.drop_counted()?;
        }
        Ok(())
    }

    /// The destructor of what the counted `Arc` contains.
    fn drop_counted(&mut self) -> Done {
        self.ask(Op::Atomic(1, AtomicOp::Add(1), Ordering::SeqCst)).map(drop)
    }

    fn statement(&mut self, statement: &Statement) -> Done {
        use Statement as S;
        match *statement {
            S::Atomic(atomic, op, ordering) => self.atomic(atomic, op, ordering),
            S::Fence => self.ask(Op::Fence).map(drop),
            S::AcquireFence => self.ask(Op::AcquireFence).map(drop),
            S::ReleaseFence => self.ask(Op::ReleaseFence).map(drop),
            S::Lock(mutex, ref block) => {
                self.see(Op::Lock { mutex, change: true })?;
                self.then(block, |poison| Op::Unlock { mutex, poison })
            }
            S::TryLock(mutex, ref block) => {
                let reply = self.ask(Op::TryLock(mutex))?;
                self.seen.push(reply);
                if reply == -1 {
                    return Ok(());
                }
                self.then(block, |poison| Op::Unlock { mutex, poison })
            }
            S::Crossed(first, second) => {
                self.see(Op::Lock { mutex: first, change: true })?;
                self.see(Op::Lock { mutex: second, change: true })?;
                self.ask(Op::Unlock { mutex: first, poison: false })?;
                self.ask(Op::Unlock { mutex: second, poison: false }).map(drop)
            }
            S::Read(lock, ref block) => {
                self.see(Op::Read(lock))?;
                self.then(block, |_| Op::ReadUnlock(lock))
            }
            S::Write(lock, ref block) => {
                self.see(Op::Write(lock))?;
                self.then(block, |poison| Op::WriteUnlock { lock, poison })
            }
            S::TryRead(lock) => self.attempt(Op::TryRead(lock), Op::ReadUnlock(lock)),
            S::TryWrite(lock) => {
                self.attempt(Op::TryWrite(lock), Op::WriteUnlock { lock, poison: false })
            }
            S::Downgrade(lock, ref block) => {
                self.see(Op::Write(lock))?;
                self.ask(Op::Downgrade(lock))?;
                self.then(block, |_| Op::ReadUnlock(lock))
            }
            S::Wait { condvar, mutex, timeout } => {
                self.see(Op::Lock { mutex, change: true })?;
                let seen = match timeout {
                    true => self.wait_timeout(condvar, mutex)?,
                    false => self.wait(condvar, mutex)?,
                };
                self.seen.push(seen);
                self.ask(Op::Unlock { mutex, poison: false }).map(drop)
            }
            S::WaitWhile(condvar, mutex) => {
                let mut value = self.ask(Op::Lock { mutex, change: false })? % POISONED;
                while value == 0 {
                    value = self.wait(condvar, mutex)?;
                }
                // A wait that finds the mutex poisoned ends whatever the value is.
                self.seen.push(value % POISONED);
                self.ask(Op::Unlock { mutex, poison: false }).map(drop)
            }
            S::WaitTimeoutWhile(condvar, mutex) => {
                let mut value = self.ask(Op::Lock { mutex, change: false })? % POISONED;
                let mut over = false;
                while value == 0 && !over {
                    let reply = self.wait_timeout(condvar, mutex)?;
                    over = reply >= FAILED;
                    value = reply % FAILED;
                }
                // After a timeout the condition decides, unless the mutex is poisoned.
                let over = over && (value == 0 || value >= POISONED);
                self.seen.push(value % POISONED + if over { FAILED } else { 0 });
                self.ask(Op::Unlock { mutex, poison: false }).map(drop)
            }
            S::NotifyOne(condvar) => self.ask(Op::NotifyOne(condvar)).map(drop),
            S::NotifyAll(condvar) => self.ask(Op::NotifyAll(condvar)).map(drop),
            S::Barrier(barrier) => {
                let leader = self.ask(Op::Arrive(barrier))?;
                self.seen.push(leader);
                if leader == 0 {
                    self.ask(Op::Leave(barrier))?;
                }
                Ok(())
            }
            S::Park => self.ask(Op::Park { early: self.program.spurious_wakeups }).map(drop),
            S::ParkTimeout => self.ask(Op::Park { early: true }).map(drop),
            S::UnparkMain => self.ask(Op::Unpark(0)).map(drop),
            S::Unpark(thread) => self.ask(Op::Unpark(thread)).map(drop),
            S::Spawn(thread) => {
                self.ask(Op::Spawn(thread))?;
                self.open.push(thread);
                Ok(())
            }
            S::Join(thread) => self.join(thread),
            S::Detach(thread) => {
                self.open.retain(|&other| other != thread);
                Ok(())
            }
            S::IsFinished(thread) => self.see(Op::IsFinished(thread)),
            S::Scope(ref threads, ref block) => self.scope(threads, block),
            S::Choose(below) => self.see(Op::Choose(below)),
            S::Assume(atomic, value) => {
                if self.ask(Op::Atomic(atomic, AtomicOp::Load, Ordering::SeqCst))? == value {
                    self.ask(Op::Assume)?;
                }
                Ok(())
            }
            S::CellRead(cell) => self.ask(Op::CellRead(cell)).map(drop),
            S::CellWrite(cell) => self.ask(Op::CellWrite(cell)).map(drop),
            S::Local => {
                self.passes += 1;
                self.seen.push(self.passes);
                Ok(())
            }
            S::LocalGuard => {
                self.guard = true;
                Ok(())
            }
            S::YieldNow | S::SelfWaking(_) => Ok(()),
            S::WaitFor(atomic, wait) => self.ask(Op::Await(atomic, wait)).map(drop),
            S::Poll { atomic, rounds, .. } => {
                let (mut count, mut value) = (0, 0);
                while value == 0 && count < rounds {
                    value = self.ask(Op::Atomic(atomic, AtomicOp::Load, Ordering::SeqCst))?;
                    count += 1;
                }
                self.seen.extend([count.into(), value]);
                Ok(())
            }
            S::Repeat(times, ref block) => (0..times).try_for_each(|_| self.block(block)),
            S::PanicIf(atomic, value) => {
                let found = self.ask(Op::Atomic(atomic, AtomicOp::Load, Ordering::SeqCst))?;
                if found == value { Err(Stop::Panic) } else { Ok(()) }
            }
            S::Catch(ref block) => {
                let result = self.block(block);
                self.seen.push(i64::from(result.is_err()));
                result.or_else(|stop| if let Stop::Panic = stop { Ok(()) } else { Err(stop) })
            }
            S::Invariant(ref block) => {
                self.ask(Op::Private)?;
                self.block(block)?;
                self.ask(Op::Private)?;
                self.ask(Op::Private).map(drop)
            }
            S::CallOnce(once, ref block) => {
                if self.ask(Op::OnceEnter(once))? == 1 {
                    self.block(block)?;
                    self.ask(Op::OnceExit(once))?;
                }
                Ok(())
            }
            S::GetOrInit(once, value) => self.see(Op::GetOrInit(once, value)),
            S::Send(value) => {
                let mut sent = self.ask(Op::Send(value))?;
                if sent == 1 && self.program.capacity == Some(0) {
                    sent = self.ask(Op::Sent)?;
                }
                self.seen.push(sent);
                Ok(())
            }
            S::SetOnce(once, value) => self.see(Op::SetOnce(once, value)),
            S::GetOnce(once) => self.see(Op::GetOnce(once)),
            S::TrySend(value) => self.see(Op::TrySend(value)),
            S::Receive => self.see(Op::Receive),
            // A timeout may come at any time while there is no value.
            S::TryReceive | S::ReceiveTimeout => self.see(Op::TryReceive),
            S::Upgrade => {
                let upgraded = self.ask(Op::Upgrade)?;
                self.seen.push(upgraded);
                if upgraded == 1 && self.ask(Op::DropArc)? == 1 {
                    self.drop_counted()?;
                }
                Ok(())
            }
            S::IntoInner if std::mem::take(&mut self.arc) => {
                let last = self.ask(Op::DropArc)?;
                self.seen.push(last);
                if last == 1 { self.drop_counted() } else { Ok(()) }
            }
            S::IntoInner => {
                self.seen.push(0);
                Ok(())
            }
            S::TryUnwrap if self.arc => {
                let only = self.ask(Op::TryUnwrap)?;
                self.seen.push(only);
                if only == 0 {
                    return Ok(());
                }
                self.arc = false;
                self.drop_counted()
            }
            S::TryUnwrap => {
                self.seen.push(-1);
                Ok(())
            }
            S::DropArc => self.drop_arc(),
            S::CountArc if self.arc => self.see(Op::CountArc),
            S::CountArc => {
                self.seen.push(-1);
                Ok(())
            }
            S::Exchange(value) => self.see(Op::Exchange(value)),
            S::ExchangeIfSame(value) => {
                let old = self.ask(Op::LoadPointer)?;
                self.see(Op::ExchangeIfSame(old, value))
            }
            S::UseNode => {
                let count = match self.ask(Op::LoadNode)? {
                    0 => -1,
                    serial => self.ask(Op::UseNode(serial))?,
                };
                if count == FREED {
                    return Err(Stop::At(Op::Stopped));
                }
                self.seen.push(count);
                Ok(())
            }
            S::BoxedAtomic => {
                self.ask(Op::Private)?;
                self.ask(Op::Private).map(drop)
            }
            S::Awaits(waker, atomic) => {
                self.futures += 1;
                let future = self.futures;
                loop {
                    self.ask(Op::Register(waker, future))?;
                    if self.ask(Op::Atomic(atomic, AtomicOp::Load, Ordering::SeqCst))? != 0 {
                        return Ok(());
                    }
                    self.ask(Op::AwaitWaker(future))?;
                }
            }
            S::Wakes(waker, atomic) => {
                self.ask(Op::Atomic(atomic, AtomicOp::Store(1), Ordering::SeqCst))?;
                let whose = self.ask(Op::TakeWaker(waker))?;
                if whose >= 0 {
                    self.ask(Op::CallWaker(whose))?;
                }
                Ok(())
            }
        }
    }

    fn atomic(&mut self, atomic: usize, op: AtomicOp, ordering: Ordering) -> Done {
        match op {
            AtomicOp::Store(_) => self.ask(Op::Atomic(atomic, op, ordering)).map(drop),
            AtomicOp::Update => {
                let mut old = self.ask(Op::Atomic(atomic, AtomicOp::Load, ordering))?;
                while old % 2 == 0 {
                    let exchange = AtomicOp::CompareExchangeWeak(old, old + 1);
                    let found = self.ask(Op::Atomic(atomic, exchange, ordering))?;
                    if found < FAILED / 2 {
                        self.seen.push(found);
                        return Ok(());
                    }
                    old = found - FAILED;
                }
                self.seen.push(old + FAILED);
                Ok(())
            }
            _ => self.see(Op::Atomic(atomic, op, ordering)),
        }
    }

    /// Waits on a condition variable; returns the value of the mutex, plus [`POISONED`]. The thread
    /// cannot observe why it woke up.
    fn wait(&mut self, condvar: usize, mutex: usize) -> Result<i64, Stop> {
        self.ask(Op::Wait(condvar, mutex))?;
        let end =
            if self.program.spurious_wakeups { WaitEnd::Spurious } else { WaitEnd::Notification };
        Ok(self.ask(Op::Wake { condvar, mutex, end })? % FAILED)
    }

    /// The same with a timeout, after which the thread still has to lock the mutex; adds [`FAILED`]
    /// if there was one.
    fn wait_timeout(&mut self, condvar: usize, mutex: usize) -> Result<i64, Stop> {
        self.ask(Op::Wait(condvar, mutex))?;
        let reply = self.ask(Op::Wake { condvar, mutex, end: WaitEnd::Timeout })?;
        if reply < FAILED {
            return Ok(reply);
        }
        Ok(self.ask(Op::Lock { mutex, change: false })? + FAILED)
    }

    fn attempt(&mut self, take: Op, release: Op) -> Done {
        let reply = self.ask(take)?;
        self.seen.push(reply);
        if reply != -1 {
            self.ask(release)?;
        }
        Ok(())
    }

    /// As in std, all threads of the scope are joined before a panic propagates.
    fn scope(&mut self, threads: &[usize], block: &[Statement]) -> Done {
        for &thread in threads {
            self.ask(Op::Spawn(thread))?;
        }
        let mut result = self.block(block);
        if let Err(Stop::At(_)) = result {
            return result;
        }
        for &thread in threads {
            if self.ask(Op::JoinScope(thread))? == 1 {
                result = Err(Stop::Panic);
            }
        }
        result
    }
}
