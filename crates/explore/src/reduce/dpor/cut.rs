//! Cuts: parts of an execution that are closed under happens-before, so that their steps can be
//! executed in the same order without the others.

use preempt_system::HbGraph;
use smallvec::{SmallVec, smallvec};

/// A part of an execution, by the numbers of its steps: one bit for each step of the execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cut(SmallVec<[u64; 2]>);

impl Cut {
    /// An execution without a step and everything that happens after it.
    pub(super) fn before(graph: &HbGraph, step: usize) -> Cut {
        let mut words: SmallVec<[u64; 2]> = smallvec![0; graph.len().div_ceil(64)];
        words[..step / 64].fill(u64::MAX);
        words[step / 64] = (1 << (step % 64)) - 1;
        graph.not_after(step).for_each(|at| words[at / 64] |= 1 << (at % 64));
        Cut(words)
    }

    /// The intersection of two parts.
    pub(super) fn and(mut self, other: &Cut) -> Cut {
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours &= theirs);
        self
    }

    /// Whether a step is in it.
    #[inline]
    pub(super) fn contains(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// The number of steps that it shares with its execution, from the beginning.
    pub(super) fn common(&self) -> usize {
        let whole = self.0.iter().take_while(|&&word| word == u64::MAX).count();
        whole * 64 + self.0.get(whole).map_or(0, |word| word.trailing_ones() as usize)
    }

    /// Its steps from number `from` of the execution on.
    pub(super) fn steps(&self, from: usize) -> Numbers<'_> {
        let (first, rest) =
            self.0.get(from / 64..).and_then(<[u64]>::split_first).unwrap_or((&0, &[]));
        Numbers { start: from / 64 * 64, word: first & u64::MAX << (from % 64), rest }
    }
}

/// The numbers of some steps, in ascending order.
#[derive(Clone)]
pub(super) struct Numbers<'c> {
    /// The number that the first bit of the word stands for.
    start: usize,
    word: u64,
    rest: &'c [u64],
}

impl Iterator for Numbers<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            let (first, rest) = self.rest.split_first()?;
            (self.start, self.word, self.rest) = (self.start + 64, *first, rest);
        }
        let bit = self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(self.start + bit)
    }
}

#[cfg(test)]
mod tests {
    use preempt_system::{Access, Choice, Footprint, Location, ThreadId};

    use super::*;

    #[test]
    fn a_cut_has_all_that_does_not_happen_after_what_it_is_without() {
        let mut graph = HbGraph::new();
        // Two threads by turns: the first two steps are at one location, all others at places of
        // their thread.
        for at in 0..150 {
            let location = Location(if at < 2 { 0 } else { 1 + at % 2 });
            graph.push(
                Choice::of(ThreadId::new(at as usize % 2)),
                &Footprint::one(location, Access::Write),
            );
        }
        let late = Cut::before(&graph, 140);
        assert_eq!((late.common(), late.steps(0).count()), (140, 145));
        assert_eq!(late.steps(140).collect::<Vec<_>>(), [141, 143, 145, 147, 149]);
        let less = late.and(&Cut::before(&graph, 141));
        assert_eq!((less.common(), less.steps(0).last()), (140, Some(139)));
        let early = less.and(&Cut::before(&graph, 3));
        assert_eq!((early.common(), early.steps(0).count()), (3, 2 + 69));
        assert_eq!(Cut::before(&graph, 0).steps(0).count(), 0);
    }
}
