//! Which descriptors are ready in a part of an execution that was never executed.
//!
//! A part contains everything that happens before its steps, and operations on descriptors are
//! totally ordered. So the descriptors are in the same state as after the same number of descriptor
//! operations in the whole execution. If the thread had announced its wait by then, the log says
//! whether it was ready. Otherwise the kernel was not asked, and the part is executed to find out.

use preempt_native_block::Op as OpKind;
use preempt_system::{Choice, ThreadId, ThreadSet};

use crate::program::Need;
use crate::state::State;
use crate::system::Execution;

impl Execution<'_> {
    /// The threads that wait for descriptors which are ready in `state`, the end of a part of the
    /// current execution. Contains only threads on which the next step of `thread` depends.
    pub(crate) fn ready_at(&mut self, state: &State, thread: ThreadId) -> Result<ThreadSet, Need> {
        let next = |thread| self.op_at(thread, state.count(thread));
        let Some(op) = next(thread) else { return Ok(ThreadSet::EMPTY) };
        let waits = |&other: &ThreadId| next(other).is_some_and(|op| op.kind == OpKind::IoWait);
        // A deadline passes only if other threads cannot run, so their waits matter too.
        let relevant: Vec<ThreadId> = match op.is_timed() {
            true => state.started.iter().filter(waits).collect(),
            false => [thread].into_iter().filter(waits).collect(),
        };
        let mut ready = ThreadSet::EMPTY;
        for other in relevant {
            let is_ready = match self.logged_readiness(state, other) {
                Some(is_ready) => is_ready,
                None => self.execute_part(state)?.contains(other),
            };
            if is_ready {
                ready.insert(other);
            }
        }
        Ok(ready)
    }

    /// Whether `thread` could continue in `state` according to the log; `None` if the log does not
    /// say.
    fn logged_readiness(&self, state: &State, thread: ThreadId) -> Option<bool> {
        let mut counts = vec![0; self.slot_count()];
        let (mut operations, part) = (0, self.descriptor_operations(state));
        for at in 0..=self.path().len() {
            if operations == part && counts[thread.index()] == state.count(thread) {
                return Some(self.trace().ready_after(at).contains(thread));
            }
            let Some(choice) = self.path().get(at) else { break };
            let count = &mut counts[choice.thread.index()];
            operations += usize::from(self.uses_descriptors(choice.thread, *count));
            *count += 1;
        }
        None
    }

    /// The number of operations on descriptors in the part that ends in `state`.
    fn descriptor_operations(&self, state: &State) -> usize {
        let of =
            |thread| (0..state.count(thread)).filter(move |&n| self.uses_descriptors(thread, n));
        state.started.iter().map(|thread| of(thread).count()).sum()
    }

    fn uses_descriptors(&self, thread: ThreadId, nth: usize) -> bool {
        let op = self.op_at(thread, nth);
        op.is_some_and(|op| matches!(op.kind, OpKind::Io | OpKind::IoWait))
    }

    /// Executes the part of the current execution that ends in `state`. Returns the threads that
    /// wait for descriptors which are ready then.
    fn execute_part(&mut self, state: &State) -> Result<ThreadSet, Need> {
        let mut counts = vec![0; self.slot_count()];
        let mut part: Vec<Choice> = Vec::new();
        for &choice in self.path() {
            let count = &mut counts[choice.thread.index()];
            if *count < state.count(choice.thread) {
                part.push(choice);
            }
            *count += 1;
        }
        self.ready_after(part)
    }
}
