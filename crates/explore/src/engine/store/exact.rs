//! Exact sets of whole states.
//!
//! The states are stored in the slots themselves. The lowest bit of a state's first word is always
//! set, so 0 means an empty slot, and another even number can mean that a worker is writing the
//! slot. A state of one word needs no such mark: one compare-and-swap inserts it.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::entries::Entries;
use super::hash::hash;
use super::shards::{Growth, Overflow, Probe, Shards};
use super::{Lookup, StoreFull, Visited, load_entries};
use crate::codec::{Damaged, Reader, SaveInPlace, Writer};
use crate::plan::coverage::Omission;

/// A set of states of one word.
pub(super) struct Word(Shards);

impl Word {
    pub(super) fn new(growth: Growth, jobs: usize) -> Result<Word, StoreFull> {
        Ok(Word(Shards::new(1, growth, jobs)?))
    }
}

impl Visited for Word {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, overflow, .. } = lookup;
        fresh.clear();
        hashes.clear();
        hashes.extend(states.iter().map(|&state| hash::<1>(&[state])));
        insert_words(&self.0, states, (hashes, overflow), |slot| hash::<1>(&[slot]), fresh)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}

impl Entries for Word {
    fn entry_words(&self) -> usize {
        1
    }

    fn hash_of(&self, entry: &[u64]) -> u64 {
        hash::<1>(entry)
    }

    fn entry_count(&self) -> u64 {
        self.0.entries() as u64
    }

    fn each_entry(&self, take: &mut dyn FnMut(&[u64])) {
        self.0.each_entry(|entry| take(&[entry[0].load(Relaxed)]));
    }

    fn reserve(&self, entries: u64) -> Result<(), StoreFull> {
        self.0.reserve(entries)
    }

    fn insert_entries(&self, entries: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        self.insert(entries, lookup)
    }
}

impl SaveInPlace for Word {
    fn save_contents(&self, to: &mut Writer<'_>) {
        self.0.save(to);
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        self.0.load_sizes(from)?;
        let mut lookup = Lookup::default();
        load_entries(from, 1, |_| true, |states| self.insert(states, &mut lookup))
    }
}

/// Adds single words, none of them 0, to a table of slots with one word, and appends the numbers of
/// the new ones to `fresh`.
#[inline(always)]
pub(super) fn insert_words(
    table: &Shards,
    words: &[u64],
    (hashes, overflow): (&[u64], &mut Overflow),
    rehash: impl Fn(u64) -> u64,
    fresh: &mut Vec<u32>,
) -> Result<(), StoreFull> {
    table.each(
        (1, hashes, overflow),
        |slot| rehash(slot[0].load(Relaxed)),
        |number, group| {
            let probe = probe_word(group, words[number]);
            if let Probe::Filled = probe {
                fresh.push(number as u32);
            }
            probe
        },
    )?;
    fresh.sort_unstable();
    Ok(())
}

#[inline(always)]
fn probe_word(group: &[AtomicU64], word: u64) -> Probe {
    // All slots without a branch: where in its group a word is cannot be predicted, and a
    // misprediction costs more than comparing all of them. Sums, because the compiler turns a
    // disjunction into branches.
    let hits = |slots: &[AtomicU64]| {
        slots.iter().map(|slot| u32::from(slot.load(Relaxed) == word)).sum::<u32>()
    };
    if hits(group) != 0 {
        return Probe::Seen;
    }
    loop {
        // Once more, together with the number of slots in use, which is that of the first empty
        // one: slots are filled one after the other. If another worker is faster, the claim fails.
        let (mut hits, mut used) = (0, 0);
        for slot in group {
            let found = slot.load(Relaxed);
            hits += u32::from(found == word);
            used += usize::from(found != 0);
        }
        if hits != 0 {
            return Probe::Seen;
        }
        let Some(empty) = group.get(used) else { return Probe::Full };
        // No other memory is published with the word, so that the order of other accesses does not
        // matter.
        match empty.compare_exchange(0, word, Relaxed, Relaxed) {
            Ok(_) => return Probe::Filled,
            Err(theirs) if theirs == word => return Probe::Seen,
            Err(_) => {}
        }
    }
}

/// The first word of a slot that a worker is writing.
const BUSY: u64 = 2;

/// A set of states of `W` words, at least 2.
pub(super) struct Words<const W: usize>(Shards);

impl<const W: usize> Words<W> {
    pub(super) fn new(jobs: usize) -> Result<Words<W>, StoreFull> {
        Ok(Words(Shards::new(W, Growth::Tight, jobs)?))
    }

    #[inline(always)]
    fn probe(group: &[AtomicU64], state: &[u64]) -> Probe {
        for slot in group.chunks_exact(W) {
            let mut found = slot[0].load(Acquire);
            if found == 0 {
                match slot[0].compare_exchange(0, BUSY, Acquire, Acquire) {
                    Ok(_) => {
                        for (to, &from) in slot[1..].iter().zip(&state[1..]) {
                            to.store(from, Relaxed);
                        }
                        slot[0].store(state[0], Release);
                        return Probe::Filled;
                    }
                    Err(theirs) => found = theirs,
                }
            }
            while found == BUSY {
                spin_loop();
                found = slot[0].load(Acquire);
            }
            if found == state[0]
                && slot[1..].iter().zip(&state[1..]).all(|(a, &b)| a.load(Relaxed) == b)
            {
                return Probe::Seen;
            }
        }
        Probe::Full
    }
}

impl<const W: usize> Visited for Words<W> {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, overflow, .. } = lookup;
        fresh.clear();
        hashes.clear();
        hashes.extend(states.chunks_exact(W).map(hash::<W>));
        let rehash = |slot: &[AtomicU64]| {
            let state: [u64; W] = std::array::from_fn(|i| slot[i].load(Relaxed));
            hash::<W>(&state)
        };
        self.0.each((W, hashes, overflow), rehash, |number, group| {
            let probe = Self::probe(group, &states[number * W..][..W]);
            if let Probe::Filled = probe {
                fresh.push(number as u32);
            }
            probe
        })?;
        fresh.sort_unstable();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}

impl<const W: usize> Entries for Words<W> {
    fn entry_words(&self) -> usize {
        W
    }

    fn hash_of(&self, entry: &[u64]) -> u64 {
        hash::<W>(entry)
    }

    fn entry_count(&self) -> u64 {
        self.0.entries() as u64
    }

    fn each_entry(&self, take: &mut dyn FnMut(&[u64])) {
        self.0.each_entry(|entry| {
            let state: [u64; W] = std::array::from_fn(|i| entry[i].load(Relaxed));
            take(&state);
        });
    }

    fn reserve(&self, entries: u64) -> Result<(), StoreFull> {
        self.0.reserve(entries)
    }

    fn insert_entries(&self, entries: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        self.insert(entries, lookup)
    }
}

impl<const W: usize> SaveInPlace for Words<W> {
    fn save_contents(&self, to: &mut Writer<'_>) {
        self.0.save(to);
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        self.0.load_sizes(from)?;
        let mut lookup = Lookup::default();
        // The lowest bit of every state is set. An even number could mean a slot that is written.
        let valid = |state: &[u64]| state[0] & 1 == 1;
        load_entries(from, W, valid, |states| self.insert(states, &mut lookup))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A worker would wait for the end of a write to a slot that is marked as [`BUSY`].
    #[test]
    fn a_state_that_marks_its_slot_is_not_read() {
        let words = || Words::<2>::new(1).unwrap_or_else(|_| panic!("so little memory"));
        let (written, first) = (words(), 0x1234_5678_9abc_def1u64);
        written.insert(&[first, 5], &mut Lookup::default()).unwrap_or_else(|_| panic!("memory"));
        let mut bytes = Writer::collect(|to| written.save_contents(to));
        let read = |bytes: &[u8]| {
            let mut from = Reader::new(Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64);
            words().load_contents(&mut from)
        };
        assert_eq!(read(&bytes), Ok(()));
        let at = bytes.windows(8).position(|window| window == first.to_le_bytes());
        let at = at.expect("the state is written");
        bytes[at..at + 8].copy_from_slice(&BUSY.to_le_bytes());
        assert_eq!(read(&bytes), Err(Damaged));
    }
}
