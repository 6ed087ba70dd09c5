//! Work that one worker of a depth-first search gives to another.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use preempt_system::Choice;

/// A state to search from.
pub(super) struct Item {
    pub(super) state: Vec<u64>,
    /// The steps that led to it.
    pub(super) path: Vec<Choice>,
}

/// The work that nobody has taken yet.
pub(super) struct Pool {
    desk: Mutex<Desk>,
    news: Condvar,
    /// How many items are wished for. Only a hint: [`Desk`] knows.
    hungry: AtomicUsize,
}

struct Desk {
    items: Vec<Item>,
    workers: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    pub(super) fn new(workers: usize, first: Item) -> Pool {
        let desk = Desk { items: vec![first], workers, idle: 0, closed: false };
        Pool { desk: Mutex::new(desk), news: Condvar::new(), hungry: AtomicUsize::new(0) }
    }

    /// Whether somebody waits for work.
    #[inline(always)]
    pub(super) fn hungry(&self) -> bool {
        self.hungry.load(Relaxed) > 0
    }

    /// Gives an item away.
    pub(super) fn give(&self, item: Item) {
        let mut desk = self.desk();
        desk.items.push(item);
        self.update(&desk);
        self.news.notify_one();
    }

    /// Waits for an item. `None` when all workers wait, or the pool was closed.
    pub(super) fn take(&self) -> Option<Item> {
        let mut desk = self.desk();
        desk.idle += 1;
        loop {
            if desk.closed || desk.items.is_empty() && desk.idle == desk.workers {
                desk.closed = true;
                self.news.notify_all();
                return None;
            }
            if let Some(item) = desk.items.pop() {
                desk.idle -= 1;
                self.update(&desk);
                return Some(item);
            }
            self.update(&desk);
            desk = self.news.wait(desk).expect("nobody panics at the desk");
        }
    }

    /// Sends all workers home.
    pub(super) fn close(&self) {
        self.desk().closed = true;
        self.news.notify_all();
    }

    fn update(&self, desk: &Desk) {
        self.hungry.store(desk.idle.saturating_sub(desk.items.len()), Relaxed);
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("nobody panics at the desk")
    }
}

/// Closes the pool if its worker panics, so that the others do not wait for ever.
pub(super) struct Worker<'p>(pub(super) &'p Pool);

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}
