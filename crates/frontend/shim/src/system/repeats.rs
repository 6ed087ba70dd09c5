//! Whether the state of an execution repeats.
//!
//! Two questions are answered by comparing states:
//!
//! - *Livelock.* Threads that are all held back get their turns one after the other. If the
//!   execution returns to an earlier state, and every thread that is held back has moved meanwhile,
//!   it can repeat this forever, and the repetition is fair.
//! - *Spinning.* A thread that seems to spin runs alone ([`ahead`](super::ahead)). If it returns to
//!   an earlier state, its loop does not end by itself.
//!
//! States are compared as a whole, by fingerprints: the registers and stacks of the threads, the
//! states of the objects, the memory that the execution has allocated, the values of
//! `lazy_static!`, the number of random words drawn, and, in place of other statics, the results of
//! the threads' last operations. So a loop that counts its rounds never seems to repeat, wherever
//! its counter is inside of the test: on its own stack, on one that it borrows from, or on the
//! heap. State outside of the test (a static of std, a variable that the closure borrows) is not
//! included, and a test must not depend on it.
//!
//! Nothing is concluded where a part of the state is unknown: on machines whose registers are not
//! supported, and if the process has a global allocator that is not an
//! [`Allocator`](crate::alloc::Allocator), so that the heap is not known. Then no livelocks are
//! reported: the execution continues until it ends or reaches the limit of steps.

use std::collections::HashMap;

use preempt_system::fingerprint::Mixer;
use preempt_system::{Fingerprint, ThreadId, ThreadSet};

use super::{Execution, Phase};
use crate::runtime::Runtime;
use crate::runtime::restart::RestartReason;

/// The number of operation results that are compared for each thread of a livelock: as many as the
/// longest round has operations.
const RESULTS: usize = 24;

/// The states of an execution after those steps that left all threads held back.
#[derive(Default)]
pub(super) struct Visited {
    /// The lengths of the path after which states are compared, in ascending order.
    marks: Vec<usize>,
    /// The states there, each with the length of the path and the operation counts of the threads
    /// when it was first reached.
    states: HashMap<Fingerprint, (usize, Vec<u32>)>,
    /// The number of steps after which the execution is known to repeat, and the length of the
    /// period.
    pub(super) repeats: Option<(usize, usize)>,
}

impl Visited {
    /// Removes everything after the first `len` steps.
    pub(super) fn rewind(&mut self, len: usize) {
        self.marks.truncate(self.marks.partition_point(|&mark| mark <= len));
        self.repeats = self.repeats.filter(|&(at, _)| at <= len);
    }

    /// Whether states are compared somewhere.
    pub(super) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether the state is compared after the first `len` steps.
    pub(super) fn is_mark(&self, len: usize) -> bool {
        self.marks.binary_search(&len).is_ok()
    }

    /// Removes the states: in a new execution the objects have other tags.
    pub(super) fn begin(&mut self) {
        self.states.clear();
    }
}

impl Execution<'_> {
    /// Called after a step of a thread that is held back. If all threads that could move are held
    /// back, compares the state with earlier ones.
    ///
    /// The step after which an execution is found to repeat must depend on its steps alone, or a
    /// finding could not be replayed. So registers are recorded from the beginning of the
    /// execution: it is executed again when the first state is to be compared. It is also executed
    /// again after a look-ahead (which depends on other executions), so that all states belong to
    /// one execution.
    #[cold]
    pub(super) fn compare_states(&mut self) -> Result<(), RestartReason> {
        let runtime = self.read();
        if runtime.verdict.failure.is_some() || runtime.recording.only_spinning().is_empty() {
            return Ok(());
        }
        let is_first = !self.visited.has_marks();
        self.visited.marks.push(self.path.len());
        if is_first || self.phase != Phase::Live {
            let suspects = std::mem::take(&mut self.runtime().met.suspects);
            self.catch_up()?;
            self.runtime().met.suspects = suspects;
        } else {
            self.compare(self.path.len());
        }
        Ok(())
    }

    /// Compares the state after the first `len` steps, where the execution is, with earlier ones.
    pub(super) fn compare(&mut self, len: usize) {
        let held = self.read().recording.only_spinning();
        let Some(state) = self.fingerprint(held, self.moved, RESULTS) else { return };
        let counts: Vec<u32> = self.read().recording.state().counts().to_vec();
        let (before, done) =
            self.visited.states.entry(state).or_insert_with(|| (len, counts.clone()));
        if held.iter().all(|thread| done[thread.index()] < counts[thread.index()]) {
            self.visited.repeats = Some((len, len - *before));
        }
    }

    /// The state of the execution after a step of `moved`, from which the threads of `moving`
    /// continue and all others do not move. `None` if it is not known, for example because one of
    /// `moving` has not moved since registers are recorded. The last `results` results of each of
    /// `moving` stand for statics.
    pub(super) fn fingerprint(
        &self,
        moving: ThreadSet,
        moved: ThreadId,
        results: usize,
    ) -> Option<Fingerprint> {
        let Runtime { recording, threads, coroutines, arena, statics, .. } = self.read();
        if !self.sees_heap {
            return None;
        }
        let mut mixer = Mixer::new();
        mixer.absorb(moved.index() as u64);
        mixer.absorb(moving.bits());
        recording.state().absorb(&mut mixer);
        arena.absorb(&mut mixer);
        statics.absorb(&mut mixer);
        for thread in recording.state().started().iter() {
            let slot = thread.index();
            if !moving.contains(thread) {
                if !coroutines.absorb_idle(slot, &mut mixer) {
                    return None;
                }
                continue;
            }
            mixer.absorb(threads[slot].drawn);
            // While steps are repeated, the history extends beyond this state.
            let done = recording.state().count(slot);
            recording.history(thread).outcomes()[..done]
                .iter()
                .rev()
                .take(results)
                .for_each(|outcome| mixer.absorb(outcome.value));
            if !coroutines.absorb(slot, &mut mixer) {
                return None;
            }
        }
        Some(mixer.finish())
    }
}
