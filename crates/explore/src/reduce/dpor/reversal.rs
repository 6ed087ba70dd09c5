//! Reverses the races of an execution, even where threads block each other.
//!
//! A race is reversed by an execution in which the later thread makes its attempt before the racing
//! step. That attempt is computed in the execution without the racing step and everything that
//! happens after it: a *cut*. The state of a cut is computed by executing its steps, starting from
//! the longest common prefix whose state is kept. If the thread is enabled there, the cut and that
//! step are the prefix of an execution that has to be explored. The footprint of the step is then
//! known too: it may be larger than while the thread had to wait.
//!
//! If the thread has to wait after the cut, its attempt races with steps of the cut, and smaller
//! cuts are tried. So a release between two acquisitions is skipped, and the order of the
//! acquisitions is reversed.

use std::borrow::Cow;
use std::collections::HashSet;

use preempt_system::{Choice, Footprint, Pending, Status, Swap, System, ThreadId, ThreadSet};
use smallvec::{SmallVec, smallvec};

use super::cut::Cut;
use super::races::{Attempt, Steps, maximal, past, races};
use super::wakeup::{Event, Prescription, SequenceStep, THIS_ONE};
use crate::engine::execution::Stop;
use crate::plan::Dependence;
use crate::reduce::trace::Trace;

/// The prefix of an execution that reverses a race.
pub(super) struct Reversal<'f, I> {
    /// The number of steps that it shares with the execution.
    pub(super) common: usize,
    /// The other steps of the execution that follow.
    pub(super) between: I,
    /// The last steps: the reversed step, and where that leaves something
    /// [open](Prescription::Open), steps of other threads.
    pub(super) last: &'f [SequenceStep<'f>],
}

impl<'f, I: Iterator<Item = usize> + Clone> Reversal<'f, I> {
    /// The steps after the shared ones.
    pub(super) fn sequence<'t: 'f, S: System>(
        &self,
        trace: &'t Trace<'_, S>,
    ) -> impl Iterator<Item = SequenceStep<'f>> {
        self.between.clone().map(|at| step(trace, at)).chain(self.last.iter().copied())
    }
}

/// A step of the execution.
fn step<'t, S: System>(trace: &'t Trace<'_, S>, at: usize) -> SequenceStep<'t> {
    let (choice, footprint, chooses) =
        (trace.cursor.choice(at), trace.touched(at), trace.chose(at));
    SequenceStep { choice, footprint, shown: at + 1, alone: at + 1, chooses }
}

/// Takes the reversals of races: prefixes of executions that are still to be explored, unless
/// others cover them.
pub(super) trait Prescribe<S: System> {
    /// Ensures that an execution with this prefix is explored. The steps that show that it is
    /// covered show the same for this race in a later execution with these steps, as long as the
    /// search has not left the node of the race.
    fn prescribe(
        &mut self,
        trace: &Trace<'_, S>,
        reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
    ) -> Prescription;
}

/// A reversal that was already handled, repeated only for a debug assertion.
struct Settled<'o, O>(&'o mut O);

impl<S: System, O: Prescribe<S>> Prescribe<S> for Settled<'_, O> {
    fn prescribe(
        &mut self,
        trace: &Trace<'_, S>,
        reversal: &Reversal<'_, impl Iterator<Item = usize> + Clone>,
    ) -> Prescription {
        let known = self.0.prescribe(trace, reversal);
        let settled = !matches!(known, Prescription::Prescribed);
        assert!(settled, "a cut that was handled is covered");
        known
    }
}

/// Two steps of the execution that race.
struct Race {
    earlier: usize,
    later: usize,
    /// The race needs nothing as long as this many steps, from the beginning, stay the same.
    settled: usize,
    /// The last cut without the earlier step for which the later thread's attempt was handled, by
    /// step numbers of the previous execution. If the cut is the same, nothing is left to do.
    cut: Option<Cut>,
}

/// Finds the races of executions and how to reverse them.
///
/// Consecutive executions share a prefix, and the races in it: these are found once, and most are
/// settled once. Without this, the races of an execution would cost the square of its length.
pub(super) struct Reversals<S: System> {
    /// Some states of the execution, each with the number of steps before it, in their order.
    along: Vec<(usize, S::State)>,
    dependence: Dependence,
    /// The races of the execution, in the order of the later steps.
    races: Vec<Race>,
    /// For each step of the execution, the threads whose attempt before it was handled.
    reversed: Vec<ThreadSet>,
    /// The cuts without more than one step that were considered, and for which thread.
    seen: HashSet<(Cut, ThreadId)>,
}

impl<S: System> Reversals<S> {
    pub(super) fn new(dependence: Dependence) -> Self {
        let (along, races, reversed) = (Vec::new(), Vec::new(), Vec::new());
        Reversals { along, dependence, races, reversed, seen: HashSet::new() }
    }

    /// Prescribes all reversals of the races of an execution, except for those that are settled.
    pub(super) fn of(
        &mut self,
        trace: &mut Trace<'_, S>,
        prescriptions: &mut impl Prescribe<S>,
    ) -> Result<(), Stop<S::Need>> {
        self.seen.clear();
        self.reversed.clear();
        self.reversed.resize(trace.len(), ThreadSet::EMPTY);
        let kept = trace.kept();
        self.along.truncate(self.along.partition_point(|&(len, _)| len <= kept));
        self.races.truncate(self.races.partition_point(|race| race.later < kept));
        for later in kept..trace.len() {
            let attempt = Attempt {
                thread: trace.graph().thread(later),
                footprint: trace.touched(later),
                at: later,
            };
            for earlier in races(trace, &attempt) {
                self.races.push(Race { earlier, later, settled: THIS_ONE, cut: None });
            }
        }
        for nth in 0..self.races.len() {
            let Race { earlier, later, settled, .. } = self.races[nth];
            if settled <= kept && !cfg!(debug_assertions) {
                continue;
            }
            match trace.swap(earlier, later) {
                // No cut has to be executed.
                Swap::Possible => {
                    // Whatever follows in the execution and depends on the later step happens after
                    // it, and so after the earlier one.
                    let owing = {
                        let last = SequenceStep { shown: THIS_ONE, ..step(trace, later) };
                        let between = trace.graph().not_after(earlier);
                        prescriptions
                            .prescribe(trace, &Reversal { common: earlier, between, last: &[last] })
                    };
                    let known = match owing {
                        Prescription::Covered(shown) => Some(shown),
                        Prescription::Prescribed => None,
                        Prescription::Open { also, thread } => {
                            let footprint = trace.touched(later).clone();
                            let (choice, chooses) =
                                (trace.cursor.choice(later), trace.chose(later));
                            let last = SequenceStep {
                                choice,
                                footprint: &footprint,
                                shown: THIS_ONE,
                                alone: later + 1,
                                chooses,
                            };
                            let cut = Cut::before(trace.graph(), earlier);
                            self.close(trace, &cut, (&[last], &also), thread, prescriptions)?
                        }
                    };
                    debug_assert!(
                        settled > kept || known.is_some(),
                        "a settled race stays settled"
                    );
                    self.races[nth].settled = known.unwrap_or(THIS_ONE);
                }
                Swap::Impossible => self.races[nth].settled = later + 1,
                Swap::Unknown => {
                    let cut = Cut::before(trace.graph(), earlier);
                    let thread = trace.graph().thread(later);
                    // Step numbers mean the same only within the shared prefix of the two
                    // executions.
                    let is_same = cut.steps(kept).next().is_none()
                        && self.races[nth].cut.as_ref() == Some(&cut);
                    if !is_same {
                        self.races[nth].cut = Some(cut.clone());
                        self.reverse(trace, (earlier, cut), thread, prescriptions)?;
                    } else if cfg!(debug_assertions) {
                        self.reverse(trace, (earlier, cut), thread, &mut Settled(prescriptions))?;
                    }
                }
            }
        }
        for thread in trace.slots() {
            if let Some(footprint) = trace.waits_for(thread).map(Cow::into_owned) {
                for race in
                    races(trace, &Attempt { thread, footprint: &footprint, at: trace.len() })
                {
                    let cut = Cut::before(trace.graph(), race);
                    self.reverse(trace, (race, cut), thread, prescriptions)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the attempt of a thread before a step, unless that was done for this execution: after
    /// the cut without the step, and after smaller cuts if the thread has to wait there.
    fn reverse(
        &mut self,
        trace: &mut Trace<'_, S>,
        (race, cut): (usize, Cut),
        thread: ThreadId,
        prescriptions: &mut impl Prescribe<S>,
    ) -> Result<(), Stop<S::Need>> {
        if self.reversed[race].contains(thread) {
            return Ok(());
        }
        self.reversed[race].insert(thread);
        let mut cuts: SmallVec<[Cut; 4]> = smallvec![cut];
        while let Some(cut) = cuts.pop() {
            let pending = self.execute(trace, &cut, thread)?;
            for (alternative, footprint) in &pending.footprints {
                let footprint = self.dependence.apply(footprint);
                match pending.status {
                    Status::Enabled => {
                        let choice = Choice { thread, alternative: *alternative };
                        let chooses = trace.chooses(&pending);
                        let last = SequenceStep::new(choice, &footprint, chooses);
                        self.prescribe(trace, &cut, &[last], prescriptions)?;
                    }
                    Status::Blocked | Status::Resting | Status::Spinning => {
                        for race in racing(trace, &cut, thread, &footprint) {
                            let smaller = Cut::before(trace.graph(), race).and(&cut);
                            if self.seen.insert((smaller.clone(), thread)) {
                                cuts.push(smaller);
                            }
                        }
                    }
                    Status::Ended | Status::Vacant => {
                        unreachable!("such a thread has no footprint")
                    }
                }
            }
        }
        Ok(())
    }

    /// Prescribes the prefix that consists of a cut and the steps `last`. If it is covered, returns
    /// how many steps show that.
    fn prescribe(
        &mut self,
        trace: &mut Trace<'_, S>,
        cut: &Cut,
        last: &[SequenceStep<'_>],
        prescriptions: &mut impl Prescribe<S>,
    ) -> Result<Option<usize>, Stop<S::Need>> {
        let common = cut.common();
        match prescriptions.prescribe(trace, &Reversal { common, between: cut.steps(common), last })
        {
            Prescription::Covered(shown) => Ok(Some(shown)),
            Prescription::Prescribed => Ok(None),
            Prescription::Open { also, thread } => {
                self.close(trace, cut, (last, &also), thread, prescriptions)
            }
        }
    }

    /// Prescribes a prefix that is [open](Prescription::Open), once for each alternative that the
    /// thread has after it.
    fn close(
        &mut self,
        trace: &mut Trace<'_, S>,
        cut: &Cut,
        (last, also): (&[SequenceStep<'_>], &[Event]),
        thread: ThreadId,
        prescriptions: &mut impl Prescribe<S>,
    ) -> Result<Option<usize>, Stop<S::Need>> {
        let mut steps: SmallVec<[SequenceStep<'_>; 4]> = SmallVec::from_slice(last);
        steps.extend(also.iter().map(|Event { choice, footprint, chooses }| {
            SequenceStep::new(*choice, footprint, *chooses)
        }));
        let mut state = self.state(trace, cut)?;
        for step in &steps {
            trace.cursor.system_mut().advance(&mut state, step.choice)?;
        }
        let pending = trace.cursor.system_mut().ask_at(&state, thread)?;
        assert!(pending.status == Status::Enabled, "an independent step does not disable a thread");
        let (chooses, mut known) = (trace.chooses(&pending), Some(THIS_ONE));
        for (alternative, footprint) in &pending.footprints {
            let (choice, footprint) =
                (Choice { thread, alternative: *alternative }, self.dependence.apply(footprint));
            let mut steps: SmallVec<[SequenceStep<'_>; 4]> = steps.iter().copied().collect();
            steps.push(SequenceStep::new(choice, &footprint, chooses));
            if self.prescribe(trace, cut, &steps, prescriptions)?.is_none() {
                known = None;
            }
        }
        Ok(known)
    }

    /// The next step of a thread after a cut.
    fn execute(
        &mut self,
        trace: &mut Trace<'_, S>,
        cut: &Cut,
        thread: ThreadId,
    ) -> Result<Pending, Stop<S::Need>> {
        let state = self.state(trace, cut)?;
        Ok(trace.cursor.system_mut().ask_at(&state, thread)?)
    }

    /// The state after a cut.
    fn state(&mut self, trace: &mut Trace<'_, S>, cut: &Cut) -> Result<S::State, Stop<S::Need>> {
        let common = cut.common();
        let known = self.along.partition_point(|&(len, _)| len <= common);
        let before = known.checked_sub(1).map(|last| &self.along[last]);
        let (from, mut state) = before.map_or_else(
            || (0, trace.cursor.system().initial()),
            |(len, state)| (*len, state.clone()),
        );
        let is_known = before.is_some_and(|&(len, _)| len == common);
        for at in from..common {
            let choice = trace.cursor.choice(at);
            trace.cursor.system_mut().advance(&mut state, choice)?;
        }
        if !is_known {
            self.along.insert(known, (common, state.clone()));
        }
        for at in cut.steps(common) {
            let choice = trace.cursor.choice(at);
            trace.cursor.system_mut().advance(&mut state, choice)?;
        }
        Ok(state)
    }
}

/// The steps of a cut that an attempt after it races with, latest first.
fn racing<S: System>(
    trace: &Trace<'_, S>,
    cut: &Cut,
    thread: ThreadId,
    footprint: &Footprint,
) -> Steps {
    let (graph, part) = (trace.graph(), |at| cut.contains(at));
    let past = past(trace, thread, graph.last_of(thread, part));
    let frontier = |&(location, access)| graph.frontier_of(part, location, access);
    let concurrent = |&at: &usize| graph.thread(at) != thread && !past(at);
    maximal(graph, footprint.accesses().iter().flat_map(frontier).filter(concurrent))
}
