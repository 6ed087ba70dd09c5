//! Mirrors of [`std::sync::mpsc`]: a queue behind a [`Mutex`] and two condition variables, whose
//! schedules are those of the channel.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.filled.notify_one();
        (queue, ticket)
    }

    #[track_caller]
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        let mut queue = self.lock();
        loop {
            if !queue.has_receiver {
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
                let value = queue
                    .values
                    .pop_back()
                    .expect("a value that was not received is the only one in the queue");
                return Err(SendError(value));
            }
            queue = self.emptied.wait(queue).unwrap_or_else(PoisonError::into_inner);
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
        if queue.capacity.is_some() {
            self.emptied.notify_all();
        }
        value
    }

    #[track_caller]
    fn leave(&self) {
        let mut queue = self.lock();
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

    /// Sends a value if there is room. A channel without capacity counts as full, because it is not
    /// known whether a receiver is waiting.
    #[track_caller]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let queue = self.0.lock();
        match queue.capacity {
            _ if !queue.has_receiver => Err(TrySendError::Disconnected(value)),
            Some(capacity) if queue.values.len() >= capacity => Err(TrySendError::Full(value)),
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
            if queue.senders == 0 || crate::runtime::is_set() && !crate::runtime::inside() {
                return Err(RecvError);
            }
            queue = self.0.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Receives a value if there is one.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut queue = self.0.lock();
        match self.0.take(&mut queue) {
            Some(value) => Ok(value),
            None if queue.senders == 0 => Err(TryRecvError::Disconnected),
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
                return Err(RecvTimeoutError::Disconnected);
            }
            let (next, over) =
                self.0.filled.wait_timeout(queue, time).unwrap_or_else(PoisonError::into_inner);
            queue = next;
            if over.timed_out() {
                // As in std, the channel decides: it may have changed since the timeout.
                let empty = match queue.senders {
                    0 => RecvTimeoutError::Disconnected,
                    _ => RecvTimeoutError::Timeout,
                };
                return self.0.take(&mut queue).ok_or(empty);
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
        // A thread that waits for its value to be received gets it back.
        let meets = queue.capacity == Some(0);
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
