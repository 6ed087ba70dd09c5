//! The execution that proves a use after free.
//!
//! When a thread frees memory, another thread may have used the memory before, without
//! synchronisation ([`Suspect`]). The steps of the current execution that do not depend on that use
//! are an execution too, and it frees the memory if the last step is among them. After it, the use
//! is a use after free. That execution is run here, outside of the search, and only a use of freed
//! memory that happens in it is reported. The finding has the schedule of the search, whose replay
//! runs the same check again.

use preempt_replay::{Mode, SiteId};
use preempt_system::{Choice, Failure, ThreadId};

use super::{Execution, Phase};
use crate::runtime::freed::Suspect;
use crate::runtime::restart::RestartReason;
use crate::runtime::site;

/// How often the same use of objects created at the same position is checked without a finding.
/// After that, something that the check does not observe is assumed to keep the memory alive.
const MOST_TRIES: u32 = 64;

/// Attempts so far: the positions at which the object was created and used.
pub(super) type CheckedUses = Vec<((SiteId, Option<SiteId>, bool), u32)>;

impl Execution<'_> {
    /// Searches for uses of the memory that the last step freed which could follow that step,
    /// unless the step has failed or its thread was followed ahead.
    #[cold]
    pub(super) fn judge_frees(&mut self) -> Result<(), RestartReason> {
        let suspects = std::mem::take(&mut self.runtime().met.suspects);
        if self.read().verdict.failure.is_some() || self.phase != Phase::Live {
            return Ok(());
        }
        for suspect in suspects {
            let recording = &self.read().recording;
            let schedule = recording.without(&self.path, suspect.thread, suspect.steps);
            let Some(schedule) = schedule else { continue };
            if self.is_tried(&suspect) {
                continue;
            }
            if let Some(failure) = self.witness(&schedule, &suspect)? {
                self.runtime().verdict.failure.get_or_insert(failure);
                break;
            }
        }
        Ok(())
    }

    fn is_tried(&mut self, suspect: &Suspect) -> bool {
        let ops = self.read().recording.history(suspect.thread).ops();
        let at = if suspect.access.is_some() {
            suspect.steps.checked_sub(1)
        } else {
            Some(suspect.steps)
        };
        let used = at.and_then(|at| ops.get(at)).map(|op| op.site);
        let key = (site::id(suspect.site), used, suspect.access.is_some());
        match self.tried.iter_mut().find(|(other, _)| *other == key) {
            Some((_, times)) => {
                *times += 1;
                *times > MOST_TRIES
            }
            None => {
                self.tried.push((key, 1));
                false
            }
        }
    }

    /// Runs these steps and then the use. Returns the use after free, if it happens. The search
    /// finds its state unchanged, but has to start the execution again before its next step.
    fn witness(
        &mut self,
        schedule: &[Choice],
        suspect: &Suspect,
    ) -> Result<Option<Box<Failure>>, RestartReason> {
        let runtime = self.runtime();
        let telling = runtime.notes.step.take();
        let failure = runtime.verdict.failure.take();
        let recording = runtime.recording.save();
        // A report needs these after the step.
        let (order, shown, pointers) =
            (runtime.order.clone(), runtime.notes.values.clone(), runtime.notes.pointers.clone());
        let (panics, moved) = (runtime.verdict.panics.clone(), self.moved);
        self.abandon();
        self.runtime().stop_before = suspect.access.map(|nth| (suspect.thread.index(), nth));
        let found = self.run_witness(schedule, suspect.thread);
        self.abandon();
        self.moved = moved;
        let runtime = self.runtime();
        (runtime.order, runtime.notes.values, runtime.notes.pointers) = (order, shown, pointers);
        (runtime.notes.step, runtime.verdict.failure, runtime.verdict.panics) =
            (telling, failure, panics);
        runtime.recording.restore(recording);
        runtime.stop_before = None;
        self.phase = Phase::Rewound;
        found
    }

    fn run_witness(
        &mut self,
        schedule: &[Choice],
        user: ThreadId,
    ) -> Result<Option<Box<Failure>>, RestartReason> {
        self.runtime().recording.set_mode(Mode::Record);
        self.begin()?;
        for &choice in schedule {
            if !self.read().recording.can_take(choice) {
                return Ok(None);
            }
            self.perform::<false>(choice)?;
        }
        if !self.runtime().verdict.used_after_free {
            let recording = &self.read().recording;
            let first = self.first_choice(user);
            let first = first.filter(|&choice| recording.can_take(choice));
            let Some(choice) = first else { return Ok(None) };
            self.perform::<false>(choice)?;
        }
        let runtime = self.runtime();
        let failure = runtime.verdict.failure.take().filter(|_| runtime.verdict.used_after_free);
        Ok(failure.map(|mut failure| {
            failure.message +=
                "; in the trace below the use comes first, but nothing orders the two: the other \
                 order was run";
            failure
        }))
    }

    fn first_choice(&self, thread: ThreadId) -> Option<Choice> {
        let pending = self.read().recording.ask(thread);
        pending.footprints.first().map(|&(alternative, _)| Choice { thread, alternative })
    }
}
