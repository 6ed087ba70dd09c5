//! Sets and tables of 128-bit names: of states, of happens-before graphs, of steps from them.
//!
//! Names are uniformly random ([`preempt_system::fingerprint`]), so half of one serves as its hash.
//! Two of a billion things have the same name with a probability below 2·10⁻²¹, so equal names
//! count as equal things.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use preempt_system::fingerprint::Mixer;
use preempt_system::{Choice, Fingerprint};

use crate::codec::save_as;

/// The name of a thing. Two words instead of one of 128 bits, so that a table needs no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name([u64; 2]);

impl Name {
    /// The name of a packed state.
    pub(crate) fn of_state(state: &[u64]) -> Name {
        let mut mixer = Mixer::new();
        state.iter().for_each(|&word| mixer.absorb(word));
        mixer.finish().into()
    }

    /// The name of a step from this thing.
    #[inline]
    pub(crate) fn with(self, choice: Choice) -> Name {
        let mut mixer = Mixer::new();
        self.0.iter().for_each(|&word| mixer.absorb(word));
        mixer.absorb(u64::from(choice.alternative) << 32 | choice.thread.index() as u64);
        mixer.finish().into()
    }

    /// The name of this thing together with a number.
    #[inline]
    pub(crate) fn and(self, number: u64) -> Name {
        let mut mixer = Mixer::new();
        self.0.iter().for_each(|&word| mixer.absorb(word));
        mixer.absorb(number);
        mixer.finish().into()
    }

    /// Bits that the hash does not depend on.
    #[inline]
    pub(crate) fn shard(self) -> usize {
        self.0[1] as usize
    }
}

save_as!(
    Name as Fingerprint,
    |name| Fingerprint(u128::from(name.0[1]) << 64 | u128::from(name.0[0])),
    |form| { Some(form.into()) }
);

impl From<Fingerprint> for Name {
    fn from(fingerprint: Fingerprint) -> Name {
        Name([fingerprint.0 as u64, (fingerprint.0 >> 64) as u64])
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

/// Identity hasher: a [`Name`] is already uniformly random.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only names are hashed, and a name is hashed as one word");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// A table with names as keys.
pub(crate) type NameMap<V> = HashMap<Name, V, BuildHasherDefault<Hashed>>;

/// The memory of a table that has room for `capacity` entries of type `T`: one in eight slots stays
/// empty, and each has a byte of its own.
pub(crate) fn table_bytes<T>(capacity: usize) -> usize {
    capacity * 8 / 7 * (size_of::<T>() + 1)
}
