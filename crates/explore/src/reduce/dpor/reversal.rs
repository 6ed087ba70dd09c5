//! How the races of an execution can be reversed, where threads block each other.
//!
//! A race is reversed by an execution in which the later thread has its look before the racing step. That look is found in the execution
//! without the racing step and all that happens after it: a *cut*, whose state is computed by executing it. If the thread can move
//! there, the cut and that step are the beginning of an execution that has to be explored. What the step touches is then
//! known, too: it may be more than it looked at while it had to wait.
//!
//! If the thread has to wait after the cut, its look races with steps of the cut, and smaller cuts are tried. So a release between
//! two acquisitions is passed over, and the order of the acquisitions is reversed.

use std::borrow::Cow;
use std::collections::HashSet;

use preempt_system::{Choice, Footprint, ThreadId};

use super::races::{Look, before, races};
use super::wakeup::Event;
use crate::execution::Stop;
use crate::reduce::trace::{Dependence, Trace};
use crate::system::{Pending, Status, System};

/// The beginning of an execution that reverses a race.
pub(super) struct Reversal {
    /// How many steps it has in common with the execution.
    pub(super) common: usize,
    /// What comes then.
    pub(super) sequence: Vec<Event>,
}

/// Finds the races of executions and how to reverse them.
pub(super) struct Reversals<S: System> {
    /// The steps of the cut that was executed last, each with the state after it.
    executed: Vec<(Choice, S::State)>,
    dependence: Dependence,
    /// The cuts of the present execution that were considered, and for which thread.
    seen: HashSet<(Vec<usize>, ThreadId)>,
}

impl<S: System> Reversals<S> {
    pub(super) fn new(dependence: Dependence) -> Self {
        Reversals { executed: Vec::new(), dependence, seen: HashSet::new() }
    }

    /// All reversals of the races of an execution.
    pub(super) fn of(&mut self, trace: &mut Trace<'_, S>) -> Result<Vec<Reversal>, Stop> {
        self.seen.clear();
        let (all, mut reversals) = ((0..trace.len()).collect::<Vec<_>>(), Vec::new());
        for at in 0..trace.len() {
            let thread = trace.graph.step(at).thread;
            for race in races(trace, &Look { thread, footprint: trace.touched(at), at }) {
                self.consider(trace, without(trace, &all, race), thread, &mut reversals)?;
            }
        }
        for thread in trace.slots() {
            if let Some(footprint) = trace.waits_for(thread).map(Cow::into_owned) {
                for race in races(trace, &Look { thread, footprint: &footprint, at: trace.len() }) {
                    self.consider(trace, without(trace, &all, race), thread, &mut reversals)?;
                }
            }
        }
        Ok(reversals)
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
            if !self.seen.insert((cut.clone(), thread)) {
                continue;
            }
            let pending = self.execute(trace, &cut, thread)?;
            for (alternative, footprint) in &pending.footprints {
                let footprint = self.dependence.apply(footprint);
                match pending.status {
                    Status::Enabled => {
                        let choice = Choice { thread, alternative: *alternative };
                        let footprint = footprint.into_owned();
                        reversals.push(Reversal::new(trace, &cut, Event { choice, footprint }));
                    }
                    Status::Blocked { .. } | Status::Held => {
                        let racing = racing(trace, &cut, thread, &footprint);
                        cuts.extend(racing.into_iter().map(|race| without(trace, &cut, race)));
                    }
                    Status::Ended | Status::Vacant => unreachable!("such a thread looks at nothing"),
                }
            }
        }
        Ok(())
    }

    /// What a thread would do after a cut.
    fn execute(&mut self, trace: &mut Trace<'_, S>, cut: &[usize], thread: ThreadId) -> Result<Pending, Stop> {
        let same = cut.iter().zip(&self.executed).take_while(|(at, (choice, _))| trace.cursor.choice(**at) == *choice);
        self.executed.truncate(same.count());
        for &at in &cut[self.executed.len()..] {
            let choice = trace.cursor.choice(at);
            let system = trace.cursor.system_mut();
            let mut state = self.executed.last().map_or_else(|| system.initial(), |(_, state)| state.clone());
            system.advance(&mut state, choice)?;
            self.executed.push((choice, state));
        }
        let system = trace.cursor.system_mut();
        let pending = match self.executed.last() {
            Some((_, state)) => system.ask_at(state, thread),
            None => system.ask_at(&system.initial(), thread),
        };
        Ok(pending?)
    }
}

impl Reversal {
    fn new<S: System>(trace: &Trace<'_, S>, cut: &[usize], last: Event) -> Reversal {
        let common = cut.iter().enumerate().take_while(|&(n, &at)| n == at).count();
        let event = |&at: &usize| Event { choice: trace.cursor.choice(at), footprint: trace.touched(at).clone() };
        Reversal { common, sequence: cut[common..].iter().map(event).chain([last]).collect() }
    }
}

/// A cut without one of its steps and all that happens after it.
fn without<S: System>(trace: &Trace<'_, S>, cut: &[usize], step: usize) -> Vec<usize> {
    cut.iter().copied().filter(|&at| at != step && !trace.graph.happens_before(step, at)).collect()
}

/// The steps of a cut that a look after it races with.
fn racing<S: System>(trace: &Trace<'_, S>, cut: &[usize], thread: ThreadId, footprint: &Footprint) -> Vec<usize> {
    let own = cut.iter().rev().find(|&&at| trace.graph.step(at).thread == thread);
    let past = before(trace, &Look { thread, footprint, at: own.map_or(0, |at| at + 1) });
    let mut racing: Vec<usize> = Vec::new();
    for &at in cut.iter().rev() {
        let concurrent = trace.graph.step(at).thread != thread && !past(at) && trace.touched(at).depends(footprint);
        if concurrent && !racing.iter().any(|&later| trace.graph.happens_before(at, later)) {
            racing.push(at);
        }
    }
    racing
}
