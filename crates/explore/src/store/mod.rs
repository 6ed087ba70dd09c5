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
}

/// An empty store for states of `words` words and for `jobs` workers.
pub(crate) fn build(kind: StoreKind, words: usize, jobs: usize) -> Result<Box<dyn Visited>, StoreFull> {
    // A state of one word is no larger than its fingerprint or than the root of its tree.
    let exact = kind == StoreKind::Exact || words == 1 && matches!(kind, StoreKind::Tree | StoreKind::Fingerprint);
    Ok(match kind {
        _ if exact => match words {
            1 => Box::new(exact::Word::new(jobs)?),
            2 => Box::new(exact::Words::<2>::new(words, jobs)?),
            3 => Box::new(exact::Words::<3>::new(words, jobs)?),
            4 => Box::new(exact::Words::<4>::new(words, jobs)?),
            _ => Box::new(exact::Words::<0>::new(words, jobs)?),
        },
        StoreKind::Exact => unreachable!("exact stores were built above"),
        StoreKind::Tree => Box::new(tree::Tree::new(words, jobs)?),
        StoreKind::Fingerprint => match words {
            2 => Box::new(fingerprint::Fingerprints::<2>::new(words, jobs)?),
            3 => Box::new(fingerprint::Fingerprints::<3>::new(words, jobs)?),
            4 => Box::new(fingerprint::Fingerprints::<4>::new(words, jobs)?),
            _ => Box::new(fingerprint::Fingerprints::<0>::new(words, jobs)?),
        },
        StoreKind::Bitstate { bytes } => Box::new(bitstate::Bits::new(words, bytes)?),
    })
}
