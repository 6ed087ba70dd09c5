//! The queue from which the workers of a search take work, and to which they give it.
//!
//! "The queue is empty" and "no worker is active" is one test here, made under one lock. With two
//! tests, one after the other, a worker may add an item and become idle in between, and the search
//! would end early.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};

use crate::codec::{Save, save_fields, save_in_place};
use crate::engine::lock;

/// Work in the order in which workers take it.
pub(crate) trait Items {
    type Taken;

    /// Takes some items. Returns whether there were any.
    fn take(&mut self, taken: &mut Self::Taken) -> bool;

    /// How many times items can be taken now.
    fn count(&self) -> usize;

    /// Whether nothing is left, now or after a [refill](Items::refill).
    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// All workers are idle and nothing can be taken. Returns whether there is more, from now on.
    fn refill(&mut self) -> bool {
        false
    }
}

/// A stack: the last item is taken first.
impl<I> Items for Vec<I> {
    type Taken = Option<I>;

    fn take(&mut self, taken: &mut Option<I>) -> bool {
        *taken = self.pop();
        taken.is_some()
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// Items that no worker has taken yet.
pub(crate) struct Queue<Q> {
    workers: usize,
    state: Mutex<State<Q>>,
    changed: Condvar,
    /// Idle workers for which there is no item. Workers read it after every step, so it is a copy
    /// outside the lock; a stale value only delays or wastes a gift.
    wanted: AtomicUsize,
}

struct State<Q> {
    items: Q,
    idle: usize,
    closed: bool,
}

save_fields!([Q: Save] State<Q> { items; idle, closed });
save_in_place!([Q: Save] Queue<Q> { state });

impl<Q: Items> Queue<Q> {
    pub(crate) fn new(workers: usize, items: Q) -> Queue<Q> {
        let state = Mutex::new(State { items, idle: 0, closed: false });
        Queue { workers, state, changed: Condvar::new(), wanted: AtomicUsize::new(0) }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.state).items.is_empty()
    }

    /// Opens the queue again when all workers have left.
    pub(crate) fn open(&self) {
        let mut state = lock(&self.state);
        (state.idle, state.closed) = (0, false);
        self.update(&state);
    }

    /// Closes the queue: until it is opened again, no worker takes anything.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Reads or changes the items. It does not wake workers.
    pub(crate) fn with<R>(&self, use_items: impl FnOnce(&mut Q) -> R) -> R {
        use_items(&mut lock(&self.state).items)
    }

    /// Whether a worker waits for an item that is not there.
    #[inline(always)]
    pub(crate) fn has_idle_worker(&self) -> bool {
        self.wanted.load(Relaxed) > 0
    }

    /// Adds items with `give`, which returns whether there are any, then waits for others and takes
    /// them. Returns `false` if the queue is closed, or if all workers wait: then no worker is left
    /// that could add an item.
    pub(crate) fn exchange(&self, give: impl FnOnce(&mut Q) -> bool, taken: &mut Q::Taken) -> bool {
        let mut state = lock(&self.state);
        if give(&mut state.items) && self.workers > 1 {
            self.changed.notify_all();
        }
        state.idle += 1;
        loop {
            if state.closed {
                return false;
            }
            if state.items.take(taken) {
                state.idle -= 1;
                self.update(&state);
                return true;
            }
            if state.idle == self.workers {
                state.closed = !state.items.refill();
                self.changed.notify_all();
                continue;
            }
            self.update(&state);
            state = self.changed.wait(state).expect("mutex poisoned");
        }
    }

    fn update(&self, state: &State<Q>) {
        self.wanted.store(state.idle.saturating_sub(state.items.count()), Relaxed);
    }
}

impl<I> Queue<Vec<I>> {
    /// Gives an item to another worker.
    pub(crate) fn give(&self, item: I) {
        let mut state = lock(&self.state);
        state.items.push(item);
        self.update(&state);
        self.changed.notify_one();
    }

    /// Waits for an item. `None` if there is none left.
    pub(crate) fn take(&self) -> Option<I> {
        let mut item = None;
        self.exchange(|_| false, &mut item);
        item
    }
}
