//! Sets of 64-bit fingerprints.
//!
//! Two states with the same fingerprint count as one. Were the fingerprints random, n states would
//! have about n² / 2 pairs of which each collides with probability 2⁻⁶⁴, so that n² / 2⁶⁵ states
//! are expected to be missed, together with everything reachable only through them: about one in 15
//! searches of a billion states misses any.

use std::sync::atomic::Ordering::Relaxed;

use super::entries::Entries;
use super::exact::insert_words;
use super::hash::hash;
use super::shards::{Growth, Shards};
use super::{Lookup, StoreFull, Visited, load_entries};
use crate::codec::{Damaged, Reader, SaveInPlace, Writer};
use crate::plan::coverage::Omission;

/// A set of the fingerprints of states of `W` words; of any number of words if `W` is 0.
pub(super) struct Fingerprints<const W: usize> {
    table: Shards,
    words: usize,
}

impl<const W: usize> Fingerprints<W> {
    pub(super) fn new(words: usize, jobs: usize) -> Result<Fingerprints<W>, StoreFull> {
        debug_assert!(W == 0 || W == words, "the width fits");
        Ok(Fingerprints { table: Shards::new(1, Growth::Tight, jobs)?, words })
    }
}

impl<const W: usize> Visited for Fingerprints<W> {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, overflow, .. } = lookup;
        let words = if W == 0 { self.words } else { W };
        fresh.clear();
        hashes.clear();
        // 0 means an empty slot: that fingerprint becomes its neighbour.
        hashes.extend(states.chunks_exact(words).map(|state| hash::<W>(state).max(1)));
        insert_words(&self.table, hashes, (hashes, overflow), |fingerprint| fingerprint, fresh)
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }

    fn omission(&self, states: u64) -> Omission {
        let n = states as f64;
        Omission::Collision { expected: n * n / 2f64.powi(65) }
    }
}

impl<const W: usize> Entries for Fingerprints<W> {
    fn entry_words(&self) -> usize {
        1
    }

    fn hash_of(&self, entry: &[u64]) -> u64 {
        // The fingerprint 1 may stand for the hash 0; both have the same owner.
        entry[0]
    }

    fn entry_count(&self) -> u64 {
        self.table.entries() as u64
    }

    fn each_entry(&self, take: &mut dyn FnMut(&[u64])) {
        self.table.each_entry(|entry| take(&[entry[0].load(Relaxed)]));
    }

    fn reserve(&self, entries: u64) -> Result<(), StoreFull> {
        self.table.reserve(entries)
    }

    fn insert_entries(&self, entries: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, overflow, .. } = lookup;
        fresh.clear();
        insert_words(&self.table, entries, (entries, overflow), |fingerprint| fingerprint, fresh)
    }
}

impl<const W: usize> SaveInPlace for Fingerprints<W> {
    fn save_contents(&self, to: &mut Writer<'_>) {
        self.table.save(to);
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        self.table.load_sizes(from)?;
        let Lookup { mut fresh, mut overflow, .. } = Lookup::default();
        load_entries(
            from,
            1,
            |_| true,
            |fingerprints| {
                insert_words(
                    &self.table,
                    fingerprints,
                    (fingerprints, &mut overflow),
                    |fingerprint| fingerprint,
                    &mut fresh,
                )?;
                fresh.clear();
                Ok(())
            },
        )
    }
}
