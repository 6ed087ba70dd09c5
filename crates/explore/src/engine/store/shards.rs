//! A hash table in parts that grow one by one.
//!
//! The table is open addressing over slots of a few words; a slot whose first word is 0 is empty.
//! The store that uses the table defines what the words mean. Nothing is ever removed.
//!
//! **Groups.** The slots of a cache line are a group. An entry is in the group of its home, or in
//! the next one if that was full when it came, and so on; within a group, slots are filled one
//! after the other. So an entry is absent when the walk from its home meets a group that has an
//! empty slot. At a load of 0.8 and with 8 slots in a line, about one look-up in eight needs a
//! second line. A look-up costs one line from memory: the lines of a batch are prefetched some
//! look-ups ahead, and a look-up that needs a second line is postponed until after all others.
//!
//! **Growing.** A table that doubles as a whole holds the old and the new slots at the same time,
//! three times what it just needed. This one is cut into [`SHARDS`] tables by the highest bits of
//! the hash; each grows alone, so that the extra memory of the move is a small part of the whole. A
//! shard need not have a power of two of slots: the place of an entry is `hash × slots / 2⁶⁴`,
//! which any number allows. Shards grow at a load of 13/16, by how much is up to [`Growth`]. That
//! place is also monotone in the hash, so that a shard is moved from its front to its end into a
//! new one that is written from its front to its end.
//!
//! **Sharing.** Workers hold the lock for reading during a batch of look-ups and claim slots with
//! compare-and-swap. The worker that fills a shard beyond its load ends its batch there and takes
//! the lock for writing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{RwLock, RwLockReadGuard};

use super::StoreFull;
use super::slots::{Slots, prefetch};
use crate::codec::{Damaged, Reader, Writer};

/// This many bits of the hash select the shard.
const SHARD_BITS: u32 = 4;

/// The number of shards.
const SHARDS: usize = 1 << SHARD_BITS;

/// Up to this number of words a shard doubles.
const SMALL: usize = 1 << 14;

/// Words of a cache line.
const LINE: usize = 8;

/// How many hashes ahead a look-up prefetches.
const AHEAD: usize = 16;

/// The table.
pub(super) struct Shards {
    shards: RwLock<Box<[Shard]>>,
    /// Words of a slot.
    stride: usize,
    growth: Growth,
    bytes: AtomicUsize,
}

/// How a table grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// By 3/8 or so, as soon as it is not small: at most 15 bytes for an entry of one word.
    Tight,
    /// Twofold: at most 20 bytes for an entry of one word, but every entry moves once instead of
    /// three times, and most look-ups need one line.
    Fast,
}

impl Growth {
    /// The words of a shard that had `words` words, after it has grown.
    fn words_after(self, words: usize) -> usize {
        match self {
            Growth::Tight if words > SMALL => Slots::words_near(words / 8 * 11),
            Growth::Tight | Growth::Fast => Slots::words_for(2 * words),
        }
    }
}

/// One part of it. Aligned so that the counters of two shards are not in one cache line.
#[repr(align(128))]
struct Shard {
    slots: Slots,
    groups: usize,
    /// The number of slots.
    capacity: usize,
    /// The number of slots in use.
    used: AtomicUsize,
}

/// Slots of a group: those that are compared together, because they are in one or two cache lines.
#[inline(always)]
const fn slots_of_group(stride: usize) -> usize {
    if stride > LINE { 1 } else { LINE / stride }
}

/// The slots of a shard of `words` words.
fn capacity_of(stride: usize, words: usize) -> usize {
    let slots = slots_of_group(stride);
    words / (slots * stride) * slots
}

/// The shard that `hash` belongs to.
#[inline(always)]
fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

impl Shard {
    fn new(stride: usize, words: usize) -> Result<Shard, StoreFull> {
        let slots = Slots::zeroed(words).ok_or(StoreFull)?;
        let capacity = capacity_of(stride, words);
        Ok(Shard {
            groups: capacity / slots_of_group(stride),
            capacity,
            slots,
            used: AtomicUsize::new(0),
        })
    }

    /// The group in which the search for an entry with this hash begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash << SHARD_BITS) * self.groups as u128) >> u64::BITS) as usize
    }

    /// The group in which the search continues after a full group.
    #[inline(always)]
    fn after(&self, group: usize) -> usize {
        if group + 1 == self.groups { 0 } else { group + 1 }
    }

    /// The words of a group of slots with `stride` words.
    #[inline(always)]
    fn group(&self, group: usize, stride: usize) -> &[AtomicU64] {
        let words = slots_of_group(stride) * stride;
        &self.slots[group * words..][..words]
    }

    /// Prefetches a group.
    #[inline(always)]
    fn prefetch(&self, group: usize, stride: usize) {
        let words = self.group(group, stride);
        prefetch(&words[0]);
        if words.len() > LINE {
            prefetch(&words[LINE]);
        }
    }

    /// The number of entries from which on the shard has to grow.
    #[inline(always)]
    fn limit(&self) -> usize {
        self.capacity / 16 * 13
    }

    /// Counts a filled slot. The worker that crowds the shard has to call [`Shards::grow`]
    /// before it adds more.
    #[inline(always)]
    fn is_crowded_by_one(&self) -> bool {
        self.used.fetch_add(1, Relaxed) >= self.limit()
    }
}

/// The result of comparing an entry with a group of slots.
pub(super) enum Probe {
    /// The entry is there.
    Seen,
    /// The entry was not there and has been put into an empty slot.
    Filled,
    /// The entry is not there and no slot is empty.
    Full,
}

/// A look-up that continues in another group.
struct Later {
    number: usize,
    group: usize,
}

/// The look-ups of a batch that continue in another group. Scratch memory of a worker.
#[derive(Default)]
pub(super) struct Overflow {
    later: Vec<Later>,
    /// Whether a shard has grown for a batch of this worker.
    grew: bool,
}

impl Overflow {
    /// Whether a shard has grown since the last call.
    #[inline(always)]
    pub(super) fn take_growth(&mut self) -> bool {
        std::mem::take(&mut self.grew)
    }
}

impl Shards {
    /// An empty table of slots with `stride` words for `jobs` workers.
    pub(super) fn new(stride: usize, growth: Growth, jobs: usize) -> Result<Shards, StoreFull> {
        // Every worker may add one entry to a crowded shard before it notices, and one slot at
        // least has to stay empty: 3/16 of the slots have to be more than there are workers.
        let capacity = (8 * (jobs + 1)).next_power_of_two().max(64);
        let shards = (0..SHARDS)
            .map(|_| Shard::new(stride, capacity * stride))
            .collect::<Result<Box<[_]>, _>>()?;
        let bytes = shards.iter().map(|shard| size_of_val(&*shard.slots)).sum();
        Ok(Shards { shards: RwLock::new(shards), stride, growth, bytes: AtomicUsize::new(bytes) })
    }

    /// The memory of the slots.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// The number of entries.
    pub(super) fn entries(&self) -> usize {
        self.read().iter().map(|shard| shard.used.load(Relaxed)).sum()
    }

    /// Passes the words of every entry to `take`.
    pub(super) fn each_entry(&self, take: impl FnMut(&[AtomicU64])) {
        let shards = self.read();
        let slots = shards.iter().flat_map(|shard| shard.slots.chunks_exact(self.stride));
        slots.filter(|entry| entry[0].load(Relaxed) != 0).for_each(take);
    }

    /// Gives the shards of an empty table room for `entries` entries in all.
    pub(super) fn reserve(&self, entries: u64) -> Result<(), StoreFull> {
        let each = usize::try_from(entries / SHARDS as u64).map_err(|_| StoreFull)?;
        let mut shards = self.shards.write().expect("lock poisoned");
        for shard in shards.iter_mut() {
            let first = shard.slots.len();
            let mut words = first;
            while capacity_of(self.stride, words) / 16 * 13 <= each {
                words = self.growth.words_after(capacity_of(self.stride, words) * self.stride);
            }
            *shard = Shard::new(self.stride, words)?;
            self.bytes.fetch_add((words - first) * size_of::<u64>(), Relaxed);
        }
        Ok(())
    }

    /// Writes the sizes of the shards, how many entries there are, and all of them.
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        self.save_each(to, |entry, to| entry.iter().for_each(|word| to.word(word.load(Relaxed))));
    }

    /// The same with entries that `write` writes.
    pub(super) fn save_each(
        &self,
        to: &mut Writer<'_>,
        write: impl Fn(&[AtomicU64], &mut Writer<'_>),
    ) {
        let shards = self.read();
        shards.iter().for_each(|shard| to.put(&shard.slots.len()));
        to.put(&shards.iter().map(|shard| shard.used.load(Relaxed)).sum::<usize>());
        let slots = shards.iter().flat_map(|shard| shard.slots.chunks_exact(self.stride));
        slots.filter(|entry| entry[0].load(Relaxed) != 0).for_each(|entry| write(entry, to));
    }

    /// Gives the shards of an empty table the sizes that another one had. They are read before its
    /// entries: these come in the order of their places, and would all crowd at one end of a
    /// smaller table.
    pub(super) fn load_sizes(&self, from: &mut Reader) -> Result<(), Damaged> {
        let mut shards = self.shards.write().expect("lock poisoned");
        for shard in shards.iter_mut() {
            let (wanted, first) = (from.get::<usize>()?, shard.slots.len());
            let mut words = first;
            // No machine has more words of memory.
            while words < wanted.min(1 << 48) {
                words = self.growth.words_after(capacity_of(self.stride, words) * self.stride);
            }
            // A shard grows by less than three times when 13 of 16 slots are in use, and its
            // entries follow: a larger one cannot be.
            if words != wanted || words > first && words as u64 > from.left() {
                return Err(Damaged);
            }
            *shard = Shard::new(self.stride, words)?;
            self.bytes.fetch_add(size_of_val(&*shard.slots) - first * size_of::<u64>(), Relaxed);
        }
        Ok(())
    }

    /// Looks up a batch. For the index of each of the `hashes`, `probe` gets the words of a group
    /// of slots, of which it has to fill the first empty one if the entry is in none. Look-ups that
    /// meet a full group continue when all others are done: by then the next group is in the cache.
    /// `rehash` computes the hash of the entry in a slot.
    #[inline(always)]
    pub(super) fn each(
        &self,
        (stride, hashes, overflow): (usize, &[u64], &mut Overflow),
        rehash: impl Fn(&[AtomicU64]) -> u64,
        mut probe: impl FnMut(usize, &[AtomicU64]) -> Probe,
    ) -> Result<(), StoreFull> {
        debug_assert_eq!(
            stride, self.stride,
            "`stride` is passed so that it is a constant in the loop"
        );
        let Overflow { later, grew } = overflow;
        later.clear();
        let (mut next, mut done) = (0, 0);
        while next < hashes.len() || done < later.len() {
            let shards = self.read();
            let shard = |hash: u64| &shards[shard_of(hash)];
            let prefetch = |hash: u64| shard(hash).prefetch(shard(hash).home(hash), stride);
            // If the table has grown, the groups have other numbers.
            later[done..].iter_mut().for_each(|later| {
                later.group = shard(hashes[later.number]).home(hashes[later.number])
            });
            hashes[next..].iter().take(AHEAD).for_each(|&hash| prefetch(hash));
            let crowded = loop {
                let (number, group) = if next < hashes.len() {
                    if let Some(&ahead) = hashes.get(next + AHEAD) {
                        prefetch(ahead);
                    }
                    next += 1;
                    (next - 1, shard(hashes[next - 1]).home(hashes[next - 1]))
                } else if let Some(&Later { number, group }) = later.get(done) {
                    done += 1;
                    (number, group)
                } else {
                    break None;
                };
                let shard = shard(hashes[number]);
                match probe(number, shard.group(group, stride)) {
                    Probe::Seen => {}
                    Probe::Filled if shard.is_crowded_by_one() => {
                        break Some(shard_of(hashes[number]));
                    }
                    Probe::Filled => {}
                    Probe::Full => {
                        let group = shard.after(group);
                        shard.prefetch(group, stride);
                        later.push(Later { number, group });
                    }
                }
            };
            drop(shards);
            if let Some(number) = crowded {
                self.grow(number, &rehash)?;
                *grew = true;
            }
        }
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Box<[Shard]>> {
        self.shards.read().expect("lock poisoned")
    }

    /// Enlarges a shard, unless another worker has just done so.
    #[cold]
    fn grow(&self, number: usize, rehash: impl Fn(&[AtomicU64]) -> u64) -> Result<(), StoreFull> {
        let mut shards = self.shards.write().expect("lock poisoned");
        let old = &shards[number];
        let used = old.used.load(Relaxed);
        if used < old.limit() {
            return Ok(());
        }
        let new = Shard::new(self.stride, self.growth.words_after(old.capacity * self.stride))?;
        for entry in old.slots.chunks_exact(self.stride).filter(|entry| entry[0].load(Relaxed) != 0)
        {
            let mut group = new.home(rehash(entry));
            loop {
                let mut slots = new.group(group, self.stride).chunks_exact(self.stride);
                if let Some(slot) = slots.find(|slot| slot[0].load(Relaxed) == 0) {
                    slot.iter()
                        .zip(entry)
                        .for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
                    break;
                }
                group = new.after(group);
            }
        }
        new.used.store(used, Relaxed);
        self.bytes.fetch_add(size_of_val(&*new.slots) - size_of_val(&*old.slots), Relaxed);
        shards[number] = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_to_its_bytes_for_an_entry() {
        for (growth, most) in [(Growth::Tight, 15.0), (Growth::Fast, 20.0)] {
            for first in (64..100_000).step_by(37) {
                let mut words = first;
                while words < 1 << 34 {
                    let entries = (words / 16 * 13) as f64;
                    let after = growth.words_after(words);
                    assert!(after > words / 8 * 10, "{growth:?} makes {after} of {words} words");
                    let bytes = (after * size_of::<u64>()) as f64;
                    let large = SHARDS as f64 * entries > 6e6;
                    assert!(
                        !large || bytes <= most * entries,
                        "{growth:?}: {bytes} bytes for {entries} entries"
                    );
                    words = after;
                }
            }
        }
    }
}
