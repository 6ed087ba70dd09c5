//! The depth-first loop of the reductions that keep no table: which threads are tried at a place is
//! the policy's, which steps sleep is decided here.
//!
//! A step *sleeps* at a place if all that it leads to is covered by executions explored before: it
//! was taken at an earlier place, and only steps independent of it came since. Steps sleep, not
//! threads: a thread may have several alternatives, and another step may depend on one of them
//! only. What a sleeping step touches is what it touched when it fell asleep, because nothing that
//! it looks at has changed.
//!
//! It pauses between two steps. What is left is then the execution and its places.

use preempt_system::{Choice, System, ThreadSet};

use super::trace::{Tally, Trace};
use crate::codec::save_fields;
use crate::engine::execution::{Cut, Stop, Visitor};

/// A place of the search: the execution before one of its steps.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The threads to try here.
    pub(super) backtrack: ThreadSet,
    /// The steps that sleep here: those from before, and those that were taken here.
    pub(super) sleep: Vec<Choice>,
    /// The steps that were taken here.
    taken: Vec<Choice>,
}

save_fields!(Place { backtrack, sleep, taken });

/// What differs between the reductions.
pub(super) trait Policy<S: System> {
    /// Whether steps sleep.
    const SLEEP: bool;

    /// The threads to try at a new place where some steps `sleep` and the threads that have others
    /// are `awake`.
    fn begin(&mut self, trace: &Trace<'_, S>, awake: ThreadSet, sleep: &[Choice]) -> ThreadSet;

    /// A step was taken: `places` are that before it and all before. Which threads have to be tried
    /// there too?
    fn reconsider(&mut self, _trace: &Trace<'_, S>, _places: &mut [Place]) {}

    /// An execution has ended, or is given up: `places` are those before its steps. Which threads
    /// have to be tried there too?
    fn finish(
        &mut self,
        _trace: &mut Trace<'_, S>,
        _places: &mut [Place],
    ) -> Result<(), Stop<S::Need>> {
        Ok(())
    }
}

/// Explores.
pub(super) fn walk<S: System, P: Policy<S>>(
    trace: &mut Trace<'_, S>,
    visitor: &mut impl Visitor<S>,
    policy: &mut P,
) -> Result<Tally, Stop<S::Need>> {
    let mut tally = Tally::default();
    let mut places = Vec::new();
    match trace.resume(visitor)? {
        Some(paused) => (places, tally) = paused,
        None => enter(trace, visitor, policy, &mut tally, &mut places, Vec::new())?,
    }
    loop {
        trace.pause(&places, &tally, visitor)?;
        let Some(place) = places.last_mut() else { break };
        let Some(choice) = next::<S, P>(trace, place) else {
            places.pop();
            trace.rewind(places.len().saturating_sub(1));
            continue;
        };
        let sleep = if P::SLEEP { inherit(trace, &place.sleep, choice) } else { Vec::new() };
        place.sleep.push(choice);
        place.taken.push(choice);
        let failure = trace.step(choice)?;
        visitor.step(trace.cursor, failure)?;
        policy.reconsider(trace, &mut places);
        enter(trace, visitor, policy, &mut tally, &mut places, sleep)?;
    }
    Ok(tally)
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

fn enter<S: System, P: Policy<S>>(
    trace: &mut Trace<'_, S>,
    visitor: &mut impl Visitor<S>,
    policy: &mut P,
    tally: &mut Tally,
    places: &mut Vec<Place>,
    sleep: Vec<Choice>,
) -> Result<(), Stop<S::Need>> {
    tally.nodes += 1;
    let awake: ThreadSet = trace
        .enabled()
        .filter(|&thread| trace.alternatives(thread).any(|choice| !sleep.contains(&choice)))
        .collect();
    if trace.cursor.enabled().is_empty() {
        tally.executions += 1;
        visitor.end(trace.cursor)?;
    } else if awake.is_empty() {
        tally.covered += 1;
        visitor.cut(trace.cursor, Cut::Covered)?;
    }
    let mut backtrack = ThreadSet::EMPTY;
    if awake.is_empty() {
        policy.finish(trace, places)?;
    } else {
        backtrack = policy.begin(trace, awake, &sleep);
    }
    places.push(Place { backtrack, sleep, taken: Vec::new() });
    Ok(())
}

/// The next step to take here: the running thread's first, else the lowest thread's.
fn next<S: System, P: Policy<S>>(trace: &Trace<'_, S>, place: &Place) -> Option<Choice> {
    let over = if P::SLEEP { &place.sleep } else { &place.taken };
    let threads = trace.enabled().filter(|&thread| place.backtrack.contains(thread));
    threads.flat_map(|thread| trace.alternatives(thread)).find(|choice| !over.contains(choice))
}
