//! Entries of a store that move to the stores of other processes.
//!
//! The checkpoint of a search in several processes contains the entries of all stores, and may be
//! resumed by another number of processes. An entry is all that the store knows about a state: the
//! state, or its fingerprint. Either determines the hash of the state, and thus the process that
//! owns it.

use super::{Lookup, StoreFull};

/// A store whose entries can be listed and added to another store of the same kind.
pub(crate) trait Entries {
    /// The number of words of an entry.
    fn entry_words(&self) -> usize;

    /// The hash of the state that an entry stands for.
    fn hash_of(&self, entry: &[u64]) -> u64;

    /// The number of entries. No worker may be adding any.
    fn entry_count(&self) -> u64;

    /// Passes every entry to `take`. No worker may be adding any.
    fn each_entry(&self, take: &mut dyn FnMut(&[u64]));

    /// Gives an empty store room for `entries` entries. They come in the order in which another
    /// store lists them, which is that of their hashes, and would all crowd at one end of a store
    /// that grows with them.
    fn reserve(&self, entries: u64) -> Result<(), StoreFull>;

    /// Adds entries, which lie one after the other, and leaves in `lookup` which of them are new.
    fn insert_entries(&self, entries: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull>;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::engine::store::{Lookup, build, hash::hash};
    use crate::plan::StoreKind;

    #[test]
    fn entries_of_several_stores_make_one_of_the_same_states() {
        for kind in [StoreKind::Exact, StoreKind::Tree, StoreKind::Fingerprint] {
            for words in [1, 2, 3, 4, 5, 9] {
                let state = |i: u64| -> Vec<u64> {
                    (0..words).map(|word| (i % 977) << word | u64::from(word == 0)).collect()
                };
                let states: Vec<Vec<u64>> = (0..3_000)
                    .map(|i| {
                        let mut state = state(i);
                        state[words as usize - 1] |= i << 20;
                        state
                    })
                    .collect();
                let stores = [0, 1].map(|_| build(kind, words as usize, 1).expect("memory"));
                // Every store has look-ups of its own.
                let mut lookups = [Lookup::default(), Lookup::default()];
                for (at, state) in states.iter().enumerate() {
                    stores[at % 2].insert(state, &mut lookups[at % 2]).expect("memory");
                }
                let count: u64 = stores.iter().map(|store| store.entry_count()).sum();
                assert_eq!(count, 3_000, "{kind:?} {words}");
                let all = build(kind, words as usize, 1).expect("memory");
                all.reserve(count).expect("memory");
                let (mut hashes, mut lookup) = (BTreeSet::new(), Lookup::default());
                for store in &stores {
                    store.each_entry(&mut |entry| {
                        assert_eq!(entry.len(), all.entry_words());
                        hashes.insert(all.hash_of(entry));
                        all.insert_entries(entry, &mut lookup).expect("memory");
                        assert_eq!(lookup.fresh, [0], "{kind:?} {words}");
                    });
                }
                let expected: BTreeSet<u64> = states.iter().map(|state| hash::<0>(state)).collect();
                assert_eq!(hashes, expected, "{kind:?} {words}");
                for state in &states {
                    all.insert(state, &mut lookup).expect("memory");
                    assert_eq!(lookup.fresh, [0; 0], "{kind:?} {words}");
                }
            }
        }
    }
}
