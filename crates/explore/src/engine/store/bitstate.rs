//! Three bits for every state in an array of fixed size: Holzmann's bitstate hashing, a Bloom
//! filter.
//!
//! A state whose three bits are all set counts as visited. The three places come from one 64-bit
//! hash: the second and the third are the first plus once and twice an odd step, modulo the size of
//! the array.
//!
//! Three bits cannot be set atomically. Two workers with the same new state would each find a bit
//! clear and both treat the state as new; so a worker that finds a bit clear checks again under a
//! lock chosen by the hash.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use super::entries::Entries;
use super::hash::hash;
use super::slots::{Slots, prefetch};
use super::{Lookup, StoreFull, Visited};
use crate::codec::{Damaged, Reader, SaveInPlace, Writer};
use crate::plan::coverage::Omission;

/// The number of locks.
const LOCKS: usize = 1024;

/// How many states ahead a look-up prefetches.
const AHEAD: usize = 8;

/// The array.
pub(super) struct Bits {
    slots: Slots,
    words: usize,
    locks: Box<[Mutex<()>]>,
}

impl Bits {
    pub(super) fn new(words: usize, bytes: usize) -> Result<Bits, StoreFull> {
        let slots = Slots::zeroed(Slots::words_for((bytes / 8).max(1))).ok_or(StoreFull)?;
        Ok(Bits { slots, words, locks: (0..LOCKS).map(|_| Mutex::new(())).collect() })
    }

    /// The word and the bit in it of each of the three places.
    #[inline(always)]
    fn places(&self, hash: u64) -> [(usize, u64); 3] {
        let step = hash.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        [0, 1, 2].map(|i| {
            let place = hash.wrapping_add(step.wrapping_mul(i));
            let bit = u128::from(place) * (self.slots.len() as u128 * 64);
            let bit = (bit >> u64::BITS) as u64;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    #[inline(always)]
    fn add(&self, hash: u64) -> bool {
        let places = self.places(hash);
        if places.iter().all(|&(word, bit)| self.slots[word].load(Relaxed) & bit != 0) {
            return false;
        }
        let _alone = self.locks[hash as usize % LOCKS].lock().expect("mutex poisoned");
        let mut fresh = false;
        for (word, bit) in places {
            fresh |= self.slots[word].fetch_or(bit, Relaxed) & bit == 0;
        }
        fresh
    }
}

impl Visited for Bits {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, .. } = lookup;
        fresh.clear();
        hashes.clear();
        hashes.extend(states.chunks_exact(self.words).map(|state| match self.words {
            1 => hash::<1>(state),
            2 => hash::<2>(state),
            _ => hash::<0>(state),
        }));
        let expect =
            |hash: u64| self.places(hash).iter().for_each(|&(word, _)| prefetch(&self.slots[word]));
        hashes.iter().take(AHEAD).for_each(|&hash| expect(hash));
        for (number, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(number + AHEAD) {
                expect(ahead);
            }
            if self.add(hash) {
                fresh.push(number as u32);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    fn omission(&self, _: u64) -> Omission {
        let set: u64 =
            self.slots.iter().map(|word| u64::from(word.load(Relaxed).count_ones())).sum();
        let share = set as f64 / (self.slots.len() as f64 * 64.0);
        Omission::Bits { probability: share.powi(3) }
    }
}

/// An array of bits does not know its states, so it is not distributed.
impl Entries for Bits {
    fn entry_words(&self) -> usize {
        unreachable!("{NOT_DISTRIBUTED}")
    }

    fn hash_of(&self, _: &[u64]) -> u64 {
        unreachable!("{NOT_DISTRIBUTED}")
    }

    fn entry_count(&self) -> u64 {
        unreachable!("{NOT_DISTRIBUTED}")
    }

    fn each_entry(&self, _: &mut dyn FnMut(&[u64])) {
        unreachable!("{NOT_DISTRIBUTED}")
    }

    fn reserve(&self, _: u64) -> Result<(), StoreFull> {
        unreachable!("{NOT_DISTRIBUTED}")
    }

    fn insert_entries(&self, _: &[u64], _: &mut Lookup) -> Result<(), StoreFull> {
        unreachable!("{NOT_DISTRIBUTED}")
    }
}

/// The invariant that [`Search::distributes`](crate::Search::distributes) ensures.
const NOT_DISTRIBUTED: &str = "a search with an array of bits runs in one process";

impl SaveInPlace for Bits {
    /// Writes the words that are not 0, each with the number of zeros before it.
    fn save_contents(&self, to: &mut Writer<'_>) {
        let words = || {
            self.slots
                .iter()
                .map(|word| word.load(Relaxed))
                .enumerate()
                .filter(|&(_, word)| word != 0)
        };
        to.put(&words().count());
        let mut next = 0;
        for (at, word) in words() {
            to.put(&(at - next));
            to.word(word);
            next = at + 1;
        }
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        let mut next = 0;
        for _ in 0..from.count()? {
            let at = from.get::<usize>()?.checked_add(next).ok_or(Damaged)?;
            self.slots.get(at).ok_or(Damaged)?.store(from.word()?, Relaxed);
            next = at + 1;
        }
        Ok(())
    }
}
