//! Mirrors of [`std::sync::mpsc`]: a queue behind a [`Mutex`] and two condition variables, whose
//! schedules are those of the channel. The mutex orders nothing; values carry the order that std
//! promises ([`channels`]).

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location as Site;
use std::time::Duration;

use super::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use crate::runtime::channels::{self, Transfer};
use crate::runtime::inside;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

struct Queue<T> {
    values: VecDeque<T>,
    /// The capacity; `None` if it is unlimited.
    capacity: Option<usize>,
    senders: usize,
    has_receiver: bool,
    /// The number of values received: a send on a channel without capacity waits for it.
    taken: u64,
    sent: u64,
    /// Whether the receiver of a channel without capacity waits for a value.
    is_awaited: bool,
}

struct Channel<T> {
    queue: Mutex<Queue<T>>,
    /// Notified when there is a value, or no sender is left.
    filled: Condvar,
    /// Notified when there is room, or no receiver is left.
    emptied: Condvar,
}

/// A mirror of [`std::sync::mpsc::Sender`].
pub struct Sender<T>(Arc<Channel<T>>);

/// A mirror of [`std::sync::mpsc::SyncSender`].
pub struct SyncSender<T>(Arc<Channel<T>>);

/// A mirror of [`std::sync::mpsc::Receiver`].
pub struct Receiver<T>(Arc<Channel<T>>, std::marker::PhantomData<std::cell::Cell<()>>);

#[track_caller]
fn make<T>(capacity: Option<usize>) -> (Arc<Channel<T>>, Receiver<T>) {
    let queue = Queue {
        values: VecDeque::new(),
        capacity,
        senders: 1,
        has_receiver: true,
        taken: 0,
        sent: 0,
        is_awaited: false,
    };
    let channel = Arc::new(Channel {
        queue: Mutex::new(queue),
        filled: Condvar::new(),
        emptied: Condvar::new(),
    });
    (channel.clone(), Receiver(channel, std::marker::PhantomData))
}

/// A channel that holds any number of values.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = make(None);
    (Sender(sender), receiver)
}

/// A channel that holds at most `capacity` values; 0 makes sender and receiver meet.
#[track_caller]
pub fn sync_channel<T>(capacity: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = make(Some(capacity));
    (SyncSender(sender), receiver)
}

impl<T> Channel<T> {
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        if inside() {
            channels::enter(self.queue.locate(Site::caller()));
        }
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases or acquires a clock, while the mutex is held.
    #[track_caller]
    fn transfer(&self, transfer: Transfer) {
        if inside() {
            channels::transfer(self.queue.locate(Site::caller()), transfer);
        }
    }

    #[track_caller]
    fn put<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue<T>>,
        value: T,
    ) -> (MutexGuard<'a, Queue<T>>, u64) {
        queue.values.push_back(value);
        queue.sent += 1;
        let ticket = queue.sent;
        self.transfer(Transfer::Send(ticket));
        self.filled.notify_one();
        (queue, ticket)
    }

    #[track_caller]
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        let mut queue = self.lock();
        loop {
            if !queue.has_receiver {
                self.transfer(Transfer::NoReceiver);
                return Err(SendError(value));
            }
            match queue.capacity {
                Some(capacity) if queue.values.len() >= capacity.max(1) => {
                    queue = self.emptied.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                _ => break,
            }
        }
        let meets = queue.capacity == Some(0);
        let (mut queue, ticket) = self.put(queue, value);
        while meets && queue.taken < ticket {
            if !queue.has_receiver {
                self.transfer(Transfer::NoReceiver);
                let value = queue
                    .values
                    .pop_back()
                    .expect("a value that was not received is the only one in the queue");
                return Err(SendError(value));
            }
            queue = self.emptied.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if meets {
            self.transfer(Transfer::Return(ticket));
        }
        Ok(())
    }

    /// Removes a value from the queue, if there is one.
    #[track_caller]
    fn take(&self, queue: &mut MutexGuard<'_, Queue<T>>) -> Option<T> {
        if queue.values.is_empty() {
            return None;
        }
        let value = queue.values.pop_front();
        queue.taken += 1;
        queue.is_awaited = false;
        let number = queue.taken;
        self.transfer(match queue.capacity {
            Some(0) => Transfer::Meet(number),
            _ => Transfer::Receive(number),
        });
        if queue.capacity.is_some() {
            self.emptied.notify_all();
        }
        value
    }

    /// Waits for a value or the end of all senders, for at most `time`. Returns whether the time
    /// is over.
    #[track_caller]
    fn wait<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue<T>>,
        time: Option<Duration>,
    ) -> (MutexGuard<'a, Queue<T>>, bool) {
        if queue.capacity == Some(0) {
            // A sender may repeat `try_send` until there is a wait, which is therefore progress.
            // But a loop of waits that only timeouts or spurious wakeups end is not.
            if time.is_some() || queue.is_awaited {
                queue.value_mut().is_awaited = true;
            } else {
                queue.is_awaited = true;
            }
            self.transfer(Transfer::Wait);
        }
        let Some(time) = time else {
            return (self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner), false);
        };
        let waited = self.filled.wait_timeout(queue, time);
        let (mut queue, over) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.value_mut().is_awaited = false;
        (queue, over.timed_out())
    }

    #[track_caller]
    fn leave(&self) {
        let mut queue = self.lock();
        self.transfer(Transfer::DropSender);
        queue.senders -= 1;
        if queue.senders == 0 {
            self.filled.notify_all();
        }
    }
}

impl<T> Sender<T> {
    /// Sends a value. `Err` if all receivers were dropped.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }
}

impl<T> SyncSender<T> {
    /// Sends a value; waits until there is room.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }

    /// Sends a value if there is room. A channel without capacity has room while the receiver waits
    /// and no other value is on its way to it.
    #[track_caller]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let queue = self.0.lock();
        let room = match queue.capacity {
            Some(0) => usize::from(queue.is_awaited),
            Some(capacity) => capacity,
            None => usize::MAX,
        };
        match queue.capacity {
            _ if !queue.has_receiver => {
                self.0.transfer(Transfer::NoReceiver);
                Err(TrySendError::Disconnected(value))
            }
            _ if queue.values.len() >= room => Err(TrySendError::Full(value)),
            Some(0) => {
                self.0.transfer(Transfer::Hand);
                drop(self.0.put(queue, value));
                Ok(())
            }
            _ => {
                drop(self.0.put(queue, value));
                Ok(())
            }
        }
    }
}

impl<T> Receiver<T> {
    /// Receives a value; waits until there is one. `Err` if the channel is empty and all senders
    /// were dropped.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        let mut queue = self.0.lock();
        loop {
            if let Some(value) = self.0.take(&mut queue) {
                return Ok(value);
            }
            if queue.senders == 0 || crate::runtime::is_set() && !inside() {
                self.0.transfer(Transfer::NoSenders);
                return Err(RecvError);
            }
            queue = self.0.wait(queue, None).0;
        }
    }

    /// Receives a value if there is one.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut queue = self.0.lock();
        match self.0.take(&mut queue) {
            Some(value) => Ok(value),
            None if queue.senders == 0 => {
                self.0.transfer(Transfer::NoSenders);
                Err(TryRecvError::Disconnected)
            }
            None => Err(TryRecvError::Empty),
        }
    }

    /// Receives a value; waits for at most `timeout`. Inside a check the timeout may fire at any
    /// time.
    #[track_caller]
    pub fn recv_timeout(&self, time: Duration) -> Result<T, RecvTimeoutError> {
        let mut queue = self.0.lock();
        loop {
            if let Some(value) = self.0.take(&mut queue) {
                return Ok(value);
            }
            if queue.senders == 0 {
                self.0.transfer(Transfer::NoSenders);
                return Err(RecvTimeoutError::Disconnected);
            }
            let (next, is_over) = self.0.wait(queue, Some(time));
            queue = next;
            if is_over {
                // As in std, the channel decides: it may have changed since the timeout.
                let taken = self.0.take(&mut queue);
                return match (taken, queue.senders) {
                    (Some(value), _) => Ok(value),
                    (None, 0) => {
                        self.0.transfer(Transfer::NoSenders);
                        Err(RecvTimeoutError::Disconnected)
                    }
                    (None, _) => Err(RecvTimeoutError::Timeout),
                };
            }
        }
    }

    /// An iterator over the values until all senders were dropped.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// An iterator over the values that are in the channel.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

/// Iterates over the values of a receiver until all senders were dropped.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// Iterates over the values that are in the channel.
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterates over the values of a receiver until all senders were dropped.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

macro_rules! sender {
    ($name:ident) => {
        impl<T> Clone for $name<T> {
            #[track_caller]
            fn clone(&self) -> $name<T> {
                self.0.lock().senders += 1;
                $name(self.0.clone())
            }
        }

        impl<T> Drop for $name<T> {
            fn drop(&mut self) {
                self.0.leave();
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

sender!(Sender);
sender!(SyncSender);

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.has_receiver = false;
        self.0.transfer(Transfer::DropReceiver);
        // A thread that waits for its value to be received gets it back.
        let meets = queue.capacity == Some(0);
        if !meets {
            self.0.transfer(Transfer::DropValues);
        }
        let values = if meets { Default::default() } else { std::mem::take(&mut queue.values) };
        if queue.capacity.is_some() {
            self.0.emptied.notify_all();
        }
        drop(queue);
        drop(values);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
