//! Work that one worker of a depth-first search gives to another: states, or steps of executions.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};

use crate::codec::{Save, save_fields, save_in_place};
use crate::engine::lock;

/// Items that no worker has taken yet.
pub(crate) struct Pool<I> {
    workers: usize,
    state: Mutex<State<I>>,
    changed: Condvar,
    /// Idle workers for which there is no item. Workers read it after every step, so it is a copy
    /// outside of the lock; a stale value only delays or wastes a gift.
    wanted: AtomicUsize,
}

struct State<I> {
    items: Vec<I>,
    idle: usize,
    closed: bool,
}

save_fields!([I: Save] State<I> { items; idle, closed });
save_in_place!([I: Save] Pool<I> { state });

impl<I> Pool<I> {
    /// A pool for `workers`. The last item is taken first.
    pub(crate) fn new(workers: usize, items: Vec<I>) -> Pool<I> {
        let state = Mutex::new(State { items, idle: 0, closed: false });
        Pool { workers, state, changed: Condvar::new(), wanted: AtomicUsize::new(0) }
    }

    /// Opens the pool again when all workers have left.
    pub(crate) fn open(&self) {
        let mut state = lock(&self.state);
        (state.idle, state.closed) = (0, false);
        self.update(&state);
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.state).items.is_empty()
    }

    /// Whether a worker waits in [`Pool::take`] for which there is no item.
    #[inline(always)]
    pub(crate) fn has_idle_worker(&self) -> bool {
        self.wanted.load(Relaxed) > 0
    }

    /// Adds an item.
    pub(crate) fn give(&self, item: I) {
        let mut state = lock(&self.state);
        state.items.push(item);
        self.update(&state);
        self.changed.notify_one();
    }

    /// Waits for an item. `None` if the pool is closed, or if all workers wait: then no worker is
    /// left that could add an item.
    pub(crate) fn take(&self) -> Option<I> {
        let mut state = lock(&self.state);
        state.idle += 1;
        loop {
            if state.closed || state.items.is_empty() && state.idle == self.workers {
                state.closed = true;
                self.changed.notify_all();
                return None;
            }
            if let Some(item) = state.items.pop() {
                state.idle -= 1;
                self.update(&state);
                return Some(item);
            }
            self.update(&state);
            state = self.changed.wait(state).expect("mutex poisoned");
        }
    }

    /// Closes the pool: until it is opened again, [`Pool::take`] returns `None`.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    fn update(&self, state: &State<I>) {
        self.wanted.store(state.idle.saturating_sub(state.items.len()), Relaxed);
    }
}
