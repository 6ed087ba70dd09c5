//! Executes a [program](super::program) with the library's types.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use preempt::sync::atomic::{AtomicU64, fence};
use preempt::sync::{
    Arc, Barrier, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    mpsc,
};
use preempt::thread::{self, Thread};

use super::program::{LOCATIONS, Operation, Program};

/// The observations of the threads in each execution.
pub(super) type Seen = BTreeSet<Vec<Vec<u64>>>;

/// What a thread observes if an attempt fails.
const FAILED: u64 = 99;

const TIMEOUT: Duration = Duration::from_millis(1);

/// The objects of a program.
struct Objects {
    atomics: [AtomicU64; LOCATIONS],
    mutex: Mutex<u64>,
    lock: RwLock<u64>,
    barrier: Barrier,
    /// The thread that `Unpark` unparks. Not a mirror, so it has no part in an execution.
    first: StdMutex<Option<Thread>>,
    condvar: Condvar,
    sender: mpsc::SyncSender<u64>,
    once: OnceLock<u64>,
}

/// A thread and what it holds.
struct Running<'o> {
    objects: &'o Objects,
    receiver: Option<mpsc::Receiver<u64>>,
    /// The number of its operations, which is what it initialises the cell with.
    length: u64,
    guard: Option<MutexGuard<'o, u64>>,
    reader: Option<RwLockReadGuard<'o, u64>>,
    writer: Option<RwLockWriteGuard<'o, u64>>,
}

impl Running<'_> {
    /// Executes an operation. Returns what the thread observes.
    fn step(&mut self, operation: Operation) -> Option<u64> {
        let objects = self.objects;
        match operation {
            Operation::Load(at, order) => return Some(objects.atomics[at].load(order)),
            Operation::Store(at, value, order) => objects.atomics[at].store(value, order),
            Operation::Add(at, value, order) => {
                return Some(objects.atomics[at].fetch_add(value, order));
            }
            Operation::Swap(at, value, order) => {
                return Some(objects.atomics[at].swap(value, order));
            }
            Operation::Exchange(at, expected, new, success, failure) => {
                let atomic = &objects.atomics[at];
                let (Ok(old) | Err(old)) = atomic.compare_exchange(expected, new, success, failure);
                return Some(old);
            }
            Operation::Fence(order) => fence(order),
            Operation::Park => thread::park(),
            Operation::ParkTimeout => thread::park_timeout(TIMEOUT),
            Operation::Unpark => {
                let first = objects.first.lock().expect("no thread panics").clone();
                first.expect("main has set it").unpark();
            }
            Operation::Barrier => return Some(objects.barrier.wait().is_leader().into()),
            Operation::Choose => return Some(preempt::choose(2) as u64),
            Operation::Send => objects.sender.send(7).expect("the receiver is never dropped"),
            Operation::Receive => {
                let receiver = self.receiver.as_ref()?;
                return Some(receiver.recv().expect("a sender is never dropped"));
            }
            Operation::TryReceive => {
                return Some(self.receiver.as_ref()?.try_recv().unwrap_or(FAILED));
            }
            Operation::Once => return Some(*objects.once.get_or_init(|| self.length)),
            lock => return self.lock(lock),
        }
        None
    }

    /// The same for operations of locks and of the condition variable.
    fn lock(&mut self, operation: Operation) -> Option<u64> {
        let objects = self.objects;
        match operation {
            Operation::Lock => self.guard = Some(objects.mutex.lock().expect("not poisoned")),
            Operation::Unlock => {
                let mut guard = self.guard.take()?;
                *guard += 1;
                return Some(*guard);
            }
            Operation::TryLock => {
                return Some(objects.mutex.try_lock().map_or(FAILED, |value| *value));
            }
            Operation::Wait => {
                let guard = self.guard.take()?;
                self.guard = Some(objects.condvar.wait(guard).expect("not poisoned"));
            }
            Operation::WaitTimeout => {
                let guard = self.guard.take()?;
                let (guard, result) =
                    objects.condvar.wait_timeout(guard, TIMEOUT).expect("not poisoned");
                self.guard = Some(guard);
                return Some(result.timed_out().into());
            }
            Operation::NotifyOne => objects.condvar.notify_one(),
            Operation::NotifyAll => objects.condvar.notify_all(),
            Operation::Read => {
                let reader = objects.lock.read().expect("not poisoned");
                let seen = *reader;
                self.reader = Some(reader);
                return Some(seen);
            }
            Operation::ReadUnlock => drop(self.reader.take()),
            Operation::Write => {
                let mut writer = objects.lock.write().expect("not poisoned");
                *writer += 1;
                self.writer = Some(writer);
            }
            Operation::WriteUnlock => drop(self.writer.take()),
            Operation::TryRead => {
                return Some(objects.lock.try_read().map_or(FAILED, |value| *value));
            }
            Operation::TryWrite => {
                return Some(objects.lock.try_write().map_or(FAILED, |mut value| {
                    *value += 1;
                    *value
                }));
            }
            Operation::Downgrade => {
                self.reader = self.writer.take().map(RwLockWriteGuard::downgrade);
            }
            _ => unreachable!("`step` executes all others"),
        }
        None
    }
}

/// Executes a program and records what its threads observed. Locks that a thread still holds at its
/// end, and all objects, are leaked: they must not be released.
pub(super) fn execute(program: &Program, all: &StdMutex<Seen>) {
    let (sender, receiver) = mpsc::sync_channel(1);
    let objects = Arc::new(Objects {
        atomics: Default::default(),
        mutex: Mutex::new(0),
        lock: RwLock::new(0),
        barrier: Barrier::new(2),
        first: StdMutex::new(None),
        condvar: Condvar::new(),
        sender,
        once: OnceLock::new(),
    });
    let mut receiver = Some(receiver);
    let threads = program.threads.iter().map(|code| {
        let (code, objects, receiver) = (code.clone(), objects.clone(), receiver.take());
        thread::spawn(move || {
            let mut running = Running {
                objects: &objects,
                receiver,
                length: code.len() as u64,
                guard: None,
                reader: None,
                writer: None,
            };
            let seen = code.iter().filter_map(|&operation| running.step(operation)).collect();
            std::mem::forget(running);
            seen
        })
    });
    let threads: Vec<_> = threads.collect();
    // Spawning is not a step, so no thread has run yet.
    *objects.first.lock().expect("no thread panics") = Some(threads[0].thread().clone());
    let seen = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
    let seen: Vec<Vec<u64>> = seen.collect();
    all.lock().expect("no thread panics").insert(seen);
    std::mem::forget(objects);
}
