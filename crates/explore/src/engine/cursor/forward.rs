//! A forward-only cursor: it goes back only to the beginning, and keeps no past steps.
//!
//! A random walk starts at the beginning each time: it never asks what an earlier step touched, and
//! takes nothing back. So each thread has one pending entry, which is overwritten, instead of one
//! for each change: a long execution stays in the first-level cache, and there is nothing to
//! compare and to log. The entries of the beginning are kept apart, for when the cursor goes back.

use preempt_system::{Choice, Failure, Status, System, ThreadId, ThreadSet};

use super::{Cursor, Taken};
use crate::plan::Cost;

/// In place of the step that started a thread: it existed from the beginning.
const NEVER: u32 = u32::MAX;

impl<S: System> Cursor<S> {
    /// Keeps no footprints of past steps from now on, which has to be the beginning of the
    /// execution. From then on it goes back only to there, and [`Cursor::taken`] must not be
    /// called.
    ///
    /// Does nothing if the past is needed, to detect spinning threads by the states of a system. A
    /// happens-before graph records the past by itself.
    pub(crate) fn forward_only(mut self) -> Self {
        assert!(self.is_empty(), "a cursor becomes forward-only at the beginning");
        assert!(self.cost == Cost::Preemptions, "a random walk has no bound on delays");
        let compares_states = self.fair && self.system.words().is_some();
        if !compares_states {
            self.forward_only = true;
            let slots = self.pending.len();
            self.starts = vec![NEVER; slots];
            self.known.truncate(slots);
            self.known.extend_from_within(..);
        }
        self
    }

    /// Takes a step, as [`Cursor::step`] does.
    pub(super) fn step_forward(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need> {
        let moved = choice.thread;
        let is_stale = self.pending(moved).is_stale(choice.alternative);
        let failure = self.system.step(choice)?;
        if self.graph.is_some() {
            self.record_step(choice);
        }
        let (enabled, preemptions, forced) = (self.enabled, self.preemptions, self.forced);
        self.forced = self.forced_after(choice);
        self.preemptions.step(moved, enabled);
        if is_stale {
            self.preemptions.stale_step();
        }
        if self.system.is_between_operations(moved) {
            self.preemptions.release();
        }
        self.steps.push(Taken {
            choice,
            pending: 0,
            nth: 0,
            enabled,
            preemptions,
            delays: 0,
            forced,
            undo: 0,
        });
        // The other threads first: the new entry of the thread that stepped overwrites the
        // footprint that theirs are compared with.
        let others = self.possibly_affected(moved).without(moved);
        if failure.is_some() || self.system.affects_all() {
            // It may end all threads, for example that of a process.
            others.iter().try_for_each(|thread| self.ask_again(thread))?;
        } else if !others.is_empty() {
            self.ask_others(others, choice)?;
        }
        self.ask_again(moved)?;
        debug_assert!(self.are_unaffected(moved)?, "an unaffected thread has changed");
        self.enabled = self.count_enabled();
        Ok(failure)
    }

    /// Appends a step to the graph, before the entry that has its footprint is overwritten.
    fn record_step(&mut self, choice: Choice) {
        let (start, nth) = (self.start(choice.thread), self.nth(choice));
        let pending = self.pending[choice.thread.index()] as usize;
        let footprint = &self.known[pending].footprints[nth].1;
        let graph = self.graph.as_mut().expect("the caller has checked that there is a graph");
        match start {
            Some(start) => graph.push_first(choice, footprint, start),
            None => graph.push(choice, footprint),
        }
    }

    /// Queries the threads again whose next step depends on the one that was just taken.
    fn ask_others(&mut self, others: ThreadSet, choice: Choice) -> Result<(), S::Need> {
        let footprint = self.footprint(choice);
        let affected = others.iter().filter(|&thread| {
            let old = self.pending(thread);
            old.status == Status::Vacant
                || old.footprints.iter().any(|(_, theirs)| theirs.depends(footprint))
        });
        let affected: ThreadSet = affected.collect();
        affected.iter().try_for_each(|thread| self.ask_again(thread))
    }

    /// Queries the next step of a thread. The answer overwrites the last one, unless that is the
    /// one of the beginning.
    #[inline(always)]
    fn ask_again(&mut self, thread: ThreadId) -> Result<(), S::Need> {
        let place = self.pending.len() + thread.index();
        let before = self.pending(thread).status;
        self.pending[thread.index()] = place as u32;
        let pending = &mut self.known[place];
        self.system.ask(thread, pending)?;
        if pending.status != before {
            if before == Status::Vacant {
                self.starts[thread.index()] = self.steps.len() as u32 - 1;
            }
            self.update_sets(thread);
        }
        Ok(())
    }

    /// Goes back to the beginning.
    pub(super) fn rewind_all(&mut self) {
        let Some(&Taken { enabled, preemptions, forced, .. }) = self.steps.first() else { return };
        self.system.rewind(0);
        if let Some(graph) = &mut self.graph {
            graph.truncate(0);
        }
        self.steps.clear();
        self.starts.fill(NEVER);
        (self.enabled, self.preemptions, self.forced) = (enabled, preemptions, forced);
        for slot in 0..self.pending.len() {
            self.pending[slot] = slot as u32;
            self.update_sets(ThreadId::new(slot));
        }
    }
}
