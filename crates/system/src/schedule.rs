//! Schedules: which thread moved, and which of its alternatives it took.

use crate::thread::{ThreadId, ThreadSet};

/// One step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// The thread that moves.
    pub thread: ThreadId,
    /// The alternative that the thread takes in this state; 0 where it has only one.
    pub alternative: u32,
}

impl Choice {
    /// A step of a thread that has only one alternative.
    pub const fn of(thread: ThreadId) -> Choice {
        Choice { thread, alternative: 0 }
    }
}

/// The steps of an execution in order. Program and schedule together determine the execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schedule(pub Vec<Choice>);

impl Schedule {
    /// The steps in order.
    pub fn steps(&self) -> &[Choice] {
        &self.0
    }

    /// How many times the running thread changes.
    pub fn switches(&self) -> usize {
        self.0.windows(2).filter(|w| w[0].thread != w[1].thread).count()
    }
}

/// Counts the preemptions of an execution step by step.
///
/// A step of `t` is a *preemption* iff another thread was running and is still enabled. The running
/// thread is the one that took the last step; before the first step it is the thread that spawned
/// the others, if the program starts with one. Switching away from a thread that is blocked or has
/// ended is not a preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Preemptions {
    last: Option<ThreadId>,
    count: u32,
}

impl Preemptions {
    /// No preemptions yet, at the start of an execution in which `running` is the running thread.
    pub fn starting_with(running: Option<ThreadId>) -> Preemptions {
        Preemptions { last: running, count: 0 }
    }

    /// Whether a step of `thread`, in a state in which the threads `enabled` can step, would be a
    /// preemption.
    #[inline]
    pub fn would_preempt(&self, thread: ThreadId, enabled: ThreadSet) -> bool {
        self.last.is_some_and(|last| last != thread && enabled.contains(last))
    }

    /// Records a step of `thread` from a state in which the threads `enabled` could step.
    #[inline]
    pub fn step(&mut self, thread: ThreadId, enabled: ThreadSet) {
        self.count += u32::from(self.would_preempt(thread, enabled));
        self.last = Some(thread);
    }

    /// The number of preemptions so far.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_switch_from_a_thread_that_can_run_counts() {
        let [a, b] = [ThreadId::new(0), ThreadId::new(1)];
        let both = ThreadSet::first(2);
        let only_b = ThreadSet::EMPTY.with(b);
        let mut p = Preemptions::default();
        p.step(a, both);
        assert_eq!(p.count(), 0, "the first step preempts nobody");
        p.step(a, both);
        p.step(b, both);
        assert_eq!(p.count(), 1);
        p.step(a, ThreadSet::EMPTY.with(a));
        assert_eq!(p.count(), 1, "b was blocked");
        p.step(b, only_b);
        assert_eq!(p.count(), 1, "a had ended");
    }

    #[test]
    fn the_first_switch_counts_if_a_thread_was_running() {
        let [a, b] = [ThreadId::new(0), ThreadId::new(1)];
        let preemptions = |running, first, enabled| {
            let mut p = Preemptions::starting_with(running);
            p.step(first, enabled);
            p.count()
        };
        let both = ThreadSet::first(2);
        assert_eq!(preemptions(Some(a), b, both), 1);
        assert_eq!(preemptions(Some(a), a, both), 0);
        assert_eq!(preemptions(Some(a), b, ThreadSet::EMPTY.with(b)), 0, "a waits for b");
        assert_eq!(preemptions(None, b, both), 0);
    }
}
