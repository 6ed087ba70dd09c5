//! States as bytes, on their way to another process.
//!
//! A parcel is a byte for the form and the states:
//!
//! - *Raw*: all bytes of the words, the lowest first.
//! - *Sorted*: the number of states in four bytes, the first state raw, and the
//!   [differences](crate::engine::runs) of the others, in ascending order and without duplicates.
//!   This takes more CPU time and a third to a seventh of the bytes.
//!
//! Parcels come from a network: any bytes are decoded or refused.

use crate::engine::exchange::Form;
use crate::engine::runs::{decode, encode};

const RAW: u8 = 0;
const SORTED: u8 = 1;

/// The parcel of `states`, which are not empty. Sorts them if the form is sorted.
pub(super) fn pack<const W: usize>(form: Form, words: usize, states: &[u64]) -> Vec<u8> {
    match form {
        Form::Raw => {
            let mut bytes = vec![RAW; 1 + 8 * states.len()];
            for (to, word) in bytes[1..].chunks_exact_mut(8).zip(states) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            bytes
        }
        Form::Sorted => {
            let mut order: Vec<&[u64]> = states.chunks_exact(words).collect();
            order.sort_unstable();
            order.dedup();
            let count = u32::try_from(order.len()).expect("a parcel has fewer than 2^32 states");
            let mut bytes = vec![SORTED];
            bytes.extend(count.to_le_bytes());
            bytes.extend(order[0].iter().flat_map(|word| word.to_le_bytes()));
            order.windows(2).for_each(|pair| encode::<W>(pair[0], pair[1], &mut bytes));
            bytes
        }
    }
}

/// Replaces the contents of `states` by those of a parcel. `None` if these bytes are not a parcel
/// of states of `words` words.
pub(super) fn unpack<const W: usize>(
    words: usize,
    parcel: &[u8],
    states: &mut Vec<u64>,
) -> Option<()> {
    states.clear();
    match parcel.split_first()? {
        (&RAW, bytes) => {
            if bytes.is_empty() || !bytes.len().is_multiple_of(8 * words) {
                return None;
            }
            let (bytes, _) = bytes.as_chunks::<8>();
            states.extend(bytes.iter().map(|&word| u64::from_le_bytes(word)));
            Some(())
        }
        (&SORTED, bytes) => {
            let (count, bytes) = bytes.split_first_chunk::<4>()?;
            let (first, bytes) = bytes.split_at_checked(8 * words)?;
            let (first, _) = first.as_chunks::<8>();
            let first: Vec<u64> = first.iter().map(|&word| u64::from_le_bytes(word)).collect();
            decode::<W>(&first, u32::from_le_bytes(*count) as usize, bytes, states)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::pcg::Pcg;

    fn sample(random: &mut Pcg, words: usize) -> Vec<u64> {
        let count = 1 + random.below(200) as usize;
        (0..count * words).map(|_| u64::from(random.below(50)) << random.below(40) | 1).collect()
    }

    #[test]
    fn both_forms_return_the_states() {
        let mut random = Pcg::new(1, 0);
        for round in 0..500 {
            let words = [1, 2, 3, 7][round % 4];
            let states = sample(&mut random, words);
            let mut unpacked = Vec::new();
            let raw = pack::<0>(Form::Raw, words, &states);
            assert_eq!(unpack::<0>(words, &raw, &mut unpacked), Some(()));
            assert_eq!(unpacked, states);
            let sorted = pack::<0>(Form::Sorted, words, &states);
            assert_eq!(unpack::<0>(words, &sorted, &mut unpacked), Some(()));
            let mut expected: Vec<&[u64]> = states.chunks_exact(words).collect();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(unpacked, expected.concat());
        }
    }

    #[test]
    fn random_bytes_and_damaged_parcels_are_unpacked_or_refused() {
        let mut random = Pcg::new(2, 0);
        let mut unpacked = Vec::new();
        let mut check = |words: usize, parcel: &[u8]| {
            if unpack::<0>(words, parcel, &mut unpacked).is_some() {
                assert!(unpacked.len().is_multiple_of(words) && !unpacked.is_empty());
                // Memory is never reserved for more states than there are bytes.
                assert!(unpacked.len() <= words * parcel.len());
            }
        };
        for round in 0..20_000 {
            let words = [1, 2, 3, 7][round % 4];
            let mut bytes: Vec<u8> =
                (0..random.below(120)).map(|_| random.below(256) as u8).collect();
            if let [form, ..] = &mut bytes[..] {
                *form &= 1;
            }
            if let [SORTED, _, count @ .., _] = &mut bytes[..] {
                // Otherwise nearly every count would be too large.
                count.iter_mut().take(3).for_each(|byte| *byte = 0);
            }
            check(words, &bytes);
            let form = if round % 8 < 4 { Form::Raw } else { Form::Sorted };
            let mut parcel = pack::<0>(form, words, &sample(&mut random, words));
            let at = random.below(parcel.len() as u32) as usize;
            parcel[at] ^= 1 << random.below(8);
            check(words, &parcel);
            parcel.truncate(at);
            check(words, &parcel);
        }
    }
}
