//! Tables of names that several workers fill together.
//!
//! A table is split into shards by a part of the name that is not its hash, each behind its own
//! lock: workers rarely contend, and hold a lock for one look-up only. A single worker has shards
//! too: a table that doubles holds its old and its new entries at the same time, three times what
//! it needed before, and a shard does so alone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use crate::codec::{Damaged, Reader, Save, SaveInPlace, Writer};
use crate::engine::lock;
use crate::engine::names::{Name, NameMap, table_bytes};

/// Shards for each worker.
const SHARDS: usize = 16;

/// The least value that was entered for each name.
pub(crate) struct Sharded<V> {
    /// Their number is a power of two.
    shards: Box<[Mutex<NameMap<V>>]>,
    bytes: AtomicUsize,
}

/// A set of names.
pub(crate) type SharedNames = Sharded<()>;

impl<V: Copy + Ord> Sharded<V> {
    /// An empty table for `workers`.
    pub(crate) fn new(workers: usize) -> Sharded<V> {
        let shards = (SHARDS * workers).next_power_of_two();
        Sharded {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            bytes: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn shard(&self, name: Name) -> MutexGuard<'_, NameMap<V>> {
        lock(&self.shards[name.shard() & (self.shards.len() - 1)])
    }

    /// The least value that was entered for `name`.
    pub(crate) fn get(&self, name: Name) -> Option<V> {
        self.shard(name).get(&name).copied()
    }

    /// Enters `value` unless there is one that is no greater. Returns whether it was entered: of
    /// several workers that enter the same value, exactly one gets `true`.
    pub(crate) fn lower(&self, name: Name, value: V) -> bool {
        let mut shard = self.shard(name);
        let before = shard.capacity();
        let lower = match shard.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                true
            }
            Entry::Occupied(mut old) => {
                let lower = value < *old.get();
                if lower {
                    old.insert(value);
                }
                lower
            }
        };
        let after = shard.capacity();
        if after != before {
            let grown = table_bytes::<(Name, V)>(after) - table_bytes::<(Name, V)>(before);
            self.bytes.fetch_add(grown, Relaxed);
        }
        lower
    }

    /// The number of names.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// The memory of the table.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

/// A table that was read has grown as the one that was written, since nothing is ever removed.
impl<V: Copy + Ord + Save> SaveInPlace for Sharded<V> {
    fn save_contents(&self, to: &mut Writer<'_>) {
        to.put(&self.len());
        for shard in &self.shards {
            for (name, value) in lock(shard).iter() {
                to.put(name);
                to.put(value);
            }
        }
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        for _ in 0..from.count()? {
            self.lower(from.get()?, from.get()?);
        }
        Ok(())
    }
}

/// A table of one worker, in parts that grow one by one.
pub(crate) struct Parts<K, V, H> {
    /// By bits of the hash that the tables themselves do not use.
    parts: Box<[HashMap<K, V, H>]>,
    hashing: H,
}

impl<K: Eq + Hash, V, H: BuildHasher + Default> Default for Parts<K, V, H> {
    fn default() -> Self {
        Parts { parts: (0..SHARDS).map(|_| HashMap::default()).collect(), hashing: H::default() }
    }
}

impl<K: Eq + Hash, V, H: BuildHasher + Default> Parts<K, V, H> {
    /// The number of the part in which `key` is, if it is in any. A table of the standard library
    /// uses the highest seven bits of a hash and as many of the lowest as it has slots for: some
    /// between these are left.
    #[inline]
    fn part(&self, key: &K) -> usize {
        (self.hashing.hash_one(key) >> 48) as usize % SHARDS
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.parts[self.part(key)].get(key)
    }

    #[inline]
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.parts[self.part(key)].contains_key(key)
    }

    /// Returns the value that the key had before.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let part = self.part(&key);
        self.parts[part].insert(key, value)
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(HashMap::len).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts.iter().flatten()
    }

    /// The memory of the table, without what keys and values own elsewhere.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| table_bytes::<(K, V)>(part.capacity())).sum()
    }
}

impl<K, V, H> Save for Parts<K, V, H>
where
    K: Eq + Hash + Save,
    V: Save,
    H: BuildHasher + Default,
{
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.len());
        for (key, value) in self.iter() {
            to.put(key);
            to.put(value);
        }
    }

    fn load(from: &mut Reader) -> Result<Self, Damaged> {
        let mut parts = Parts::default();
        for _ in 0..from.count()? {
            parts.insert(from.get()?, from.get()?);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn each_value_is_entered_by_exactly_one_worker() {
        const NAMES: u64 = 5_000;
        for workers in [1, 4] {
            let table = Sharded::new(workers);
            let enter = || (0..NAMES).filter(|&n| table.lower(Name::of_state(&[n]), 7)).count();
            let entered: usize = thread::scope(|scope| {
                let all: Vec<_> = (0..workers).map(|_| scope.spawn(enter)).collect();
                all.into_iter().map(|worker| worker.join().expect("a worker ends")).sum()
            });
            assert_eq!(
                (entered, table.len()),
                (NAMES as usize, NAMES as usize),
                "{workers} workers"
            );
            let name = Name::of_state(&[1]);
            assert!(!table.lower(name, 8) && table.lower(name, 6), "only less is entered");
            assert_eq!((table.get(name), table.get(Name::of_state(&[NAMES]))), (Some(6), None));
            assert!(table.bytes() >= table.len() * size_of::<(Name, i32)>());
        }
    }
}
