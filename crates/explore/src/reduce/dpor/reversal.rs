//! How the races of an execution can be reversed, where threads block each other.
//!
//! A race is reversed by an execution in which the later thread has its look before the racing step. That look is found in the execution
//! without the racing step and all that happens after it: a *cut*, whose state is computed by executing it. If the thread can move
//! there, the cut and that step are the beginning of an execution that has to be explored. What the step touches is then
//! known, too: it may be more than it looked at while it had to wait.
//!
//! If the thread has to wait after the cut, its look races with steps of the cut, and smaller cuts are tried. So a release between
//! two acquisitions is passed over, and the order of the acquisitions is reversed.

use std::collections::HashSet;

use preempt_system::{Choice, Footprint, Model, ThreadId};

use super::races::{Look, before, races};
use super::wakeup::Event;
use crate::cursor::{Cursor, NoStart, Status};
use crate::execution::Stop;
use crate::reduce::trace::{Dependence, Trace};

/// The beginning of an execution that reverses a race.
pub(super) struct Reversal {
    /// How many steps it has in common with the execution.
    pub(super) common: usize,
    /// What comes then.
    pub(super) sequence: Vec<Event>,
}

/// Finds the races of executions and how to reverse them.
pub(super) struct Reversals<'m, M: Model + 'm> {
    /// Where cuts are executed.
    probe: Cursor<'m, M>,
    dependence: Dependence,
    /// The cuts of the present execution that were considered, and for which thread.
    seen: HashSet<(Vec<usize>, ThreadId)>,
}

impl<'m, M: Model> Reversals<'m, M> {
    pub(super) fn new(model: &'m M, dependence: Dependence) -> Result<Self, Stop> {
        let probe = Cursor::new(model).map_err(|cannot| match cannot {
            NoStart::Full(capacity) => Stop::Full(capacity),
            NoStart::Failed(_) => unreachable!("another cursor could start"),
        })?;
        Ok(Reversals { probe, dependence, seen: HashSet::new() })
    }

    /// All reversals of the races of an execution.
    pub(super) fn of(&mut self, trace: &Trace<'_, '_, M>) -> Result<Vec<Reversal>, Stop> {
        self.seen.clear();
        let (all, mut reversals) = ((0..trace.len()).collect::<Vec<_>>(), Vec::new());
        for at in 0..trace.len() {
            let look = Look { thread: trace.graph.step(at).thread, footprint: trace.touched(at), at };
            for race in races(trace, &look) {
                self.consider(trace, without(trace, &all, race), look.thread, &mut reversals)?;
            }
        }
        for thread in trace.slots() {
            if let Some(footprint) = trace.waits_for(thread) {
                let look = Look { thread, footprint: &footprint, at: trace.len() };
                for race in races(trace, &look) {
                    self.consider(trace, without(trace, &all, race), thread, &mut reversals)?;
                }
            }
        }
        Ok(reversals)
    }

    /// Looks at a thread after a cut, and after smaller ones if it has to wait there.
    fn consider(
        &mut self,
        trace: &Trace<'_, '_, M>,
        cut: Vec<usize>,
        thread: ThreadId,
        reversals: &mut Vec<Reversal>,
    ) -> Result<(), Stop> {
        let mut cuts = vec![cut];
        while let Some(cut) = cuts.pop() {
            if !self.seen.insert((cut.clone(), thread)) {
                continue;
            }
            self.execute(trace, &cut)?;
            let pending = self.probe.pending(thread);
            for (alternative, footprint) in &pending.footprints {
                let footprint = self.dependence.apply(footprint);
                match pending.status {
                    Status::Enabled => {
                        let choice = Choice { thread, alternative: *alternative };
                        let footprint = footprint.into_owned();
                        reversals.push(Reversal::new(trace, &cut, Event { choice, footprint }));
                    }
                    Status::Blocked { .. } => {
                        let racing = racing(trace, &cut, thread, &footprint);
                        cuts.extend(racing.into_iter().map(|race| without(trace, &cut, race)));
                    }
                    Status::Ended | Status::Vacant => unreachable!("such a thread looks at nothing"),
                }
            }
        }
        Ok(())
    }

    /// Brings the probe to the end of a cut.
    fn execute(&mut self, trace: &Trace<'_, '_, M>, cut: &[usize]) -> Result<(), Stop> {
        let same = |&at: &usize| self.probe.choice(at) == trace.cursor.choice(cut[at]);
        let same = (0..self.probe.len().min(cut.len())).take_while(same).count();
        self.probe.rewind(same);
        for &at in &cut[same..] {
            self.probe.step(trace.cursor.choice(at))?;
        }
        Ok(())
    }
}

impl Reversal {
    fn new<M: Model>(trace: &Trace<'_, '_, M>, cut: &[usize], last: Event) -> Reversal {
        let common = cut.iter().enumerate().take_while(|&(n, &at)| n == at).count();
        let event = |&at: &usize| Event { choice: trace.cursor.choice(at), footprint: trace.touched(at).clone() };
        Reversal { common, sequence: cut[common..].iter().map(event).chain([last]).collect() }
    }
}

/// A cut without one of its steps and all that happens after it.
fn without<M: Model>(trace: &Trace<'_, '_, M>, cut: &[usize], step: usize) -> Vec<usize> {
    cut.iter().copied().filter(|&at| at != step && !trace.graph.happens_before(step, at)).collect()
}

/// The steps of a cut that a look after it races with.
fn racing<M: Model>(trace: &Trace<'_, '_, M>, cut: &[usize], thread: ThreadId, footprint: &Footprint) -> Vec<usize> {
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
