//! Work that one worker of a depth-first search gives to another: states, or steps of executions.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

/// The work that nobody has taken yet.
pub(crate) struct Pool<I> {
    desk: Mutex<Desk<I>>,
    news: Condvar,
    /// How many items are wished for. Only a hint: [`Desk`] knows.
    hungry: AtomicUsize,
}

struct Desk<I> {
    items: Vec<I>,
    workers: usize,
    idle: usize,
    closed: bool,
}

impl<I> Pool<I> {
    /// Work for so many workers. The last item is taken first.
    pub(crate) fn new(workers: usize, items: Vec<I>) -> Pool<I> {
        let desk = Desk { items, workers, idle: 0, closed: false };
        Pool { desk: Mutex::new(desk), news: Condvar::new(), hungry: AtomicUsize::new(0) }
    }

    /// Whether somebody waits for work.
    #[inline(always)]
    pub(crate) fn hungry(&self) -> bool {
        self.hungry.load(Relaxed) > 0
    }

    /// Gives an item away.
    pub(crate) fn give(&self, item: I) {
        let mut desk = self.desk();
        desk.items.push(item);
        self.update(&desk);
        self.news.notify_one();
    }

    /// Waits for an item. `None` when all workers wait, or the pool was closed.
    pub(crate) fn take(&self) -> Option<I> {
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
    pub(crate) fn close(&self) {
        self.desk().closed = true;
        self.news.notify_all();
    }

    /// The work that nobody has taken, when all workers have left.
    pub(crate) fn into_items(self) -> Vec<I> {
        self.desk.into_inner().expect("nobody panics at the desk").items
    }

    fn update(&self, desk: &Desk<I>) {
        self.hungry.store(desk.idle.saturating_sub(desk.items.len()), Relaxed);
    }

    fn desk(&self) -> MutexGuard<'_, Desk<I>> {
        self.desk.lock().expect("nobody panics at the desk")
    }
}

/// Closes the pool if its worker panics, so that the others do not wait for ever.
pub(crate) struct Worker<'p, I>(pub(crate) &'p Pool<I>);

impl<I> Drop for Worker<'_, I> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}
