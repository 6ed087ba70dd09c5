//! The one hash of this crate: rapidhash v3 over the little-endian bytes of a state's words.
//!
//! Its output is fixed forever, on every machine: fingerprints and the order of a search depend on
//! it.

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, rapidhash_v3_inline};

/// The hash of a state of `W` words; of any number of words if `W` is 0.
#[inline(always)]
pub(crate) fn hash<const W: usize>(state: &[u64]) -> u64 {
    match W {
        1 => of_bytes(&state[0].to_le_bytes()),
        2 => of_bytes(&bytes::<2, 16>(state)),
        3 => of_bytes(&bytes::<3, 24>(state)),
        4 => of_bytes(&bytes::<4, 32>(state)),
        _ => any(state),
    }
}

#[inline(always)]
fn of_bytes(bytes: &[u8]) -> u64 {
    rapidhash_v3_inline::<true, false, false>(bytes, &DEFAULT_RAPID_SECRETS)
}

#[inline(always)]
fn bytes<const W: usize, const B: usize>(state: &[u64]) -> [u8; B] {
    let mut bytes = [0; B];
    for (eight, word) in bytes.chunks_exact_mut(8).zip(&state[..W]) {
        eight.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The buffers on the stack are of two sizes, because clearing the larger one takes longer than
/// hashing a state that fits into the smaller one.
fn any(state: &[u64]) -> u64 {
    match state.len() {
        0..=16 => buffered::<128>(state),
        17..=64 => buffered::<512>(state),
        _ => of_bytes(&state.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()),
    }
}

/// The hash of a state of at most `BYTES` bytes.
#[inline(always)]
fn buffered<const BYTES: usize>(state: &[u64]) -> u64 {
    let mut buffer = [0; BYTES];
    for (eight, word) in buffer.chunks_exact_mut(8).zip(state) {
        eight.copy_from_slice(&word.to_le_bytes());
    }
    of_bytes(&buffer[..8 * state.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_widths_agree_with_the_plain_hash() {
        let state: Vec<u64> =
            (1..=100).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for n in 1..=state.len() {
            let bytes: Vec<u8> = state[..n].iter().flat_map(|w| w.to_le_bytes()).collect();
            assert_eq!(any(&state[..n]), rapidhash::v3::rapidhash_v3(&bytes));
        }
        assert_eq!(hash::<1>(&state[..1]), any(&state[..1]));
        assert_eq!(hash::<2>(&state[..2]), any(&state[..2]));
        assert_eq!(hash::<3>(&state[..3]), any(&state[..3]));
        assert_eq!(hash::<4>(&state[..4]), any(&state[..4]));
    }

    #[test]
    fn the_hash_is_the_same_in_every_release() {
        assert_eq!(hash::<1>(&[1]), 13_745_399_687_937_306_556);
        assert_eq!(hash::<2>(&[1, 2]), 11_783_082_778_459_143_033);
    }
}
