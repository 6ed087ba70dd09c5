//! The work-stealing queue of Cilk-5 (THE): the owner takes the lock only if it may have met a
//! thief.
//!
//! The fences are there for loom, as in the deque of Chase and Lev.

use super::Arc;
use super::sync::Mutex;
use super::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst, fence};
use super::thread;

struct Queue {
    head: AtomicIsize,
    tail: AtomicIsize,
    items: [AtomicUsize; 4],
    lock: Mutex<()>,
}

impl Queue {
    fn new() -> Queue {
        Queue {
            head: AtomicIsize::new(0),
            tail: AtomicIsize::new(0),
            items: std::array::from_fn(|_| AtomicUsize::new(0)),
            lock: Mutex::new(()),
        }
    }

    fn push(&self, item: usize) {
        let tail = self.tail.load(SeqCst);
        self.items[tail as usize].store(item, SeqCst);
        self.tail.store(tail + 1, SeqCst);
    }

    fn pop(&self) -> Option<usize> {
        let tail = self.tail.load(SeqCst) - 1;
        self.tail.store(tail, SeqCst);
        fence(SeqCst);
        if self.head.load(SeqCst) > tail {
            // A thief may be at the same item: put it back, and look again when no thief is active.
            self.tail.store(tail + 1, SeqCst);
            let _guard = self.lock.lock().expect("no thread panics");
            self.tail.store(tail, SeqCst);
            fence(SeqCst);
            if self.head.load(SeqCst) > tail {
                self.tail.store(tail + 1, SeqCst);
                return None;
            }
        }
        Some(self.items[tail as usize].load(SeqCst))
    }

    fn steal(&self) -> Option<usize> {
        let _guard = self.lock.lock().expect("no thread panics");
        let head = self.head.load(SeqCst);
        self.head.store(head + 1, SeqCst);
        fence(SeqCst);
        if head + 1 > self.tail.load(SeqCst) {
            self.head.store(head, SeqCst);
            return None;
        }
        Some(self.items[head as usize].load(SeqCst))
    }
}

/// The owner pushes and pops, and the thief tries to steal, a number of times: nothing is taken
/// twice.
pub fn taken_once(pushes: usize, pops: usize, steals: usize) {
    let queue = Arc::new(Queue::new());
    let thief = thread::spawn({
        let queue = queue.clone();
        move || (0..steals).filter_map(|_| queue.steal()).collect::<Vec<_>>()
    });
    for item in 1..=pushes {
        queue.push(item);
    }
    let mut taken: Vec<usize> = (0..pops).filter_map(|_| queue.pop()).collect();
    taken.extend(thief.join().expect("the thief does not panic"));
    taken.sort_unstable();
    let all = taken.len();
    taken.dedup();
    assert_eq!(taken.len(), all, "an item was taken twice");
}
