//! Batches of successor states, so that a search can look them up together.

use crate::schedule::Choice;
use crate::thread::ThreadId;

/// Successors of one state that wait to be looked up in the visited set: their packed states, and
/// the steps that led to them.
///
/// `W` is the number of words of a state, or 0 if it is only known at run time. A constant lets the
/// compiler unroll the copies.
#[derive(Clone, Debug)]
pub struct Batch<const W: usize> {
    words: usize,
    count: usize,
    /// The states one after the other. Memory after the first `count` states is scratch space for
    /// [`Batch::draft`].
    states: Vec<u64>,
    choices: Vec<Choice>,
}

impl<const W: usize> Batch<W> {
    /// An empty batch of states of `words` words each.
    pub fn new(words: usize) -> Batch<W> {
        assert!(words > 0 && (W == 0 || W == words), "the width fits");
        Batch { words, count: 0, states: Vec::new(), choices: Vec::new() }
    }

    /// The number of words of a state.
    #[inline(always)]
    pub fn words(&self) -> usize {
        if W == 0 { self.words } else { W }
    }

    /// The number of successors.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the batch has no successors.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all successors and keeps the memory.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// All states, one after the other.
    pub fn states(&self) -> &[u64] {
        &self.states[..self.count * self.words()]
    }

    /// The state of successor `number`.
    #[inline(always)]
    pub fn state(&self, number: usize) -> &[u64] {
        &self.states[number * self.words()..][..self.words()]
    }

    /// The step that led to successor `number`.
    #[inline(always)]
    pub fn choice(&self, number: usize) -> Choice {
        self.choices[number]
    }

    /// Keeps only the successors for whose states `keep` returns true, in their order.
    #[inline(always)]
    pub fn retain(&mut self, mut keep: impl FnMut(&[u64]) -> bool) {
        let (words, mut kept) = (self.words(), 0);
        for number in 0..self.count {
            let state = number * words..(number + 1) * words;
            if keep(&self.states[state.clone()]) {
                self.states.copy_within(state, kept * words);
                self.choices[kept] = self.choices[number];
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Scratch space for the next state. It becomes a successor when it is [kept](Batch::keep); its
    /// previous content is unspecified.
    #[inline(always)]
    pub fn draft(&mut self) -> &mut [u64] {
        if self.choices.len() == self.count {
            self.widen(1);
        }
        let words = self.words();
        &mut self.states[self.count * words..][..words]
    }

    /// Turns the last [draft](Batch::draft) into a successor, reached by `choice`.
    #[inline(always)]
    pub fn keep(&mut self, choice: Choice) {
        self.choices[self.count] = choice;
        self.count += 1;
    }

    /// Lets `write` fill up to `most` successors, each with the step that led to it. `write`
    /// returns how many it filled, and a value that this function returns to its caller.
    #[inline(always)]
    pub fn fill<T>(
        &mut self,
        most: usize,
        write: impl FnOnce(std::slice::ChunksExactMut<'_, u64>, &mut [Choice]) -> (usize, T),
    ) -> T {
        if self.choices.len() - self.count < most {
            self.widen(most);
        }
        let words = self.words();
        let drafts = self.states[self.count * words..].chunks_exact_mut(words);
        let (filled, passed) = write(drafts, &mut self.choices[self.count..]);
        debug_assert!(filled <= most, "no more than there is room for");
        self.count += filled;
        passed
    }

    #[cold]
    fn widen(&mut self, by: usize) {
        let room = (2 * self.count).max(self.count + by).max(256);
        self.choices.resize(room, Choice::of(ThreadId::new(0)));
        self.states.resize(room * self.words(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_or_filled_stays_in_its_order() {
        let choice = |alternative| Choice { thread: ThreadId::new(3), alternative };
        let mut batch = Batch::<2>::new(2);
        for round in 0..300u32 {
            batch.draft().copy_from_slice(&[round.into(), 1]);
            if !round.is_multiple_of(3) {
                batch.keep(choice(round));
            }
            let passed = batch.fill(2, |mut drafts, choices| {
                drafts.next().expect("there is room").copy_from_slice(&[round.into(), 2]);
                choices[0] = choice(round);
                (1, round)
            });
            assert_eq!(passed, round);
        }
        assert_eq!((batch.len(), batch.states().len()), (500, 1000));
        let expected = (0..300).flat_map(|round: u32| {
            if !round.is_multiple_of(3) { vec![(round, 1), (round, 2)] } else { vec![(round, 2)] }
        });
        for (number, (round, word)) in expected.enumerate() {
            assert_eq!(
                (batch.state(number), batch.choice(number)),
                (&[round.into(), word][..], choice(round))
            );
        }
        batch.clear();
        assert!(batch.is_empty() && batch.states().is_empty());
    }
}
