//! Vector clocks in one piece of memory, one after the other.
//!
//! A happens-before graph makes clocks at its end and takes them back from there, several for every step of a search. In rows of equal
//! length a clock is made by copying, joined without asking how long the other one is, and forgotten with all that came after it. Rows are
//! as long as the highest thread so far asks for, and never get shorter: a search meets the same threads again.

use crate::clock::{Epoch, VectorClock};
use crate::thread::ThreadId;

/// Threads for which a row has room at once.
const LANES: usize = 4;

/// Rows of times, each a vector clock: for each thread, how many of its steps are known.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    times: Vec<[u32; LANES]>,
    /// How many rows there are.
    len: u32,
    /// Of how many pieces a row is made.
    stride: usize,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { times: Vec::new(), len: 0, stride: 1 }
    }
}

impl Rows {
    /// One of them.
    #[inline]
    pub(crate) fn get(&self, row: u32) -> Times<'_> {
        let from = row as usize * self.stride;
        Times(self.times[from..from + self.stride].as_flattened())
    }

    /// How much of `thread` is known in a row.
    #[inline]
    pub(crate) fn time(&self, row: u32, thread: ThreadId) -> u32 {
        self.get(row).time(thread)
    }

    /// Adds a row like another one, or one that knows nothing. Says which it is.
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

    /// Adds to the last row all that another one knows.
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

    /// Sets how much of `thread` is known in the last row.
    #[inline]
    pub(crate) fn set(&mut self, thread: ThreadId, time: u32) {
        if thread.index() >= self.stride * LANES {
            self.widen(thread);
        }
        let from = self.times.len() - self.stride;
        self.times[from..].as_flattened_mut()[thread.index()] = time;
    }

    /// Makes room for `thread` in all rows.
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

    /// Takes rows back until `rows` are left.
    #[inline]
    pub(crate) fn truncate(&mut self, rows: u32) {
        self.times.truncate(rows as usize * self.stride);
        self.len = self.len.min(rows);
    }
}

/// A vector clock where it is kept. What is said of a [`VectorClock`] holds for it.
#[derive(Clone, Copy, Debug)]
pub struct Times<'r>(&'r [u32]);

impl Times<'_> {
    /// How many steps of `thread` are known.
    #[inline]
    pub fn time(self, thread: ThreadId) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    /// Whether the step is known here.
    #[inline]
    pub fn includes(self, step: Epoch) -> bool {
        step.time <= self.time(step.thread)
    }

    /// Whether `other`, of the same graph, knows all that is known here.
    #[inline]
    pub fn at_most(self, other: Times<'_>) -> bool {
        self.0.iter().zip(other.0).all(|(ours, theirs)| ours <= theirs)
    }
}

impl From<Times<'_>> for VectorClock {
    fn from(times: Times<'_>) -> VectorClock {
        times.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_longer_and_stay_what_they_were() {
        let [near, far] = [1, 9].map(ThreadId::new);
        let mut rows = Rows::default();
        let first = rows.push(None);
        rows.set(near, 1);
        let second = rows.push(Some(first));
        rows.set(far, 1);
        let third = rows.push(None);
        rows.set(far, 1);
        assert_eq!([first, second, third], [0, 1, 2]);
        assert!(!rows.get(first).at_most(rows.get(third)) && rows.get(third).at_most(rows.get(second)));
        rows.join(second);
        assert!(rows.get(first).at_most(rows.get(third)) && rows.get(third).includes(Epoch { thread: far, time: 1 }));
        assert_eq!(VectorClock::from(rows.get(second)), VectorClock::from(rows.get(third)));
        let mut clock = VectorClock::new();
        clock.tick(near);
        assert_eq!(VectorClock::from(rows.get(first)), clock, "a clock ends with a thread that it knows");
        rows.truncate(second);
        assert_eq!(rows.push(None), second);
        assert_eq!(rows.time(second, near), 0);
    }
}
