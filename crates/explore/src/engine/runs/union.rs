//! Several runs as one: their union, and what is in none of them.

use super::{Run, RunError, RunReader};

/// The states of some runs within a range, in ascending order and each once.
pub(crate) struct Union<'r, const W: usize> {
    readers: Vec<RunReader<'r, W>>,
    /// The first state after the range.
    end: Option<Vec<u64>>,
}

impl<'r, const W: usize> Union<'r, W> {
    /// The states of `runs` from `start` on and below `end`.
    pub(crate) fn new(
        runs: impl IntoIterator<Item = &'r Run>,
        start: Option<&[u64]>,
        end: Option<&[u64]>,
    ) -> Result<Union<'r, W>, RunError> {
        let mut readers = Vec::new();
        for run in runs {
            if run.blocks() == 0 || end.is_some_and(|end| run.first(0) >= end) {
                continue;
            }
            let mut reader = RunReader::new(run);
            if let Some(start) = start {
                reader.seek(start)?;
            }
            readers.push(reader);
        }
        Ok(Union { readers, end: end.map(<[u64]>::to_vec) })
    }

    /// Appends up to `most` states to `states`. Returns whether there may be more.
    pub(crate) fn take(&mut self, most: usize, states: &mut Vec<u64>) -> Result<bool, RunError> {
        let mut taken = 0;
        while taken < most {
            if self.readers.len() == 1 {
                return self.take_from_last(most - taken, states);
            }
            let Some(least) = self.least()? else { return Ok(false) };
            let at = states.len();
            let state = self.readers[least].peek()?.expect("the least state was peeked");
            if self.end.as_deref().is_some_and(|end| state >= end) {
                return Ok(false);
            }
            states.extend_from_slice(state);
            taken += 1;
            let mut number = 0;
            while number < self.readers.len() {
                let is_same =
                    self.readers[number].peek()?.is_some_and(|other| *other == states[at..]);
                if is_same {
                    self.readers[number].advance();
                }
                if self.readers[number].peek()?.is_none() {
                    self.readers.swap_remove(number);
                } else {
                    number += 1;
                }
            }
        }
        Ok(true)
    }

    /// The reader with the least state.
    #[inline(always)]
    fn least(&mut self) -> Result<Option<usize>, RunError> {
        let mut least: Option<(usize, &[u64])> = None;
        for (number, reader) in self.readers.iter_mut().enumerate() {
            if let Some(state) = reader.peek()?
                && least.is_none_or(|(_, other)| state < other)
            {
                least = Some((number, state));
            }
        }
        Ok(least.map(|(number, _)| number))
    }

    /// The same when one run is left.
    fn take_from_last(&mut self, most: usize, states: &mut Vec<u64>) -> Result<bool, RunError> {
        let reader = &mut self.readers[0];
        for _ in 0..most {
            match reader.peek()? {
                Some(state) if self.end.as_deref().is_none_or(|end| state < end) => {
                    states.extend_from_slice(state);
                    reader.advance();
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Removes from `states`, which are sorted, those that `reader` has. The reader moves forward only,
/// so the states of the next call must be greater.
pub(crate) fn remove_visited<const W: usize>(
    states: &mut Vec<u64>,
    words: usize,
    reader: &mut RunReader<'_, W>,
) -> Result<(), RunError> {
    let words = if W == 0 { words } else { W };
    let (mut kept, mut at) = (0, 0);
    while at < states.len() {
        if !reader.contains(&states[at..][..words])? {
            states.copy_within(at..at + words, kept);
            kept += words;
        }
        at += words;
    }
    states.truncate(kept);
    Ok(())
}
