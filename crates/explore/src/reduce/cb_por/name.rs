//! What stands for a happens-before state in a table: 128 bits, or the set of its actions.

use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

use preempt_system::{Fingerprint, HbAction};

use crate::codec::Save;

/// The name of a set of actions.
pub(crate) trait Name: Clone + Debug + Default + Eq + Hash + Save {
    /// How tables hash it.
    type Hashing: BuildHasher + Default;

    /// The name of the set with one more action.
    fn with(&self, action: &HbAction) -> Self;

    /// The name of the set without one of its actions.
    fn without(&self, action: &HbAction) -> Self;
}

impl Name for Fingerprint {
    type Hashing = BuildHasherDefault<Folded>;

    fn with(&self, action: &HbAction) -> Fingerprint {
        *self ^ action.fingerprint()
    }

    fn without(&self, action: &HbAction) -> Fingerprint {
        *self ^ action.fingerprint()
    }
}

/// The actions themselves, in ascending order: no two states have the same name. For tests, and
/// where a collision is unacceptable.
pub(super) type Exact = Vec<HbAction>;

impl Name for Exact {
    type Hashing = BuildHasherDefault<DefaultHasher>;

    fn with(&self, action: &HbAction) -> Exact {
        let mut all = self.clone();
        let at = all.binary_search(action).expect_err("an action is done once");
        all.insert(at, action.clone());
        all
    }

    fn without(&self, action: &HbAction) -> Exact {
        let mut all = self.clone();
        let at = all.binary_search(action).expect("only what was done is taken back");
        all.remove(at);
        all
    }
}

/// A fingerprint is as good as random: its halves are folded, no more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u128(&mut self, value: u128) {
        self.0 ^= value as u64 ^ (value >> 64) as u64;
    }
}
