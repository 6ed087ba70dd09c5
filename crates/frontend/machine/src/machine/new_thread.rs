//! New threads before their first rest points.

use preempt_system::{Failure, ThreadId};

use super::code::Address;
use super::record::{Off, Recorder};
use super::run::{Halt, Stepper};

/// A new thread before its first rest point.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewThread {
    pub(super) slot: usize,
    /// The address of its code.
    pub(super) entry: Address,
    /// The rest point at its start, if it may fail before the first one: see
    /// [`SlotCode::starts`](super::code::SlotCode::starts).
    pub(super) start: Option<u32>,
}

impl Stepper<'_> {
    /// Runs the threads that were just created to their first rest points.
    pub(super) fn start_spawned<R: Recorder>(
        &mut self,
        state: &mut [u64],
        recorder: &mut R,
    ) -> Result<(), Halt> {
        let mut next = 0;
        while let Some(&new) = self.spawned.get(next) {
            next += 1;
            self.run_to_first_rest(state, new, recorder)?;
        }
        self.spawned.clear();
        Ok(())
    }

    /// Runs a thread to its first rest point. A thread that would fail on the way stays at its
    /// start: failing is its first step. So it neither hides an error of the thread that created it
    /// nor is hidden by one.
    pub(super) fn run_to_first_rest<R: Recorder>(
        &mut self,
        state: &mut [u64],
        new: NewThread,
        recorder: &mut R,
    ) -> Result<(), Halt> {
        let thread = ThreadId::new(new.slot);
        let Some(start) = new.start else {
            return self.run(state, thread, new.entry, recorder);
        };
        self.before_start.clear();
        self.before_start.extend_from_slice(state);
        match self.run(state, thread, new.entry, recorder) {
            Err(Halt::Failed(_)) => {
                // It has changed only its own variables.
                state.copy_from_slice(&self.before_start);
                let fits = self.machine.slots[new.slot].counter.set(state, i64::from(start));
                debug_assert!(fits, "a counter holds all rest points");
                Ok(())
            }
            other => other,
        }
    }

    /// The failure of a step that created threads before it failed. Threads that fail before their
    /// first rest points could do so first: each of these failures is an alternative of the step,
    /// after its own failure.
    #[cold]
    pub(super) fn first_failure(&mut self, state: &[u64], own: Box<Failure>) -> Halt {
        let mut failures = vec![own];
        for new in std::mem::take(&mut self.spawned) {
            if new.start.is_some()
                && let Err(Halt::Failed(failure)) =
                    self.run(&mut state.to_vec(), ThreadId::new(new.slot), new.entry, &mut Off)
            {
                failures.push(failure);
            }
        }
        if failures.len() == 1 {
            return Halt::Failed(failures.swap_remove(0));
        }
        match self.choose(failures.len() as u32, 0) {
            Ok(nth) => Halt::Failed(failures.swap_remove(nth as usize)),
            Err(halt) => halt,
        }
    }
}
