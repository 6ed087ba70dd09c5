//! A hash table in parts that grow one by one.
//!
//! The table is open addressing over slots of a few words; a slot whose first word is 0 is empty. What the words mean is up
//! to the store that uses it. Nothing is ever taken out, so that an entry is absent when the walk from its home meets an
//! empty slot. The walk goes round the cache line of the home first, then on to the next line: at a load of 0.8 and 8 slots in
//! a line, about one look-up in eight needs a second line, and a line is what a look-up costs.
//!
//! **Growing.** A table that doubles as a whole holds the old and the new slots at the same time, three times what it just
//! needed. This one is cut into [`SHARDS`] tables by the highest bits of the hash; each grows alone, so that the extra
//! memory of the move is a small part of the whole. A shard need not have a power of two of slots: the place of an entry
//! is `hash × slots / 2⁶⁴`, which any number allows. Shards grow by 3/8 at a load of 13/16, so that the load of a large table
//! is never below 0.59: at most 13.6 bytes for a state of one word. That place is also monotone in the hash, so that a
//! shard is moved from its front to its end into a new one that is written from its front to its end.
//!
//! **Sharing.** Workers hold the lock for reading during a batch of look-ups and settle slots among themselves with
//! compare-and-swap. The one who fills a shard beyond its load ends its batch there and takes the lock for writing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::{Acquire, Relaxed}};
use std::sync::{RwLock, RwLockReadGuard};

use super::StoreFull;
use super::slots::{Slots, prefetch};

/// The shards are numbered by this many bits of the hash.
const SHARD_BITS: u32 = 4;

/// The number of shards.
const SHARDS: usize = 1 << SHARD_BITS;

/// Up to this number of slots a shard doubles.
const SMALL: usize = 1 << 14;

/// Words of a cache line.
const LINE: usize = 8;

/// The look-up of so many hashes ahead is begun while one is looked up.
const AHEAD: usize = 16;

/// The table.
pub(super) struct Shards {
    shards: RwLock<Box<[Shard]>>,
    /// Words of a slot.
    stride: usize,
    bytes: AtomicUsize,
}

/// One part of it. Aligned so that the counters of two shards are not in one cache line.
#[repr(align(128))]
pub(super) struct Shard {
    slots: Slots,
    /// The number of slots.
    capacity: usize,
    /// The number of slots in use.
    used: AtomicUsize,
}

/// The table, for as long as nobody can grow it.
pub(super) type Reading<'t> = RwLockReadGuard<'t, Box<[Shard]>>;

/// Slots of a cache line, if slots of `stride` words fill it exactly, else 1.
#[inline(always)]
fn line(stride: usize) -> usize {
    if LINE.is_multiple_of(stride) { LINE / stride } else { 1 }
}

/// The shard that `hash` belongs to.
#[inline(always)]
pub(super) fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

impl Shard {
    fn new(stride: usize, capacity: usize) -> Result<Shard, StoreFull> {
        let words = Slots::words_for(capacity.checked_mul(stride).ok_or(StoreFull)?);
        let slots = Slots::zeroed(words).ok_or(StoreFull)?;
        // Whole cache lines only.
        let capacity = words / stride & !(line(stride) - 1);
        Ok(Shard { capacity, slots, used: AtomicUsize::new(0) })
    }

    /// The slot in which the search for an entry with this hash begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash << SHARD_BITS) * self.capacity as u128) >> u64::BITS) as usize
    }

    /// Walks from slot to slot, for an entry with this hash, until `visit` has an answer. Slots have `stride` words; `visit` gets
    /// those of one of them. There is an empty slot in every shard, so that it need not be asked for ever.
    #[inline(always)]
    pub(super) fn walk<T>(&self, hash: u64, stride: usize, mut visit: impl FnMut(&[AtomicU64]) -> Option<T>) -> T {
        let mask = line(stride) - 1;
        let home = self.home(hash);
        let mut first = home & !mask;
        loop {
            for offset in 0..=mask {
                let slot = first + (home + offset & mask);
                if let Some(answer) = visit(&self.slots[slot * stride..][..stride]) {
                    return answer;
                }
            }
            first += mask + 1;
            if first == self.capacity {
                first = 0;
            }
        }
    }

    /// The same for slots of one word, line by line. Within a line, slots have to be filled from the first one on.
    #[inline(always)]
    pub(super) fn walk_lines<T>(&self, hash: u64, mut visit: impl FnMut(&[AtomicU64; LINE]) -> Option<T>) -> T {
        let (lines, _) = self.slots.as_chunks::<LINE>();
        let mut number = self.home(hash) / LINE;
        loop {
            if let Some(answer) = visit(&lines[number]) {
                return answer;
            }
            number += 1;
            if number == lines.len() {
                number = 0;
            }
        }
    }

    /// Takes note that a slot was filled. Whoever gets [`Fill::Crowded`] has to call [`Shards::grow`] before it adds more.
    #[inline(always)]
    pub(super) fn filled<S: Sharing>(&self) -> Fill {
        if S::count(&self.used) < self.capacity / 16 * 13 { Fill::Roomy } else { Fill::Crowded }
    }
}

/// How many workers use a table.
///
/// A locked instruction holds up all later ones until the memory before it has arrived, which costs one worker two thirds
/// of its speed. A single worker has nobody to settle with: it loads and stores. Were it not single after all, it would
/// take a state for new that another one has found too; nothing worse.
pub(super) trait Sharing: Send + Sync + 'static {
    /// Puts `new` into a word that is 0. `Err` with what is there if somebody else was faster.
    fn claim(word: &AtomicU64, new: u64) -> Result<(), u64>;

    /// Adds 1, and returns what was there before.
    fn count(counter: &AtomicUsize) -> usize;
}

/// One worker.
pub(super) struct Single;

impl Sharing for Single {
    #[inline(always)]
    fn claim(word: &AtomicU64, new: u64) -> Result<(), u64> {
        word.store(new, Relaxed);
        Ok(())
    }

    #[inline(always)]
    fn count(counter: &AtomicUsize) -> usize {
        let before = counter.load(Relaxed);
        counter.store(before + 1, Relaxed);
        before
    }
}

/// Several workers.
pub(super) struct Several;

impl Sharing for Several {
    #[inline(always)]
    fn claim(word: &AtomicU64, new: u64) -> Result<(), u64> {
        word.compare_exchange(0, new, Acquire, Acquire).map(|_| ())
    }

    #[inline(always)]
    fn count(counter: &AtomicUsize) -> usize {
        counter.fetch_add(1, Relaxed)
    }
}

/// Whether a shard has room for more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    Roomy,
    Crowded,
}

impl Shards {
    /// An empty table of slots with `stride` words for `jobs` workers.
    pub(super) fn new(stride: usize, jobs: usize) -> Result<Shards, StoreFull> {
        // Every worker may add one entry to a crowded shard before it notices, and one slot at least has to stay empty:
        // 3/16 of the slots have to be more than there are workers.
        let capacity = (8 * (jobs + 1)).next_power_of_two().max(64);
        let shards = (0..SHARDS).map(|_| Shard::new(stride, capacity)).collect::<Result<Box<[_]>, _>>()?;
        let bytes = shards.iter().map(|shard| size_of_val(&*shard.slots)).sum();
        Ok(Shards { shards: RwLock::new(shards), stride, bytes: AtomicUsize::new(bytes) })
    }

    /// The memory of the slots.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Looks the `hashes` up, in their order: `probe` gets the number of each, its shard and the hash, and says whether it
    /// has filled a slot and what that shard answered. `rehash` is the hash of what is in a slot.
    #[inline(always)]
    pub(super) fn each(
        &self,
        hashes: &[u64],
        rehash: impl Fn(&[AtomicU64]) -> u64,
        mut probe: impl FnMut(usize, &Shard, u64) -> Fill,
    ) -> Result<(), StoreFull> {
        let mut next = 0;
        while next < hashes.len() {
            let shards = self.read();
            for &hash in hashes[next..].iter().take(AHEAD) {
                self.expect(&shards, hash);
            }
            let mut crowded = None;
            while let Some(&hash) = hashes.get(next) {
                if let Some(&ahead) = hashes.get(next + AHEAD) {
                    self.expect(&shards, ahead);
                }
                let fill = probe(next, &shards[shard_of(hash)], hash);
                next += 1;
                if fill == Fill::Crowded {
                    crowded = Some(shard_of(hash));
                    break;
                }
            }
            drop(shards);
            if let Some(number) = crowded {
                self.grow(number, &rehash)?;
            }
        }
        Ok(())
    }

    fn read(&self) -> Reading<'_> {
        self.shards.read().expect("nobody panics while a shard grows")
    }

    #[inline(always)]
    fn expect(&self, shards: &[Shard], hash: u64) {
        let shard = &shards[shard_of(hash)];
        prefetch(&shard.slots[shard.home(hash) * self.stride]);
    }

    /// Enlarges a shard, unless somebody else has just done so.
    #[cold]
    fn grow(&self, number: usize, rehash: impl Fn(&[AtomicU64]) -> u64) -> Result<(), StoreFull> {
        let mut shards = self.shards.write().expect("nobody panics while a shard grows");
        let old = &shards[number];
        let used = old.used.load(Relaxed);
        if used < old.capacity / 16 * 13 {
            return Ok(());
        }
        let capacity = if old.capacity <= SMALL { 2 * old.capacity } else { old.capacity / 8 * 11 };
        let new = Shard::new(self.stride, capacity)?;
        for entry in old.slots.chunks_exact(self.stride) {
            if entry[0].load(Relaxed) != 0 {
                new.walk(rehash(entry), self.stride, |slot| {
                    if slot[0].load(Relaxed) != 0 {
                        return None;
                    }
                    for (to, from) in slot.iter().zip(entry) {
                        to.store(from.load(Relaxed), Relaxed);
                    }
                    Some(())
                });
            }
        }
        new.used.store(used, Relaxed);
        self.bytes.fetch_add(size_of_val(&*new.slots) - size_of_val(&*old.slots), Relaxed);
        shards[number] = new;
        Ok(())
    }
}
