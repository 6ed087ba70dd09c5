//! The uses that the interface is designed for: paths and closures without type annotations.

use preempt::linearize::{Key, linearize, linearize_handles};
use preempt::sync::mpsc::{Receiver, Sender, channel};
use preempt::sync::{Arc, Condvar, Mutex};

use super::structures::{LockQueue, Map, Mistake, Notify, Reusing, Ring, Semaphore};

#[test]
fn a_queue_and_a_stack() {
    linearize(LockQueue::default)
        .op1("push", LockQueue::push)
        .op("pop", LockQueue::pop)
        .operations(2)
        .check();
    linearize(|| Reusing::new(true))
        .before(|s| [8, 9].into_iter().for_each(|value| s.push(value)))
        .op1("push", Reusing::push)
        .op("pop", Reusing::pop)
        .observe(Reusing::drain)
        .operations(2)
        .check();
}

#[test]
fn a_map() {
    linearize(Map::default)
        .op2("insert", |m, k: Key, v| m.insert(k.0, v))
        .op1("get", |m, k: Key| m.get(k.0))
        .op1("remove", |m, k: Key| m.remove(k.0))
        .op("len", Map::len)
        .operations(2)
        .check();
}

#[test]
fn a_ring() {
    linearize(|| Ring::new(false))
        .op1("push", Ring::push)
        .only("producer")
        .op("pop", Ring::pop)
        .only("consumer")
        .operations(3)
        .check();
}

enum End {
    Receiver(Receiver<u32>),
    Sender(Option<Sender<u32>>),
}

impl End {
    fn recv(&mut self) -> Option<u32> {
        let End::Receiver(end) = self else { unreachable!("only the receiver receives") };
        end.recv().ok()
    }

    fn send(&mut self, value: u32) -> bool {
        let End::Sender(end) = self else { return false };
        end.as_ref().is_some_and(|end| end.send(value).is_ok())
    }

    fn close(&mut self) {
        if let End::Sender(end) = self {
            *end = None;
        }
    }
}

fn ends(threads: usize) -> Vec<End> {
    let (sender, receiver) = channel();
    let senders = (1..threads).map(|_| End::Sender(Some(sender.clone())));
    std::iter::once(End::Receiver(receiver)).chain(senders).collect()
}

#[test]
fn a_channel() {
    linearize_handles(ends)
        .op("recv", End::recv)
        .only("receiver")
        .op1("send", End::send)
        .op("drop", End::close)
        .once()
        .operations(2)
        .check();
}

/// A read-write lock whose guards are kept by the handles of threads.
struct Guarded {
    /// The number of readers, or −1, and the value.
    shared: Arc<(Mutex<(i32, u32)>, Condvar)>,
    held: i32,
}

impl Guarded {
    fn handles(threads: usize) -> Vec<Guarded> {
        let shared = Arc::new((Mutex::new((0, 0)), Condvar::new()));
        (0..threads).map(|_| Guarded { shared: shared.clone(), held: 0 }).collect()
    }

    fn read(&mut self) -> u32 {
        let mut state = self.shared.0.lock().unwrap();
        while state.0 < 0 {
            state = self.shared.1.wait(state).unwrap();
        }
        state.0 += 1;
        self.held += 1;
        state.1
    }

    fn try_write(&mut self) -> bool {
        let mut state = self.shared.0.lock().unwrap();
        if state.0 != 0 {
            return false;
        }
        (state.0, self.held) = (-1, -1);
        true
    }

    fn write(&mut self, value: u32) {
        let mut state = self.shared.0.lock().unwrap();
        while state.0 != 0 {
            state = self.shared.1.wait(state).unwrap();
        }
        *state = (-1, value);
        self.held = -1;
    }

    fn unlock(&mut self) {
        self.shared.0.lock().unwrap().0 -= self.held;
        self.held = 0;
        self.shared.1.notify_all();
    }
}

#[test]
fn a_read_write_lock() {
    linearize_handles(Guarded::handles)
        .op("read", Guarded::read)
        .op1("write", Guarded::write)
        .op("try_write", Guarded::try_write)
        .op("unlock", Guarded::unlock)
        .operations(3)
        .threads(2)
        .check();
}

#[test]
fn a_semaphore_and_a_notification() {
    linearize(|| Semaphore::new(Mistake::None))
        .op("acquire", Semaphore::acquire)
        .op("try_acquire", Semaphore::try_acquire)
        .op("release", Semaphore::release)
        .operations(2)
        .check();
    linearize(|| Notify::new(false))
        .op_async("notified", Notify::notified)
        .op("notify_one", Notify::notify)
        .operations(2)
        .check();
}
