//! Exact sets of states that share equal parts: tree compression.
//!
//! **Paper.** Laarman, van de Pol, Weber, "Parallel Recursive State Compression for Free" (SPIN
//! 2011), as in LTSmin.
//!
//! **Guarantees.** Exact: two states get the same root iff they are equal, since each node maps
//! pairs to numbers one to one.
//!
//! **Map.** A state is a row of 64-bit words, each a pair of 32-bit leaves. Two neighbouring pairs
//! are each replaced by their number in the table of `pairs`, and the two 32-bit numbers make a new
//! pair; an odd one at the end goes up as it is. When one pair is left it is the root, and the set
//! of `roots` holds 8 bytes for a state of any size. Most steps change few leaves, so that few
//! pairs are new.
//!
//! **Deviations.** 1. Tables grow, so a pair's number cannot be its place in the table; it is
//! stored next to the pair (16 bytes for a pair, but pairs are few compared with states). 2. All
//! nodes are looked up, not only those on the way from a changed leaf to the root: a batch of
//! states is looked up level by level, which hides the latency.
//!
//! **Cost.** 2 × words - 2 look-ups for a state, most of them in the small table
//! of pairs.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::entries::Entries;
use super::exact::insert_words;
use super::hash::hash;
use super::shards::{Growth, Overflow, Probe, Shards};
use super::{Lookup, StoreFull, Visited, load_entries};
use crate::codec::{Damaged, Reader, SaveInPlace, Writer};
use crate::plan::coverage::Omission;

/// The number of the pair (0, 0), which is not in the table because 0 means an empty slot there.
const ZEROS: u64 = 1;

/// The set.
pub(super) struct Tree {
    roots: Shards,
    /// Maps a pair to its number.
    pairs: Shards,
    /// The number of the next new pair.
    next: AtomicU64,
    /// Words of a state.
    words: usize,
}

impl Tree {
    pub(super) fn new(words: usize, jobs: usize) -> Result<Tree, StoreFull> {
        debug_assert!(words > 1, "a state of one word is its own root");
        let next = AtomicU64::new(ZEROS + 1);
        Ok(Tree {
            roots: Shards::new(1, Growth::Tight, jobs)?,
            pairs: Shards::new(2, Growth::Tight, jobs)?,
            next,
            words,
        })
    }

    /// Replaces all `pairs` by their numbers.
    fn number(
        &self,
        pairs: &mut [u64],
        hashes: &mut Vec<u64>,
        overflow: &mut Overflow,
    ) -> Result<(), StoreFull> {
        hashes.clear();
        hashes.extend(pairs.iter().map(|&pair| hash::<1>(&[pair])));
        let rehash = |slot: &[AtomicU64]| hash::<1>(&[slot[0].load(Relaxed)]);
        self.pairs.each((2, hashes, overflow), rehash, |i, group| {
            let (probe, number) =
                if pairs[i] == 0 { (Probe::Seen, ZEROS) } else { self.probe(group, pairs[i]) };
            if !matches!(probe, Probe::Full) {
                pairs[i] = number;
            }
            probe
        })?;
        // Numbers beyond 32 bits would not make pairs. No worker has used one yet: each is used by
        // this very caller first.
        if self.next.load(Relaxed) > u64::from(u32::MAX) { Err(StoreFull) } else { Ok(()) }
    }

    /// The pair of each number. The first two numbers stand for no pair and for zeros.
    fn pairs_by_number(&self) -> Vec<u64> {
        let mut pairs = vec![0; self.next.load(Relaxed) as usize];
        self.pairs.each_entry(|entry| {
            pairs[entry[1].load(Acquire) as usize] = entry[0].load(Relaxed);
        });
        pairs
    }

    /// The state with this root: the pairs of a row are replaced by the numbers that they consist
    /// of, and these by their pairs, until the row is as wide as a state.
    fn state_of(&self, root: u64, pairs: &[u64]) -> Vec<u64> {
        let mut widths = vec![self.words];
        while let Some(&width) = widths.last()
            && width > 1
        {
            widths.push(width.div_ceil(2));
        }
        let mut row = vec![root];
        for &width in widths.iter().rev().skip(1) {
            let mut wider = Vec::with_capacity(width);
            for &pair in &row[..width / 2] {
                wider.push(pairs[(pair >> 32) as usize]);
                wider.push(pairs[pair as u32 as usize]);
            }
            wider.extend_from_slice(&row[width / 2..]);
            row = wider;
        }
        row
    }

    /// The number of a pair that is not 0, if the group has or gets it.
    #[inline(always)]
    fn probe(&self, group: &[AtomicU64], pair: u64) -> (Probe, u64) {
        for slot in group.chunks_exact(2) {
            let (key, number) = (&slot[0], &slot[1]);
            let mut found = key.load(Acquire);
            if found == 0 {
                match key.compare_exchange(0, pair, Acquire, Acquire) {
                    Ok(_) => {
                        let new = self.next.fetch_add(1, Relaxed);
                        number.store(new, Release);
                        return (Probe::Filled, new);
                    }
                    Err(theirs) => found = theirs,
                }
            }
            if found == pair {
                let mut known = number.load(Acquire);
                // The worker that put the pair there is about to number it.
                while known == 0 {
                    spin_loop();
                    known = number.load(Acquire);
                }
                return (Probe::Seen, known);
            }
        }
        (Probe::Full, 0)
    }
}

impl Visited for Tree {
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        let Lookup { fresh, hashes, nodes, overflow, .. } = lookup;
        fresh.clear();
        nodes.clear();
        // By columns: the first words of all states, then the second ones, and so on.
        let count = states.len() / self.words;
        for word in 0..self.words {
            nodes.extend(states.iter().skip(word).step_by(self.words));
        }
        let mut width = self.words;
        while width > 1 {
            let (half, odd) = (width / 2, width % 2);
            self.number(&mut nodes[..2 * half * count], hashes, overflow)?;
            for column in 0..half {
                for row in 0..count {
                    let left = 2 * column * count + row;
                    nodes[column * count + row] = nodes[left] << 32 | nodes[left + count];
                }
            }
            nodes.copy_within(2 * half * count..width * count, half * count);
            width = half + odd;
            nodes.truncate(width * count);
        }
        hashes.clear();
        hashes.extend(nodes.iter().map(|&root| hash::<1>(&[root])));
        insert_words(&self.roots, nodes, (hashes, overflow), |root| hash::<1>(&[root]), fresh)
    }

    fn bytes(&self) -> usize {
        self.roots.bytes() + self.pairs.bytes()
    }

    fn omission(&self, _: u64) -> Omission {
        Omission::Never
    }
}

impl Entries for Tree {
    fn entry_words(&self) -> usize {
        self.words
    }

    fn hash_of(&self, entry: &[u64]) -> u64 {
        hash::<0>(entry)
    }

    fn entry_count(&self) -> u64 {
        self.roots.entries() as u64
    }

    fn each_entry(&self, take: &mut dyn FnMut(&[u64])) {
        let pairs = self.pairs_by_number();
        self.roots.each_entry(|root| take(&self.state_of(root[0].load(Relaxed), &pairs)));
    }

    fn reserve(&self, entries: u64) -> Result<(), StoreFull> {
        self.roots.reserve(entries)
    }

    fn insert_entries(&self, entries: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull> {
        self.insert(entries, lookup)
    }
}

impl SaveInPlace for Tree {
    fn save_contents(&self, to: &mut Writer<'_>) {
        to.put(&self.next.load(Relaxed));
        self.pairs.save(to);
        self.roots.save(to);
    }

    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
        let next = from.get()?;
        self.next.store(next, Relaxed);
        self.pairs.load_sizes(from)?;
        let Lookup { mut fresh, mut hashes, mut overflow, .. } = Lookup::default();
        // A pair without a number is one that another worker is about to number.
        let valid = |pair: &[u64]| (ZEROS + 1..next).contains(&pair[1]);
        load_entries(from, 2, valid, |pairs| {
            hashes.clear();
            hashes.extend(pairs.chunks_exact(2).map(|pair| hash::<1>(&pair[..1])));
            let rehash = |slot: &[AtomicU64]| hash::<1>(&[slot[0].load(Relaxed)]);
            // They keep their numbers.
            self.pairs.each((2, &hashes, &mut overflow), rehash, |i, group| {
                let Some(slot) = group.chunks_exact(2).find(|slot| slot[0].load(Relaxed) == 0)
                else {
                    return Probe::Full;
                };
                slot.iter().zip(&pairs[2 * i..]).for_each(|(to, &from)| to.store(from, Relaxed));
                Probe::Filled
            })
        })?;
        self.roots.load_sizes(from)?;
        load_entries(
            from,
            1,
            |_| true,
            |roots| {
                hashes.clear();
                hashes.extend(roots.iter().map(|&root| hash::<1>(&[root])));
                insert_words(
                    &self.roots,
                    roots,
                    (&hashes, &mut overflow),
                    |root| hash::<1>(&[root]),
                    &mut fresh,
                )?;
                fresh.clear();
                Ok(())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A worker would wait for the number of a pair that has none.
    #[test]
    fn a_pair_without_a_number_is_not_read() {
        let tree = || Tree::new(2, 1).unwrap_or_else(|_| panic!("so little memory can be had"));
        let (written, pair) = (tree(), 0x1234_5678_9abc_def1u64);
        written.insert(&[pair, 5], &mut Lookup::default()).unwrap_or_else(|_| panic!("memory"));
        let mut bytes = Writer::collect(|to| written.save_contents(to));
        let read = |bytes: &[u8]| {
            let mut from = Reader::new(Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64);
            tree().load_contents(&mut from)
        };
        assert_eq!(read(&bytes), Ok(()));
        let at = bytes.windows(8).position(|window| window == pair.to_le_bytes());
        let number = at.expect("the pair is written") + 8;
        bytes[number..number + 8].fill(0);
        assert_eq!(read(&bytes), Err(Damaged));
    }
}
