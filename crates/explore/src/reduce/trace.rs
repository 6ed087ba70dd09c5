//! An execution in progress together with its happens-before graph.
//!
//! Footprints enter the reductions only here, so this module applies the [`Dependence`], and orders
//! the start of a thread before its first step: a program reports the accesses of a step, not that
//! a thread cannot run before it exists.

use std::borrow::Cow;

use preempt_system::{
    Choice, Epoch, Failure, Footprint, HbGraph, Pending, Status, Swap, System, ThreadId, ThreadSet,
};

use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::execution::Follow;
use crate::plan::Dependence;

/// The counts of a reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionStats {
    /// Complete executions.
    pub executions: u64,
    /// Executions that were abandoned because everything that could follow is covered elsewhere.
    pub covered: u64,
    /// Executions that were abandoned, and steps that were not tried, because of the bound.
    pub bounded: u64,
    /// Nodes of the search: the steps taken, and the beginning.
    pub nodes: u64,
}

save_fields!(ReductionStats { executions, covered, bounded, nodes });

/// An execution with its happens-before graph.
pub(crate) struct Trace<'c, S: System> {
    pub(crate) cursor: &'c mut Cursor<S>,
    dependence: Dependence,
    /// The graph and the footprint of each step, if the dependence differs from the cursor's.
    other: Option<(HbGraph, Vec<Footprint>)>,
    /// For each slot that a step has filled, which step.
    started: Vec<Option<usize>>,
    /// The number of steps, from the beginning, that have not changed since the last call of
    /// [`Trace::kept`].
    kept: usize,
}

impl<'c, S: System> Trace<'c, S> {
    /// Starts at the cursor, which must be at the beginning of an execution.
    pub(crate) fn new(cursor: &'c mut Cursor<S>, dependence: Dependence) -> Trace<'c, S> {
        assert!(cursor.is_empty(), "a happens-before graph has all steps of its execution");
        let started = vec![None; cursor.threads()];
        let other = match dependence {
            Dependence::ReadWrite => None,
            Dependence::All => Some(Default::default()),
        };
        if other.is_none() {
            cursor.record();
        }
        Trace { cursor, dependence, other, started, kept: 0 }
    }

    /// Its happens-before graph.
    #[inline]
    pub(crate) fn graph(&self) -> &HbGraph {
        let graph = self.other.as_ref().map(|(graph, _)| graph).or(self.cursor.graph());
        graph.expect("without a graph of its own, it uses the cursor's")
    }

    /// The number of steps of the execution.
    pub(crate) fn len(&self) -> usize {
        self.cursor.len()
    }

    /// The footprint of a step.
    pub(crate) fn touched(&self, at: usize) -> &Footprint {
        self.other.as_ref().map_or_else(|| self.cursor.taken(at), |(_, touched)| &touched[at])
    }

    /// Whether the thread of a step had other alternatives.
    pub(crate) fn chose(&self, at: usize) -> bool {
        self.chooses(self.cursor.pending_before(at))
    }

    /// Whether a step is one of several alternatives, and executions can be continued with the
    /// others.
    #[inline]
    pub(crate) fn chooses(&self, pending: &Pending) -> bool {
        pending.chooses() && (self.cursor.system().advances_by_any_step() || pending.varies())
    }

    /// The footprint of a step that can be taken now.
    pub(crate) fn footprint(&self, choice: Choice) -> Cow<'_, Footprint> {
        self.dependence.apply(self.cursor.footprint(choice))
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = ThreadId> + use<S> {
        (0..self.cursor.threads()).map(ThreadId::new)
    }

    /// The threads that can move, the one that moved last first.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = ThreadId> + use<S> {
        let enabled = self.cursor.enabled();
        let last = self.last().filter(|&last| enabled.contains(last));
        last.into_iter().chain(enabled.iter().filter(move |&thread| Some(thread) != last))
    }

    /// The thread of the last step.
    pub(crate) fn last(&self) -> Option<ThreadId> {
        self.len().checked_sub(1).map(|at| self.cursor.choice(at).thread)
    }

    /// The steps that an enabled thread can take now.
    pub(crate) fn alternatives(&self, thread: ThreadId) -> impl Iterator<Item = Choice> + '_ {
        let pending = self.cursor.pending(thread);
        debug_assert!(
            self.cursor.enabled().contains(thread),
            "only enabled threads have alternatives"
        );
        pending.footprints.iter().map(move |&(alternative, _)| Choice { thread, alternative })
    }

    /// The steps that an enabled thread can take now, each with its footprint.
    pub(crate) fn next_steps(
        &self,
        thread: ThreadId,
    ) -> impl Iterator<Item = (Choice, Cow<'_, Footprint>)> {
        let pending = self.cursor.pending(thread);
        debug_assert!(
            self.cursor.enabled().contains(thread),
            "only enabled threads have alternatives"
        );
        let step = move |alternative| Choice { thread, alternative };
        pending.footprints.iter().map(move |(alternative, footprint)| {
            (step(*alternative), self.dependence.apply(footprint))
        })
    }

    /// The footprint of a thread's wait, if it waits.
    pub(crate) fn waits_for(&self, thread: ThreadId) -> Option<Cow<'_, Footprint>> {
        let pending = self.cursor.pending(thread);
        let waits = matches!(pending.status, Status::Blocked | Status::Resting | Status::Spinning)
            && !self.cursor.enabled().contains(thread);
        pending
            .footprints
            .first()
            .filter(|_| waits)
            .map(|(_, footprint)| self.dependence.apply(footprint))
    }

    /// The footprints of a thread's next step, or of its wait: one for each alternative.
    pub(crate) fn attempts(&self, thread: ThreadId) -> impl Iterator<Item = Cow<'_, Footprint>> {
        self.cursor
            .pending(thread)
            .footprints
            .iter()
            .map(|(_, footprint)| self.dependence.apply(footprint))
    }

    /// Whether the last step may have changed the last race of a thread's next step, whose
    /// footprint is `attempt`: it changed that step (it is the thread's own, started the thread, or
    /// ended one of several waits), or it depends on `attempt`.
    ///
    /// Comparing the last step with `attempt` alone is not enough. A thread that waits for two
    /// things one after the other, such as a notification and then a mutex, has a new attempt after
    /// the first one, and the step that caused it is independent of the new attempt.
    pub(crate) fn may_change_last_race(&self, thread: ThreadId, attempt: &Footprint) -> bool {
        self.cursor.has_changed(thread) || attempt.depends(self.touched(self.len() - 1))
    }

    /// Whether a step could have come before one that it races with.
    pub(crate) fn swap(&self, earlier: usize, later: usize) -> Swap {
        let nth = |at: usize| {
            let Epoch { thread, time } = self.graph().epoch(at);
            (thread, time as usize - 1)
        };
        self.cursor.system().swap(nth(earlier), nth(later))
    }

    /// The step that started a thread, if a step did.
    pub(crate) fn start(&self, thread: ThreadId) -> Option<usize> {
        self.started[thread.index()]
    }

    /// Takes a step.
    pub(crate) fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need> {
        let vacant = self.cursor.vacant();
        let footprint = self.other.is_some().then(|| self.footprint(choice).into_owned());
        let failure = self.cursor.step(choice)?;
        let here = self.len() - 1;
        if let (Some((graph, touched)), Some(footprint)) = (&mut self.other, footprint) {
            match self.started[choice.thread.index()] {
                Some(start) if graph.clock(choice.thread).is_none() => {
                    graph.push_first(choice, &footprint, start)
                }
                _ => graph.push(choice, &footprint),
            }
            touched.push(footprint);
        }
        let filled = ThreadSet::from_bits(vacant.bits() & !self.cursor.vacant().bits());
        filled.iter().for_each(|slot| self.started[slot.index()] = Some(here));
        Ok(failure)
    }

    /// Goes back to where the execution had `len` steps.
    pub(crate) fn rewind(&mut self, len: usize) {
        self.cursor.rewind(len);
        self.kept = self.kept.min(len);
        if let Some((graph, touched)) = &mut self.other {
            graph.truncate(len);
            touched.truncate(len);
        }
        self.started.iter_mut().for_each(|start| *start = start.filter(|&at| at < len));
    }

    /// The number of steps, from the beginning, that are the same as in the last call.
    pub(crate) fn kept(&mut self) -> usize {
        let len = self.len();
        std::mem::replace(&mut self.kept, len)
    }
}

impl<S: System> Follow<S> for Trace<'_, S> {
    fn cursor(&mut self) -> &mut Cursor<S> {
        self.cursor
    }

    fn follow(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need> {
        self.step(choice)
    }
}
