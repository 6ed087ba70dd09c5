//! How the races of an execution can be reversed, where threads block each other.
//!
//! A race is reversed by an execution in which the later thread has its look before the racing step. That look is found in the execution
//! without the racing step and all that happens after it: a *cut*, whose state is computed by executing what the cut has beyond a
//! beginning of the execution, whose states are kept. If the thread can move
//! there, the cut and that step are the beginning of an execution that has to be explored. What the step touches is then
//! known, too: it may be more than it looked at while it had to wait.
//!
//! If the thread has to wait after the cut, its look races with steps of the cut, and smaller cuts are tried. So a release between
//! two acquisitions is passed over, and the order of the acquisitions is reversed.

use std::borrow::Cow;
use std::collections::HashSet;

use preempt_system::{Choice, Footprint, ThreadId, ThreadSet};

use super::races::{Look, Steps, before, races};
use super::wakeup::Event;
use crate::execution::Stop;
use crate::reduce::trace::{Dependence, Trace};
use crate::system::{Pending, Status, Swap, System};

/// The beginning of an execution that reverses a race.
pub(super) struct Reversal {
    /// How many steps it has in common with the execution.
    pub(super) common: usize,
    /// What comes then.
    pub(super) sequence: Vec<Event>,
}

/// Finds the races of executions and how to reverse them.
pub(super) struct Reversals<S: System> {
    /// The first steps of the execution, each with the state after it.
    along: Vec<(Choice, S::State)>,
    dependence: Dependence,
    /// For each step of the execution, the threads that were looked at without it.
    reversed: Vec<ThreadSet>,
    /// The cuts without more than one step that were considered, and for which thread.
    seen: HashSet<(Vec<usize>, ThreadId)>,
}

impl<S: System> Reversals<S> {
    pub(super) fn new(dependence: Dependence) -> Self {
        Reversals { along: Vec::new(), dependence, reversed: Vec::new(), seen: HashSet::new() }
    }

    /// All reversals of the races of an execution. Some of those are left out that are `covered`: that is asked for a number of steps from
    /// the beginning, and for those of the others with which the reversal goes on.
    pub(super) fn of(
        &mut self,
        trace: &mut Trace<'_, S>,
        covered: impl Fn(&Trace<'_, S>, usize, &[usize]) -> bool,
    ) -> Result<Vec<Reversal>, Stop> {
        self.seen.clear();
        self.reversed.clear();
        self.reversed.resize(trace.len(), ThreadSet::EMPTY);
        let steps = (0..trace.len()).map(|at| trace.cursor.choice(at));
        let same = self.along.iter().zip(steps).take_while(|((choice, _), step)| choice == step).count();
        self.along.truncate(same);
        let mut reversals = Vec::new();
        for at in 0..trace.len() {
            let thread = trace.graph().step(at).thread;
            for race in races(trace, &Look { thread, footprint: trace.touched(at), at }) {
                match trace.swap(race, at) {
                    Swap::Possible => reversals.extend(swapped(trace, race, at, &covered)),
                    Swap::Impossible => {}
                    Swap::Unknown => self.reverse(trace, race, thread, &mut reversals)?,
                }
            }
        }
        for thread in trace.slots() {
            if let Some(footprint) = trace.waits_for(thread).map(Cow::into_owned) {
                for race in races(trace, &Look { thread, footprint: &footprint, at: trace.len() }) {
                    self.reverse(trace, race, thread, &mut reversals)?;
                }
            }
        }
        Ok(reversals)
    }

    /// Lets a thread have its look before a step, unless that was done for this execution.
    fn reverse(
        &mut self,
        trace: &mut Trace<'_, S>,
        race: usize,
        thread: ThreadId,
        reversals: &mut Vec<Reversal>,
    ) -> Result<(), Stop> {
        if self.reversed[race].contains(thread) {
            return Ok(());
        }
        self.reversed[race].insert(thread);
        let cut = (0..race).chain(not_after(trace, race)).collect();
        self.consider(trace, cut, thread, reversals)
    }

    /// Looks at a thread after a cut, and after smaller ones if it has to wait there.
    fn consider(
        &mut self,
        trace: &mut Trace<'_, S>,
        cut: Vec<usize>,
        thread: ThreadId,
        reversals: &mut Vec<Reversal>,
    ) -> Result<(), Stop> {
        let mut cuts = vec![cut];
        while let Some(cut) = cuts.pop() {
            let pending = self.execute(trace, &cut, thread)?;
            for (alternative, footprint) in &pending.footprints {
                let footprint = self.dependence.apply(footprint);
                match pending.status {
                    Status::Enabled => {
                        let choice = Choice { thread, alternative: *alternative };
                        let footprint = footprint.into_owned();
                        reversals.push(Reversal::new(trace, &cut, Event { choice, footprint }));
                    }
                    Status::Blocked | Status::Resting | Status::Held => {
                        for race in racing(trace, &cut, thread, &footprint) {
                            let smaller = without(trace, &cut, race);
                            if self.seen.insert((smaller.clone(), thread)) {
                                cuts.push(smaller);
                            }
                        }
                    }
                    Status::Ended | Status::Vacant => unreachable!("such a thread looks at nothing"),
                }
            }
        }
        Ok(())
    }

    /// What a thread would do after a cut.
    fn execute(&mut self, trace: &mut Trace<'_, S>, cut: &[usize], thread: ThreadId) -> Result<Pending, Stop> {
        let common = common(cut);
        for at in self.along.len()..common {
            let (choice, system) = (trace.cursor.choice(at), trace.cursor.system_mut());
            let mut state = self.along.last().map_or_else(|| system.initial(), |(_, state)| state.clone());
            system.advance(&mut state, choice)?;
            self.along.push((choice, state));
        }
        let before = common.checked_sub(1).map(|last| &self.along[last].1);
        let mut state = before.cloned().unwrap_or_else(|| trace.cursor.system().initial());
        for &at in &cut[common..] {
            let choice = trace.cursor.choice(at);
            trace.cursor.system_mut().advance(&mut state, choice)?;
        }
        Ok(trace.cursor.system_mut().ask_at(&state, thread)?)
    }
}

/// How many steps a cut has in common with its execution, from the beginning.
fn common(cut: &[usize]) -> usize {
    cut.iter().enumerate().take_while(|&(n, &at)| n == at).count()
}

/// Lets a step come before one that it races with, of which is known that it can: no cut has to be executed.
fn swapped<S: System>(
    trace: &Trace<'_, S>,
    race: usize,
    at: usize,
    covered: impl Fn(&Trace<'_, S>, usize, &[usize]) -> bool,
) -> Option<Reversal> {
    let steps: Steps = not_after(trace, race).chain([at]).collect();
    let event = |&at: &usize| Event { choice: trace.cursor.choice(at), footprint: trace.touched(at).clone() };
    (!covered(trace, race, &steps)).then(|| Reversal { common: race, sequence: steps.iter().map(event).collect() })
}

/// The steps after a step that do not happen after it.
fn not_after<S: System>(trace: &Trace<'_, S>, step: usize) -> impl Iterator<Item = usize> {
    (step + 1..trace.len()).filter(move |&at| !trace.graph().happens_before(step, at))
}

impl Reversal {
    fn new<S: System>(trace: &Trace<'_, S>, cut: &[usize], last: Event) -> Reversal {
        let common = common(cut);
        let event = |&at: &usize| Event { choice: trace.cursor.choice(at), footprint: trace.touched(at).clone() };
        Reversal { common, sequence: cut[common..].iter().map(event).chain([last]).collect() }
    }
}

/// A cut without one of its steps and all that happens after it.
fn without<S: System>(trace: &Trace<'_, S>, cut: &[usize], step: usize) -> Vec<usize> {
    cut.iter().copied().filter(|&at| at != step && !trace.graph().happens_before(step, at)).collect()
}

/// The steps of a cut that a look after it races with.
fn racing<S: System>(trace: &Trace<'_, S>, cut: &[usize], thread: ThreadId, footprint: &Footprint) -> Vec<usize> {
    let own = cut.iter().rev().find(|&&at| trace.graph().step(at).thread == thread);
    let past = before(trace, &Look { thread, footprint, at: own.map_or(0, |at| at + 1) });
    let mut racing: Vec<usize> = Vec::new();
    for &at in cut.iter().rev() {
        let concurrent = trace.graph().step(at).thread != thread && !past(at) && trace.touched(at).depends(footprint);
        if concurrent && !racing.iter().any(|&later| trace.graph().happens_before(at, later)) {
            racing.push(at);
        }
    }
    racing
}
