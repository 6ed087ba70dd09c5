//! What channels synchronise.
//!
//! A channel is a queue behind a mutex, and the steps of its mutex are its schedules. But std
//! promises less order than that mutex would give: a send happens before the receive of its value,
//! and the drop of an end before the operation that reports that the other end is disconnected. In
//! a channel without capacity, what the receiver did before it received also happens before the
//! send returns. Sends do not order each other, nor does a receive a later send, a failed attempt
//! anything. (Where a slot of a bounded channel is used again, std's implementation orders more
//! than it documents.)
//!
//! So the operations on such a mutex are left out of the clocks, both of those by which races are
//! detected and of those that weak memory uses, since they are the same
//! ([`Runtime::synchronise`]). Instead, every value carries the clock of its send. The clocks are
//! kept here and not in the queue: they count operations, and a state of the program that repeats
//! must look the same.
//!
//! The steps of the mutex stay dependent. A search that takes one execution for each order of
//! dependent steps therefore takes at least one for each order of sends and receives, and within
//! one such order the clocks do not depend on the order in which independent steps were taken.

use std::collections::{BTreeMap, VecDeque};

use preempt_replay::{Op, race};
use preempt_system::{SyncClocks, ThreadId, VectorClock};

use super::{Runtime, inside, with};

/// The channels that an execution has used, by the locations of their mutexes.
#[derive(Debug, Default)]
pub(crate) struct Channels(BTreeMap<u32, Channel>);

/// The clocks that a channel passes on.
#[derive(Debug, Default)]
struct Channel {
    /// Those of the sends of values that were not received, with the numbers of the values.
    sent: VecDeque<(u64, VectorClock)>,
    /// Those of receives from a channel without capacity whose sends have not returned.
    received: Vec<(u64, VectorClock)>,
    /// The join of those of the senders that were dropped.
    senders: VectorClock,
    /// That of the receiver when it was dropped.
    receiver: VectorClock,
    /// That of the receiver of a channel without capacity when it began to wait.
    waiting: VectorClock,
}

/// A part of an operation on a channel that releases or acquires a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer {
    /// A value with this number is sent.
    Send(u64),
    /// The value with this number is received.
    Receive(u64),
    /// The value with this number is received from a channel without capacity.
    Meet(u64),
    /// The send of this number returns, after its value was received.
    Return(u64),
    /// The receiver begins to wait.
    Wait,
    /// A value is handed to the waiting receiver.
    Hand,
    /// A sender is dropped.
    DropSender,
    /// The receiver is dropped.
    DropReceiver,
    /// The values that are left are dropped.
    DropValues,
    /// It is reported that there are no senders.
    NoSenders,
    /// It is reported that there is no receiver.
    NoReceiver,
}

impl Channels {
    /// An execution begins.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether an operation is on the mutex of a channel.
    fn operates(&self, op: &Op) -> bool {
        !self.0.is_empty() && op.objects().any(|(_, object)| self.0.contains_key(&object))
    }
}

impl Channel {
    fn transfer(&mut self, clocks: &mut SyncClocks, thread: ThreadId, transfer: Transfer) {
        match transfer {
            Transfer::Send(number) => self.sent.push_back((number, clocks.publish(thread))),
            Transfer::Receive(number) | Transfer::Meet(number) => {
                if let Some(at) = self.sent.iter().position(|&(other, _)| other == number) {
                    let (_, clock) = self.sent.remove(at).expect("it was found there");
                    clocks.join(thread, &clock);
                }
                if let Transfer::Meet(_) = transfer {
                    self.received.push((number, clocks.publish(thread)));
                }
            }
            Transfer::Return(number) => {
                if let Some(at) = self.received.iter().position(|&(other, _)| other == number) {
                    clocks.join(thread, &self.received.swap_remove(at).1);
                }
            }
            Transfer::Wait => self.waiting = clocks.publish(thread),
            Transfer::Hand => clocks.join(thread, &self.waiting),
            Transfer::DropSender => self.senders.join(&clocks.publish(thread)),
            Transfer::DropReceiver => self.receiver = clocks.publish(thread),
            Transfer::DropValues => {
                self.sent.drain(..).for_each(|(_, clock)| clocks.join(thread, &clock));
            }
            Transfer::NoSenders => clocks.join(thread, &self.senders),
            Transfer::NoReceiver => clocks.join(thread, &self.receiver),
        }
    }
}

impl Runtime {
    /// Records what an operation synchronises. Operations on the mutex of a channel do so by
    /// [`transfer`].
    #[inline]
    pub(crate) fn synchronise(&mut self, thread: ThreadId, op: &Op, alternative: u32, reply: i64) {
        if !self.channels.operates(op) {
            race::synchronise(&mut self.races.clocks, thread, op, alternative, reply);
        }
    }
}

/// The running thread is about to lock the mutex of a channel.
pub(crate) fn enter(mutex: u32) {
    with(|runtime| {
        if runtime.requirements.races {
            runtime.channels.0.entry(mutex).or_default();
        }
    });
}

/// The running thread, which holds the mutex of a channel, releases or acquires a clock.
pub(crate) fn transfer(mutex: u32, transfer: Transfer) {
    if !inside() {
        return;
    }
    with(|runtime| {
        let thread = ThreadId::new(runtime.current);
        if let Some(channel) = runtime.channels.0.get_mut(&mutex) {
            channel.transfer(&mut runtime.races.clocks, thread, transfer);
        }
    });
}
