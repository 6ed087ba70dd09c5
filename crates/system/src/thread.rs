//! Threads and sets of threads.
//!
//! A thread is identified by its slot, a small number that is the same in every schedule that
//! starts the same threads in the same causal order. Strategies never see an operating-system
//! thread.

use std::fmt;

/// The maximum number of threads of a program: a [`ThreadSet`] is one machine word.
pub const MAX_THREADS: usize = 64;

/// A thread of the program under test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u8);

impl ThreadId {
    /// The thread in `slot`. Panics if `slot` is not below [`MAX_THREADS`].
    #[inline]
    pub const fn new(slot: usize) -> ThreadId {
        assert!(slot < MAX_THREADS, "a thread slot is below MAX_THREADS");
        ThreadId(slot as u8)
    }

    /// The slot of this thread, counted from 0.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// A set of threads, as a bit mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ThreadSet(u64);

impl ThreadSet {
    /// The set without threads.
    pub const EMPTY: ThreadSet = ThreadSet(0);

    /// The set that contains thread `i` iff bit `i` is set.
    #[inline]
    pub const fn from_bits(bits: u64) -> ThreadSet {
        ThreadSet(bits)
    }

    /// The set as bits, thread 0 lowest.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The threads 0 to `count` - 1.
    #[inline]
    pub const fn first(count: usize) -> ThreadSet {
        if count >= MAX_THREADS { ThreadSet(u64::MAX) } else { ThreadSet((1 << count) - 1) }
    }

    /// Whether no thread belongs to the set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many threads belong to the set.
    #[inline]
    pub const fn len(self) -> usize {
        // Fast path: most programs have few threads, and without an instruction for it, which not
        // every processor has, counting bits takes twenty. Digit `n` is the number of ones of `n`.
        if self.0 < 16 {
            return (0x4332_3221_3221_2110_u64 >> (4 * self.0) & 7) as usize;
        }
        self.0.count_ones() as usize
    }

    /// Whether `thread` belongs to the set.
    #[inline]
    pub const fn contains(self, thread: ThreadId) -> bool {
        self.0 >> thread.0 & 1 == 1
    }

    /// Adds `thread`.
    #[inline]
    pub const fn insert(&mut self, thread: ThreadId) {
        self.0 |= 1 << thread.0;
    }

    /// Removes `thread`.
    #[inline]
    pub const fn remove(&mut self, thread: ThreadId) {
        self.0 &= !(1 << thread.0);
    }

    /// This set with `thread`.
    #[inline]
    pub const fn with(mut self, thread: ThreadId) -> ThreadSet {
        self.insert(thread);
        self
    }

    /// This set without `thread`.
    #[inline]
    pub const fn without(mut self, thread: ThreadId) -> ThreadSet {
        self.remove(thread);
        self
    }

    /// The threads of the set, lowest first.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = ThreadId> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let thread = ThreadId(rest.trailing_zeros() as u8);
            rest &= rest - 1;
            Some(thread)
        })
    }
}

impl fmt::Debug for ThreadSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<ThreadId> for ThreadSet {
    fn from_iter<I: IntoIterator<Item = ThreadId>>(threads: I) -> ThreadSet {
        threads.into_iter().fold(ThreadSet::EMPTY, ThreadSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let odd: ThreadSet = (0..MAX_THREADS).filter(|i| i % 2 == 1).map(ThreadId::new).collect();
        assert_eq!(odd.len(), 32);
        assert!(odd.contains(ThreadId::new(63)) && !odd.contains(ThreadId::new(0)));
        assert_eq!(odd.iter().map(ThreadId::index).sum::<usize>(), 32 * 32);
        assert_eq!(odd.without(ThreadId::new(1)).with(ThreadId::new(1)), odd);
        assert_eq!(ThreadSet::first(64).len(), 64);
        assert_eq!(ThreadSet::first(3).bits(), 0b111);
        for bits in 0..64_u64 {
            assert_eq!(ThreadSet::from_bits(bits).len(), bits.count_ones() as usize);
        }
    }
}
