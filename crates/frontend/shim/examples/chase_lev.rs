//! A Chase–Lev deque with a mistake: the thief reads the slot after its compare-and-exchange, when
//! the owner may have used the slot again. It takes two preemptions to see it, and iterative
//! context bounding finds it among few schedules.
//!
//! `cargo run -p preempt --example chase_lev`
#![allow(clippy::unwrap_used)]

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use preempt::{Check, thread};

/// When the thief reads what it steals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Before it tries to get it.
    Before,
    /// After: the mistake.
    After,
}

/// A deque of fixed capacity: one owner pushes and pops at the bottom, thieves steal from the top.
pub struct Deque<const N: usize> {
    top: AtomicIsize,
    bottom: AtomicIsize,
    slots: [AtomicUsize; N],
}

impl<const N: usize> Deque<N> {
    /// An empty one.
    pub fn new() -> Deque<N> {
        Deque {
            top: AtomicIsize::new(0),
            bottom: AtomicIsize::new(0),
            slots: [const { AtomicUsize::new(0) }; N],
        }
    }

    fn slot(&self, at: isize) -> &AtomicUsize {
        &self.slots[at as usize % N]
    }

    /// Puts a value in. Returns whether there was room.
    pub fn push(&self, value: usize) -> bool {
        let bottom = self.bottom.load(SeqCst);
        let top = self.top.load(SeqCst);
        if bottom - top >= N as isize {
            return false;
        }
        self.slot(bottom).store(value, SeqCst);
        self.bottom.store(bottom + 1, SeqCst);
        true
    }

    /// Takes the newest value.
    pub fn pop(&self) -> Option<usize> {
        let bottom = self.bottom.load(SeqCst) - 1;
        self.bottom.store(bottom, SeqCst);
        let top = self.top.load(SeqCst);
        if top > bottom {
            self.bottom.store(bottom + 1, SeqCst);
            return None;
        }
        let value = self.slot(bottom).load(SeqCst);
        if top < bottom {
            return Some(value);
        }
        let won = self.top.compare_exchange(top, top + 1, SeqCst, SeqCst).is_ok();
        self.bottom.store(bottom + 1, SeqCst);
        won.then_some(value)
    }

    /// Takes the oldest value, unless another thread gets it.
    pub fn steal(&self, read: Read) -> Option<usize> {
        let top = self.top.load(SeqCst);
        let bottom = self.bottom.load(SeqCst);
        if top >= bottom {
            return None;
        }
        let early = (read == Read::Before).then(|| self.slot(top).load(SeqCst));
        self.top.compare_exchange(top, top + 1, SeqCst, SeqCst).ok()?;
        Some(early.unwrap_or_else(|| self.slot(top).load(SeqCst)))
    }
}

impl<const N: usize> Default for Deque<N> {
    fn default() -> Deque<N> {
        Deque::new()
    }
}

/// The owner pushes and pops values, a thief steals once. No value may be taken twice.
pub fn test<const N: usize>(pushes: usize, pops: usize, read: Read) {
    let deque = Arc::new(Deque::<N>::new());
    let thief = thread::spawn({
        let deque = deque.clone();
        move || deque.steal(read)
    });
    let pushed: Vec<usize> = (1..=pushes).filter(|&value| deque.push(value)).collect();
    let mut seen: Vec<usize> = (0..pops).filter_map(|_| deque.pop()).collect();
    seen.extend(thief.join().unwrap());
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "seen twice: {seen:?}");
    assert!(seen.iter().all(|value| pushed.contains(value)), "seen, but not pushed: {seen:?}");
}

#[allow(dead_code)]
fn main() {
    println!("{}", Check::new().unbounded().run(|| test::<4>(3, 2, Read::Before)).guarantee());
    Check::new().check(|| test::<2>(3, 2, Read::After));
}
