//! Which states were met before.
//!
//! A store answers one question, for a batch of states at a time: which of these are new? It is shared by all workers; if
//! several ask about the same state, exactly one of them is told that it is new.

mod bitstate;
mod exact;
mod fingerprint;
mod hash;
mod shards;
mod slots;
mod tree;

use crate::outcome::Omission;
use crate::plan::StoreKind;
use shards::{Overflow, Several, Sharing, Single};

/// A set of states.
pub(crate) trait Visited: Sync {
    /// Adds the states, which lie in `states` one after the other, and leaves in `lookup` which of them were not in the set.
    /// After an error the search has to end.
    fn insert(&self, states: &[u64], lookup: &mut Lookup) -> Result<(), StoreFull>;

    /// The memory of the set.
    fn bytes(&self) -> usize;

    /// What may be wrong with a set to which `states` states were added.
    fn omission(&self, states: u64) -> Omission;
}

/// There is no memory for more states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreFull;

/// The answer of a store, and its scratch memory. Every worker has one.
#[derive(Default)]
pub(crate) struct Lookup {
    /// The numbers of the new states within the batch, ascending.
    pub(crate) fresh: Vec<u32>,
    hashes: Vec<u64>,
    nodes: Vec<u64>,
    overflow: Overflow,
}

/// An empty store for states of `words` words and for `jobs` workers.
pub(crate) fn build(kind: StoreKind, words: usize, jobs: usize) -> Result<Box<dyn Visited>, StoreFull> {
    if jobs == 1 { build_for::<Single>(kind, words, jobs) } else { build_for::<Several>(kind, words, jobs) }
}

fn build_for<S: Sharing>(kind: StoreKind, words: usize, jobs: usize) -> Result<Box<dyn Visited>, StoreFull> {
    Ok(match (kind, words) {
        // A state of one word is no larger than its fingerprint or than the root of its tree.
        (StoreKind::Exact | StoreKind::Tree | StoreKind::Fingerprint, 1) => Box::new(exact::Word::<S>::new(jobs)?),
        (StoreKind::Exact, 2) => Box::new(exact::Words::<S, 2>::new(words, jobs)?),
        (StoreKind::Exact, 3) => Box::new(exact::Words::<S, 3>::new(words, jobs)?),
        (StoreKind::Exact, 4) => Box::new(exact::Words::<S, 4>::new(words, jobs)?),
        (StoreKind::Exact, _) => Box::new(exact::Words::<S, 0>::new(words, jobs)?),
        (StoreKind::Tree, _) => Box::new(tree::Tree::<S>::new(words, jobs)?),
        (StoreKind::Fingerprint, 2) => Box::new(fingerprint::Fingerprints::<S, 2>::new(words, jobs)?),
        (StoreKind::Fingerprint, 3) => Box::new(fingerprint::Fingerprints::<S, 3>::new(words, jobs)?),
        (StoreKind::Fingerprint, 4) => Box::new(fingerprint::Fingerprints::<S, 4>::new(words, jobs)?),
        (StoreKind::Fingerprint, _) => Box::new(fingerprint::Fingerprints::<S, 0>::new(words, jobs)?),
        (StoreKind::Bitstate { bytes }, _) => Box::new(bitstate::Bits::new(words, bytes)?),
    })
}
