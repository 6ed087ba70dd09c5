//! Correct and incorrect data structures for tests of linearizability.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize};
use preempt::sync::{Arc, Condvar, Mutex, RwLock};

/// The number of nodes of a structure without reuse: enough for the calls of a scenario.
const NODES: usize = 12;

fn numbers(initial: impl Fn(usize) -> usize) -> Vec<AtomicUsize> {
    (0..NODES).map(|node| AtomicUsize::new(initial(node))).collect()
}

/// A queue under one lock.
#[derive(Default)]
pub struct LockQueue(Mutex<VecDeque<u32>>);

impl LockQueue {
    pub fn holding(value: u32) -> LockQueue {
        LockQueue(Mutex::new([value].into()))
    }

    pub fn push(&self, value: u32) {
        self.0.lock().unwrap().push_back(value);
    }

    pub fn pop(&self) -> Option<u32> {
        self.0.lock().unwrap().pop_front()
    }

    /// Wrong: checks and pops in two critical sections.
    pub fn pop_in_two_steps(&self) -> Option<u32> {
        let is_empty = self.0.lock().unwrap().is_empty();
        (!is_empty).then(|| self.0.lock().unwrap().pop_front().unwrap_or(0))
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn front(&self) -> Option<u32> {
        self.0.lock().unwrap().front().copied()
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// The two-lock queue of Michael and Scott.
pub struct TwoLockQueue {
    next: Vec<AtomicUsize>,
    value: Vec<AtomicU32>,
    free: AtomicUsize,
    head: Mutex<usize>,
    tail: Mutex<usize>,
    len: AtomicUsize,
}

impl TwoLockQueue {
    pub fn new() -> TwoLockQueue {
        TwoLockQueue {
            next: numbers(|_| 0),
            value: (0..NODES).map(|_| AtomicU32::new(0)).collect(),
            free: AtomicUsize::new(2),
            head: Mutex::new(1),
            tail: Mutex::new(1),
            len: AtomicUsize::new(0),
        }
    }

    pub fn push(&self, value: u32) {
        let node = self.free.fetch_add(1, SeqCst);
        self.value[node].store(value, SeqCst);
        let mut tail = self.tail.lock().unwrap();
        self.next[*tail].store(node, SeqCst);
        *tail = node;
    }

    pub fn pop(&self) -> Option<u32> {
        let mut head = self.head.lock().unwrap();
        let node = self.next[*head].load(SeqCst);
        if node == 0 {
            return None;
        }
        *head = node;
        Some(self.value[node].load(SeqCst))
    }

    /// Wrong: the node is linked before it has its value.
    pub fn push_early(&self, value: u32) {
        let node = self.free.fetch_add(1, SeqCst);
        let mut tail = self.tail.lock().unwrap();
        self.next[*tail].store(node, SeqCst);
        self.value[node].store(value, SeqCst);
        *tail = node;
    }

    /// Wrong together with `len`: the length is a separate variable.
    pub fn push_counted(&self, value: u32) {
        self.push(value);
        self.len.fetch_add(1, SeqCst);
    }

    pub fn pop_counted(&self) -> Option<u32> {
        let value = self.pop()?;
        self.len.fetch_sub(1, SeqCst);
        Some(value)
    }

    pub fn len(&self) -> isize {
        self.len.load(SeqCst) as isize
    }
}

/// The lock-free queue of Michael and Scott, without reuse of nodes.
pub struct MichaelScott {
    next: Vec<AtomicUsize>,
    value: Vec<AtomicU32>,
    free: AtomicUsize,
    head: AtomicUsize,
    tail: AtomicUsize,
}

impl MichaelScott {
    pub fn new() -> MichaelScott {
        MichaelScott {
            next: numbers(|_| 0),
            value: (0..NODES).map(|_| AtomicU32::new(0)).collect(),
            free: AtomicUsize::new(2),
            head: AtomicUsize::new(1),
            tail: AtomicUsize::new(1),
        }
    }

    pub fn push(&self, value: u32) {
        let node = self.free.fetch_add(1, SeqCst);
        self.value[node].store(value, SeqCst);
        loop {
            let tail = self.tail.load(SeqCst);
            let next = self.next[tail].load(SeqCst);
            if next != 0 {
                let _ = self.tail.compare_exchange(tail, next, SeqCst, SeqCst);
            } else if self.next[tail].compare_exchange(0, node, SeqCst, SeqCst).is_ok() {
                let _ = self.tail.compare_exchange(tail, node, SeqCst, SeqCst);
                return;
            }
        }
    }

    pub fn pop(&self) -> Option<u32> {
        self.pop_by(|head, next| self.head.compare_exchange(head, next, SeqCst, SeqCst).is_ok())
    }

    /// Wrong: a store where an exchange belongs.
    pub fn pop_by_store(&self) -> Option<u32> {
        self.pop_by(|_, next| {
            self.head.store(next, SeqCst);
            true
        })
    }

    fn pop_by(&self, advance: impl Fn(usize, usize) -> bool) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            let tail = self.tail.load(SeqCst);
            let next = self.next[head].load(SeqCst);
            if next == 0 {
                return None;
            }
            if head == tail {
                let _ = self.tail.compare_exchange(tail, next, SeqCst, SeqCst);
                continue;
            }
            let value = self.value[next].load(SeqCst);
            if advance(head, next) {
                return Some(value);
            }
        }
    }
}

/// Treiber's stack, without reuse of nodes.
pub struct Treiber {
    next: Vec<AtomicUsize>,
    value: Vec<AtomicU32>,
    free: AtomicUsize,
    head: AtomicUsize,
}

impl Treiber {
    pub fn new() -> Treiber {
        Treiber {
            next: numbers(|_| 0),
            value: (0..NODES).map(|_| AtomicU32::new(0)).collect(),
            free: AtomicUsize::new(1),
            head: AtomicUsize::new(0),
        }
    }

    pub fn push(&self, value: u32) {
        let node = self.free.fetch_add(1, SeqCst);
        self.value[node].store(value, SeqCst);
        loop {
            let head = self.head.load(SeqCst);
            self.next[node].store(head, SeqCst);
            if self.head.compare_exchange(head, node, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    pub fn pop(&self) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            if head == 0 {
                return None;
            }
            let next = self.next[head].load(SeqCst);
            if self.head.compare_exchange(head, next, SeqCst, SeqCst).is_ok() {
                return Some(self.value[head].load(SeqCst));
            }
        }
    }

    /// Wrong: a store where an exchange belongs.
    pub fn pop_by_store(&self) -> Option<u32> {
        let head = self.head.load(SeqCst);
        if head == 0 {
            return None;
        }
        self.head.store(self.next[head].load(SeqCst), SeqCst);
        Some(self.value[head].load(SeqCst))
    }
}

/// Treiber's stack that reuses nodes, the one with the highest number first. Without tags it has
/// the ABA problem.
pub struct Reusing {
    next: Vec<AtomicUsize>,
    value: Vec<AtomicU32>,
    /// One bit for each free node.
    free: AtomicU32,
    new: AtomicUsize,
    /// The first node in the low 8 bits, and a tag above.
    head: AtomicUsize,
    tagged: bool,
}

impl Reusing {
    pub fn new(tagged: bool) -> Reusing {
        Reusing {
            next: numbers(|_| 0),
            value: (0..NODES).map(|_| AtomicU32::new(0)).collect(),
            free: AtomicU32::new(0),
            new: AtomicUsize::new(1),
            head: AtomicUsize::new(0),
            tagged,
        }
    }

    fn replace(&self, head: usize, node: usize) -> bool {
        let tag = if self.tagged { (head >> 8) + 1 } else { 0 };
        self.head.compare_exchange(head, tag << 8 | node, SeqCst, SeqCst).is_ok()
    }

    fn node(&self) -> usize {
        loop {
            let free = self.free.load(SeqCst);
            if free == 0 {
                return self.new.fetch_add(1, SeqCst);
            }
            let node = free.ilog2();
            let rest = free & !(1 << node);
            if self.free.compare_exchange(free, rest, SeqCst, SeqCst).is_ok() {
                return node as usize;
            }
        }
    }

    pub fn push(&self, value: u32) {
        let node = self.node();
        self.value[node].store(value, SeqCst);
        loop {
            let head = self.head.load(SeqCst);
            self.next[node].store(head & 0xff, SeqCst);
            if self.replace(head, node) {
                return;
            }
        }
    }

    pub fn pop(&self) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            let node = head & 0xff;
            if node == 0 {
                return None;
            }
            let next = self.next[node].load(SeqCst);
            if self.replace(head, next) {
                let value = self.value[node].load(SeqCst);
                self.free.fetch_or(1 << node, SeqCst);
                return Some(value);
            }
        }
    }

    pub fn drain(&self) -> Vec<Option<u32>> {
        (0..4).map(|_| self.pop()).collect()
    }
}

/// A map under a read-write lock, with its size in a separate variable.
#[derive(Default)]
pub struct Map {
    entries: RwLock<BTreeMap<u8, u32>>,
    size: AtomicUsize,
}

impl Map {
    pub fn get(&self, key: u8) -> Option<u32> {
        self.entries.read().unwrap().get(&key).copied()
    }

    pub fn insert(&self, key: u8, value: u32) -> Option<u32> {
        self.entries.write().unwrap().insert(key, value)
    }

    pub fn remove(&self, key: u8) -> Option<u32> {
        self.entries.write().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.entries.read().unwrap().len()
    }

    pub fn get_or_insert(&self, key: u8, value: u32) -> u32 {
        *self.entries.write().unwrap().entry(key).or_insert(value)
    }

    /// Wrong: does not check again under the write lock.
    pub fn get_or_insert_unchecked(&self, key: u8, value: u32) -> u32 {
        if let Some(known) = self.get(key) {
            return known;
        }
        self.insert(key, value);
        value
    }

    /// Wrong together with `size`.
    pub fn insert_counted(&self, key: u8, value: u32) -> Option<u32> {
        let old = self.insert(key, value);
        self.size.fetch_add(usize::from(old.is_none()), SeqCst);
        old
    }

    pub fn remove_counted(&self, key: u8) -> Option<u32> {
        let old = self.remove(key);
        self.size.fetch_sub(usize::from(old.is_some()), SeqCst);
        old
    }

    pub fn size(&self) -> usize {
        self.size.load(SeqCst)
    }
}

/// The lazy list of Heller et al. Validation and marking can be switched off, which breaks it.
pub struct LazyList {
    key: Vec<AtomicU32>,
    next: Vec<AtomicUsize>,
    marked: Vec<AtomicBool>,
    lock: Vec<Mutex<()>>,
    free: AtomicUsize,
    validates: bool,
    marks: bool,
}

impl LazyList {
    pub fn new(validates: bool, marks: bool) -> LazyList {
        LazyList {
            // Node 0 is the head, node 1 the tail.
            key: (0..NODES).map(|n| AtomicU32::new(if n == 1 { u32::MAX } else { 0 })).collect(),
            next: numbers(|node| usize::from(node == 0)),
            marked: (0..NODES).map(|_| AtomicBool::new(false)).collect(),
            lock: (0..NODES).map(|_| Mutex::new(())).collect(),
            free: AtomicUsize::new(2),
            validates,
            marks,
        }
    }

    fn find(&self, key: u32) -> (usize, usize) {
        let (mut before, mut at) = (0, self.next[0].load(SeqCst));
        while self.key[at].load(SeqCst) < key {
            (before, at) = (at, self.next[at].load(SeqCst));
        }
        (before, at)
    }

    fn is_valid(&self, before: usize, at: usize) -> bool {
        !self.validates
            || !self.marked[before].load(SeqCst)
                && !self.marked[at].load(SeqCst)
                && self.next[before].load(SeqCst) == at
    }

    pub fn add(&self, key: u32) -> bool {
        loop {
            let (before, at) = self.find(key);
            let (_before, _at) = (self.lock[before].lock(), self.lock[at].lock());
            if !self.is_valid(before, at) {
                continue;
            }
            if self.key[at].load(SeqCst) == key {
                return false;
            }
            let node = self.free.fetch_add(1, SeqCst);
            self.key[node].store(key, SeqCst);
            self.next[node].store(at, SeqCst);
            self.next[before].store(node, SeqCst);
            return true;
        }
    }

    pub fn remove(&self, key: u32) -> bool {
        loop {
            let (before, at) = self.find(key);
            let (_before, _at) = (self.lock[before].lock(), self.lock[at].lock());
            if !self.is_valid(before, at) {
                continue;
            }
            if self.key[at].load(SeqCst) != key {
                return false;
            }
            if self.marks {
                self.marked[at].store(true, SeqCst);
            }
            self.next[before].store(self.next[at].load(SeqCst), SeqCst);
            return true;
        }
    }

    pub fn contains(&self, key: u32) -> bool {
        let (_, at) = self.find(key);
        self.key[at].load(SeqCst) == key && !self.marked[at].load(SeqCst)
    }
}

/// A ring for one producer and one consumer. If `early`, the index is published before the value.
pub struct Ring {
    slots: [UnsafeCell<u32>; 2],
    head: AtomicUsize,
    tail: AtomicUsize,
    early: bool,
}

// SAFETY: indices synchronise the accesses, or a check reports a race.
unsafe impl Sync for Ring {}

impl Ring {
    pub fn new(early: bool) -> Ring {
        let slots = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Ring { slots, head: AtomicUsize::new(0), tail: AtomicUsize::new(0), early }
    }

    pub fn push(&self, value: u32) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail - self.head.load(Acquire) == 2 {
            return false;
        }
        if self.early {
            self.tail.store(tail + 1, Release);
        }
        // SAFETY: see above.
        self.slots[tail % 2].with_mut(|slot| unsafe { *slot = value });
        if !self.early {
            self.tail.store(tail + 1, Release);
        }
        true
    }

    pub fn pop(&self) -> Option<u32> {
        let head = self.head.load(Relaxed);
        if self.tail.load(Acquire) == head {
            return None;
        }
        // SAFETY: see above.
        let value = self.slots[head % 2].with(|slot| unsafe { *slot });
        self.head.store(head + 1, Release);
        Some(value)
    }
}

/// Two cells that are read one after the other.
#[derive(Default)]
pub struct Pair(AtomicU32, AtomicU32);

impl Pair {
    pub fn a(&self, value: u32) {
        self.0.store(value, SeqCst);
    }

    pub fn b(&self, value: u32) {
        self.1.store(value, SeqCst);
    }

    pub fn both(&self) -> (u32, u32) {
        (self.0.load(SeqCst), self.1.load(SeqCst))
    }
}

/// A register whose writes reach other threads only when their own thread reads: sequentially
/// consistent and not linearizable.
pub struct Lagging {
    shared: Arc<AtomicU32>,
    written: Option<u32>,
}

impl Lagging {
    pub fn handles(threads: usize) -> Vec<Lagging> {
        let shared = Arc::new(AtomicU32::new(0));
        (0..threads).map(|_| Lagging { shared: shared.clone(), written: None }).collect()
    }

    pub fn write(&mut self, value: u32) {
        self.written = Some(value);
    }

    pub fn read(&mut self) -> u32 {
        if let Some(value) = self.written.take() {
            self.shared.store(value, SeqCst);
        }
        self.shared.load(SeqCst)
    }
}

/// A counting network of one balancer: quiescently consistent and not linearizable.
pub struct Network {
    balancer: AtomicUsize,
    wires: [AtomicU32; 2],
}

impl Network {
    pub fn new() -> Network {
        let wires = [AtomicU32::new(0), AtomicU32::new(1)];
        Network { balancer: AtomicUsize::new(0), wires }
    }

    pub fn next(&self) -> u32 {
        let wire = self.balancer.fetch_xor(1, SeqCst);
        self.wires[wire].fetch_add(2, SeqCst)
    }
}

/// A counter.
#[derive(Default)]
pub struct Counter(AtomicU32);

impl Counter {
    pub fn inc(&self) -> u32 {
        self.0.fetch_add(1, SeqCst)
    }

    /// Wrong: not atomic.
    pub fn inc_in_two_steps(&self) -> u32 {
        let value = self.0.load(SeqCst);
        self.0.store(value + 1, SeqCst);
        value
    }

    pub fn get(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

/// The mistakes of a [`Semaphore`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    None,
    /// Releases the lock between the check and the wait.
    LostWakeup,
    /// `release` notifies only if there was no permit.
    NotifiesFirst,
}

/// A semaphore without permits.
pub struct Semaphore {
    permits: Mutex<u32>,
    released: Condvar,
    mistake: Mistake,
}

impl Semaphore {
    pub fn new(mistake: Mistake) -> Semaphore {
        Semaphore { permits: Mutex::new(0), released: Condvar::new(), mistake }
    }

    pub fn acquire(&self) {
        let mut permits = self.permits.lock().unwrap();
        if self.mistake == Mistake::LostWakeup {
            if *permits == 0 {
                drop(permits);
                permits = self.released.wait(self.permits.lock().unwrap()).unwrap();
            }
        } else {
            while *permits == 0 {
                permits = self.released.wait(permits).unwrap();
            }
        }
        *permits -= 1;
    }

    pub fn try_acquire(&self) -> bool {
        let mut permits = self.permits.lock().unwrap();
        let is_free = *permits > 0;
        *permits -= u32::from(is_free);
        is_free
    }

    pub fn release(&self) {
        let mut permits = self.permits.lock().unwrap();
        *permits += 1;
        if self.mistake != Mistake::NotifiesFirst || *permits == 1 {
            self.released.notify_one();
        }
    }
}

/// A queue with room for one element. With one condition variable for both directions a
/// notification may reach the wrong thread.
pub struct Bounded {
    queue: Mutex<Option<u32>>,
    filled: Condvar,
    emptied: Condvar,
    one_condvar: bool,
}

impl Bounded {
    pub fn new(one_condvar: bool) -> Bounded {
        let queue = Mutex::new(None);
        Bounded { queue, filled: Condvar::new(), emptied: Condvar::new(), one_condvar }
    }

    fn emptied(&self) -> &Condvar {
        if self.one_condvar { &self.filled } else { &self.emptied }
    }

    pub fn put(&self, value: u32) {
        let mut queue = self.queue.lock().unwrap();
        while queue.is_some() {
            queue = self.emptied().wait(queue).unwrap();
        }
        *queue = Some(value);
        self.filled.notify_one();
    }

    pub fn take(&self) -> u32 {
        let mut queue = self.queue.lock().unwrap();
        loop {
            if let Some(value) = queue.take() {
                self.emptied().notify_one();
                return value;
            }
            queue = self.filled.wait(queue).unwrap();
        }
    }
}

/// A cell whose `take` spins until there is a value.
#[derive(Default)]
pub struct Spinning(AtomicU32);

impl Spinning {
    pub fn put(&self, value: u32) {
        self.0.store(value, SeqCst);
    }

    pub fn take(&self) -> u32 {
        loop {
            match self.0.swap(0, SeqCst) {
                0 => preempt::thread::yield_now(),
                value => return value,
            }
        }
    }
}

/// A box with one value. `take` panics if two threads take it.
pub struct OneValue {
    value: Mutex<Option<u32>>,
    left: AtomicU32,
}

impl OneValue {
    pub fn new() -> OneValue {
        OneValue { value: Mutex::new(Some(7)), left: AtomicU32::new(1) }
    }

    pub fn take(&self) -> Option<u32> {
        if self.left.load(SeqCst) == 0 {
            return None;
        }
        let value = self.value.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let value = value.expect("there is a value");
        self.left.fetch_sub(1, SeqCst);
        Some(value)
    }
}

/// A notification with one permit. If `early`, it checks for the permit before it registers.
pub struct Notify {
    state: Mutex<(bool, Vec<Waker>)>,
    early: bool,
}

impl Notify {
    pub fn new(early: bool) -> Notify {
        Notify { state: Mutex::new((false, Vec::new())), early }
    }

    pub fn notify(&self) {
        let waker = {
            let mut state = self.state.lock().unwrap();
            state.0 = true;
            state.1.pop()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub async fn notified(&self) {
        poll_fn(|context| {
            let mut state = self.state.lock().unwrap();
            if std::mem::take(&mut state.0) {
                return Poll::Ready(());
            }
            if self.early {
                drop(state);
                state = self.state.lock().unwrap();
            }
            state.1.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Vyukov's bounded queue with capacity two: a consumer may find a slot that an earlier producer
/// has claimed and not filled, while a later one has returned.
pub struct Vyukov {
    sequence: [AtomicUsize; 2],
    value: [AtomicU32; 2],
    enqueue: AtomicUsize,
    dequeue: AtomicUsize,
}

impl Vyukov {
    pub fn new() -> Vyukov {
        Vyukov {
            sequence: [AtomicUsize::new(0), AtomicUsize::new(1)],
            value: [AtomicU32::new(0), AtomicU32::new(0)],
            enqueue: AtomicUsize::new(0),
            dequeue: AtomicUsize::new(0),
        }
    }

    fn claim(&self, at: &AtomicUsize, ready: usize) -> Option<usize> {
        let mut position = at.load(Relaxed);
        loop {
            let ahead = self.sequence[position % 2].load(Acquire).wrapping_sub(position + ready);
            match ahead as isize {
                0 => match at.compare_exchange(position, position + 1, Relaxed, Relaxed) {
                    Ok(_) => return Some(position),
                    Err(now) => position = now,
                },
                behind if behind < 0 => return None,
                _ => position = at.load(Relaxed),
            }
        }
    }

    pub fn enqueue(&self, value: u32) -> bool {
        let Some(position) = self.claim(&self.enqueue, 0) else { return false };
        self.value[position % 2].store(value, Relaxed);
        self.sequence[position % 2].store(position + 1, Release);
        true
    }

    pub fn dequeue(&self) -> Option<u32> {
        let position = self.claim(&self.dequeue, 1)?;
        let value = self.value[position % 2].load(Relaxed);
        self.sequence[position % 2].store(position + 2, Release);
        Some(value)
    }
}

const LOCKED: u8 = 1;
const FULL: u8 = 2;

/// A queue of one slot that derives *full* and *empty* from different bits, which do not change
/// together.
#[derive(Default)]
pub struct OneSlot {
    state: AtomicU8,
    value: AtomicU32,
}

impl OneSlot {
    pub fn push(&self, value: u32) -> Result<(), u32> {
        if self.state.compare_exchange(0, LOCKED | FULL, SeqCst, SeqCst).is_err() {
            return Err(value);
        }
        self.value.store(value, SeqCst);
        self.state.fetch_and(!LOCKED, SeqCst);
        Ok(())
    }

    pub fn pop(&self) -> Option<u32> {
        let mut state = FULL;
        loop {
            let next = (state | LOCKED) & !FULL;
            match self.state.compare_exchange(state, next, SeqCst, SeqCst) {
                Ok(_) => {
                    let value = self.value.load(SeqCst);
                    self.state.fetch_and(!LOCKED, SeqCst);
                    return Some(value);
                }
                Err(now) if now & FULL == 0 => return None,
                Err(now) if now & LOCKED == 0 => state = now,
                Err(_) => preempt::thread::yield_now(),
            }
        }
    }
}

/// A value that is published by a flag. Relaxed orderings are enough under sequential consistency
/// only.
#[derive(Default)]
pub struct Published {
    value: AtomicU32,
    is_set: AtomicBool,
}

impl Published {
    pub fn set(&self) {
        self.value.store(7, Relaxed);
        self.is_set.store(true, Relaxed);
    }

    pub fn get(&self) -> Option<u32> {
        self.is_set.load(Relaxed).then(|| self.value.load(Relaxed))
    }
}

/// A counter that an operation claims before it changes it. An operation that runs alone returns,
/// and two that claim it in turn never do: obstruction-free, and not lock-free.
#[derive(Default)]
pub struct Claimed {
    /// The value, and in the low 8 bits the operation that has claimed it.
    state: AtomicU32,
    operations: AtomicU32,
}

impl Claimed {
    pub fn inc(&self) -> u32 {
        let own = self.operations.fetch_add(1, SeqCst) + 1;
        loop {
            let now = self.state.load(SeqCst);
            let claimed = now & !0xff | own;
            if self.state.compare_exchange(now, claimed, SeqCst, SeqCst).is_err() {
                continue;
            }
            let value = now >> 8;
            if self.state.compare_exchange(claimed, (value + 1) << 8, SeqCst, SeqCst).is_ok() {
                return value;
            }
        }
    }
}

/// A counter under a lock that spins.
#[derive(Default)]
pub struct SpinCounter {
    locked: AtomicBool,
    value: AtomicU32,
}

impl SpinCounter {
    pub fn inc(&self) -> u32 {
        while self.locked.compare_exchange(false, true, SeqCst, SeqCst).is_err() {}
        let value = self.value.load(SeqCst);
        self.value.store(value + 1, SeqCst);
        self.locked.store(false, SeqCst);
        value
    }
}
