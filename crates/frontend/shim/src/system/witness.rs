//! The execution in which memory is used after it was freed.
//!
//! Where a thread frees memory, a use by another thread may have come before by chance
//! ([`Suspect`]). The steps of the present execution that do not come after that use, in the order
//! of their dependences, are an execution too, and it frees the memory as well if its last step is
//! among them. Then the use follows. That execution is run here, apart from the search, and only a
//! use of freed memory that happens in it is reported. The schedule of the finding is that of the
//! search: its replay comes here again.

use std::panic::Location as Site;

use preempt_system::{Choice, Failure, Status, ThreadId};

use super::Execution;
use crate::runtime::freed::Suspect;
use crate::runtime::needs::Need;
use crate::runtime::op::Act;
use crate::runtime::spin::objects as objects_of;

/// How often the same use of objects made at the same place is tried without finding anything.
/// Whatever keeps that memory alive, no check sees it.
const PATIENCE: u32 = 64;

/// What has been tried: where the object was made, and where it was used.
pub(super) type Tried = Vec<((*const Site<'static>, *const Site<'static>, bool), u32)>;

impl Execution<'_> {
    /// Looks for uses of memory that the last step has freed which can come after it.
    #[cold]
    pub(super) fn judge_frees(&mut self) -> Result<(), Need> {
        let suspects = std::mem::take(&mut self.runtime().met.suspects);
        for suspect in suspects {
            let Some(schedule) = self.without(&suspect) else { continue };
            if self.is_tried(&suspect) {
                continue;
            }
            if let Some(failure) = self.witness(&schedule, &suspect)? {
                self.runtime().failure.get_or_insert(failure);
                break;
            }
        }
        Ok(())
    }

    /// The steps of the present execution that do not depend on the use; `None` if its last step
    /// does.
    fn without(&self, suspect: &Suspect) -> Option<Vec<Choice>> {
        let runtime = self.read();
        let mut steps = vec![0; runtime.threads.len()];
        let mut after = vec![false; runtime.threads.len()];
        // Objects that were used after the use, and those that were changed.
        let (mut used, mut changed): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut schedule = Vec::new();
        for &choice in &self.path {
            let slot = choice.thread.index();
            let history = &runtime.threads[slot].history;
            let (at, op) = (steps[slot], history.ops.get(steps[slot])?);
            steps[slot] += 1;
            let looks = op.act == Act::Load;
            let conflicts = |(_, object): (usize, u32)| {
                changed.contains(&object) || !looks && used.contains(&object)
            };
            let is_use = choice.thread == suspect.thread && at >= suspect.steps;
            if is_use || after[slot] || objects_of(op).any(conflicts) {
                after[slot] = true;
                for (_, object) in objects_of(op) {
                    if looks {
                        used.push(object)
                    } else {
                        changed.push(object)
                    }
                    if !looks {
                        used.push(object);
                    }
                }
                let spawned = history.outcomes.get(at).map(|outcome| outcome.spawned);
                spawned
                    .into_iter()
                    .flat_map(|spawned| spawned.iter())
                    .for_each(|child| after[child.index()] = true);
            } else {
                schedule.push(choice);
            }
        }
        (schedule.last() == self.path.last() && !after[self.path.last()?.thread.index()])
            .then_some(schedule)
    }

    fn is_tried(&mut self, suspect: &Suspect) -> bool {
        let history = &self.read().threads[suspect.thread.index()].history;
        let at = if suspect.access.is_some() {
            suspect.steps.checked_sub(1)
        } else {
            Some(suspect.steps)
        };
        let site = at
            .and_then(|at| history.ops.get(at))
            .map_or(std::ptr::null(), |op| std::ptr::from_ref(op.site));
        let key = (std::ptr::from_ref(suspect.site), site, suspect.access.is_some());
        match self.tried.iter_mut().find(|(other, _)| *other == key) {
            Some((_, times)) => {
                *times += 1;
                *times > PATIENCE
            }
            None => {
                self.tried.push((key, 1));
                false
            }
        }
    }

    /// Runs these steps and then the use. What was used after it was freed, if that happens. The
    /// search finds everything as it was, but has to start the execution again before its next
    /// step.
    fn witness(
        &mut self,
        schedule: &[Choice],
        suspect: &Suspect,
    ) -> Result<Option<Box<Failure>>, Need> {
        let runtime = self.runtime();
        let telling = runtime.telling.take();
        let failure = runtime.failure.take();
        let (settled, steady, state) = (runtime.settled, runtime.steady, runtime.state.clone());
        let histories: Vec<_> =
            runtime.threads.iter().map(|thread| thread.history.clone()).collect();
        // What a report asks for after the step.
        let (order, shown, pointers) =
            (runtime.order.clone(), runtime.shown.clone(), runtime.pointers.clone());
        let (panics, moved) = (runtime.panics.clone(), self.moved);
        self.abandon();
        self.runtime().stop_before = suspect.access.map(|nth| (suspect.thread.index(), nth));
        let found = self.run_witness(schedule, suspect.thread);
        self.abandon();
        self.moved = moved;
        let runtime = self.runtime();
        (runtime.order, runtime.shown, runtime.pointers) = (order, shown, pointers);
        (runtime.telling, runtime.failure, runtime.panics) = (telling, failure, panics);
        (runtime.settled, runtime.steady, runtime.state) = (settled, steady, state);
        runtime.stop_before = None;
        for (thread, history) in runtime.threads.iter_mut().zip(histories) {
            thread.history = history;
        }
        self.live = false;
        found
    }

    fn run_witness(
        &mut self,
        schedule: &[Choice],
        user: ThreadId,
    ) -> Result<Option<Box<Failure>>, Need> {
        self.runtime().replaying = false;
        self.begin()?;
        for &choice in schedule {
            if !self.can(choice) {
                return Ok(None);
            }
            self.perform::<false>(choice)?;
        }
        if !self.runtime().used_after_free {
            let first = self.first_choice(user);
            let Some(choice) = first.filter(|&choice| self.can(choice)) else { return Ok(None) };
            self.perform::<false>(choice)?;
        }
        let runtime = self.runtime();
        let failure = runtime.failure.take().filter(|_| runtime.used_after_free);
        Ok(failure.map(|mut failure| {
            failure.message +=
                "; in the trace below the use comes first, but nothing orders the two: the other order was run";
            failure
        }))
    }

    fn first_choice(&mut self, thread: ThreadId) -> Option<Choice> {
        let runtime = self.read();
        let pending = runtime.state.ask(
            &runtime.names.objects,
            thread,
            &runtime.threads[thread.index()].history,
        );
        pending.footprints.first().map(|&(alternative, _)| Choice { thread, alternative })
    }

    fn can(&self, choice: Choice) -> bool {
        let runtime = self.read();
        let history = &runtime.threads[choice.thread.index()].history;
        let pending = runtime.state.ask(&runtime.names.objects, choice.thread, history);
        matches!(pending.status, Status::Enabled | Status::Spinning)
            && pending.footprints.iter().any(|&(alternative, _)| alternative == choice.alternative)
    }
}
