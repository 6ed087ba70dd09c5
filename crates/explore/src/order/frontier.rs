//! The waiting states of a breadth-first search: those of the current level and of the next one.
//!
//! They are stored in chunks, so that workers rarely contend for the lock, and so that the memory
//! of an expanded chunk is reused for the next level: two levels need little more than the memory
//! of the larger one.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::codec::{Reserved, Writer, save_in_place};
use crate::engine::control::SearchControl;
use crate::engine::lock;

/// States of a chunk.
pub(crate) const CHUNK: usize = 1 << 10;

/// Some states, one after the other.
pub(crate) type Chunk = Reserved<u64>;

/// Two levels of chunks.
pub(crate) struct Frontier<'a> {
    words: usize,
    control: &'a SearchControl<'a>,
    level: Mutex<VecDeque<Chunk>>,
    next: Mutex<VecDeque<Chunk>>,
}

save_in_place!(['a] Frontier<'a> { level, next });

impl<'a> Frontier<'a> {
    pub(crate) fn new(words: usize, control: &'a SearchControl<'a>) -> Frontier<'a> {
        Frontier { words, control, level: Mutex::default(), next: Mutex::default() }
    }

    /// Takes a chunk of the level. With one worker the order of states is the order in which they
    /// were found.
    pub(crate) fn take(&self) -> Option<Chunk> {
        let chunk = lock(&self.level).pop_front()?;
        self.control.remove_waiting((chunk.len() / self.words) as u64, size_of_val(&**chunk));
        Some(chunk)
    }

    /// Adds a chunk to the next level.
    pub(crate) fn add(&self, chunk: Chunk) {
        self.control.add_waiting((chunk.len() / self.words) as u64, size_of_val(&**chunk));
        lock(&self.next).push_back(chunk);
    }

    /// Whether all chunks contain whole states. Checked for what a checkpoint contains.
    pub(crate) fn is_whole(&self) -> bool {
        let is_whole = |chunk: &Chunk| !chunk.is_empty() && chunk.len().is_multiple_of(self.words);
        [&self.level, &self.next].iter().all(|chunks| lock(chunks).iter().all(is_whole))
    }

    /// The states of the level, one after the other.
    pub(crate) fn states(&self) -> Vec<u64> {
        lock(&self.level).iter().flat_map(|chunk| chunk.iter().copied()).collect()
    }

    /// The number of states of the level that no worker has taken yet.
    pub(crate) fn left(&self) -> u64 {
        lock(&self.level).iter().map(|chunk| (chunk.len() / self.words) as u64).sum()
    }

    /// The number of states of the next level so far.
    pub(crate) fn waiting(&self) -> u64 {
        lock(&self.next).iter().map(|chunk| (chunk.len() / self.words) as u64).sum()
    }

    /// Writes the states of both levels.
    pub(crate) fn write_states(&self, to: &mut Writer<'_>) {
        for chunks in [&self.level, &self.next] {
            let chunks = lock(chunks);
            to.put(&chunks.iter().map(|chunk| chunk.len()).sum::<usize>());
            chunks.iter().flat_map(|chunk| chunk.iter()).for_each(|&word| to.word(word));
        }
    }

    /// Adds states to this level.
    pub(crate) fn add_to_level(&self, chunk: Chunk) {
        self.control.add_waiting((chunk.len() / self.words) as u64, size_of_val(&**chunk));
        lock(&self.level).push_back(chunk);
    }

    /// Moves to the next level and returns the number of its states. The current level must be
    /// expanded.
    pub(crate) fn advance(&self) -> u64 {
        let (mut level, mut next) = (lock(&self.level), lock(&self.next));
        debug_assert!(level.is_empty(), "a level is expanded before the next one");
        std::mem::swap(&mut *level, &mut *next);
        drop((level, next));
        self.left()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Limits;

    #[test]
    fn chunks_consist_of_whole_states() {
        let control = SearchControl::unobserved(Limits::default());
        for (chunk, is_whole) in [(vec![1, 2, 3, 4], true), (vec![1, 2, 3], false), (vec![], false)]
        {
            let frontier = Frontier::new(2, &control);
            frontier.add(Reserved(vec![1, 2]));
            frontier.add(Reserved(chunk));
            assert_eq!(frontier.is_whole(), is_whole, "the next level");
            frontier.advance();
            assert_eq!(frontier.is_whole(), is_whole, "this level");
        }
    }
}
