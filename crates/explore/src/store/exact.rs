//! Exact sets of whole states.
//!
//! The states lie in the slots themselves. The lowest bit of a state's first word is always set, so that 0 means an empty
//! slot and another even number can mean that somebody is writing the slot. A state of one word needs no such mark: one
//! compare-and-swap puts it in place.

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::hash::hash;
use super::shards::{Look, Overflow, Shards, Sharing};
use super::{Lookup, StoreFull, Visited};
use crate::outcome::Omission;

/// A set of states of one word.
pub(super) struct Word<S> {
    table: Shards,
    sharing: PhantomData<S>,
}

impl<S: Sharing> Word<S> {
    pub(super) fn new(jobs: usize) -> Result<Word<S>, StoreFull> {
        Ok(Word { table: Shards::new(1, jobs)?, sharing: PhantomData })
    }
}

impl<S: Sharing> Visited for Word<S> {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, overflow, .. } = lookup;
        fresh.clear();
        hashes.clear();
        hashes.extend(states.iter().map(|&state| hash::<1>(&[state])));
        insert_words::<S>(&self.table, states, (hashes, overflow), |slot| hash::<1>(&[slot]), fresh)
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}

/// Adds single words, none of them 0, to a table of slots with one word, and appends the numbers of the new ones to `fresh`.
#[inline(always)]
pub(super) fn insert_words<S: Sharing>(
    table: &Shards,
    words: &[u64],
    (hashes, overflow): (&[u64], &mut Overflow),
    rehash: impl Fn(u64) -> u64,
    fresh: &mut Vec<u32>,
) -> Result<(), StoreFull> {
    table.each::<S>(
        (1, hashes, overflow),
        |slot| rehash(slot[0].load(Relaxed)),
        |number, group| {
            let look = look_for_word::<S>(group, words[number]);
            if let Look::Filled = look {
                fresh.push(number as u32);
            }
            look
        },
    )?;
    fresh.sort_unstable();
    Ok(())
}

#[inline(always)]
fn look_for_word<S: Sharing>(group: &[AtomicU64], word: u64) -> Look {
    // All at once and without a branch: where in its group a word is cannot be predicted.
    if group.iter().fold(false, |hit, slot| hit | (slot.load(Relaxed) == word)) {
        return Look::Seen;
    }
    for slot in group {
        let mut found = slot.load(Relaxed);
        if found == 0 {
            match S::claim(slot, word) {
                Ok(()) => return Look::Filled,
                Err(theirs) => found = theirs,
            }
        }
        // Somebody else may have put it there since.
        if found == word {
            return Look::Seen;
        }
    }
    Look::Full
}

/// The first word of a slot that somebody is writing.
const BUSY: u64 = 2;

/// A set of states of `W` words; of any number of words if `W` is 0.
pub(super) struct Words<S, const W: usize> {
    table: Shards,
    words: usize,
    sharing: PhantomData<S>,
}

impl<S: Sharing, const W: usize> Words<S, W> {
    pub(super) fn new(words: usize, jobs: usize) -> Result<Words<S, W>, StoreFull> {
        debug_assert!(words > 1 && (W == 0 || W == words), "the width fits");
        Ok(Words { table: Shards::new(words, jobs)?, words, sharing: PhantomData })
    }

    #[inline(always)]
    fn words(&self) -> usize {
        if W == 0 { self.words } else { W }
    }

    #[inline(always)]
    fn look_for(&self, group: &[AtomicU64], state: &[u64]) -> Look {
        for slot in group.chunks_exact(self.words()) {
            let mut found = slot[0].load(Acquire);
            if found == 0 {
                match S::claim(&slot[0], BUSY) {
                    Ok(()) => {
                        for (to, &from) in slot[1..].iter().zip(&state[1..]) {
                            to.store(from, Relaxed);
                        }
                        slot[0].store(state[0], Release);
                        return Look::Filled;
                    }
                    Err(theirs) => found = theirs,
                }
            }
            while found == BUSY {
                spin_loop();
                found = slot[0].load(Acquire);
            }
            if found == state[0] && slot[1..].iter().zip(&state[1..]).all(|(a, &b)| a.load(Relaxed) == b) {
                return Look::Seen;
            }
        }
        Look::Full
    }
}

impl<S: Sharing, const W: usize> Visited for Words<S, W> {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, overflow, .. } = lookup;
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
        self.table.each::<S>((words, hashes, overflow), rehash, |number, group| {
            let look = self.look_for(group, &states[number * words..][..words]);
            if let Look::Filled = look {
                fresh.push(number as u32);
            }
            look
        })?;
        fresh.sort_unstable();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}
