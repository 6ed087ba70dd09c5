//! 128-bit fingerprints of sets, and the mixer that computes them.
//!
//! The fingerprint of a set is the exclusive or of the fingerprints of its elements: their order
//! does not matter, and adding an element is the same operation as removing it. This demands more
//! of the mixer than a hash table does. The mixer must not be linear over GF(2): otherwise `h(a) ^
//! h(b) = h(c) ^ h(d)` would follow from `a ^ b = c ^ d`, and two writes by two threads would have
//! the same fingerprint in both orders. No element may be in a set twice, because it would cancel
//! itself.
//!
//! The mixer has two lanes of 64 bits with different keys. Each lane absorbs every word, then
//! multiplies, shifts and folds like the finalisers of MurmurHash3 and SplitMix64. With their
//! constants (the second is Stafford's variant 13), each input bit flips each output bit with
//! probability close to one half. For a given past a lane is a bijection of the word, and for a
//! given word a bijection of the past. Two inputs of equal length that differ in one word therefore
//! differ in both lanes.
//!
//! Fingerprints may be stored and compared across runs and machines: [`VERSION`] identifies the
//! function, and a test pins it.

use std::fmt;
use std::ops::{BitXor, BitXorAssign};

/// Increases whenever the fingerprint of the same set changes.
pub const VERSION: u32 = 1;

/// The fingerprint of a set.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u128);

impl BitXor for Fingerprint {
    type Output = Fingerprint;

    #[inline]
    fn bitxor(self, other: Fingerprint) -> Fingerprint {
        Fingerprint(self.0 ^ other.0)
    }
}

impl BitXorAssign for Fingerprint {
    #[inline]
    fn bitxor_assign(&mut self, other: Fingerprint) {
        self.0 ^= other.0;
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Computes the fingerprint of one element from its words.
#[derive(Clone, Debug)]
pub struct Mixer {
    low: u64,
    high: u64,
}

/// Arbitrary, odd, without small symmetries: digits of the square roots of 2 and 3.
const KEYS: [u64; 2] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b];

impl Mixer {
    /// A mixer that has absorbed nothing.
    #[inline]
    pub const fn new() -> Mixer {
        Mixer { low: KEYS[0], high: KEYS[1] }
    }

    /// Absorbs a word. The order of the words matters.
    #[inline]
    pub const fn absorb(&mut self, word: u64) {
        self.low = murmur(self.low.wrapping_add(KEYS[1]) ^ word);
        self.high = stafford((self.high ^ KEYS[0]).wrapping_add(word.rotate_left(32)));
    }

    /// The fingerprint of the words so far. Each half depends on both lanes.
    #[inline]
    pub const fn finish(&self) -> Fingerprint {
        let low = stafford(self.low ^ self.high.rotate_left(23));
        let high = murmur(self.high.wrapping_add(low));
        Fingerprint((high as u128) << 64 | low as u128)
    }
}

impl Default for Mixer {
    fn default() -> Mixer {
        Mixer::new()
    }
}

#[inline]
const fn murmur(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

#[inline]
const fn stafford(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn of(words: &[u64]) -> Fingerprint {
        let mut mixer = Mixer::new();
        words.iter().for_each(|&word| mixer.absorb(word));
        mixer.finish()
    }

    /// If this fails, raise [`VERSION`].
    #[test]
    fn the_function_is_fixed() {
        assert_eq!(VERSION, 1);
        assert_eq!(of(&[]).0, 0x267d_bffc_f3e2_f72e_1d93_7561_5d7e_6bf2);
        assert_eq!(of(&[1, 2, 3]).0, 0x2680_78b1_b1ad_6658_8e3b_b15a_5e30_378f);
    }

    /// Every input bit flips about half of the output bits, whatever its position.
    #[test]
    fn every_bit_counts() {
        let words = [7, 0, u64::MAX, 1 << 40];
        for (at, bit) in (0..words.len()).flat_map(|at| (0..64).map(move |bit| (at, bit))) {
            let mut other = words;
            other[at] ^= 1 << bit;
            let changed = (of(&words) ^ of(&other)).0.count_ones();
            assert!((36..=92).contains(&changed), "word {at} bit {bit}: {changed} of 128 bits");
        }
    }

    /// Fails for any hash of the form A(a) ^ B(b), and for sums.
    #[test]
    fn pairs_that_cancel_in_a_linear_hash_do_not_here() {
        let mut seen = HashSet::new();
        for (a, b) in (0..64).flat_map(|a| (0..64).map(move |b| (a, b))) {
            assert!(seen.insert(of(&[a, b])), "collision");
            assert_ne!(of(&[a, b]) ^ of(&[a + 1, b + 1]), of(&[a, b + 1]) ^ of(&[a + 1, b]));
        }
        assert_ne!(of(&[0]), of(&[0, 0]), "the length counts");
    }
}
