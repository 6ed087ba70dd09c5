//! The key of a happens-before state in a table: 128 bits, or the set of its actions.

use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

use preempt_system::{Fingerprint, HbAction};

use crate::codec::Save;

/// The name of a set of actions.
pub(crate) trait Name: Clone + Debug + Default + Eq + Hash + Save {
    /// The hasher of tables with these names as keys.
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
        let at = all.binary_search(action).expect_err("an action occurs once in a state");
        all.insert(at, action.clone());
        all
    }

    fn without(&self, action: &HbAction) -> Exact {
        let mut all = self.clone();
        let at = all.binary_search(action).expect("only an action of the state is removed");
        all.remove(at);
        all
    }
}

/// Folds the two halves of a fingerprint, which is uniformly random already.
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

#[cfg(test)]
mod tests {
    use preempt_system::ThreadId;

    use super::*;

    fn names<N: Name>() {
        let action = |thread, time| HbAction {
            thread: ThreadId::new(thread),
            time,
            alternative: 0,
            accesses: Default::default(),
        };
        let [one, two, three] = [action(0, 1), action(1, 1), action(0, 2)];
        let empty = N::default();
        let both = empty.with(&one).with(&two);
        assert_eq!(both, empty.with(&two).with(&one), "the order does not matter");
        assert_eq!(both.without(&one), empty.with(&two));
        assert_eq!(both.without(&two), empty.with(&one));
        assert_eq!(both.without(&two).without(&one), empty);
        let all = [both.clone(), both.with(&three), empty.with(&one), empty.with(&two), empty];
        for (at, name) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|other| other == name), Some(at), "{name:?}");
        }
    }

    #[test]
    fn a_name_stands_for_a_set() {
        names::<Fingerprint>();
        names::<Exact>();
    }
}
