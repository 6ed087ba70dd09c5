//! Exact sets of whole states.
//!
//! The states lie in the slots themselves. The lowest bit of a state's first word is always set, so that 0 means an empty
//! slot and another even number can mean that somebody is writing the slot. A state of one word needs no such mark: one
//! compare-and-swap puts it in place.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::hash::hash;
use super::shards::{Fill, Shard, Shards};
use super::{Lookup, StoreFull, Visited};
use crate::outcome::Omission;

/// A set of states of one word.
pub(super) struct Word(Shards);

impl Word {
    pub(super) fn new(jobs: usize) -> Result<Word, StoreFull> {
        Ok(Word(Shards::new(1, jobs)?))
    }
}

impl Visited for Word {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, .. } = lookup;
        fresh.clear();
        hashes.clear();
        hashes.extend(states.iter().map(|&state| hash::<1>(&[state])));
        insert_words(&self.0, states, hashes, |slot| hash::<1>(&[slot]), fresh)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}

/// Adds single words, none of them 0, to a table of slots with one word, and appends the numbers of the new ones to `fresh`.
#[inline(always)]
pub(super) fn insert_words(
    table: &Shards,
    words: &[u64],
    hashes: &[u64],
    rehash: impl Fn(u64) -> u64,
    fresh: &mut Vec<u32>,
) -> Result<(), StoreFull> {
    table.each(
        hashes,
        |slot| rehash(slot[0].load(Relaxed)),
        |number, shard, hash| {
            if add_word(shard, hash, words[number]) {
                fresh.push(number as u32);
                shard.filled()
            } else {
                Fill::Roomy
            }
        },
    )
}

/// Whether `word` was not in the shard. It is afterwards.
#[inline(always)]
fn add_word(shard: &Shard, hash: u64, word: u64) -> bool {
    shard.walk(hash, 1, |slot| {
        let mut found = slot[0].load(Relaxed);
        if found == 0 {
            // No other memory is published with the word, so that the order of other accesses does not matter.
            match slot[0].compare_exchange(0, word, Relaxed, Relaxed) {
                Ok(_) => return Some(true),
                Err(theirs) => found = theirs,
            }
        }
        (found == word).then_some(false)
    })
}

/// The first word of a slot that somebody is writing.
const BUSY: u64 = 2;

/// A set of states of `W` words; of any number of words if `W` is 0.
pub(super) struct Words<const W: usize> {
    table: Shards,
    words: usize,
}

impl<const W: usize> Words<W> {
    pub(super) fn new(words: usize, jobs: usize) -> Result<Words<W>, StoreFull> {
        debug_assert!(words > 1 && (W == 0 || W == words), "the width fits");
        Ok(Words { table: Shards::new(words, jobs)?, words })
    }

    #[inline(always)]
    fn words(&self) -> usize {
        if W == 0 { self.words } else { W }
    }

    /// Whether `state` was not in the shard. It is afterwards.
    #[inline(always)]
    fn add(&self, shard: &Shard, hash: u64, state: &[u64]) -> bool {
        shard.walk(hash, self.words(), |slot| {
            let mut found = slot[0].load(Acquire);
            if found == 0 {
                match slot[0].compare_exchange(0, BUSY, Acquire, Acquire) {
                    Ok(_) => {
                        for (to, &from) in slot[1..].iter().zip(&state[1..]) {
                            to.store(from, Relaxed);
                        }
                        slot[0].store(state[0], Release);
                        return Some(true);
                    }
                    Err(theirs) => found = theirs,
                }
            }
            while found == BUSY {
                spin_loop();
                found = slot[0].load(Acquire);
            }
            let same = found == state[0] && slot[1..].iter().zip(&state[1..]).all(|(a, &b)| a.load(Relaxed) == b);
            same.then_some(false)
        })
    }
}

impl<const W: usize> Visited for Words<W> {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, .. } = lookup;
        let words = self.words();
        fresh.clear();
        hashes.clear();
        hashes.extend(states.chunks_exact(words).map(hash::<W>));
        let rehash = |slot: &[AtomicU64]| {
            if W == 0 {
                hash::<W>(&slot.iter().map(|word| word.load(Relaxed)).collect::<Vec<u64>>())
            } else {
                let state: [u64; 4] = std::array::from_fn(|i| if i < W { slot[i].load(Relaxed) } else { 0 });
                hash::<W>(&state[..W])
            }
        };
        self.table.each(hashes, rehash, |number, shard, hash| {
            if self.add(shard, hash, &states[number * words..][..words]) {
                fresh.push(number as u32);
                shard.filled()
            } else {
                Fill::Roomy
            }
        })
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}
