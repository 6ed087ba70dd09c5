//! The successors of a level, before it is known which of them are new.
//!
//! A hash table removes most duplicates at once. When it has reached its size, or at the end of the
//! level, its states are sorted and become a run. The table is fitted to the level: a small level
//! does not pay for scanning and clearing a large table.

use crate::engine::runs::{Run, RunError, RunSpace, RunWriter};
use crate::engine::store::hash::hash;

/// The fewest slots of a table.
const LEAST: usize = 1 << 10;

/// A set of states that becomes a sorted run. It uses linear probing; a slot is empty if its first
/// word is 0, since the lowest bit of a state is set.
pub(super) struct Candidates<const W: usize> {
    words: usize,
    slots: Vec<u64>,
    /// The number of slots.
    size: usize,
    used: usize,
    /// The most slots.
    most: usize,
    hashes: Vec<u64>,
}

impl<const W: usize> Candidates<W> {
    /// A table for about `expected` states that grows up to `bytes` bytes.
    pub(super) fn new(words: usize, expected: u64, bytes: usize) -> Candidates<W> {
        // A table has to be replaced by one of twice its size while both exist.
        let most = (bytes / 3 * 2 / (8 * words)).max(LEAST);
        let expected = usize::try_from(expected).unwrap_or(usize::MAX).saturating_mul(2);
        let size = expected.clamp(LEAST, most);
        let slots = vec![0; size * words];
        Candidates { words, slots, size, used: 0, most, hashes: Vec::new() }
    }

    #[inline(always)]
    fn words(&self) -> usize {
        if W == 0 { self.words } else { W }
    }

    /// The bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// Adds states, which lie one after the other.
    pub(super) fn add(&mut self, states: &[u64]) {
        let words = self.words();
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.extend(states.chunks_exact(words).map(hash::<W>));
        // The reads of this loop do not depend on each other, so the processor waits for all of
        // them at the same time. The loop below would wait for one after the other.
        let touched = hashes.iter().fold(0, |sum, &hash| sum ^ self.slots[self.home(hash)]);
        std::hint::black_box(touched);
        for (&hash, state) in hashes.iter().zip(states.chunks_exact(words)) {
            self.insert(hash, state);
        }
        self.hashes = hashes;
        if self.is_crowded() && self.size < self.most {
            self.grow();
        }
    }

    /// The position of the first word of the slot at which the search for a state begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.size as u128) >> 64) as usize * self.words()
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64, state: &[u64]) {
        let words = self.words();
        let mut at = self.home(hash);
        loop {
            let slot = &mut self.slots[at..at + words];
            if slot[0] == 0 {
                slot.copy_from_slice(state);
                self.used += 1;
                return;
            }
            if *slot == state[..words] {
                return;
            }
            at += words;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    /// Whether three quarters of the slots are used. The states of one batch fit the rest.
    fn is_crowded(&self) -> bool {
        self.used >= self.size / 4 * 3
    }

    /// Whether the table has to be emptied.
    pub(super) fn is_full(&self) -> bool {
        self.is_crowded() && self.size == self.most
    }

    #[cold]
    fn grow(&mut self) {
        let (words, size) = (self.words(), (2 * self.size).min(self.most));
        let old = std::mem::replace(&mut self.slots, vec![0; size * words]);
        (self.size, self.used) = (size, 0);
        for state in old.chunks_exact(words).filter(|slot| slot[0] != 0) {
            self.insert(hash::<W>(state), state);
        }
    }

    /// Moves all states into a run, `None` if there are none.
    pub(super) fn take(&mut self, space: &RunSpace<'_>) -> Result<Option<Run>, RunError> {
        if self.used == 0 {
            return Ok(None);
        }
        let words = self.words();
        let mut kept = 0;
        for at in (0..self.slots.len()).step_by(words) {
            if self.slots[at] != 0 {
                self.slots.copy_within(at..at + words, kept);
                kept += words;
            }
        }
        let mut run = RunWriter::<W>::new(space);
        let states = &mut self.slots[..kept];
        if W == 0 {
            let mut order: Vec<&[u64]> = states.chunks_exact(words).collect();
            order.sort_unstable();
            order.into_iter().try_for_each(|state| run.push(state))?;
        } else {
            let states = states.as_chunks_mut::<W>().0;
            states.sort_unstable();
            states.iter().try_for_each(|state| run.push(state))?;
        }
        self.slots.fill(0);
        self.used = 0;
        run.finish().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::runs::Union;

    fn check<const W: usize>(words: usize, bytes: usize) {
        let space = RunSpace::new(words, usize::MAX, None);
        let mut candidates = Candidates::<W>::new(words, 10, bytes);
        let (mut expected, mut runs) = (BTreeSet::new(), Vec::new());
        for round in 0..2_000u64 {
            let state = |i: u64| {
                let number = (round * 31 + i * i * 7) % 9_973;
                let mut state: Vec<u64> = (0..words as u64).map(|word| number >> word).collect();
                state[0] = number << 1 | 1;
                state
            };
            let batch: Vec<Vec<u64>> = (0..20).map(state).collect();
            candidates.add(&batch.concat());
            expected.extend(batch);
            if candidates.is_full() {
                runs.extend(candidates.take(&space).expect("there is memory"));
            }
        }
        runs.extend(candidates.take(&space).expect("there is memory"));
        assert!(candidates.take(&space).expect("there is memory").is_none(), "it is empty");
        assert_eq!(bytes < 1 << 20, runs.len() > 1, "a small table is emptied often");
        let mut union = Union::<W>::new(&runs, None, None).expect("runs in memory can be read");
        let mut found = Vec::new();
        while union.take(100, &mut found).expect("runs in memory can be read") {}
        let found: Vec<Vec<u64>> = found.chunks_exact(words).map(<[u64]>::to_vec).collect();
        assert!(found.into_iter().eq(expected), "{words} words, {bytes} bytes");
    }

    #[test]
    fn every_state_is_in_the_union_of_the_runs_once() {
        for bytes in [0, 1 << 24] {
            check::<1>(1, bytes);
            check::<2>(2, bytes);
            check::<0>(3, bytes);
            check::<0>(11, bytes);
        }
    }
}
