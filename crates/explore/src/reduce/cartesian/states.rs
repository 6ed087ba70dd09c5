//! The states of the prefixes of one vector, by number.

/// The index of the state to which a vector belongs.
pub(super) const START: u32 = 0;

/// The states, one after the other. `W` is the number of their words, 0 if it is only known at run
/// time.
pub(super) struct States<const W: usize> {
    words: usize,
    count: u32,
    /// The words beyond `count` states are free memory.
    states: Vec<u64>,
}

impl<const W: usize> States<W> {
    pub(super) fn new(words: usize) -> States<W> {
        debug_assert!(W == 0 || W == words, "the width fits");
        States { words, count: 0, states: vec![0; 64 * words] }
    }

    #[inline(always)]
    fn words(&self) -> usize {
        if W == 0 { self.words } else { W }
    }

    /// Removes all states; `state` becomes the [first](START).
    pub(super) fn begin(&mut self, state: &[u64]) {
        let words = self.words();
        self.states[..words].copy_from_slice(&state[..words]);
        self.count = 1;
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> &[u64] {
        &self.states[number as usize * self.words()..][..self.words()]
    }

    /// A copy of a state to step in place. It is overwritten unless it is [kept](States::keep).
    #[inline(always)]
    pub(super) fn draft(&mut self, from: u32) -> &mut [u64] {
        let words = self.words();
        let (from, to) = (from as usize * words, self.count as usize * words);
        if to + words > self.states.len() {
            self.states.resize(2 * self.states.len(), 0);
        }
        let (old, new) = self.states.split_at_mut(to);
        new[..words].copy_from_slice(&old[from..from + words]);
        &mut new[..words]
    }

    /// The number that the draft will have.
    #[inline(always)]
    pub(super) fn drafted(&self) -> u32 {
        self.count
    }

    /// The draft becomes a state.
    #[inline(always)]
    pub(super) fn keep(&mut self) -> u32 {
        self.count = self.count.checked_add(1).expect("a vector has fewer than 2^32 states");
        self.count - 1
    }

    /// The hash of the first state. States with equal hashes are compared, so it only has to be
    /// fast and well distributed.
    pub(super) fn hash_of_start(&self) -> u64 {
        self.get(START).iter().enumerate().fold(0, |hash, (at, &word)| hash ^ scatter(at, word))
    }

    /// The hash of state `to`, computed from that of state `from` and the words that differ.
    #[inline(always)]
    pub(super) fn hash_after(&self, mut hash: u64, from: u32, to: u32) -> u64 {
        for (at, (&old, &new)) in self.get(from).iter().zip(self.get(to)).enumerate() {
            if old != new {
                hash ^= scatter(at, old) ^ scatter(at, new);
            }
        }
        hash
    }

    pub(super) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<u64>()
    }
}

#[inline(always)]
fn scatter(at: usize, word: u64) -> u64 {
    let mixed = (word ^ (at as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_by_what_changed_is_the_hash() {
        let mut states = States::<0>::new(3);
        states.begin(&[1, 2, 3]);
        let first = states.hash_of_start();
        states.draft(START).copy_from_slice(&[1, 7, 3]);
        let second = states.keep();
        states.draft(second)[0] = 5;
        let third = states.keep();
        let hash = states.hash_after(states.hash_after(first, START, second), second, third);
        let mut other = States::<0>::new(3);
        other.begin(&[5, 7, 3]);
        assert_eq!(hash, other.hash_of_start());
        assert_ne!(hash, first);
    }
}
