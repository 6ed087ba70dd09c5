//! Sorted runs: immutable sets of states that need one or two bytes for most states.
//!
//! The states of a run are sorted, and each is written as its difference to the one before. States
//! of one search resemble each other, so differences are short. A run is cut into blocks of some
//! thousand states. The first state of every block is kept in an index in memory, so a reader that
//! looks for a state decodes only the block that can contain it.
//!
//! The bytes of a run are in memory, or in a file if memory is short and there is a directory for
//! files ([`space`]). A block that is read from a file is compared with its checksum: a disk that
//! returns other bytes than were written ends the search and never changes its result.

mod coding;
mod space;
mod union;
mod writer;

use std::sync::Arc;

pub(crate) use self::coding::{decode, encode};
pub(crate) use self::space::{RunError, RunSpace};
pub(crate) use self::union::{Union, remove_visited};
pub(crate) use self::writer::RunWriter;

use self::space::{Data, Usage};
use crate::codec::{Damaged, Reader, Writer};

/// The position of a block within its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// The position of its first byte.
    at: u64,
    bytes: u32,
    states: u32,
    checksum: u32,
}

/// A sorted set of states.
pub(crate) struct Run {
    words: usize,
    states: u64,
    data: Data,
    blocks: Vec<Block>,
    /// The first state of every block, one after the other.
    firsts: Vec<u64>,
    usage: Arc<Usage>,
}

impl Run {
    /// The number of states.
    pub(crate) fn states(&self) -> u64 {
        self.states
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The first state of a block.
    #[inline(always)]
    pub(crate) fn first(&self, block: usize) -> &[u64] {
        &self.firsts[block * self.words..][..self.words]
    }

    /// The number of blocks, from `from` on, whose first state is at most `state`.
    fn blocks_up_to(&self, from: usize, state: &[u64]) -> usize {
        let (mut low, mut high) = (from, self.blocks.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.first(middle) <= state {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low - from
    }

    /// Replaces the contents of `states` by the states of a block; `raw` is scratch memory.
    pub(crate) fn read<const W: usize>(
        &self,
        block: usize,
        raw: &mut Vec<u8>,
        states: &mut Vec<u64>,
    ) -> Result<(), RunError> {
        let Block { at, bytes, states: count, checksum } = self.blocks[block];
        let bytes = match &self.data {
            Data::Memory(all) => &all[at as usize..][..bytes as usize],
            Data::File(file) => {
                raw.resize(bytes as usize, 0);
                file.read(at, raw)?;
                if coding::checksum(raw) != checksum {
                    return Err(RunError::Damaged);
                }
                &raw[..]
            }
        };
        let decoded = decode::<W>(self.first(block), count as usize, bytes, states);
        decoded.ok_or(RunError::Damaged)
    }

    /// The bytes of the run in memory.
    pub(crate) fn bytes(&self) -> usize {
        match &self.data {
            Data::Memory(all) => all.len() + self.index_bytes(),
            Data::File(_) => self.index_bytes(),
        }
    }

    /// The bytes of the index.
    fn index_bytes(&self) -> usize {
        size_of_val(&*self.blocks) + size_of_val(&*self.firsts)
    }

    /// Writes the run to a checkpoint.
    pub(crate) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.blocks.len());
        let mut raw = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            to.put(&block.states);
            self.first(number).iter().for_each(|&word| to.word(word));
            to.put(&block.bytes);
            match &self.data {
                Data::Memory(all) => to.bytes(&all[block.at as usize..][..block.bytes as usize]),
                Data::File(file) => {
                    raw.resize(block.bytes as usize, 0);
                    match file.read(block.at, &mut raw) {
                        Ok(()) if coding::checksum(&raw) == block.checksum => to.bytes(&raw),
                        _ => to.fail("a file of spilled states cannot be read back"),
                    }
                }
            }
        }
    }

    /// Reads what [`save`](Run::save) has written. The states are decoded and added one by one, so
    /// that the result is a sorted run whatever the checkpoint contains.
    pub(crate) fn load<const W: usize>(
        from: &mut Reader,
        space: &RunSpace<'_>,
    ) -> Result<Run, Damaged> {
        let words = space.words();
        let (mut raw, mut states, mut first) = (Vec::new(), Vec::new(), vec![0; words]);
        let mut last = vec![0; words];
        let mut run = RunWriter::<W>::new(space);
        for _ in 0..from.count()? {
            let count: u32 = from.get()?;
            for word in &mut first {
                *word = from.word()?;
            }
            raw.resize(from.count()?, 0);
            from.bytes(&mut raw)?;
            decode::<W>(&first, count as usize, &raw, &mut states).ok_or(Damaged)?;
            for state in states.chunks_exact(words) {
                if state[0] & 1 == 0 || state <= &last[..] {
                    return Err(Damaged);
                }
                last.copy_from_slice(state);
                run.push(state).map_err(|_| Damaged)?;
            }
        }
        run.finish().map_err(|_| Damaged)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.usage.remove(self.index_bytes());
        match &self.data {
            Data::Memory(all) => self.usage.remove(all.len()),
            Data::File(file) => self.usage.remove_file(file.length),
        }
    }
}

/// Reads the states of a run in ascending order.
pub(crate) struct RunReader<'r, const W: usize> {
    run: &'r Run,
    /// The block after the one in `states`.
    next_block: usize,
    /// The states of the current block.
    states: Vec<u64>,
    /// The position of the current state in `states`.
    at: usize,
    raw: Vec<u8>,
}

impl<'r, const W: usize> RunReader<'r, W> {
    pub(crate) fn new(run: &'r Run) -> RunReader<'r, W> {
        RunReader { run, next_block: 0, states: Vec::new(), at: 0, raw: Vec::new() }
    }

    #[inline(always)]
    fn words(&self) -> usize {
        if W == 0 { self.run.words } else { W }
    }

    /// The current state, `None` at the end.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<Option<&[u64]>, RunError> {
        if self.at == self.states.len() && !self.load_next()? {
            return Ok(None);
        }
        let words = self.words();
        Ok(Some(&self.states[self.at..][..words]))
    }

    /// The current state, unless it is in a block that is not decoded yet.
    #[inline(always)]
    fn current(&self) -> Option<&[u64]> {
        self.states.get(self.at..self.at + self.words())
    }

    /// Moves to the next state. There must be a current one.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.at += self.words();
    }

    /// Reads the next block, unless there is none.
    #[cold]
    fn load_next(&mut self) -> Result<bool, RunError> {
        if self.next_block == self.run.blocks() {
            return Ok(false);
        }
        self.run.read::<W>(self.next_block, &mut self.raw, &mut self.states)?;
        (self.next_block, self.at) = (self.next_block + 1, 0);
        Ok(true)
    }

    /// Moves forward to the first state that is at least `state`. Blocks without such a state are
    /// not decoded.
    #[inline(always)]
    pub(crate) fn seek(&mut self, state: &[u64]) -> Result<(), RunError> {
        let words = self.words();
        let later = self.next_block < self.run.blocks() && self.run.first(self.next_block) <= state;
        if later {
            self.next_block += self.run.blocks_up_to(self.next_block, state) - 1;
            self.load_next()?;
        }
        while self.current().is_some_and(|current| current < &state[..words]) {
            self.at += words;
        }
        Ok(())
    }
}

impl<const W: usize> RunReader<'_, W> {
    /// Whether the run contains `state`, which is not smaller than that of the call before.
    #[inline(always)]
    pub(crate) fn contains(&mut self, state: &[u64]) -> Result<bool, RunError> {
        self.seek(state)?;
        // If the next greater state is in a later block, there is no current one.
        Ok(self.current().is_some_and(|current| current == state))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Cursor;

    use super::*;

    /// States like those of a program: neighbours are often equal in most words.
    fn states(count: u64, words: usize) -> BTreeSet<Vec<u64>> {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let state = |_| {
            let word = |number: usize| match next() % 4 {
                0 => next(),
                _ => next() % (3 + number as u64),
            };
            let mut state: Vec<u64> = (0..words).map(word).collect();
            state[0] = if words == 1 { state[0] ^ (next() % 50_000) } else { state[0] } | 1;
            state
        };
        (0..count).map(state).collect()
    }

    fn written(space: &RunSpace<'_>, states: &BTreeSet<Vec<u64>>) -> Run {
        let mut run = RunWriter::<0>::new(space);
        states.iter().for_each(|state| run.push(state).expect("there is room"));
        run.finish().expect("there is room")
    }

    fn read<const W: usize>(run: &Run) -> Vec<Vec<u64>> {
        let (mut reader, mut all) = (RunReader::<W>::new(run), Vec::new());
        while let Some(state) = reader.peek().expect("the file is readable") {
            all.push(state.to_vec());
            reader.advance();
        }
        all
    }

    /// Runs `test` with states in memory and with states in files.
    fn in_both(words: usize, test: impl Fn(&RunSpace<'_>)) {
        let directory = std::env::temp_dir();
        test(&RunSpace::new(words, usize::MAX, None));
        test(&RunSpace::new(words, 0, Some(&directory)));
    }

    #[test]
    fn what_is_written_is_read() {
        for words in [1, 2, 3, 5, 17] {
            let expected = states(20_000, words);
            in_both(words, |space| {
                let run = written(space, &expected);
                assert_eq!(run.states(), expected.len() as u64);
                assert!(read::<0>(&run).into_iter().eq(expected.iter().cloned()), "{words}");
                if words == 1 {
                    assert!(read::<1>(&run).into_iter().eq(expected.iter().cloned()));
                }
                drop(run);
                assert_eq!((space.memory(), space.disk()), (0, 0), "nothing is left");
            });
        }
    }

    #[test]
    fn seeking_finds_the_first_state_that_is_not_smaller() {
        for words in [1, 3] {
            let (all, wanted) = (states(20_000, words), states(300, words));
            in_both(words, |space| {
                let run = written(space, &all);
                let mut reader = RunReader::<0>::new(&run);
                for state in &wanted {
                    reader.seek(state).expect("the file is readable");
                    let found = reader.peek().expect("the file is readable").map(<[u64]>::to_vec);
                    assert_eq!(found.as_ref(), all.range(state.clone()..).next(), "{words}");
                }
            });
        }
    }

    #[test]
    fn a_saved_run_is_loaded() {
        for words in [1, 4] {
            let all = states(9_000, words);
            in_both(words, |space| {
                let run = written(space, &all);
                let bytes = Writer::collect(|to| run.save(to));
                let reader = |bytes: &[u8]| {
                    Reader::new(Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64)
                };
                let loaded =
                    Run::load::<0>(&mut reader(&bytes), space).expect("the run is undamaged");
                assert!(read::<0>(&loaded).into_iter().eq(all.iter().cloned()));
                // Whatever is changed, the result is an error or a sorted set of states.
                for at in (0..bytes.len()).step_by(97) {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << (at % 8);
                    if let Ok(run) = Run::load::<0>(&mut reader(&changed), space) {
                        let states = read::<0>(&run);
                        assert!(states.is_sorted_by(|a, b| a < b), "byte {at}");
                        assert!(states.iter().all(|state| state[0] & 1 == 1), "byte {at}");
                    }
                }
            });
        }
    }

    #[test]
    fn a_changed_file_is_damaged() {
        let directory = std::env::temp_dir();
        let space = RunSpace::new(1, 0, Some(&directory));
        let run = written(&space, &states(20_000, 1));
        let Data::File(file) = &run.data else { panic!("there is no memory for it") };
        file.overwrite(run.blocks[1].at + 5, &[0xff, 0xff]);
        let (mut raw, mut block) = (Vec::new(), Vec::new());
        assert_eq!(run.read::<1>(0, &mut raw, &mut block), Ok(()));
        assert_eq!(run.read::<1>(1, &mut raw, &mut block), Err(RunError::Damaged));
    }
}
