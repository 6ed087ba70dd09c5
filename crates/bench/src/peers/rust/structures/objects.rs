//! The structures. All orderings are sequentially consistent.

use std::collections::VecDeque;

use super::super::{Counter, Op, Queue, Structure};
use super::sync::Mutex;
use super::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// A counter with atomic additions.
pub struct Atomic(AtomicU32);

impl Default for Atomic {
    fn default() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Structure for Atomic {
    type Model = Counter;

    fn call(&self, op: Op) -> Option<u32> {
        Some(match op {
            Op::First(value) => self.0.fetch_add(value, SeqCst),
            Op::Second => self.0.load(SeqCst),
        })
    }
}

/// A counter that loses updates.
pub struct LoadAndStore(AtomicU32);

impl Default for LoadAndStore {
    fn default() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Structure for LoadAndStore {
    type Model = Counter;

    fn call(&self, op: Op) -> Option<u32> {
        let old = self.0.load(SeqCst);
        if let Op::First(value) = op {
            self.0.store(old + value, SeqCst);
        }
        Some(old)
    }
}

/// A queue with one lock.
pub struct Locked(Mutex<VecDeque<u32>>);

impl Default for Locked {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl Structure for Locked {
    type Model = Queue<{ usize::MAX }>;

    fn call(&self, op: Op) -> Option<u32> {
        let mut queue = self.0.lock().expect("no thread panics");
        match op {
            Op::First(value) => {
                queue.push_back(value);
                None
            }
            Op::Second => queue.pop_front(),
        }
    }
}

/// A queue whose `pop` reads the first element and removes one in two critical sections.
#[derive(Default)]
pub struct CheckThenAct(Locked);

impl Structure for CheckThenAct {
    type Model = Queue<{ usize::MAX }>;

    fn call(&self, op: Op) -> Option<u32> {
        if let Op::First(_) = op {
            return self.0.call(op);
        }
        let first = self.0.0.lock().expect("no thread panics").front().copied();
        first.inspect(|_| _ = self.0.call(Op::Second))
    }
}

/// A queue of one element. While another thread uses the slot, `push` says that it is full, and
/// `pop` that it is empty.
pub struct Slot {
    state: AtomicU32,
    value: AtomicU32,
}

const EMPTY: u32 = 0;
const BUSY: u32 = 1;
const FULL: u32 = 2;

impl Default for Slot {
    fn default() -> Self {
        Self { state: AtomicU32::new(EMPTY), value: AtomicU32::new(0) }
    }
}

impl Structure for Slot {
    type Model = Queue<1>;

    fn call(&self, op: Op) -> Option<u32> {
        let (from, to) = match op {
            Op::First(_) => (EMPTY, FULL),
            Op::Second => (FULL, EMPTY),
        };
        let is_own = self.state.compare_exchange(from, BUSY, SeqCst, SeqCst).is_ok();
        match op {
            Op::First(value) if !is_own => Some(value),
            Op::Second if !is_own => None,
            Op::First(value) => {
                self.value.store(value, SeqCst);
                self.state.store(to, SeqCst);
                None
            }
            Op::Second => {
                let value = self.value.load(SeqCst);
                self.state.store(to, SeqCst);
                Some(value)
            }
        }
    }
}
