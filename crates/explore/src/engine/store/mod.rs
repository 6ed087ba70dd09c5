//! Stores: sets of visited states.
//!
//! A store answers one question, for a batch of states at a time: which of these are new? It is
//! shared by all workers; if several insert the same state, it is new for exactly one of them.

mod bitstate;
pub(crate) mod entries;
mod exact;
mod fingerprint;
pub(crate) mod hash;
mod shards;
mod slots;
mod tree;
mod wide;

use crate::codec::{Damaged, Reader, SaveInPlace};
use crate::engine::execution::Stop;
use crate::plan::StoreKind;
use crate::plan::coverage::{Limit, Omission};
use entries::Entries;
use shards::{Growth, Overflow};
use wide::WideLookup;

/// A set of states.
pub(crate) trait Visited: SaveInPlace + Entries + Sync {
    /// Adds the states, which lie in `states` one after the other, and leaves in `lookup` which of
    /// them were not in the set. After an error the search has to end.
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull>;

    /// The memory of the set.
    fn bytes(&self) -> usize;

    /// The states that may have been omitted after `states` states were added.
    fn omission(&self, states: u64) -> Omission;
}

/// A checkpoint cannot be loaded, for lack of memory or because it is damaged: both end the search.
impl From<StoreFull> for Damaged {
    fn from(_: StoreFull) -> Damaged {
        Damaged
    }
}

impl From<StoreFull> for Stop {
    fn from(_: StoreFull) -> Stop {
        Stop::Limit(Limit::Memory)
    }
}

/// Reads entries of `stride` words that are `valid`, and adds them in batches. The first word of an
/// entry is not 0.
fn load_entries(
    from: &mut Reader,
    stride: usize,
    valid: impl Fn(&[u64]) -> bool,
    mut add: impl FnMut(&[u64]) -> Result<(), StoreFull>,
) -> Result<(), Damaged> {
    let (mut left, mut batch) = (from.count()?, Vec::new());
    while left > 0 {
        batch.clear();
        for _ in 0..left.min(LOADED) {
            let entry = batch.len();
            for _ in 0..stride {
                batch.push(from.word()?);
            }
            if batch[entry] == 0 || !valid(&batch[entry..]) {
                return Err(Damaged);
            }
        }
        left -= left.min(LOADED);
        add(&batch)?;
    }
    Ok(())
}

/// Entries that are added together.
const LOADED: usize = 256;

/// There is no memory for more states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreFull;

/// The answer of a store, and its scratch memory. Every worker has one for the store that it uses.
#[derive(Default)]
pub(crate) struct Lookup {
    /// The numbers of the new states within the batch, ascending.
    pub(crate) fresh: Vec<u32>,
    hashes: Vec<u64>,
    nodes: Vec<u64>,
    overflow: Overflow,
    wide: WideLookup,
}

impl Lookup {
    /// Whether the store has grown for a batch of this worker since the last call.
    #[inline(always)]
    pub(crate) fn take_growth(&mut self) -> bool {
        self.overflow.take_growth()
    }
}

/// An empty store for states of `words` words and for `jobs` workers.
pub(crate) fn build(
    kind: StoreKind,
    words: usize,
    jobs: usize,
) -> Result<Box<dyn Visited>, StoreFull> {
    Ok(match (kind, words) {
        (StoreKind::Exact, 1) => Box::new(exact::Word::new(Growth::Fast, jobs)?),
        // A state of one word is no larger than its fingerprint or than the root of its tree.
        (StoreKind::Tree | StoreKind::Fingerprint, 1) => {
            Box::new(exact::Word::new(Growth::Tight, jobs)?)
        }
        (StoreKind::Exact, 2) => Box::new(exact::Words::<2>::new(jobs)?),
        (StoreKind::Exact, 3) => Box::new(exact::Words::<3>::new(jobs)?),
        (StoreKind::Exact, 4) => Box::new(exact::Words::<4>::new(jobs)?),
        (StoreKind::Exact, _) => Box::new(wide::Wide::new(words, jobs)?),
        (StoreKind::Tree, _) => Box::new(tree::Tree::new(words, jobs)?),
        (StoreKind::Fingerprint, 2) => Box::new(fingerprint::Fingerprints::<2>::new(words, jobs)?),
        (StoreKind::Fingerprint, 3) => Box::new(fingerprint::Fingerprints::<3>::new(words, jobs)?),
        (StoreKind::Fingerprint, 4) => Box::new(fingerprint::Fingerprints::<4>::new(words, jobs)?),
        (StoreKind::Fingerprint, _) => Box::new(fingerprint::Fingerprints::<0>::new(words, jobs)?),
        (StoreKind::Sorted, _) => unreachable!("a sorted search has no table"),
        (StoreKind::Bitstate { bytes }, _) => Box::new(bitstate::Bits::new(words, bytes)?),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    const KINDS: [StoreKind; 4] = [
        StoreKind::Exact,
        StoreKind::Tree,
        StoreKind::Fingerprint,
        StoreKind::Bitstate { bytes: 1 << 24 },
    ];

    /// State number `i`: words that are often equal to those of others, many of them 0, and with
    /// the lowest bit set.
    fn state(i: u64, words: usize) -> Vec<u64> {
        let digit = |word: usize| i / 7u64.pow(word as u32) % 7 * 0x1_0000_0002;
        let mut state: Vec<u64> = (0..words).map(digit).collect();
        state[words - 1] = (i / 7u64.pow(words as u32 - 1)) << 20;
        state[0] |= 1;
        state
    }

    /// The numbers below `n` in an order of the worker's own.
    fn order(n: u64, worker: u64) -> impl Iterator<Item = u64> {
        let step = [1, 7_919, 104_729, 611_953][worker as usize % 4];
        (0..n).map(move |i| (i * step + worker * 17) % n)
    }

    #[test]
    fn every_state_is_new_once_however_many_bring_it() {
        const N: u64 = 60_000;
        for (kind, words, jobs) in KINDS.iter().flat_map(|&kind| {
            [1, 2, 3, 4, 5, 9].iter().flat_map(move |&w| [1, 2, 4].map(|j| (kind, w, j)))
        }) {
            let store = build(kind, words, jobs).expect("there is memory");
            let fresh: Vec<Vec<u64>> = thread::scope(|scope| {
                let work = |worker: u64| {
                    let (store, mut lookup, mut fresh) = (&store, Lookup::default(), Vec::new());
                    let numbers: Vec<u64> =
                        order(N, worker).flat_map(|i| [i, (i + 1) % N]).collect();
                    for batch in numbers.chunks(1 + 37 * (worker as usize + 1)) {
                        let states: Vec<u64> =
                            batch.iter().flat_map(|&i| state(i, words)).collect();
                        store.insert(&states, &mut lookup).expect("there is memory");
                        assert!(lookup.fresh.is_sorted());
                        fresh.extend(lookup.fresh.iter().map(|&at| batch[at as usize]));
                    }
                    fresh
                };
                let workers: Vec<_> =
                    (0..jobs as u64).map(|worker| scope.spawn(move || work(worker))).collect();
                workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
            });
            let all: Vec<u64> = fresh.concat();
            let distinct: BTreeSet<u64> = all.iter().copied().collect();
            assert_eq!(
                (all.len(), distinct.len()),
                (N as usize, N as usize),
                "{kind:?} {words} {jobs}"
            );
        }
    }

    #[test]
    fn large_tables_lose_nothing_when_they_grow() {
        // Shards of several huge pages, which have grown many times.
        for (kind, words) in [
            (StoreKind::Exact, 1),
            (StoreKind::Tree, 1),
            (StoreKind::Exact, 3),
            (StoreKind::Tree, 3),
            (StoreKind::Exact, 5),
        ] {
            let store = build(kind, words, 1).expect("there is memory");
            let mut lookup = Lookup::default();
            for round in 0..2 {
                for first in (0..1_500_000u64).step_by(1000) {
                    let states: Vec<u64> = (first..first + 1000)
                        .flat_map(|i| [i << 1 | 1, i, i, 0, i][..words].to_vec())
                        .collect();
                    store.insert(&states, &mut lookup).expect("there is memory");
                    assert_eq!(
                        lookup.fresh.len(),
                        if round == 0 { 1000 } else { 0 },
                        "{kind:?} {words} {first}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_bitstate_array_too_large_to_be_had_is_no_panic() {
        assert!(build(StoreKind::Bitstate { bytes: 1 << 55 }, 1, 1).is_err());
    }
}
