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
struct Shard {
    slots: Slots,
    groups: usize,
    /// The number of slots.
    capacity: usize,
    /// The number of slots in use.
    used: AtomicUsize,
}

/// Slots of a group: those that are looked at together, because they are in one or two cache lines.
#[inline(always)]
const fn slots_of_group(stride: usize) -> usize {
    if stride > LINE { 1 } else { LINE / stride }
}

/// The shard that `hash` belongs to.
#[inline(always)]
fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

impl Shard {
    fn new(stride: usize, capacity: usize) -> Result<Shard, StoreFull> {
        let words = Slots::words_for(capacity.checked_mul(stride).ok_or(StoreFull)?);
        let slots = Slots::zeroed(words).ok_or(StoreFull)?;
        let groups = words / (slots_of_group(stride) * stride);
        Ok(Shard { groups, capacity: groups * slots_of_group(stride), slots, used: AtomicUsize::new(0) })
    }

    /// The group in which the search for an entry with this hash begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash << SHARD_BITS) * self.groups as u128) >> u64::BITS) as usize
    }

    /// Where it goes on after a group that is full.
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

    /// Asks for a group.
    #[inline(always)]
    fn expect(&self, group: usize, stride: usize) {
        let words = self.group(group, stride);
        prefetch(&words[0]);
        if words.len() > LINE {
            prefetch(&words[LINE]);
        }
    }

    /// The number of entries from which on the shard is crowded.
    #[inline(always)]
    fn limit(&self) -> usize {
        self.capacity / 16 * 13
    }

    /// Takes note that a slot was filled. Whoever crowds the shard has to call [`Shards::grow`] before it adds more.
    #[inline(always)]
    fn is_crowded_by_one<S: Sharing>(&self) -> bool {
        S::count(&self.used) >= self.limit()
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

/// What a look at a group of slots came to.
pub(super) enum Look {
    /// The entry is there.
    Seen,
    /// The entry was not there and has been put into an empty slot.
    Filled,
    /// The entry is not there and no slot is empty.
    Full,
}

/// A look-up that goes on in another group.
struct Later {
    number: usize,
    group: usize,
}

/// The look-ups of a batch that go on. Scratch memory of a worker.
#[derive(Default)]
pub(super) struct Overflow(Vec<Later>);

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

    /// Looks up a batch. For the number of each of the `hashes`, `look` gets the words of a group of slots, of which it has to
    /// fill the first empty one if the entry is in none. Look-ups that meet a full group go on when all others are done: the
    /// next group has then come from memory. `rehash` is the hash of what is in a slot.
    #[inline(always)]
    pub(super) fn each<S: Sharing>(
        &self,
        (stride, hashes, overflow): (usize, &[u64], &mut Overflow),
        rehash: impl Fn(&[AtomicU64]) -> u64,
        mut look: impl FnMut(usize, &[AtomicU64]) -> Look,
    ) -> Result<(), StoreFull> {
        debug_assert_eq!(stride, self.stride, "a constant, for the sake of the compiler");
        let later = &mut overflow.0;
        later.clear();
        let (mut next, mut done) = (0, 0);
        while next < hashes.len() || done < later.len() {
            let shards = self.read();
            let shard = |hash: u64| &shards[shard_of(hash)];
            let expect = |hash: u64| shard(hash).expect(shard(hash).home(hash), stride);
            // If the table has grown, the groups have other numbers.
            later[done..].iter_mut().for_each(|later| later.group = shard(hashes[later.number]).home(hashes[later.number]));
            hashes[next..].iter().take(AHEAD).for_each(|&hash| expect(hash));
            let crowded = loop {
                let (number, group) = if next < hashes.len() {
                    if let Some(&ahead) = hashes.get(next + AHEAD) {
                        expect(ahead);
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
                match look(number, shard.group(group, stride)) {
                    Look::Seen => {}
                    Look::Filled if shard.is_crowded_by_one::<S>() => break Some(shard_of(hashes[number])),
                    Look::Filled => {}
                    Look::Full => {
                        let group = shard.after(group);
                        shard.expect(group, stride);
                        later.push(Later { number, group });
                    }
                }
            };
            drop(shards);
            if let Some(number) = crowded {
                self.grow(number, &rehash)?;
            }
        }
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Box<[Shard]>> {
        self.shards.read().expect("nobody panics while a shard grows")
    }

    /// Enlarges a shard, unless somebody else has just done so.
    #[cold]
    fn grow(&self, number: usize, rehash: impl Fn(&[AtomicU64]) -> u64) -> Result<(), StoreFull> {
        let mut shards = self.shards.write().expect("nobody panics while a shard grows");
        let old = &shards[number];
        let used = old.used.load(Relaxed);
        if used < old.limit() {
            return Ok(());
        }
        let capacity = if old.capacity <= SMALL { 2 * old.capacity } else { old.capacity / 8 * 11 };
        let new = Shard::new(self.stride, capacity)?;
        for entry in old.slots.chunks_exact(self.stride).filter(|entry| entry[0].load(Relaxed) != 0) {
            let mut group = new.home(rehash(entry));
            loop {
                let mut slots = new.group(group, self.stride).chunks_exact(self.stride);
                if let Some(slot) = slots.find(|slot| slot[0].load(Relaxed) == 0) {
                    slot.iter().zip(entry).for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
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
