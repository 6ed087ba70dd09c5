//! The deque of Chase and Lev in a fixed ring: the owner pushes and pops at the bottom, a thief
//! steals at the top.
//!
//! The fences have no effect where accesses are sequentially consistent. loom treats such accesses
//! as weaker, and needs them.

use super::Arc;
use super::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst, fence};
use super::thread;

/// When a thief reads the item that it wants to steal.
#[derive(Clone, Copy)]
enum Reads {
    /// Before it takes it, as is correct.
    Early,
    /// After it has taken it: the owner may have put another one in its place.
    Late,
}

struct Deque<const ROOM: usize> {
    top: AtomicIsize,
    bottom: AtomicIsize,
    ring: [AtomicUsize; ROOM],
}

impl<const ROOM: usize> Deque<ROOM> {
    fn new() -> Deque<ROOM> {
        let ring = std::array::from_fn(|_| AtomicUsize::new(0));
        Deque { top: AtomicIsize::new(0), bottom: AtomicIsize::new(0), ring }
    }

    fn item(&self, at: isize) -> &AtomicUsize {
        &self.ring[at as usize % ROOM]
    }

    /// Returns whether there was room.
    fn push(&self, item: usize) -> bool {
        let bottom = self.bottom.load(SeqCst);
        if bottom - self.top.load(SeqCst) == ROOM as isize {
            return false;
        }
        self.item(bottom).store(item, SeqCst);
        self.bottom.store(bottom + 1, SeqCst);
        true
    }

    fn pop(&self) -> Option<usize> {
        let bottom = self.bottom.load(SeqCst) - 1;
        self.bottom.store(bottom, SeqCst);
        fence(SeqCst);
        let top = self.top.load(SeqCst);
        if top > bottom {
            self.bottom.store(top, SeqCst);
            return None;
        }
        let item = self.item(bottom).load(SeqCst);
        if top < bottom {
            return Some(item);
        }
        // The last item belongs to the thread that moves the top.
        let won = self.top.compare_exchange(top, top + 1, SeqCst, SeqCst).is_ok();
        self.bottom.store(top + 1, SeqCst);
        won.then_some(item)
    }

    fn steal(&self, reads: Reads) -> Option<usize> {
        let top = self.top.load(SeqCst);
        fence(SeqCst);
        if top >= self.bottom.load(SeqCst) {
            return None;
        }
        match reads {
            Reads::Early => {
                let item = self.item(top).load(SeqCst);
                self.top.compare_exchange(top, top + 1, SeqCst, SeqCst).is_ok().then_some(item)
            }
            Reads::Late => {
                self.top.compare_exchange(top, top + 1, SeqCst, SeqCst).ok()?;
                Some(self.item(top).load(SeqCst))
            }
        }
    }
}

/// The owner pushes and pops, and the thief tries to steal, a number of times: nothing is taken
/// twice.
pub fn right(pushes: usize, pops: usize, steals: usize) {
    taken_once::<4>(Reads::Early, pushes, pops, steals);
}

/// Like [`right`] in a ring of two, with the error: it occurs when the thief is preempted after it
/// has moved the top, having preempted the owner before its third push.
pub fn wrong(pushes: usize, pops: usize, steals: usize) {
    taken_once::<2>(Reads::Late, pushes, pops, steals);
}

fn taken_once<const ROOM: usize>(reads: Reads, pushes: usize, pops: usize, steals: usize) {
    let deque = Arc::new(Deque::<ROOM>::new());
    let thief = thread::spawn({
        let deque = deque.clone();
        move || (0..steals).filter_map(|_| deque.steal(reads)).collect::<Vec<_>>()
    });
    let mut item = 1;
    for _ in 0..pushes {
        item += usize::from(deque.push(item));
    }
    let mut taken: Vec<usize> = (0..pops).filter_map(|_| deque.pop()).collect();
    taken.extend(thief.join().expect("the thief does not panic"));
    taken.sort_unstable();
    let all = taken.len();
    taken.dedup();
    assert_eq!(taken.len(), all, "an item was taken twice");
}
