//! Executes a closure program with the library's types.
//!
//! One closure interprets every program. All statements of a kind therefore share their source
//! lines, as in a data structure that several threads call.

mod loops;
mod shared;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc as Plain;
use std::sync::PoisonError;
use std::task::Poll;
use std::time::Duration;

use preempt::future::{self, block_on};
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{self, AtomicI64, fence};
use preempt::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, TrySendError};
use preempt::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockWriteGuard, TryLockError};
use preempt::thread;

use self::loops::{poll, wait_for};
use self::shared::{End, Guard, Kit, Node, Shared, free, kits, use_node};
use crate::program::{AtomicOp, Ordering, Program, Statement};

preempt::thread_local! {
    static PASSES: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
    static GUARD: std::cell::RefCell<Option<Guard>> = const { std::cell::RefCell::new(None) };
}

/// The result of a thread: the values that it and the threads it spawned have observed.
type Seen = Vec<(usize, Vec<i64>)>;

struct Thread<'k> {
    program: Plain<Program>,
    shared: Arc<Shared>,
    main: thread::Thread,
    me: usize,
    kits: &'k mut Vec<Option<Kit>>,
    own: Option<Kit>,
    seen: Vec<i64>,
    others: Seen,
    open: Vec<(usize, thread::JoinHandle<Seen>)>,
}

/// Executes a program once, inside a check. Returns the values that each thread has observed.
pub fn execute(program: &Plain<Program>) -> Vec<Vec<i64>> {
    let shared = Arc::new(Shared::new());
    let mut kits = kits(program, &shared);
    let main = thread::current();
    let seen = run(program, &shared, &main, 0, &mut kits);
    let mut all = vec![Vec::new(); program.threads.len()];
    for (thread, values) in seen {
        all[thread] = values;
    }
    program.unobserved().into_iter().for_each(|thread| all[thread].clear());
    all
}

fn run(
    program: &Plain<Program>,
    shared: &Arc<Shared>,
    main: &thread::Thread,
    me: usize,
    kits: &mut Vec<Option<Kit>>,
) -> Seen {
    let own = kits[me].take();
    let (program, shared, main) = (program.clone(), shared.clone(), main.clone());
    let (seen, others, open) = (Vec::new(), Vec::new(), Vec::new());
    let mut thread =
        Thread { program: program.clone(), shared, main, me, kits, own, seen, others, open };
    thread.block(&program.threads[me]);
    while !thread.open.is_empty() {
        let (child, handle) = thread.open.remove(0);
        thread.joined(child, handle);
    }
    let mut all = std::mem::take(&mut thread.others);
    all.push((me, std::mem::take(&mut thread.seen)));
    drop(thread);
    all
}

fn read_order(ordering: Ordering) -> atomic::Ordering {
    match ordering {
        Ordering::Relaxed => Relaxed,
        Ordering::AcquireRelease => Acquire,
        Ordering::SeqCst => SeqCst,
    }
}

fn write_order(ordering: Ordering) -> atomic::Ordering {
    match ordering {
        Ordering::Relaxed => Relaxed,
        Ordering::AcquireRelease => Release,
        Ordering::SeqCst => SeqCst,
    }
}

fn update_order(ordering: Ordering) -> atomic::Ordering {
    match ordering {
        Ordering::Relaxed => Relaxed,
        Ordering::AcquireRelease => AcqRel,
        Ordering::SeqCst => SeqCst,
    }
}

/// The previous value; plus 1000 if the exchange failed.
fn exchanged(result: Result<i64, i64>) -> i64 {
    result.unwrap_or_else(|found| found + 1000)
}

impl Thread<'_> {
    fn block(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn see(&mut self, value: i64) {
        self.seen.push(value);
    }

    /// The closure of a child thread, with everything that the child and its descendants own.
    fn child(&mut self, child: usize) -> impl FnOnce() -> Seen + Send + use<> {
        let (program, shared, main) =
            (self.program.clone(), self.shared.clone(), self.main.clone());
        let mut kits: Vec<Option<Kit>> = self.kits.iter().map(|_| None).collect();
        let mut moves = vec![child];
        while let Some(thread) = moves.pop() {
            kits[thread] = self.kits[thread].take();
            moves.extend(program.started_by(thread));
        }
        move || run(&program, &shared, &main, child, &mut kits)
    }

    fn joined(&mut self, _child: usize, handle: thread::JoinHandle<Seen>) {
        match handle.join() {
            Ok(seen) => self.others.extend(seen),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Locks a mutex, changes its value, and observes the value and whether the mutex is poisoned.
    fn locked<'s>(&mut self, mutex: &'s Mutex<i64>) -> MutexGuard<'s, i64> {
        let result = mutex.lock();
        let poisoned = result.is_err();
        let mut guard = result.unwrap_or_else(PoisonError::into_inner);
        self.change(&mut guard, poisoned);
        guard
    }

    fn change(&mut self, value: &mut i64, poisoned: bool) {
        *value = (*value * 3 + self.me as i64 + 1) % 50;
        self.observe(*value, poisoned);
    }

    fn observe(&mut self, value: i64, poisoned: bool) {
        self.see(value + if poisoned { 100 } else { 0 });
    }

    fn statement(&mut self, statement: &Statement) {
        use Statement as S;
        let shared = self.shared.clone();
        match *statement {
            S::Atomic(at, op, ordering) => self.atomic(shared.atomic(at), op, ordering),
            S::Fence => fence(AcqRel),
            S::AcquireFence => fence(Acquire),
            S::ReleaseFence => fence(Release),
            S::Lock(at, ref block) => {
                let _guard = self.locked(&shared.mutexes[at]);
                self.block(block);
            }
            S::TryLock(at, ref block) => {
                let (guard, poisoned) = match shared.mutexes[at].try_lock() {
                    Ok(guard) => (Some(guard), false),
                    Err(TryLockError::Poisoned(guard)) => (Some(guard.into_inner()), true),
                    Err(TryLockError::WouldBlock) => (None, false),
                };
                match guard {
                    Some(mut guard) => {
                        self.change(&mut guard, poisoned);
                        self.block(block);
                    }
                    None => self.see(-1),
                }
            }
            S::Crossed(first, second) => {
                let first = self.locked(&shared.mutexes[first]);
                let second = self.locked(&shared.mutexes[second]);
                drop(first);
                drop(second);
            }
            S::Read(at, ref block) => {
                let result = shared.locks[at].read();
                let poisoned = result.is_err();
                let guard = result.unwrap_or_else(PoisonError::into_inner);
                self.observe(*guard, poisoned);
                self.block(block);
            }
            S::Write(at, ref block) => {
                let _guard = self.written(&shared.locks[at]);
                self.block(block);
            }
            S::TryRead(at) => match shared.locks[at].try_read() {
                Ok(guard) => self.observe(*guard, false),
                Err(TryLockError::Poisoned(guard)) => self.observe(*guard.into_inner(), true),
                Err(TryLockError::WouldBlock) => self.see(-1),
            },
            S::TryWrite(at) => match shared.locks[at].try_write() {
                Ok(mut guard) => self.change(&mut guard, false),
                Err(TryLockError::Poisoned(guard)) => self.change(&mut guard.into_inner(), true),
                Err(TryLockError::WouldBlock) => self.see(-1),
            },
            S::Downgrade(at, ref block) => {
                let _guard = RwLockWriteGuard::downgrade(self.written(&shared.locks[at]));
                self.block(block);
            }
            S::Wait { condvar, mutex, timeout } => {
                let guard = self.locked(&shared.mutexes[mutex]);
                if timeout {
                    let result =
                        shared.condvars[condvar].wait_timeout(guard, Duration::from_secs(1));
                    let poisoned = result.is_err();
                    let (guard, over) = result.unwrap_or_else(PoisonError::into_inner);
                    self.observe(*guard + if over.timed_out() { 1000 } else { 0 }, poisoned);
                } else {
                    let result = shared.condvars[condvar].wait(guard);
                    let poisoned = result.is_err();
                    let guard = result.unwrap_or_else(PoisonError::into_inner);
                    self.observe(*guard, poisoned);
                }
            }
            S::WaitWhile(condvar, mutex) => {
                let guard = shared.mutexes[mutex].lock().unwrap_or_else(PoisonError::into_inner);
                let guard = shared.condvars[condvar].wait_while(guard, |value| *value == 0);
                let guard = guard.unwrap_or_else(PoisonError::into_inner);
                self.see(*guard);
            }
            S::WaitTimeoutWhile(condvar, mutex) => {
                let guard = shared.mutexes[mutex].lock().unwrap_or_else(PoisonError::into_inner);
                let time = Duration::from_secs(1);
                let waited = shared.condvars[condvar].wait_timeout_while(guard, time, |v| *v == 0);
                let (guard, over) = waited.unwrap_or_else(PoisonError::into_inner);
                self.see(*guard + if over.timed_out() { 1000 } else { 0 });
            }
            S::NotifyOne(at) => shared.condvars[at].notify_one(),
            S::NotifyAll(at) => shared.condvars[at].notify_all(),
            S::Barrier(at) => self.see(shared.barriers[at].wait().is_leader().into()),
            S::Park => thread::park(),
            S::ParkTimeout => thread::park_timeout(Duration::from_secs(1)),
            S::UnparkMain => self.main.unpark(),
            S::Unpark(child) => {
                let open = self.open.iter().find(|(other, _)| *other == child);
                open.expect("only threads that were not joined are unparked").1.thread().unpark();
            }
            S::Spawn(child) => {
                let job = self.child(child);
                self.open.push((child, thread::spawn(job)));
            }
            S::Join(child) => {
                let at = self.open.iter().position(|(other, _)| *other == child);
                let (child, handle) =
                    self.open.remove(at.expect("a thread is joined once, by its parent"));
                self.joined(child, handle);
            }
            S::Detach(child) => self.open.retain(|(other, _)| *other != child),
            S::IsFinished(child) => {
                let open = self.open.iter().find(|(other, _)| *other == child);
                let finished =
                    open.expect("only threads that were not joined are asked").1.is_finished();
                self.see(finished.into());
            }
            S::Scope(ref threads, ref block) => self.scope(threads, block),
            S::Choose(below) => self.see(preempt::choose(below).into()),
            S::Assume(at, value) => {
                preempt::assume(shared.atomic(at).load(SeqCst) != value);
            }
            S::CellRead(at) => shared.cells.0[at].with(|_| ()),
            S::CellWrite(at) => shared.cells.0[at].with_mut(|_| ()),
            S::Local => {
                let passes = PASSES.with(|passes| passes.replace(passes.get() + 1));
                self.see(passes + 1);
            }
            S::LocalGuard => GUARD.with(|guard| {
                guard.borrow_mut().get_or_insert_with(|| Guard(shared.clone()));
            }),
            S::YieldNow => thread::yield_now(),
            S::WaitFor(at, wait) => wait_for(&shared, shared.atomic(at), wait),
            S::Poll { atomic, rounds, counter } => {
                let (count, value) = poll(shared.atomic(atomic), rounds, counter);
                self.see(count.into());
                self.see(value);
            }
            S::Repeat(times, ref block) => (0..times).for_each(|_| self.block(block)),
            S::PanicIf(at, value) => {
                assert!(shared.atomic(at).load(SeqCst) != value, "the program panics")
            }
            S::Catch(ref block) => {
                let result = catch_unwind(AssertUnwindSafe(|| self.block(block)));
                self.see(result.is_err().into());
            }
            S::Invariant(ref block) => {
                let stage = Stage(AtomicI64::new(0));
                stage.0.store(1, SeqCst);
                self.block(block);
                stage.0.store(2, SeqCst);
            }
            S::CallOnce(at, ref block) => shared.onces[at].call_once(|| self.block(block)),
            S::GetOrInit(at, value) => self.see(*shared.values[at].get_or_init(|| value)),
            S::SetOnce(at, value) => {
                let first = shared.values[at].set(value).is_ok();
                self.see(first.into());
            }
            S::GetOnce(at) => self.see(shared.values[at].get().copied().unwrap_or(-1)),
            S::TrySend(value) => {
                let sent = match self.own.as_ref().and_then(|kit| kit.end.as_ref()) {
                    Some(End::SyncSender(sender)) => sender.try_send(value),
                    _ => unreachable!("the capacity is 1 where this is used"),
                };
                self.see(match sent {
                    Ok(()) => 1,
                    Err(TrySendError::Full(_)) => 0,
                    Err(TrySendError::Disconnected(_)) => -1,
                });
            }
            S::Send(value) => {
                let sent = match self.own.as_ref().and_then(|kit| kit.end.as_ref()) {
                    Some(End::Sender(sender)) => sender.send(value).is_ok(),
                    Some(End::SyncSender(sender)) => sender.send(value).is_ok(),
                    _ => unreachable!("the thread with the receiver does not send"),
                };
                self.see(sent.into());
            }
            S::Receive => {
                let received = self.receiver().recv().unwrap_or(-1);
                self.see(received);
            }
            S::TryReceive => {
                let received = match self.receiver().try_recv() {
                    Ok(value) => value,
                    Err(TryRecvError::Disconnected) => -1,
                    Err(TryRecvError::Empty) => -2,
                };
                self.see(received);
            }
            S::ReceiveTimeout => {
                let received = match self.receiver().recv_timeout(Duration::from_secs(1)) {
                    Ok(value) => value,
                    Err(RecvTimeoutError::Disconnected) => -1,
                    Err(RecvTimeoutError::Timeout) => -2,
                };
                self.see(received);
            }
            S::Upgrade => {
                let weak = self.own.as_ref().and_then(|kit| kit.weak.as_ref());
                let upgraded = weak.and_then(|weak| weak.upgrade());
                self.see(upgraded.is_some().into());
            }
            S::IntoInner => {
                let arc = self.own.as_mut().and_then(|kit| kit.arc.take());
                let inner = arc.and_then(Arc::into_inner);
                self.see(inner.is_some().into());
            }
            S::TryUnwrap => {
                let kit = self.own.as_mut().expect("a thread that runs has its values");
                let unwrapped = match kit.arc.take().map(Arc::try_unwrap) {
                    Some(Err(arc)) => {
                        kit.arc = Some(arc);
                        0
                    }
                    Some(Ok(inner)) => {
                        drop(inner);
                        1
                    }
                    None => -1,
                };
                self.see(unwrapped);
            }
            S::DropArc => drop(self.own.as_mut().and_then(|kit| kit.arc.take())),
            S::CountArc => {
                let arc = self.own.as_ref().and_then(|kit| kit.arc.as_ref());
                let count = arc.map_or(-1, |arc| Arc::strong_count(arc) as i64);
                self.see(count);
            }
            S::Exchange(value) => {
                let old = shared.pointer.swap(Node::make(value), SeqCst);
                self.see(free(old));
            }
            S::ExchangeIfSame(value) => {
                let old = shared.pointer.load(SeqCst);
                let new = Node::make(value);
                match shared.pointer.compare_exchange(old, new, SeqCst, SeqCst) {
                    Ok(old) => self.see(free(old)),
                    Err(_) => {
                        free(new);
                        self.see(-1);
                    }
                }
            }
            S::UseNode => {
                let node = shared.pointer.load(SeqCst);
                let before = use_node(node);
                self.see(before);
            }
            S::BoxedAtomic => {
                let own = Box::new(AtomicI64::new(1));
                own.fetch_add(1, SeqCst);
                assert_eq!(own.load(SeqCst), 2, "no other thread knows the atomic");
            }
            S::SelfWaking(times) => block_on(async {
                for _ in 0..times {
                    future::yield_now().await;
                }
            }),
            S::Awaits(waker, at) => block_on(poll_fn(|context| {
                shared.wakers[waker].register_by_ref(context.waker());
                if shared.atomic(at).load(SeqCst) != 0 { Poll::Ready(()) } else { Poll::Pending }
            })),
            S::Wakes(waker, at) => {
                shared.atomic(at).store(1, SeqCst);
                shared.wakers[waker].wake();
            }
        }
    }

    fn written<'s>(&mut self, lock: &'s RwLock<i64>) -> RwLockWriteGuard<'s, i64> {
        let result = lock.write();
        let poisoned = result.is_err();
        let mut guard = result.unwrap_or_else(PoisonError::into_inner);
        self.change(&mut guard, poisoned);
        guard
    }

    fn receiver(&self) -> &Receiver<i64> {
        match self.own.as_ref().and_then(|kit| kit.end.as_ref()) {
            Some(End::Receiver(receiver)) => receiver,
            _ => unreachable!("only one thread receives"),
        }
    }

    fn scope(&mut self, threads: &[usize], block: &[Statement]) {
        let jobs: Vec<_> = threads.iter().map(|&child| self.child(child)).collect();
        let results: Vec<std::sync::Mutex<Seen>> =
            threads.iter().map(|_| Default::default()).collect();
        thread::scope(|scope| {
            for (job, result) in jobs.into_iter().zip(&results) {
                scope.spawn(move || {
                    let seen = job();
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = seen;
                });
            }
            self.block(block);
        });
        let all = results
            .into_iter()
            .map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.others.extend(all.flatten());
    }

    fn atomic(&mut self, atomic: &AtomicI64, op: AtomicOp, ordering: Ordering) {
        let (read, write, update) =
            (read_order(ordering), write_order(ordering), update_order(ordering));
        let old = match op {
            AtomicOp::Load => atomic.load(read),
            AtomicOp::Store(value) => return atomic.store(value, write),
            AtomicOp::Swap(value) => atomic.swap(value, update),
            AtomicOp::CompareExchange(old, new) => {
                exchanged(atomic.compare_exchange(old, new, update, read))
            }
            AtomicOp::CompareExchangeWeak(old, new) => {
                exchanged(atomic.compare_exchange_weak(old, new, update, read))
            }
            AtomicOp::Add(operand) => atomic.fetch_add(operand, update),
            AtomicOp::Sub(operand) => atomic.fetch_sub(operand, update),
            AtomicOp::And(operand) => atomic.fetch_and(operand, update),
            AtomicOp::Nand(operand) => atomic.fetch_nand(operand, update),
            AtomicOp::Or(operand) => atomic.fetch_or(operand, update),
            AtomicOp::Xor(operand) => atomic.fetch_xor(operand, update),
            AtomicOp::Max(operand) => atomic.fetch_max(operand, update),
            AtomicOp::Min(operand) => atomic.fetch_min(operand, update),
            AtomicOp::Update => exchanged(
                atomic.fetch_update(update, read, |value| (value % 2 == 0).then_some(value + 1)),
            ),
        };
        self.see(old);
    }
}

/// A value whose destructor asserts that no thread is using it.
struct Stage(AtomicI64);

impl Drop for Stage {
    fn drop(&mut self) {
        let stage = self.0.swap(9, SeqCst);
        assert!(
            stage == 0 || stage == 2,
            "the destructor runs in stage {stage}, which the program never leaves"
        );
    }
}
