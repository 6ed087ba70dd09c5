//! Uniform random walk over interleavings: a thread is the likelier the more steps it has left.
//!
//! **Paper.** *Selectively Uniform Concurrency Testing*, ASPLOS 2025 (doi 10.1145/3669940.3707214),
//! its URW.
//!
//! **Guarantees.** None beyond the executions that were drawn; but if no thread ever waits and the
//! numbers of steps are known, every interleaving is as likely as any other: of threads with a and
//! b steps left, a/(a + b) of the interleavings begin with the first.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | events of a thread | `expected`: steps |
//! | remaining events | [`Remaining::left`] |
//!
//! **Deviations.**
//!
//! 1. Steps are counted in all executions so far, and the greatest number is expected; the paper
//!    counts one execution beforehand. The first one is a plain random walk.
//! 2. The remaining steps of a thread that was not started yet are added to those of the thread
//!    that will start it, as observed in earlier executions.
//!
//! **Cost.** Nothing is kept but a few numbers for each thread.

use preempt_system::{Status, System, ThreadId, ThreadSet};

use super::walk::Chooser;
use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::pcg::Pcg;

/// Statistics of a thread slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The most steps that it took in an execution.
    expected: u32,
    /// Its steps in this one.
    taken: u32,
    /// The thread that starts it.
    parent: Option<ThreadId>,
}

save_fields!(Slot { expected, taken, parent });

/// Chooses among the enabled threads by the number of steps that they have left.
pub(crate) struct Remaining {
    slots: Vec<Slot>,
    /// The slots in which there was no thread before the last step.
    vacant: ThreadSet,
}

save_fields!(Remaining { slots, vacant });

impl Remaining {
    pub(crate) fn new(threads: usize) -> Remaining {
        Remaining { slots: vec![Slot::default(); threads], vacant: ThreadSet::EMPTY }
    }

    fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.slots.len()).map(ThreadId::new)
    }

    /// The steps that a thread and those that it will start have left.
    fn left(&self, thread: ThreadId) -> u32 {
        let Slot { expected, taken, .. } = self.slots[thread.index()];
        let to_start = |child: &ThreadId| {
            self.vacant.contains(*child) && self.slots[child.index()].parent == Some(thread)
        };
        let children = self.threads().filter(to_start).map(|child| self.left(child));
        // A slot that is vacant has one parent, and the first thread is not vacant: this ends.
        children.fold(expected.saturating_sub(taken), u32::saturating_add)
    }
}

fn is_vacant<S: System>(cursor: &Cursor<S>, thread: ThreadId) -> bool {
    cursor.pending(thread).status == Status::Vacant
}

impl<S: System> Chooser<S> for Remaining {
    fn fits(&self, fresh: &Remaining) -> bool {
        self.slots.len() == fresh.slots.len()
    }

    fn begin(&mut self, _: &mut Pcg) {
        self.slots.iter_mut().for_each(|slot| slot.taken = 0);
    }

    fn choose(&mut self, cursor: &Cursor<S>, random: &mut Pcg) -> ThreadId {
        self.vacant = self.threads().filter(|&thread| is_vacant(cursor, thread)).collect();
        // An enabled thread has a step left, whatever was expected.
        let left = |thread| self.left(thread).max(1);
        let enabled = cursor.enabled();
        let mut drawn = random.below(enabled.iter().map(left).fold(0, u32::saturating_add));
        let chosen = enabled.iter().find(|&thread| {
            let here = drawn < left(thread);
            drawn = drawn.saturating_sub(left(thread));
            here
        });
        chosen.expect("the number drawn is below the sum")
    }

    fn moved(&mut self, cursor: &Cursor<S>, thread: ThreadId) {
        self.slots[thread.index()].taken += 1;
        for started in self.vacant.iter().filter(|&other| !is_vacant(cursor, other)) {
            self.slots[started.index()].parent = Some(thread);
        }
    }

    fn end(&mut self) {
        for slot in &mut self.slots {
            slot.expected = slot.expected.max(slot.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::model::ModelExecution;
    use crate::toy::Toy;

    #[test]
    fn steps_of_other_threads_do_not_fit() {
        type Execution = ModelExecution<'static, Toy>;
        let fits =
            |threads| Chooser::<Execution>::fits(&Remaining::new(threads), &Remaining::new(3));
        assert!(fits(3) && !fits(2));
    }
}
