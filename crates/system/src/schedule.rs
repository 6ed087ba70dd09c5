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

/// The steps of an execution: a *stem*, and a *cycle* that the execution repeats forever after it.
///
/// The cycle is empty unless the execution is infinite. Program and schedule together determine the
/// execution. To execute a schedule is to take its [`steps`](Schedule::steps): the stem, then the
/// cycle once, after which the state is the one at the end of the stem.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schedule {
    /// The stem, then the cycle: everything that executes a schedule takes both in one go.
    steps: Vec<Choice>,
    /// The length of the cycle, at most that of `steps`.
    cycle: usize,
}

impl Schedule {
    /// A finite schedule.
    pub fn new(steps: Vec<Choice>) -> Schedule {
        Schedule { steps, cycle: 0 }
    }

    /// The same steps, of which the last `length` are the cycle.
    ///
    /// # Panics
    ///
    /// If the schedule has fewer steps.
    pub fn with_cycle(self, length: usize) -> Schedule {
        assert!(length <= self.steps.len(), "a cycle consists of steps of its schedule");
        Schedule { cycle: length, ..self }
    }

    /// The stem and then the cycle.
    pub fn steps(&self) -> &[Choice] {
        &self.steps
    }

    /// The steps before the cycle; all steps of a finite schedule.
    pub fn stem(&self) -> &[Choice] {
        &self.steps[..self.steps.len() - self.cycle]
    }

    /// The steps that repeat forever; empty for a finite schedule.
    pub fn cycle(&self) -> &[Choice] {
        &self.steps[self.steps.len() - self.cycle..]
    }

    /// The finite schedule of the first `len` steps.
    ///
    /// # Panics
    ///
    /// If the schedule has fewer steps.
    pub fn prefix(&self, len: usize) -> Schedule {
        Schedule::new(self.steps[..len].to_vec())
    }

    /// The schedule with every step replaced, and a cycle of the same length.
    pub fn map(&self, step: impl FnMut(Choice) -> Choice) -> Schedule {
        Schedule { steps: self.steps.iter().copied().map(step).collect(), cycle: self.cycle }
    }

    /// The number of context switches: changes of the running thread.
    pub fn switches(&self) -> usize {
        self.steps.windows(2).filter(|w| w[0].thread != w[1].thread).count()
    }
}

/// Counts the preemptions of an execution step by step.
///
/// A step of `t` is a *preemption* iff another thread was running and is still enabled. The running
/// thread is the one that took the last step; before the first step it is the thread that spawned
/// the others, if the program starts with one. Switching away from a thread that is blocked or has
/// ended is not a preemption.
///
/// Under weak memory a stale step, which reads an older store than the newest one or stores before
/// it, costs as much as a preemption and is counted with them.
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

    /// Records that the last step ended an operation, and its thread is between two of them: a
    /// switch away from it is not a preemption, as if it had ended.
    #[inline]
    pub fn release(&mut self) {
        self.last = None;
    }

    /// Records that the last step was stale.
    #[inline]
    pub fn stale_step(&mut self) {
        self.count += 1;
    }

    /// The number of preemptions and stale steps so far.
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
        assert_eq!(p.count(), 0, "the first step preempts no thread");
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

    #[test]
    fn a_switch_between_two_operations_does_not_count() {
        let [a, b] = [ThreadId::new(0), ThreadId::new(1)];
        let both = ThreadSet::first(2);
        let mut p = Preemptions::default();
        p.step(a, both);
        p.release();
        p.step(b, both);
        assert_eq!(p.count(), 0);
        p.step(a, both);
        assert_eq!(p.count(), 1, "b is inside of an operation");
    }

    #[test]
    fn a_cycle_is_the_end_of_a_schedule() {
        let choice = |slot| Choice::of(ThreadId::new(slot));
        let finite = Schedule::new(vec![choice(0), choice(1), choice(0), choice(1)]);
        assert_eq!((finite.stem().len(), finite.cycle().len()), (4, 0));
        let lasso = finite.clone().with_cycle(3);
        assert_eq!(lasso.steps(), finite.steps(), "a cycle adds no steps");
        assert_eq!(lasso.stem(), [choice(0)]);
        assert_eq!(lasso.cycle(), [choice(1), choice(0), choice(1)]);
        assert_ne!(lasso, finite);
        assert_eq!(lasso.prefix(4), finite, "a prefix is finite");
        assert_eq!(lasso.map(|_| choice(2)).cycle(), [choice(2); 3]);
    }
}
