//! The objects of an execution, and which of them a step reads and writes.

use std::collections::VecDeque;

use super::MOST_THREADS;
use super::order::{Access, Place};
use super::thread::{Op, POISONED, WaitEnd};
use crate::program::{ATOMICS, AtomicOp, PAIR};

/// A lock with its value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lock {
    pub(super) writer: Option<usize>,
    pub(super) readers: u8,
    pub(super) poisoned: bool,
    pub(super) value: i64,
}

impl Lock {
    /// The value, plus [`POISONED`] if the lock is poisoned.
    pub(super) fn reply(&self) -> i64 {
        self.value + if self.poisoned { POISONED } else { 0 }
    }

    pub(super) fn change(&mut self, me: usize) {
        self.value = (self.value * 3 + me as i64 + 1) % 50;
    }
}

/// The threads that wait on a condition variable or at a barrier, as a bit mask.
type Waiting = u8;

/// The objects, grouped by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) atomics: [i64; ATOMICS],
    pub(super) mutexes: [Lock; PAIR],
    pub(super) locks: [Lock; PAIR],
    pub(super) condvars: [Waiting; PAIR],
    pub(super) barriers: [Waiting; PAIR],
    pub(super) tokens: Waiting,
    /// 0 not started, 1 running, 2 done.
    pub(super) onces: [u8; PAIR],
    pub(super) values: [Option<i64>; PAIR],
    pub(super) queue: VecDeque<i64>,
    pub(super) senders: usize,
    pub(super) has_receiver: bool,
    /// The threads whose value a receiver of a channel without capacity has taken.
    pub(super) handed: Waiting,
    pub(super) arc: i64,
    pub(super) node: Option<Node>,
    /// The number of names of nodes, and of nodes.
    pub(super) nodes: i64,
    pub(super) made: i64,
    /// For each thread, the nodes that it has freed and not reused.
    pub(super) freed: [Vec<i64>; MOST_THREADS],
    pub(super) wakers: [Option<i64>; PAIR],
    /// For each thread, the last of its futures whose waker was called.
    pub(super) woken: [i64; MOST_THREADS],
}

/// The node to which the pointer points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Its address, which a later node may have.
    pub(super) name: i64,
    /// Its number among all nodes.
    pub(super) serial: i64,
    pub(super) value: i64,
    /// How often it was used.
    pub(super) uses: i64,
}

impl Objects {
    /// The objects that a step reads and writes.
    pub(super) fn touched(&self, me: usize, op: Op) -> Vec<(Place, Access)> {
        use Access::{Read, Write};
        match op {
            Op::Private | Op::Choose(_) | Op::Assume | Op::Stopped => vec![],
            Op::Atomic(at, AtomicOp::Load, _) | Op::Await(at, _) => vec![(Place::Atomic(at), Read)],
            Op::Atomic(at, op, _) => vec![(Place::Atomic(at), unless(self.fails(at, op)))],
            Op::TryLock(mutex) => {
                vec![(Place::Mutex(mutex), unless(self.mutexes[mutex].writer.is_some()))]
            }
            Op::TryWrite(lock) => {
                // An attempt that fails because of readers depends on how these leave.
                vec![(Place::Lock(lock), unless(self.locks[lock].writer.is_some()))]
            }
            Op::Lock { mutex, .. } | Op::Unlock { mutex, .. } => {
                vec![(Place::Mutex(mutex), Write)]
            }
            Op::Read(lock) | Op::TryRead(lock) | Op::ReadUnlock(lock) => {
                vec![(Place::Lock(lock), Read)]
            }
            Op::Write(lock) | Op::WriteUnlock { lock, .. } | Op::Downgrade(lock) => {
                vec![(Place::Lock(lock), Write)]
            }
            Op::Wait(condvar, mutex) => {
                vec![(Place::Condvar(condvar), Write), (Place::Mutex(mutex), Write)]
            }
            Op::Wake { condvar, mutex, end } => {
                let notified = self.condvars[condvar] & 1 << me == 0;
                if !notified && end == WaitEnd::Timeout {
                    return vec![(Place::Condvar(condvar), Write)];
                }
                let access = if notified { Read } else { Write };
                vec![(Place::Condvar(condvar), access), (Place::Mutex(mutex), Write)]
            }
            Op::NotifyOne(condvar) | Op::NotifyAll(condvar) => {
                vec![(Place::Condvar(condvar), Write)]
            }
            Op::Arrive(barrier) => vec![(Place::Barrier(barrier), Write)],
            Op::Leave(barrier) => vec![(Place::Barrier(barrier), Read)],
            Op::Park { .. } if self.tokens & 1 << me == 0 => vec![(Place::Token(me), Read)],
            Op::Park { .. } => vec![(Place::Token(me), Write)],
            Op::Unpark(thread) => vec![(Place::Token(thread), Write)],
            Op::Join(thread) => vec![(Place::Life(thread), Read)],
            Op::IsFinished(thread) | Op::JoinScope(thread) => {
                vec![(Place::Life(thread), Read), (Place::Return(thread), Read)]
            }
            Op::Return(_) => vec![(Place::Return(me), Write)],
            Op::Finish => vec![(Place::Life(me), Write)],
            Op::OnceEnter(once) | Op::OnceExit(once) => vec![(Place::Once(once), Write)],
            Op::GetOrInit(once, _) | Op::SetOnce(once, _) | Op::GetOnce(once) => {
                vec![(Place::Value(once), Write)]
            }
            Op::Send(_)
            | Op::TrySend(_)
            | Op::Sent
            | Op::Receive
            | Op::TryReceive
            | Op::DropSender
            | Op::DropReceiver => {
                vec![(Place::Channel, Write)]
            }
            Op::DropArc | Op::CountArc | Op::Upgrade | Op::TryUnwrap => {
                vec![(Place::Arc, Write)]
            }
            Op::LoadPointer | Op::LoadNode => vec![(Place::Pointer, Read)],
            // As if freeing a node accessed what is in it.
            Op::UseNode(_) => vec![(Place::Pointer, Write)],
            Op::Exchange(_) => vec![(Place::Pointer, Write)],
            Op::ExchangeIfSame(name, _) => {
                let is_same = self.node.map_or(0, |node| node.name) == name;
                vec![(Place::Pointer, unless(!is_same))]
            }
            Op::Register(waker, _) | Op::TakeWaker(waker) => vec![(Place::Waker(waker), Write)],
            Op::AwaitWaker(_) => vec![(Place::Signal(me), Write)],
            Op::CallWaker(whose) => vec![(Place::Signal(owner(whose)), Write)],
            Op::Spawn(_)
            | Op::CellRead(_)
            | Op::CellWrite(_)
            | Op::Fence
            | Op::AcquireFence
            | Op::ReleaseFence => unreachable!("{op:?} is not a step"),
        }
    }

    /// Whether an operation is a compare-exchange that fails.
    fn fails(&self, atomic: usize, op: AtomicOp) -> bool {
        match op {
            AtomicOp::CompareExchange(expected, _) | AtomicOp::CompareExchangeWeak(expected, _) => {
                self.atomics[atomic] != expected
            }
            _ => false,
        }
    }

    pub(super) fn can_read(&self, lock: usize, me: usize) -> bool {
        let lock = &self.locks[lock];
        // A thread that already reads waits for itself.
        lock.writer.is_none() && lock.readers & 1 << me == 0
    }

    pub(super) fn can_write(&self, lock: usize) -> bool {
        let lock = &self.locks[lock];
        lock.writer.is_none() && lock.readers == 0
    }

    pub(super) fn channel(&mut self, me: usize, op: Op) -> i64 {
        let objects = self;
        match op {
            Op::Send(_) if !objects.has_receiver => 0,
            Op::TrySend(_) if !objects.has_receiver => -1,
            Op::TrySend(_) if !objects.queue.is_empty() => 0,
            Op::Send(value) | Op::TrySend(value) => {
                // The lower part of the queued number identifies the sender that waits for its
                // value to be received.
                objects.queue.push_back(value * MOST_THREADS as i64 + me as i64);
                objects.handed &= !(1 << me);
                1
            }
            Op::Sent if objects.handed & 1 << me != 0 => 1,
            Op::Sent => {
                objects.queue.clear();
                0
            }
            Op::Receive | Op::TryReceive => match objects.queue.pop_front() {
                Some(value) => {
                    objects.handed |= 1 << owner(value);
                    value / MOST_THREADS as i64
                }
                None if objects.senders == 0 => -1,
                None => -2,
            },
            Op::DropSender => {
                objects.senders -= 1;
                0
            }
            _ => {
                objects.has_receiver = false;
                0
            }
        }
    }

    /// Makes the pointer point to a new node. Returns the value of the old node, which is freed, or
    /// 0.
    ///
    /// A thread reuses the node that it freed last, if there is one; otherwise it gets a node that
    /// was never used.
    pub(super) fn point_to(&mut self, me: usize, value: i64) -> i64 {
        let name = self.freed[me].pop().unwrap_or_else(|| {
            self.nodes += 1;
            self.nodes
        });
        self.made += 1;
        let old = self.node.replace(Node { name, serial: self.made, value, uses: 0 });
        old.map_or(0, |old| {
            self.freed[me].push(old.name);
            old.value
        })
    }
}

/// The access of an attempt: it writes unless it fails.
fn unless(fails: bool) -> Access {
    if fails { Access::Read } else { Access::Write }
}

/// The thread encoded in the lower part of a number.
pub(super) fn owner(whose: i64) -> usize {
    (whose % MOST_THREADS as i64) as usize
}
