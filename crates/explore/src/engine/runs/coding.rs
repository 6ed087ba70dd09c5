//! The bytes of a block of sorted states.
//!
//! The first state of a block is in the index of its run. Each of the others is the difference to
//! the state before it:
//!
//! - One word: the difference of the two numbers, which is even because states are odd, without its
//!   lowest bit; seven bits in each byte, the lowest first, with the highest bit of a byte set if
//!   more follow.
//! - Several words: one bit for each word that says whether it differs, in as many bytes as this
//!   needs, then for each word that differs one byte whose bits say which of its bytes differ, and
//!   these bytes. Neighbours in a sorted run differ in few bytes.

use rapidhash::v3::rapidhash_v3;

/// Appends the difference between a state and the one before it, which is smaller.
#[inline(always)]
pub(crate) fn encode<const W: usize>(before: &[u64], state: &[u64], to: &mut Vec<u8>) {
    if W == 1 || state.len() == 1 {
        let mut difference = (state[0] - before[0]) >> 1;
        while difference >= 0x80 {
            to.push(difference as u8 | 0x80);
            difference >>= 7;
        }
        to.push(difference as u8);
    } else {
        encode_words(before, state, to);
    }
}

fn encode_words(before: &[u64], state: &[u64], to: &mut Vec<u8>) {
    let bitmap = to.len();
    to.resize(bitmap + state.len().div_ceil(8), 0);
    for (number, (word, previous)) in state.iter().zip(before).enumerate() {
        if word == previous {
            continue;
        }
        to[bitmap + number / 8] |= 1 << (number % 8);
        let mask = to.len();
        to.push(0);
        let differing = word.to_le_bytes().into_iter().zip(previous.to_le_bytes()).enumerate();
        for (position, (byte, old)) in differing {
            if byte != old {
                to[mask] |= 1 << position;
                to.push(byte);
            }
        }
    }
}

/// Replaces the contents of `states` by `count` states: `first`, and those in `bytes`. `None` if
/// these are not bytes that [`encode`] wrote.
pub(crate) fn decode<const W: usize>(
    first: &[u64],
    count: usize,
    bytes: &[u8],
    states: &mut Vec<u64>,
) -> Option<()> {
    states.clear();
    // Every state but the first has at least one byte.
    if count == 0 || count - 1 > bytes.len() {
        return None;
    }
    states.reserve(count * first.len());
    states.extend_from_slice(first);
    let mut from = bytes.iter();
    if W == 1 || first.len() == 1 {
        let mut last = first[0];
        for _ in 1..count {
            last = last.checked_add(decode_difference(&mut from)?)?;
            states.push(last);
        }
    } else {
        for _ in 1..count {
            decode_words(first.len(), &mut from, states)?;
        }
    }
    from.as_slice().is_empty().then_some(())
}

#[inline(always)]
fn decode_difference(from: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let mut byte = *from.next()?;
    let mut difference = u64::from(byte & 0x7f);
    let mut shift = 7;
    while byte >= 0x80 {
        byte = *from.next()?;
        let bits = u64::from(byte & 0x7f);
        // A difference has at most 63 bits.
        if shift > 56 {
            return None;
        }
        difference |= bits << shift;
        shift += 7;
    }
    difference.checked_mul(2)
}

fn decode_words(
    words: usize,
    from: &mut std::slice::Iter<'_, u8>,
    states: &mut Vec<u64>,
) -> Option<()> {
    let bitmap = from.as_slice().get(..words.div_ceil(8))?;
    *from = from.as_slice()[bitmap.len()..].iter();
    let before = states.len() - words;
    for number in 0..words {
        let mut word = states[before + number];
        if bitmap[number / 8] >> (number % 8) & 1 == 1 {
            let mask = *from.next()?;
            for position in (0..8).filter(|position| mask >> position & 1 == 1) {
                let byte = u64::from(*from.next()?);
                word = word & !(0xff << (8 * position)) | byte << (8 * position);
            }
        }
        states.push(word);
    }
    Some(())
}

/// The checksum of a block's bytes.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    rapidhash_v3(bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_differences_come_back() {
        let states = [1u64, 3, 3 + (1 << 63), u64::MAX - 2, u64::MAX];
        let mut bytes = Vec::new();
        states.windows(2).for_each(|pair| encode::<1>(&pair[..1], &pair[1..], &mut bytes));
        let mut decoded = Vec::new();
        assert_eq!(decode::<1>(&states[..1], states.len(), &bytes, &mut decoded), Some(()));
        assert_eq!(decoded, states);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused() {
        let mut random = 1u64;
        for length in 0..2_000usize {
            let mut byte = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8 | if random & 3 == 0 { 0x80 } else { 0 }
            };
            let bytes: Vec<u8> = (0..length % 40).map(|_| byte()).collect();
            for words in [1, 2, 9] {
                let mut states = Vec::new();
                let first = vec![u64::MAX; words];
                if decode::<0>(&first, 1 + length % 7, &bytes, &mut states).is_some() {
                    assert_eq!(states.len(), (1 + length % 7) * words);
                }
            }
        }
    }
}
