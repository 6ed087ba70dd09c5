//! Vector clocks in one contiguous allocation.
//!
//! A happens-before graph creates clocks at its end and removes them from its end, several for
//! every step of a search. With rows of equal length, creating a clock is a copy, joining needs no
//! length check, and removing a clock is a truncation. A row is as long as the highest thread so
//! far requires and never shrinks, because a search meets the same threads again.

use crate::clock::{Epoch, VectorClock};
use crate::thread::ThreadId;

/// The number of threads for which a row grows at once.
const LANES: usize = 4;

/// A table of vector clocks, one per row: for each thread, the number of its steps that the clock
/// includes.
#[derive(Clone, Debug)]
pub(crate) struct ClockTable {
    times: Vec<[u32; LANES]>,
    /// The number of rows.
    len: u32,
    /// The length of a row in groups of [`LANES`].
    stride: usize,
}

impl Default for ClockTable {
    fn default() -> ClockTable {
        ClockTable { times: Vec::new(), len: 0, stride: 1 }
    }
}

impl ClockTable {
    /// The clock in `row`.
    #[inline]
    pub(crate) fn get(&self, row: u32) -> ClockRow<'_> {
        let from = row as usize * self.stride;
        ClockRow(self.times[from..from + self.stride].as_flattened())
    }

    /// The number of steps of `thread` that the clock in `row` includes.
    #[inline]
    pub(crate) fn time(&self, row: u32, thread: ThreadId) -> u32 {
        self.get(row).time(thread)
    }

    /// Appends a copy of row `like`, or a row that includes no step. Returns its index.
    #[inline]
    pub(crate) fn push(&mut self, like: Option<u32>) -> u32 {
        match like {
            Some(like) if self.stride == 1 => self.times.push(self.times[like as usize]),
            Some(like) => {
                let from = like as usize * self.stride;
                self.times.extend_from_within(from..from + self.stride);
            }
            None => self.times.resize(self.times.len() + self.stride, [0; LANES]),
        }
        self.len += 1;
        self.len - 1
    }

    /// Joins row `other` into the last row.
    #[inline]
    pub(crate) fn join(&mut self, other: u32) {
        let last = self.times.len() - self.stride;
        let (before, last) = self.times.split_at_mut(last);
        let from = other as usize * self.stride;
        for (ours, theirs) in last.iter_mut().zip(&before[from..from + self.stride]) {
            for (ours, &theirs) in ours.iter_mut().zip(theirs) {
                *ours = (*ours).max(theirs);
            }
        }
    }

    /// Sets the time of `thread` in the last row.
    #[inline]
    pub(crate) fn set(&mut self, thread: ThreadId, time: u32) {
        if thread.index() >= self.stride * LANES {
            self.widen(thread);
        }
        let from = self.times.len() - self.stride;
        self.times[from..].as_flattened_mut()[thread.index()] = time;
    }

    /// Widens all rows so that `thread` fits.
    #[cold]
    fn widen(&mut self, thread: ThreadId) {
        let stride = thread.index() / LANES + 1;
        let mut times = Vec::with_capacity(self.times.capacity() / self.stride * stride);
        for row in self.times.chunks_exact(self.stride) {
            times.extend_from_slice(row);
            times.resize(times.len() + stride - self.stride, [0; LANES]);
        }
        (self.times, self.stride) = (times, stride);
    }

    /// Removes rows from the end until `rows` are left.
    #[inline]
    pub(crate) fn truncate(&mut self, rows: u32) {
        self.times.truncate(rows as usize * self.stride);
        self.len = self.len.min(rows);
    }
}

/// A vector clock in a table, with the same meaning as a [`VectorClock`].
#[derive(Clone, Copy, Debug)]
pub struct ClockRow<'r>(&'r [u32]);

impl ClockRow<'_> {
    /// The number of steps of `thread` that the clock includes.
    #[inline]
    pub fn time(self, thread: ThreadId) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    /// Whether the clock includes `step`.
    #[inline]
    pub fn includes(self, step: Epoch) -> bool {
        step.time <= self.time(step.thread)
    }

    /// Whether `other`, of the same graph, includes every step of this clock.
    #[inline]
    pub fn at_most(self, other: ClockRow<'_>) -> bool {
        self.0.iter().zip(other.0).all(|(ours, theirs)| ours <= theirs)
    }
}

impl From<ClockRow<'_>> for VectorClock {
    fn from(times: ClockRow<'_>) -> VectorClock {
        times.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_longer_and_stay_what_they_were() {
        let [near, far] = [1, 9].map(ThreadId::new);
        let mut rows = ClockTable::default();
        let first = rows.push(None);
        rows.set(near, 1);
        let second = rows.push(Some(first));
        rows.set(far, 1);
        let third = rows.push(None);
        rows.set(far, 1);
        assert_eq!([first, second, third], [0, 1, 2]);
        assert!(
            !rows.get(first).at_most(rows.get(third)) && rows.get(third).at_most(rows.get(second))
        );
        rows.join(second);
        assert!(
            rows.get(first).at_most(rows.get(third))
                && rows.get(third).includes(Epoch { thread: far, time: 1 })
        );
        assert_eq!(VectorClock::from(rows.get(second)), VectorClock::from(rows.get(third)));
        let mut clock = VectorClock::new();
        clock.tick(near);
        assert_eq!(
            VectorClock::from(rows.get(first)),
            clock,
            "a clock ends with a thread that it knows"
        );
        rows.truncate(second);
        assert_eq!(rows.push(None), second);
        assert_eq!(rows.time(second, near), 0);
    }

    #[test]
    fn rows_of_every_length_are_copied() {
        let mut rows = ClockTable::default();
        // The thread is the first that does not fit into a row of one group, of two, of three.
        for (group, thread) in [0, LANES, 2 * LANES].map(ThreadId::new).into_iter().enumerate() {
            let original = rows.push(None);
            rows.set(thread, 7);
            let copy = rows.push(Some(original));
            rows.set(ThreadId::new(1), 3);
            let times = [original, copy]
                .map(|row| [thread, ThreadId::new(1)].map(|thread| rows.time(row, thread)));
            assert_eq!(times, [[7, 0], [7, 3]], "{} groups", group + 1);
        }
    }
}
