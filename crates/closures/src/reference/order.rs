//! The two orders of steps: one identifies traces, the other detects races.
//!
//! Steps are *dependent* if one writes what the other reads or writes, whatever the memory
//! orderings. Executions in which dependent steps come in the same order are one trace. Plain
//! accesses, however, are *ordered* only by releases and acquisitions.

use std::collections::VecDeque;

use super::MOST_THREADS;
use super::thread::Op;
use crate::program::{ATOMICS, Ordering, PAIR};

/// For each thread, the number of its steps or releases that are included.
pub(super) type Clock = [u16; MOST_THREADS];

fn join(into: &mut Clock, from: Clock) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into = (*into).max(from));
}

/// An object, as far as the dependence of steps is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Atomic(usize),
    Mutex(usize),
    Lock(usize),
    Condvar(usize),
    Barrier(usize),
    Token(usize),
    Life(usize),
    Return(usize),
    Once(usize),
    Value(usize),
    Channel,
    Arc,
    Pointer,
    Waker(usize),
    Signal(usize),
}

const PLACES: usize = ATOMICS + 7 * PAIR + 4 * MOST_THREADS + 3;

impl Place {
    fn index(self) -> usize {
        let pairs = ATOMICS;
        let threads = pairs + 7 * PAIR;
        let ones = threads + 4 * MOST_THREADS;
        match self {
            Place::Atomic(at) => at,
            Place::Mutex(at) => pairs + at,
            Place::Lock(at) => pairs + PAIR + at,
            Place::Condvar(at) => pairs + 2 * PAIR + at,
            Place::Barrier(at) => pairs + 3 * PAIR + at,
            Place::Once(at) => pairs + 4 * PAIR + at,
            Place::Value(at) => pairs + 5 * PAIR + at,
            Place::Waker(at) => pairs + 6 * PAIR + at,
            Place::Token(at) => threads + at,
            Place::Life(at) => threads + MOST_THREADS + at,
            Place::Signal(at) => threads + 2 * MOST_THREADS + at,
            Place::Return(at) => threads + 3 * MOST_THREADS + at,
            Place::Channel => ones,
            Place::Arc => ones + 1,
            Place::Pointer => ones + 2,
        }
    }
}

/// Whether a step reads or writes an object, for dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The dependence relation: a read depends on all writes before it, a write on all accesses before
/// it.
#[derive(Clone, Debug)]
pub(super) struct Dependence {
    writes: [Clock; PLACES],
    reads: [Clock; PLACES],
    pub(super) threads: [Clock; MOST_THREADS],
}

/// The order of plain accesses: releases and acquisitions.
#[derive(Clone, Debug)]
pub(super) struct Order {
    threads: [Clock; MOST_THREADS],
    released: [Clock; PLACES],
    /// The clocks that readers of each lock have released for its next writer.
    read: [Clock; PAIR],
    /// The clocks that relaxed loads have read; a fence acquires them.
    loaded: [Clock; MOST_THREADS],
    /// The clocks that a fence has released; relaxed stores pass them on.
    fenced: [Clock; MOST_THREADS],
    channel: Channel,
    /// For each cell and thread, the thread's own time at its last read and write.
    reads: [Clock; PAIR],
    writes: [Clock; PAIR],
}

/// The clocks that the channel passes on.
#[derive(Clone, Debug, Default)]
struct Channel {
    /// The sender of each value in the channel, and the clock of the send.
    sent: VecDeque<(usize, Clock)>,
    /// For each thread, the clock of the last receive of a value that it has sent.
    received: [Clock; MOST_THREADS],
    /// The clocks of all senders and of the receiver when they were dropped.
    senders: Clock,
    receiver: Clock,
}

const ZERO: Clock = [0; MOST_THREADS];

impl Default for Dependence {
    fn default() -> Dependence {
        Dependence { writes: [ZERO; PLACES], reads: [ZERO; PLACES], threads: [ZERO; MOST_THREADS] }
    }
}

impl Dependence {
    /// Records a step. Returns the clock of the steps that it depends on, including itself.
    pub(super) fn record(&mut self, me: usize, touched: &[(Place, Access)]) -> Clock {
        let mut clock = self.threads[me];
        for &(place, access) in touched {
            join(&mut clock, self.writes[place.index()]);
            if access == Access::Write {
                join(&mut clock, self.reads[place.index()]);
            }
        }
        clock[me] += 1;
        self.threads[me] = clock;
        for &(place, access) in touched {
            let of = if access == Access::Write { &mut self.writes } else { &mut self.reads };
            join(&mut of[place.index()], clock);
        }
        clock
    }
}

impl Default for Order {
    fn default() -> Order {
        let mut threads = [ZERO; MOST_THREADS];
        threads.iter_mut().enumerate().for_each(|(thread, clock)| clock[thread] = 1);
        Order {
            threads,
            released: [ZERO; PLACES],
            read: [ZERO; PAIR],
            loaded: [ZERO; MOST_THREADS],
            fenced: [ZERO; MOST_THREADS],
            channel: Channel::default(),
            reads: [ZERO; PAIR],
            writes: [ZERO; PAIR],
        }
    }
}

/// The effect of an operation on an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Reads only.
    Loads,
    /// Writes without reading.
    Stores,
    /// Reads and writes.
    Updates,
}

impl Order {
    /// Orders the child after everything that its parent has done so far.
    pub(super) fn spawn(&mut self, parent: usize, child: usize) {
        let clock = self.tick(parent);
        join(&mut self.threads[child], clock);
    }

    /// Performs an operation on the channel, which has replied `reply`. A send is ordered before
    /// the receive of its value, a receive before the send has returned, and the drop of an end
    /// before the operation that reports it.
    pub(super) fn channel(&mut self, me: usize, op: Op, reply: i64) {
        let acquired = match (op, reply) {
            (Op::Send(_) | Op::TrySend(_), 1) => {
                let clock = self.tick(me);
                self.channel.sent.push_back((me, clock));
                return;
            }
            (Op::Send(_) | Op::Sent, 0) | (Op::TrySend(_), -1) => self.channel.receiver,
            (Op::Sent, _) => self.channel.received[me],
            (Op::Receive | Op::TryReceive, -1) => self.channel.senders,
            (Op::Receive | Op::TryReceive, -2) | (Op::TrySend(_), _) => return,
            (Op::Receive | Op::TryReceive, _) => {
                let (sender, clock) = self.channel.sent.pop_front().expect("a value was received");
                self.channel.received[sender] = self.tick(me);
                clock
            }
            (Op::DropSender, _) => {
                let clock = self.tick(me);
                return join(&mut self.channel.senders, clock);
            }
            _ => {
                self.channel.receiver = self.tick(me);
                return;
            }
        };
        join(&mut self.threads[me], acquired);
    }

    /// The receiver is dropped, and with it the values that are left.
    pub(super) fn drop_values(&mut self, me: usize) {
        for (_, clock) in self.channel.sent.drain(..) {
            join(&mut self.threads[me], clock);
        }
    }

    /// Acquires what relaxed loads have read.
    pub(super) fn acquire_fence(&mut self, me: usize) {
        let loaded = self.loaded[me];
        join(&mut self.threads[me], loaded);
    }

    /// Lets later relaxed stores release what came before.
    pub(super) fn release_fence(&mut self, me: usize) {
        self.fenced[me] = self.tick(me);
    }

    /// Performs an operation on an atomic.
    pub(super) fn atomic(&mut self, me: usize, place: Place, effect: Effect, ordering: Ordering) {
        let relaxed = ordering == Ordering::Relaxed;
        if effect != Effect::Stores {
            let released = self.released[place.index()];
            let into = if relaxed { &mut self.loaded[me] } else { &mut self.threads[me] };
            join(into, released);
        }
        if effect == Effect::Loads {
            return;
        }
        let passed = if relaxed { self.fenced[me] } else { self.tick(me) };
        // A store starts a new release sequence; a read-modify-write continues the old one.
        if effect == Effect::Stores {
            self.released[place.index()] = passed;
        } else {
            join(&mut self.released[place.index()], passed);
        }
    }

    /// Releases a read lock for the next writer.
    pub(super) fn end_read(&mut self, me: usize, lock: usize) {
        let clock = self.tick(me);
        join(&mut self.read[lock], clock);
    }

    /// Orders a writer after all earlier readers.
    pub(super) fn acquire_reads(&mut self, me: usize, lock: usize) {
        let read = self.read[lock];
        join(&mut self.threads[me], read);
    }

    /// Performs an access to a cell. Returns whether a conflicting access is not ordered before it.
    pub(super) fn access(&mut self, me: usize, cell: usize, access: Access) -> bool {
        let clock = self.threads[me];
        let later = |(other, &time): (usize, &u16)| other != me && time > clock[other];
        let unordered = |times: &Clock| times.iter().enumerate().any(later);
        let races = unordered(&self.writes[cell])
            || access == Access::Write && unordered(&self.reads[cell]);
        let times = if access == Access::Read { &mut self.reads } else { &mut self.writes };
        times[cell][me] = clock[me];
        races
    }

    /// The thread's clock at a release. Its later accesses get a later time.
    fn tick(&mut self, me: usize) -> Clock {
        let clock = self.threads[me];
        self.threads[me][me] += 1;
        clock
    }

    pub(super) fn acquire(&mut self, me: usize, place: Place) {
        let released = self.released[place.index()];
        join(&mut self.threads[me], released);
    }

    pub(super) fn release(&mut self, me: usize, place: Place) {
        let clock = self.tick(me);
        join(&mut self.released[place.index()], clock);
    }

    pub(super) fn synchronise(&mut self, me: usize, place: Place) {
        self.acquire(me, place);
        self.release(me, place);
    }
}
