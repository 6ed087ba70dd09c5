//! Exact sets of wide states: a table of one-word entries, and the states in an arena.
//!
//! A cache line holds less than two states of five or more words. A table of such states would be
//! plain linear probing, at the price of a line or two for each state on the way: at the load at
//! which a shard grows, about three for a state that is there and fifteen for one that is not.
//! Here a table entry is one word, which consists of the upper half of the state's hash and the
//! state's number. Eight entries share a line, and only a state whose entry has the same half of
//! the hash is read.
//!
//! **Looking up** a batch takes three passes, so that no look-up waits for memory that could have
//! been prefetched. The first pass finds entries, takes the state behind an entry with the right
//! half of the hash for the one that is looked up, and prefetches it. The second pass compares
//! these states. The third pass repeats the look-ups that were misled, comparing states as it
//! goes; among n states, a look-up is misled with probability n/2³² at most.
//!
//! **Growing** moves entries and reads no state, since the half of the hash in an entry determines
//! the entry's place.
//!
//! **Sharing.** A worker writes a state to the arena before it publishes the entry with a
//! compare-and-swap (release). A worker that reads the entry (acquire) therefore reads the state
//! that belongs to it. Two workers that bring the same state compete for the same empty slot; the
//! loser reads the winner's entry, compares the states, and uses its number for another state.
//!
//! **Cost.** The words of the state and at most 15 bytes for its entry.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::entries::Entries;
use super::hash::hash;
use super::shards::{Growth, Overflow, Probe, Shards};
use super::slots::{Slots, prefetch};
use super::{Lookup, StoreFull, Visited, load_entries};
use crate::codec::{Damaged, Reader, SaveInPlace, Writer};
use crate::plan::coverage::Omission;

/// The bits of an entry that are the upper half of a hash. The lower half is a number.
const TAG: u64 = !(u32::MAX as u64);

/// The set.
pub(super) struct Wide {
    entries: Shards,
    arena: Arena,
}

/// The number of a state in the arena. 0 is no number, so that no entry is 0.
type Number = u32;

/// The scratch memory of a worker for one [`Wide`].
#[derive(Default)]
pub(super) struct WideLookup {
    /// Numbers of the arena that are this worker's and not used yet.
    reserved: Range<Number>,
    /// Look-ups of the first pass, as indices into the batch, with the numbers of the states that
    /// they found.
    found: Vec<(usize, Number)>,
    /// Look-ups of the third pass, as indices into the batch.
    misled: Vec<usize>,
}

impl Wide {
    pub(super) fn new(words: usize, jobs: usize) -> Result<Wide, StoreFull> {
        Ok(Wide { entries: Shards::new(1, Growth::Tight, jobs)?, arena: Arena::new(words) })
    }

    /// Adds the states of a batch with these indices. `is_it` decides whether the state of a number
    /// is the one at an index.
    #[inline(always)]
    fn add(
        &self,
        states: &[u64],
        indices: impl Fn(usize) -> usize,
        (tags, overflow): (&[u64], &mut Overflow),
        (reserved, fresh): (&mut Range<Number>, &mut Vec<u32>),
        mut is_it: impl FnMut(usize, Number) -> bool,
    ) -> Result<(), StoreFull> {
        let words = self.arena.words;
        let mut is_full = false;
        let rehash = |slot: &[AtomicU64]| slot[0].load(Relaxed) & TAG;
        self.entries.each((1, tags, overflow), rehash, |at, group| {
            let index = indices(at);
            for slot in group {
                let mut entry = slot.load(Acquire);
                if entry == 0 {
                    let state = &states[index * words..][..words];
                    let Ok(number) = self.arena.write(state, reserved) else {
                        // The search ends, so what is said about this state does not matter.
                        is_full = true;
                        return Probe::Seen;
                    };
                    let new = tags[at] | u64::from(number);
                    match slot.compare_exchange(0, new, Release, Acquire) {
                        Ok(_) => {
                            reserved.start += 1;
                            fresh.push(index as u32);
                            return Probe::Filled;
                        }
                        Err(theirs) => entry = theirs,
                    }
                }
                if entry & TAG == tags[at] && is_it(index, entry as Number) {
                    return Probe::Seen;
                }
            }
            Probe::Full
        })?;
        if is_full { Err(StoreFull) } else { Ok(()) }
    }
}

impl Visited for Wide {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, overflow, wide, .. } = lookup;
        let WideLookup { reserved, found, misled } = wide;
        let words = self.arena.words;
        fresh.clear();
        found.clear();
        hashes.clear();
        hashes.extend(states.chunks_exact(words).map(|state| hash::<0>(state) & TAG));
        self.add(
            states,
            |at| at,
            (hashes, overflow),
            (reserved, fresh),
            |index, number| {
                prefetch(&self.arena.state(number)[0]);
                found.push((index, number));
                true
            },
        )?;
        let is_it = |index: usize, number| {
            let state = &states[index * words..][..words];
            self.arena.state(number).iter().zip(state).all(|(a, &b)| a.load(Relaxed) == b)
        };
        misled.clear();
        misled.extend(found.iter().filter(|&&(index, number)| !is_it(index, number)).map(|f| f.0));
        if !misled.is_empty() {
            let tags: Vec<u64> = misled.iter().map(|&index| hashes[index]).collect();
            self.add(states, |at| misled[at], (&tags, overflow), (reserved, fresh), is_it)?;
        }
        fresh.sort_unstable();
        Ok(())
    }

    fn bytes(&self) -> usize {
        // Numbers that are reserved and not used do not count: how many there are depends on the
        // workers, and the memory that a search reports must not.
        self.entries.bytes() + self.entries.entries() * self.arena.words * size_of::<u64>()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}

impl Entries for Wide {
    fn entry_words(&self) -> usize {
        self.arena.words
    }

    fn hash_of(&self, entry: &[u64]) -> u64 {
        hash::<0>(entry)
    }

    fn entry_count(&self) -> u64 {
        self.entries.entries() as u64
    }

    fn each_entry(&self, take: &mut dyn FnMut(&[u64])) {
        let mut state = vec![0; self.arena.words];
        self.entries.each_entry(|entry| {
            let words = self.arena.state(entry[0].load(Acquire) as Number);
            state.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Relaxed));
            take(&state);
        });
    }

    fn reserve(&self, entries: u64) -> Result<(), StoreFull> {
        self.entries.reserve(entries)
    }

    fn insert_entries(&self, entries: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        self.insert(entries, lookup)
    }
}

impl SaveInPlace for Wide {
    fn save_contents(&self, to: &mut Writer<'_>) {
        self.entries.save_each(to, |entry, to| {
            let state = self.arena.state(entry[0].load(Acquire) as Number);
            state.iter().for_each(|word| to.word(word.load(Relaxed)));
        });
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        self.entries.load_sizes(from)?;
        let mut lookup = Lookup::default();
        load_entries(from, self.arena.words, |_| true, |states| self.insert(states, &mut lookup))
    }
}

/// The states of the first chunk. Each further chunk has as many as all before it.
const FIRST: usize = 1 << 10;

/// The chunks of all numbers.
const CHUNKS: usize = (Number::BITS - FIRST.ilog2() + 1) as usize;

/// How many numbers a worker reserves at once, since a counter that all workers change for every
/// new state slows them down.
const RESERVED: usize = 16;

/// States by their numbers.
///
/// A chunk is mapped as a whole, but the operating system provides its pages when they are first
/// written. So the unused rest of the last chunk costs no memory, and states never move.
struct Arena {
    chunks: [OnceLock<Slots>; CHUNKS],
    words: usize,
    /// The first number that no worker has reserved.
    next: AtomicUsize,
}

/// The chunk of a state, and its position there.
#[inline(always)]
fn place_of(number: Number) -> (usize, usize) {
    let number = number as usize;
    match number.checked_ilog2() {
        Some(log) if number >= FIRST => ((log - FIRST.ilog2() + 1) as usize, number - (1 << log)),
        _ => (0, number),
    }
}

impl Arena {
    fn new(words: usize) -> Arena {
        let chunks = std::array::from_fn(|_| OnceLock::new());
        Arena { chunks, words, next: AtomicUsize::new(1) }
    }

    /// The words of a state that was written.
    #[inline(always)]
    fn state(&self, number: Number) -> &[AtomicU64] {
        let (chunk, at) = place_of(number);
        let chunk = self.chunks[chunk].get().expect("the chunk of a state that was written exists");
        &chunk[at * self.words..][..self.words]
    }

    /// Writes a state under the first of the `reserved` numbers, which remains reserved.
    #[inline(always)]
    fn write(&self, state: &[u64], reserved: &mut Range<Number>) -> Result<Number, StoreFull> {
        if reserved.start == reserved.end {
            *reserved = self.reserve()?;
        }
        let slots = self.state(reserved.start);
        slots.iter().zip(state).for_each(|(to, &from)| to.store(from, Relaxed));
        Ok(reserved.start)
    }

    /// Reserves numbers for a worker, in one or two chunks that exist then.
    #[cold]
    fn reserve(&self) -> Result<Range<Number>, StoreFull> {
        let start = self.next.fetch_add(RESERVED, Relaxed);
        let numbers = Number::try_from(start).map_err(|_| StoreFull)?
            ..Number::try_from(start + RESERVED).map_err(|_| StoreFull)?;
        for number in [numbers.start, numbers.end - 1] {
            let (chunk, _) = place_of(number);
            if self.chunks[chunk].get().is_none() {
                let states = if chunk == 0 { FIRST } else { FIRST << (chunk - 1) };
                let words = Slots::words_for(states * self.words);
                let slots = Slots::zeroed(words).ok_or(StoreFull)?;
                // Another worker may have been faster. Then this chunk, which nothing has touched,
                // goes back.
                let _ = self.chunks[chunk].set(slots);
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn numbers_have_places_of_their_own() {
        let mut expected = (0, 0);
        for number in 0..1 << 14 {
            assert_eq!(place_of(number), expected, "{number}");
            expected.1 += 1;
            let states = if expected.0 == 0 { FIRST } else { FIRST << (expected.0 - 1) };
            if expected.1 == states {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(place_of(Number::MAX), (CHUNKS - 1, (1 << 31) - 1));
    }

    /// A look-up whose entry has the tag of another state continues until it finds its own.
    #[test]
    fn states_with_equal_halves_of_their_hashes_are_distinguished() {
        let wide = Wide::new(5, 1).unwrap_or_else(|_| panic!("there is memory"));
        let states: Vec<u64> = (0..40u64).flat_map(|i| [1, i, 0, 0, 0]).collect();
        let (mut lookup, tag) = (WideLookup::default(), 7 << 32);
        let mut overflow = Overflow::default();
        let mut add = |indices: &[usize]| {
            let mut fresh = Vec::new();
            let tags = vec![tag; indices.len()];
            let is_it = |index: usize, number| {
                let state = &states[index * 5..][..5];
                wide.arena.state(number).iter().zip(state).all(|(a, &b)| a.load(Relaxed) == b)
            };
            let batch = (tags.as_slice(), &mut overflow);
            wide.add(&states, |at| indices[at], batch, (&mut lookup.reserved, &mut fresh), is_it)
                .unwrap_or_else(|_| panic!("there is memory"));
            fresh
        };
        assert_eq!(add(&[3, 4, 3]), [3, 4]);
        // More than a group has slots.
        let all: Vec<usize> = (0..40).collect();
        assert_eq!(add(&all).len(), 38);
        assert_eq!(add(&all), [0; 0]);
    }

    #[test]
    fn a_saved_set_is_loaded() {
        let wide = || Wide::new(6, 1).unwrap_or_else(|_| panic!("there is memory"));
        let written = wide();
        let states: Vec<u64> = (0..5_000u64).flat_map(|i| [1, i, 0, i * i, 0, 9]).collect();
        written.insert(&states, &mut Lookup::default()).unwrap_or_else(|_| panic!("memory"));
        let bytes = Writer::collect(|to| written.save_contents(to));
        let read = wide();
        let mut from = Reader::new(Box::new(Cursor::new(bytes.clone())), bytes.len() as u64);
        assert_eq!(read.load_contents(&mut from), Ok(()));
        let mut lookup = Lookup::default();
        read.insert(&states, &mut lookup).unwrap_or_else(|_| panic!("memory"));
        assert_eq!(lookup.fresh, [0; 0]);
        read.insert(&[1, 5_000, 0, 0, 0, 9], &mut lookup).unwrap_or_else(|_| panic!("memory"));
        assert_eq!(lookup.fresh, [0]);
    }
}
