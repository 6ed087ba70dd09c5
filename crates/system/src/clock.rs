//! Vector clocks.
//!
//! Time is counted in steps of a thread: its first step has time 1, and 0 means that no step of the
//! thread is known. A step happens before another iff the other's clock
//! [includes](VectorClock::includes) its [`Epoch`], which is a single comparison. Callers decide
//! which steps they join into a clock: only synchronisation, or all dependent steps. The choice
//! gives two different relations, explained in [`crate::hb`].
//!
//! Invariant: the last stored component is not 0. Two clocks are therefore equal iff they are the
//! same vector, no matter how many threads existed when they were made, and equality and hashing
//! can be derived.

use std::fmt;

use smallvec::SmallVec;

use crate::thread::ThreadId;

/// One step, identified by its thread and the time on that thread's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// The thread that took the step.
    pub thread: ThreadId,
    /// The number of the step within its thread, from 1. An epoch of time 0 is before everything.
    pub time: u32,
}

/// For each thread, how many of its steps are known.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct VectorClock(SmallVec<[u32; 6]>);

impl Clone for VectorClock {
    /// Like the derived implementation, but copies the slice at once instead of element by element.
    #[inline]
    fn clone(&self) -> VectorClock {
        VectorClock(SmallVec::from_slice(&self.0))
    }
}

impl VectorClock {
    /// The clock that includes no step.
    pub fn new() -> VectorClock {
        VectorClock::default()
    }

    /// The number of steps of `thread` that are included.
    #[inline]
    pub fn time(&self, thread: ThreadId) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    /// The last step of `thread` that this clock includes. For a thread's own clock this is its
    /// present.
    #[inline]
    pub fn epoch(&self, thread: ThreadId) -> Epoch {
        Epoch { thread, time: self.time(thread) }
    }

    /// Adds the next step of `thread` and returns it.
    #[inline]
    pub fn tick(&mut self, thread: ThreadId) -> Epoch {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, 0);
        }
        let time = &mut self.0[thread.index()];
        *time += 1;
        Epoch { thread, time: *time }
    }

    /// Adds every step that `other` includes.
    #[inline]
    pub fn join(&mut self, other: &VectorClock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (ours, &theirs) in self.0.iter_mut().zip(&other.0) {
            *ours = (*ours).max(theirs);
        }
    }

    /// Whether this clock includes `step`.
    #[inline]
    pub fn includes(&self, step: Epoch) -> bool {
        step.time <= self.time(step.thread)
    }

    /// Whether `other` includes every step of this clock. If neither clock is at most the other,
    /// they are concurrent.
    pub fn at_most(&self, other: &VectorClock) -> bool {
        // The last component is not 0, so a longer clock is not below a shorter one.
        self.0.len() <= other.0.len()
            && self.0.iter().zip(&other.0).all(|(ours, theirs)| ours <= theirs)
    }

    /// Resets to the clock that includes no step, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl FromIterator<u32> for VectorClock {
    /// The clock that includes the first `times[i]` steps of each thread `i`.
    fn from_iter<I: IntoIterator<Item = u32>>(times: I) -> VectorClock {
        let mut clock = VectorClock(times.into_iter().collect());
        let known = clock.0.iter().rposition(|&time| time > 0).map_or(0, |last| last + 1);
        clock.0.truncate(known);
        clock
    }
}

impl fmt::Debug for VectorClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_knows_what_was_joined() {
        let [a, b, far] = [0, 1, 63].map(ThreadId::new);
        let (mut left, mut right) = (VectorClock::new(), VectorClock::new());
        assert!(left.at_most(&right) && left == right);
        left.tick(a);
        let second = left.tick(a);
        let only = right.tick(far);
        assert_eq!((second.time, only.time), (2, 1));
        assert!(!left.at_most(&right) && !right.at_most(&left), "concurrent");
        assert!(!left.includes(only) && left.includes(left.epoch(b)));
        let before = left.clone();
        left.join(&right);
        assert!(
            left.includes(only)
                && left.includes(second)
                && before.at_most(&left)
                && right.at_most(&left)
        );
        right.join(&before);
        assert_eq!(left, right);
    }

    #[test]
    fn a_clock_of_more_threads_equals_one_of_fewer() {
        let (mut left, mut right) = (VectorClock::new(), VectorClock::new());
        left.tick(ThreadId::new(40));
        left.clear();
        left.tick(ThreadId::new(2));
        right.tick(ThreadId::new(2));
        assert_eq!(left, right);
    }
}
