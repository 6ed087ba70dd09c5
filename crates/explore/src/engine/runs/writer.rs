//! Writes a run.

use std::sync::Arc;

use super::space::{Data, SpillFile};
use super::{Block, Run, RunError, RunSpace, coding};

/// States of a block with one word; blocks of wider states have fewer, so that decoding one for a
/// single state does not cost more.
const BLOCK_STATES: usize = 1 << 12;

/// The bytes that are written to a file together.
const BUFFER: usize = 1 << 20;

/// A run that is being written. It begins in memory and moves to a file when memory is short.
pub(crate) struct RunWriter<'s, const W: usize> {
    space: &'s RunSpace<'s>,
    file: Option<SpillFile>,
    /// All bytes of the run, or those that are not in the file yet.
    bytes: Vec<u8>,
    /// The bytes of `bytes` that the space counts, because they are in whole blocks.
    counted: usize,
    blocks: Vec<Block>,
    firsts: Vec<u64>,
    last: Vec<u64>,
    states: u64,
    /// The states of the unfinished block, and the position of its first byte in `bytes`.
    block_states: usize,
    block_start: usize,
    block_limit: usize,
}

impl<'s, const W: usize> RunWriter<'s, W> {
    pub(crate) fn new(space: &'s RunSpace<'s>) -> RunWriter<'s, W> {
        let words = space.words();
        RunWriter {
            space,
            file: None,
            bytes: Vec::new(),
            counted: 0,
            blocks: Vec::new(),
            firsts: Vec::new(),
            last: vec![0; words],
            states: 0,
            block_states: 0,
            block_start: 0,
            block_limit: (BLOCK_STATES / words).max(64),
        }
    }

    /// Adds a state that is greater than all before it.
    #[inline(always)]
    pub(crate) fn push(&mut self, state: &[u64]) -> Result<(), RunError> {
        debug_assert!(self.states == 0 || state > &self.last[..], "states are sorted");
        if self.block_states == 0 {
            self.firsts.extend_from_slice(state);
        } else {
            coding::encode::<W>(&self.last, state, &mut self.bytes);
        }
        self.last.copy_from_slice(state);
        self.states += 1;
        self.block_states += 1;
        if self.block_states == self.block_limit { self.end_block() } else { Ok(()) }
    }

    #[cold]
    fn end_block(&mut self) -> Result<(), RunError> {
        let bytes = &self.bytes[self.block_start..];
        let before = self.file.as_ref().map_or(0, |file| file.length);
        self.blocks.push(Block {
            at: before + self.block_start as u64,
            bytes: u32::try_from(bytes.len()).expect("a block is much smaller"),
            states: self.block_states as u32,
            checksum: coding::checksum(bytes),
        });
        self.space.usage.add(bytes.len());
        self.counted += bytes.len();
        (self.block_states, self.block_start) = (0, self.bytes.len());
        if self.file.is_none() && self.space.is_spilling() {
            self.file = Some(self.space.create()?);
            self.write_out()?;
        } else if self.file.is_some() && self.bytes.len() >= BUFFER {
            self.write_out()?;
        }
        Ok(())
    }

    /// Moves the finished blocks to the file.
    fn write_out(&mut self) -> Result<(), RunError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append(&self.bytes)?;
        self.space.usage.add_file(self.bytes.len() as u64);
        self.uncount();
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER);
        self.block_start = 0;
        Ok(())
    }

    fn uncount(&mut self) {
        self.space.usage.remove(std::mem::take(&mut self.counted));
    }

    /// The finished run.
    pub(crate) fn finish(mut self) -> Result<Run, RunError> {
        if self.block_states > 0 {
            self.end_block()?;
        }
        self.write_out()?;
        let usage = Arc::clone(&self.space.usage);
        let data = match self.file.take() {
            Some(file) => Data::File(file),
            None => {
                self.bytes.shrink_to_fit();
                Data::Memory(std::mem::take(&mut self.bytes))
            }
        };
        // From here on the run counts its bytes.
        self.counted = 0;
        let (mut blocks, mut firsts) =
            (std::mem::take(&mut self.blocks), std::mem::take(&mut self.firsts));
        blocks.shrink_to_fit();
        firsts.shrink_to_fit();
        let run =
            Run { words: self.space.words(), states: self.states, data, blocks, firsts, usage };
        run.usage.add(run.index_bytes());
        Ok(run)
    }
}

impl<const W: usize> Drop for RunWriter<'_, W> {
    /// An unfinished run is discarded.
    fn drop(&mut self) {
        self.uncount();
        if let Some(file) = &self.file {
            self.space.usage.remove_file(file.length);
        }
    }
}
