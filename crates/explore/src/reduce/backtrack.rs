//! Depth-first search with backtrack sets and sleep sets: a [`Backtracking`] decides which threads
//! are tried at a place, this module which steps sleep there.
//!
//! A step *sleeps* at a place if executions explored before cover everything that it leads to: it
//! was taken at an earlier place, and only steps independent of it came since. Steps sleep, not
//! threads: a thread may have several alternatives, and another step may depend on one of them
//! only. A sleeping step keeps the footprint that it had when it fell asleep, because nothing that
//! it reads has changed.

use preempt_system::{Choice, System, ThreadSet};

use super::policy::{Entered, Policy};
use super::trace::{ReductionStats, Trace};
use crate::codec::save_fields;
use crate::engine::execution::{Cut, Stop};

/// The execution before one of its steps.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The threads to try here.
    pub(super) backtrack: ThreadSet,
    /// The steps that sleep here: inherited ones, and those that were taken here.
    pub(super) sleep: Vec<Choice>,
    /// The steps that were taken here.
    taken: Vec<Choice>,
}

save_fields!(Place { backtrack, sleep, taken });

/// Chooses the threads to try at each place: the part in which the reductions differ.
pub(crate) trait Backtracking<S: System> {
    /// Whether steps sleep.
    const SLEEP: bool;

    /// The threads to try at a new place: the steps in `sleep` sleep, the threads in `awake` have
    /// other steps.
    fn begin(&mut self, trace: &Trace<'_, S>, awake: ThreadSet, sleep: &[Choice]) -> ThreadSet;

    /// A step was taken from the last of `places`. Adds threads that have to be tried there or
    /// before.
    fn reconsider(&mut self, _trace: &Trace<'_, S>, _places: &mut [Place]) {}

    /// An execution has ended or was abandoned; `places` are those before its steps. Adds threads
    /// that have to be tried there.
    fn finish(
        &mut self,
        _trace: &mut Trace<'_, S>,
        _places: &mut [Place],
    ) -> Result<(), Stop<S::Need>> {
        Ok(())
    }
}

/// Takes the steps of the threads in the backtrack sets, except for those that sleep.
pub(crate) struct Backtrack<B>(pub(super) B);

impl<S: System, B: Backtracking<S>> Policy<S> for Backtrack<B> {
    type Place = Place;
    /// The steps that sleep.
    type Arrival = Vec<Choice>;

    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        sleep: Vec<Choice>,
        places: &mut [Place],
        _: &mut ReductionStats,
    ) -> Entered<Place, S::Need> {
        if !places.is_empty() {
            self.0.reconsider(trace, places);
        }
        let awake: ThreadSet = trace
            .enabled()
            .filter(|&thread| trace.alternatives(thread).any(|choice| !sleep.contains(&choice)))
            .collect();
        let (mut backtrack, mut cut) = (ThreadSet::EMPTY, None);
        if awake.is_empty() {
            self.0.finish(trace, places)?;
            cut = Some(Cut::Covered);
        } else {
            backtrack = self.0.begin(trace, awake, &sleep);
        }
        Ok((Place { backtrack, sleep, taken: Vec::new() }, cut))
    }

    /// The running thread's step first, then the lowest thread's.
    fn next(&mut self, trace: &Trace<'_, S>, place: &mut Place) -> Option<(Choice, Vec<Choice>)> {
        let done = if B::SLEEP { &place.sleep } else { &place.taken };
        let choice = trace
            .enabled()
            .filter(|&thread| place.backtrack.contains(thread))
            .flat_map(|thread| trace.alternatives(thread))
            .find(|choice| !done.contains(choice))?;
        let sleep = if B::SLEEP { inherit(trace, &place.sleep, choice) } else { Vec::new() };
        place.sleep.push(choice);
        place.taken.push(choice);
        Some((choice, sleep))
    }
}

/// The steps that still sleep after `choice`.
pub(super) fn inherit<S: System>(
    trace: &Trace<'_, S>,
    sleep: &[Choice],
    choice: Choice,
) -> Vec<Choice> {
    let taken = trace.footprint(choice);
    let others = sleep.iter().filter(|other| other.thread != choice.thread);
    others.filter(|&&other| !trace.footprint(other).depends(&taken)).copied().collect()
}
