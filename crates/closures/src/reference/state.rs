//! The state of an execution: objects, threads, and the order of their steps.

use super::objects::{Objects, owner};
use super::order::{Access, Clock, Dependence, Effect, Order, Place};
use super::thread::{FAILED, FREED, Next, Op, WaitEnd, next};
use super::{Kind, MOST_THREADS};
use crate::program::{AtomicOp, Ordering, Program, Wait};

/// One step as part of a trace: its thread, its alternative, and the steps that it depends on.
pub(super) type Event = (u8, u8, Clock);

/// How often the same weak exchange of a thread may fail spuriously in a row: as
/// `Check::weak_cas_failures` says.
const MOST_SPURIOUS: u32 = 2;

/// The state.
#[derive(Clone, Debug)]
pub struct State {
    objects: Objects,
    /// For each thread, the replies of its operations so far.
    replies: Vec<Vec<i64>>,
    /// The next operation of each thread; `None` before the thread is spawned.
    next: Vec<Option<Next>>,
    /// Threads that have taken their last step.
    finished: Vec<bool>,
    /// Threads whose function has returned before the destructors of thread-local values, and
    /// whether it panicked.
    returned: Vec<Option<bool>>,
    /// Threads that ended with a panic.
    panicked: Vec<bool>,
    /// For each thread, the exchange that failed spuriously in its last weak exchange, and how many
    /// times in a row.
    spurious: Vec<Option<(usize, AtomicOp, u32)>>,
    dependence: Box<Dependence>,
    order: Box<Order>,
    /// The steps so far.
    pub(super) events: Vec<Event>,
    /// The thread that took the last step; at the start it is main.
    pub(super) last: usize,
    pub(super) preemptions: u32,
    /// How often a thread that could step was skipped in a round robin, which goes through the
    /// threads in the order in which they were started and begins at the thread of the last step.
    pub(super) delays: u32,
    /// The threads in the order in which they were started.
    pub(super) started: Vec<usize>,
    /// The failure of the last step.
    pub(super) failure: Option<Kind>,
}

impl State {
    /// The state before the first step of main.
    pub fn new(program: &Program) -> State {
        let threads = program.threads.len();
        let objects = Objects {
            senders: threads - 1,
            has_receiver: true,
            arc: threads as i64,
            ..Objects::default()
        };
        let mut state = State {
            objects,
            replies: vec![Vec::new(); threads],
            next: vec![None; threads],
            finished: vec![false; threads],
            returned: vec![None; threads],
            panicked: vec![false; threads],
            spurious: vec![None; threads],
            dependence: Box::default(),
            order: Box::default(),
            events: Vec::new(),
            last: 0,
            preemptions: 0,
            delays: 0,
            started: vec![0],
            failure: None,
        };
        state.proceed(program, 0);
        state
    }

    /// Runs a thread up to its next step, and the threads that it spawns up to theirs.
    fn proceed(&mut self, program: &Program, me: usize) {
        loop {
            let next = next(program, me, &self.replies[me]);
            let Next::At(op) = next else {
                self.next[me] = Some(next);
                return;
            };
            if op.is_step() {
                self.next[me] = Some(Next::At(op));
                return;
            }
            match op {
                Op::Spawn(child) => {
                    self.dependence.threads[child] = self.dependence.threads[me];
                    self.order.spawn(me, child);
                    self.started.push(child);
                    self.proceed(program, child);
                }
                Op::CellRead(cell) => self.access(me, cell, Access::Read),
                Op::CellWrite(cell) => self.access(me, cell, Access::Write),
                Op::Fence => {
                    self.order.acquire_fence(me);
                    self.order.release_fence(me);
                }
                Op::AcquireFence => self.order.acquire_fence(me),
                Op::ReleaseFence => self.order.release_fence(me),
                _ => unreachable!("{op:?} is a step"),
            }
            self.replies[me].push(0);
        }
    }

    fn access(&mut self, me: usize, cell: usize, access: Access) {
        if self.order.access(me, cell, access) {
            self.failure = Some(Kind::Race);
        }
    }

    /// The next operation of a thread that has not ended.
    fn pending(&self, thread: usize) -> Option<Op> {
        match self.next[thread].as_ref()? {
            Next::At(op) => Some(*op),
            // No thread can wait for the end of main, so it is not a step.
            Next::Ended(_) => (thread != 0 && !self.finished[thread]).then_some(Op::Finish),
        }
    }

    /// The number of alternatives of a thread's next step; 0 if the thread waits or has ended.
    pub fn alternatives(&self, program: &Program, thread: usize) -> u32 {
        let Some(op) = self.pending(thread) else { return 0 };
        let objects = &self.objects;
        let can = |condition: bool| u32::from(condition);
        match op {
            Op::Lock { mutex, .. } => can(objects.mutexes[mutex].writer.is_none()),
            Op::Read(lock) => can(self.objects.can_read(lock, thread)),
            Op::Write(lock) => can(self.objects.can_write(lock)),
            Op::Wake { condvar, mutex, end } => {
                let notified = objects.condvars[condvar] & 1 << thread == 0;
                let is_free = objects.mutexes[mutex].writer.is_none();
                can(match end {
                    _ if notified => is_free,
                    WaitEnd::Notification => false,
                    WaitEnd::Spurious => is_free,
                    WaitEnd::Timeout => true,
                })
            }
            Op::NotifyOne(condvar) => objects.condvars[condvar].count_ones().max(1),
            Op::Leave(barrier) => can(objects.barriers[barrier] & 1 << thread == 0),
            Op::Park { early } => can(early || objects.tokens & 1 << thread != 0),
            Op::Join(child) => can(self.finished[child]),
            Op::JoinScope(child) => can(self.finished[child] || self.returned[child].is_some()),
            Op::Choose(below) => below,
            Op::Assume | Op::Stopped => 0,
            Op::Await(atomic, _) => can(objects.atomics[atomic] != 0),
            Op::OnceEnter(once) => can(objects.onces[once] != 1),
            Op::Send(_) => {
                let most = program.capacity.map_or(usize::MAX, |capacity| capacity.max(1));
                can(!objects.has_receiver || objects.queue.len() < most)
            }
            Op::Sent => can(objects.handed & 1 << thread != 0 || !objects.has_receiver),
            Op::Receive => can(!objects.queue.is_empty() || objects.senders == 0),
            Op::AwaitWaker(future) => can(objects.woken[thread] == future),
            Op::Atomic(atomic, op @ AtomicOp::CompareExchangeWeak(..), _)
                if program.weak_failures =>
            {
                let exhausted = self.spurious[thread] == Some((atomic, op, MOST_SPURIOUS));
                if exhausted { 1 } else { 2 }
            }
            _ => 1,
        }
    }

    /// Takes a step of an enabled thread.
    pub fn step(&mut self, program: &Program, me: usize, alternative: u32) {
        if me != self.last && self.alternatives(program, self.last) > 0 {
            self.preemptions += 1;
        }
        let place = |thread| self.started.iter().position(|&started| started == thread);
        let from = place(self.last).expect("a thread that has stepped was started");
        let skipped = self.started.iter().cycle().skip(from).take_while(|&&thread| thread != me);
        let enabled = skipped.filter(|&&thread| self.alternatives(program, thread) > 0);
        self.delays += enabled.count() as u32;
        self.last = me;
        let op = self.pending(me).expect("a thread that steps has not ended");
        let touched = self.objects.touched(me, op);
        let reply = self.perform(me, op, alternative);
        // Without capacity, the sender gets the value back.
        if op == Op::DropReceiver && program.capacity != Some(0) {
            self.order.drop_values(me);
        }
        let clock = self.dependence.record(me, &touched);
        self.events.push((me as u8, alternative as u8, clock));
        if op == Op::Finish {
            self.finished[me] = true;
        } else {
            self.replies[me].push(reply);
            self.proceed(program, me);
        }
        // A panic that ends its thread is a failure even if another thread would join it and handle
        // the error.
        for (next, known) in self.next.iter().zip(&mut self.panicked) {
            let panicked = matches!(next, Some(Next::Ended(None)));
            if panicked && !std::mem::replace(known, panicked) {
                self.failure.get_or_insert(Kind::Panic);
            }
        }
    }

    /// Performs a step and returns its reply.
    fn perform(&mut self, me: usize, op: Op, alternative: u32) -> i64 {
        let bit = 1 << me;
        match op {
            Op::Private | Op::Spawn(_) | Op::CellRead(_) | Op::CellWrite(_) => 0,
            Op::Fence | Op::AcquireFence | Op::ReleaseFence => 0,
            Op::Atomic(atomic, op, ordering) => {
                let reply = self.atomic(me, atomic, op, ordering, alternative == 1);
                if let AtomicOp::CompareExchangeWeak(expected, _) = op {
                    let before =
                        self.spurious[me].filter(|known| (known.0, known.1) == (atomic, op));
                    let times = before.map_or(1, |(.., times)| times + 1);
                    let failed = reply == expected + FAILED;
                    self.spurious[me] = failed.then_some((atomic, op, times));
                }
                reply
            }
            Op::Await(atomic, _) => {
                self.atomic(me, atomic, AtomicOp::Load, Ordering::SeqCst, false)
            }
            Op::Lock { mutex, change } => self.lock(me, mutex, change),
            Op::TryLock(mutex) if self.objects.mutexes[mutex].writer.is_some() => -1,
            Op::TryLock(mutex) => self.lock(me, mutex, true),
            Op::Unlock { mutex, poison } => {
                self.order.release(me, Place::Mutex(mutex));
                let mutex = &mut self.objects.mutexes[mutex];
                (mutex.writer, mutex.poisoned) = (None, mutex.poisoned | poison);
                0
            }
            Op::TryRead(lock) if !self.objects.can_read(lock, me) => -1,
            Op::Read(lock) | Op::TryRead(lock) => {
                self.order.acquire(me, Place::Lock(lock));
                self.objects.locks[lock].readers |= bit;
                self.objects.locks[lock].reply()
            }
            Op::ReadUnlock(lock) => {
                self.order.end_read(me, lock);
                self.objects.locks[lock].readers &= !bit;
                0
            }
            Op::TryWrite(lock) if !self.objects.can_write(lock) => -1,
            Op::Write(lock) | Op::TryWrite(lock) => {
                self.order.acquire(me, Place::Lock(lock));
                self.order.acquire_reads(me, lock);
                let lock = &mut self.objects.locks[lock];
                lock.writer = Some(me);
                lock.change(me);
                lock.reply()
            }
            Op::WriteUnlock { lock, poison } => {
                self.order.release(me, Place::Lock(lock));
                let lock = &mut self.objects.locks[lock];
                (lock.writer, lock.poisoned) = (None, lock.poisoned | poison);
                0
            }
            Op::Downgrade(lock) => {
                self.order.release(me, Place::Lock(lock));
                let lock = &mut self.objects.locks[lock];
                (lock.writer, lock.readers) = (None, lock.readers | bit);
                0
            }
            Op::Wait(condvar, mutex) => {
                self.order.release(me, Place::Mutex(mutex));
                self.objects.condvars[condvar] |= bit;
                self.objects.mutexes[mutex].writer = None;
                0
            }
            Op::Wake { condvar, mutex, end } => {
                let early = self.objects.condvars[condvar] & bit != 0;
                self.objects.condvars[condvar] &= !bit;
                if early && end == WaitEnd::Timeout {
                    return FAILED;
                }
                self.lock(me, mutex, false) + if early { FAILED } else { 0 }
            }
            Op::NotifyOne(condvar) => {
                let mut waiting = (0..MOST_THREADS)
                    .filter(|thread| self.objects.condvars[condvar] & 1 << thread != 0);
                if let Some(notified) = waiting.nth(alternative as usize) {
                    self.objects.condvars[condvar] &= !(1 << notified);
                }
                0
            }
            Op::NotifyAll(condvar) => {
                self.objects.condvars[condvar] = 0;
                0
            }
            Op::Arrive(barrier) => {
                self.order.synchronise(me, Place::Barrier(barrier));
                let arrived = self.objects.barriers[barrier] | bit;
                let complete = arrived.count_ones() == 2;
                self.objects.barriers[barrier] = if complete { 0 } else { arrived };
                i64::from(complete)
            }
            Op::Leave(barrier) => {
                self.order.acquire(me, Place::Barrier(barrier));
                0
            }
            Op::Park { .. } => {
                if self.objects.tokens & bit != 0 {
                    self.order.acquire(me, Place::Token(me));
                    self.objects.tokens &= !bit;
                }
                0
            }
            Op::Unpark(thread) => {
                self.order.release(me, Place::Token(thread));
                self.objects.tokens |= 1 << thread;
                0
            }
            Op::Join(child) => {
                self.order.acquire(me, Place::Life(child));
                i64::from(matches!(self.next[child], Some(Next::Ended(None))))
            }
            Op::IsFinished(child) => {
                i64::from(self.finished[child] || self.returned[child].is_some())
            }
            Op::Return(panicked) => {
                self.order.release(me, Place::Return(me));
                self.returned[me] = Some(panicked);
                0
            }
            Op::JoinScope(child) => {
                let place = match self.returned[child] {
                    Some(_) => Place::Return(child),
                    None => Place::Life(child),
                };
                self.order.acquire(me, place);
                let panicked = matches!(self.next[child], Some(Next::Ended(None)));
                i64::from(self.returned[child].unwrap_or(panicked))
            }
            Op::Finish => {
                self.order.release(me, Place::Life(me));
                0
            }
            Op::Choose(_) => alternative.into(),
            Op::Assume => unreachable!("a thread whose assumption failed takes no step"),
            Op::OnceEnter(once) => {
                self.order.acquire(me, Place::Once(once));
                let stage = &mut self.objects.onces[once];
                let runs = *stage == 0;
                *stage = if runs { 1 } else { *stage };
                i64::from(runs)
            }
            Op::OnceExit(once) => {
                self.order.release(me, Place::Once(once));
                self.objects.onces[once] = 2;
                0
            }
            Op::GetOrInit(once, value) => {
                self.order.acquire(me, Place::Value(once));
                if self.objects.values[once].is_none() {
                    self.order.release(me, Place::Value(once));
                }
                *self.objects.values[once].get_or_insert(value)
            }
            Op::SetOnce(once, value) => {
                let is_first = self.objects.values[once].is_none();
                self.perform(me, Op::GetOrInit(once, value), alternative);
                i64::from(is_first)
            }
            Op::GetOnce(once) => {
                let value = self.objects.values[once];
                if value.is_some() {
                    self.order.acquire(me, Place::Value(once));
                }
                value.unwrap_or(-1)
            }
            Op::Upgrade => {
                let exists = self.objects.arc > 0;
                self.objects.arc += i64::from(exists);
                i64::from(exists)
            }
            Op::TryUnwrap if self.objects.arc > 1 => 0,
            Op::TryUnwrap | Op::DropArc => {
                self.order.release(me, Place::Arc);
                self.objects.arc -= 1;
                if self.objects.arc == 0 {
                    self.order.acquire(me, Place::Arc);
                }
                i64::from(self.objects.arc == 0)
            }
            Op::CountArc => self.objects.arc,
            Op::Exchange(value) => {
                self.order.synchronise(me, Place::Pointer);
                self.objects.point_to(me, value)
            }
            Op::LoadPointer => {
                self.order.acquire(me, Place::Pointer);
                self.objects.node.map_or(0, |node| node.name)
            }
            Op::LoadNode => {
                self.order.acquire(me, Place::Pointer);
                self.objects.node.map_or(0, |node| node.serial)
            }
            Op::UseNode(serial) => {
                match self.objects.node.as_mut().filter(|node| node.serial == serial) {
                    Some(node) => {
                        node.uses += 1;
                        node.uses - 1
                    }
                    // The thread that replaced it has freed it.
                    None => {
                        self.failure.get_or_insert(Kind::UseAfterFree);
                        FREED
                    }
                }
            }
            Op::Stopped => unreachable!("a thread that used freed memory takes no step"),
            Op::ExchangeIfSame(name, value) => {
                self.order.acquire(me, Place::Pointer);
                if self.objects.node.map_or(0, |node| node.name) != name {
                    return -1;
                }
                self.order.release(me, Place::Pointer);
                self.objects.point_to(me, value)
            }
            Op::Register(waker, future) => {
                self.order.synchronise(me, Place::Waker(waker));
                self.objects.wakers[waker] = Some(future * MOST_THREADS as i64 + me as i64);
                0
            }
            Op::TakeWaker(waker) => {
                self.order.synchronise(me, Place::Waker(waker));
                self.objects.wakers[waker].take().unwrap_or(-1)
            }
            Op::CallWaker(whose) => {
                self.order.release(me, Place::Signal(owner(whose)));
                let woken = &mut self.objects.woken[owner(whose)];
                *woken = (*woken).max(whose / MOST_THREADS as i64);
                0
            }
            Op::AwaitWaker(_) => {
                self.order.acquire(me, Place::Signal(me));
                self.objects.woken[me] = 0;
                0
            }
            Op::Send(_)
            | Op::TrySend(_)
            | Op::Sent
            | Op::Receive
            | Op::TryReceive
            | Op::DropSender
            | Op::DropReceiver => {
                let reply = self.objects.channel(me, op);
                self.order.channel(me, op, reply);
                reply
            }
        }
    }

    fn lock(&mut self, me: usize, mutex: usize, change: bool) -> i64 {
        self.order.acquire(me, Place::Mutex(mutex));
        let mutex = &mut self.objects.mutexes[mutex];
        mutex.writer = Some(me);
        if change {
            mutex.change(me);
        }
        mutex.reply()
    }

    fn atomic(
        &mut self,
        me: usize,
        at: usize,
        op: AtomicOp,
        ordering: Ordering,
        fails: bool,
    ) -> i64 {
        let old = self.objects.atomics[at];
        let new = match op {
            AtomicOp::Load | AtomicOp::Update => None,
            AtomicOp::Store(value) | AtomicOp::Swap(value) => Some(value),
            AtomicOp::CompareExchange(expected, new)
            | AtomicOp::CompareExchangeWeak(expected, new) => {
                (old == expected && !fails).then_some(new)
            }
            AtomicOp::Add(operand) => Some(old.wrapping_add(operand)),
            AtomicOp::Sub(operand) => Some(old.wrapping_sub(operand)),
            AtomicOp::And(operand) => Some(old & operand),
            AtomicOp::Nand(operand) => Some(!(old & operand)),
            AtomicOp::Or(operand) => Some(old | operand),
            AtomicOp::Xor(operand) => Some(old ^ operand),
            AtomicOp::Max(operand) => Some(old.max(operand)),
            AtomicOp::Min(operand) => Some(old.min(operand)),
        };
        let effect = match op {
            AtomicOp::Store(_) => Effect::Stores,
            _ if new.is_some() => Effect::Updates,
            _ => Effect::Loads,
        };
        self.objects.atomics[at] = new.unwrap_or(old);
        self.order.atomic(me, Place::Atomic(at), effect, ordering);
        let exchanges =
            matches!(op, AtomicOp::CompareExchange(..) | AtomicOp::CompareExchangeWeak(..));
        old + if exchanges && new.is_none() { FAILED } else { 0 }
    }

    /// The values that all threads have observed, if all have ended without a panic.
    pub fn observed(&self) -> Option<Vec<Vec<i64>>> {
        let of = |next: &Option<Next>| match next {
            Some(Next::Ended(Some(seen))) => Some(seen.clone()),
            // A thread that was never spawned has observed nothing.
            None => Some(Vec::new()),
            _ => None,
        };
        self.next.iter().map(of).collect()
    }

    /// The verdict on an execution in which no thread can step.
    pub fn verdict(&self) -> Option<Kind> {
        // A thread that used freed memory has failed, and does not wait.
        let ended = |next: &Option<Next>| !matches!(next, Some(Next::At(op)) if *op != Op::Stopped);
        if self.next.iter().all(ended) {
            return None;
        }
        let spins = |next: &Option<Next>| matches!(next, Some(Next::At(Op::Await(..))));
        Some(if self.next.iter().any(spins) { Kind::Livelock } else { Kind::Deadlock })
    }

    /// Whether an assumption of a thread has failed.
    pub fn is_discarded(&self) -> bool {
        self.next.iter().any(|next| matches!(next, Some(Next::At(Op::Assume))))
    }

    /// Whether a thread waits in a loop whose iterations change state.
    pub fn waits_busily(&self) -> bool {
        self.next
            .iter()
            .any(|next| matches!(next, Some(Next::At(Op::Await(_, wait))) if !matches!(wait, Wait::Spin | Wait::Yield | Wait::Bare | Wait::Allocating)))
    }
}
