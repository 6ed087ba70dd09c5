//! The locations that the threads of a model wait for in some reachable state.

use preempt_system::{
    Capacity, Choice, Footprint, Model, Status, Step, Stepper as _, ThreadId, Waits,
};

use crate::engine::long_steps;
use crate::engine::model::ask;
use crate::engine::store::{self, Lookup};
use crate::plan::StoreKind;

/// States between two polls of the limits.
const POLL_INTERVAL: u64 = 1 << 10;

/// The locations that threads of a model wait for in some reachable state. Visits all states, and
/// keeps them during the search.
pub fn reachable<M: Model>(model: &M) -> Result<Waits, Capacity> {
    let waits = reachable_while(model, &mut |_| true)?;
    Ok(waits.expect("only a lack of memory ends it early"))
}

/// The same within limits: `may_continue` is called with the bytes used so far. `None` if it
/// returns false, or if there is not enough memory for all states.
pub(crate) fn reachable_while<M: Model>(
    model: &M,
    may_continue: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<Waits>, Capacity> {
    let (mut stepper, shape) = (model.stepper(), model.shape());
    let (mut initial, mut scratch) = (vec![0; shape.words], vec![0; shape.words]);
    let mut looks = Footprint::new();
    match stepper.initial(&mut initial) {
        Step::Full(capacity) => return Err(capacity),
        Step::Failed(_) => return Ok(Some(Waits::At(looks))),
        _ => {}
    }
    let Ok(seen) = store::build(StoreKind::Exact, shape.words, 1) else { return Ok(None) };
    let (mut lookup, mut next) = (Lookup::default(), vec![0; shape.words]);
    if seen.insert(&initial, &mut lookup).is_err() {
        return Ok(None);
    }
    let mut waiting = initial;
    for visited in 0u64.. {
        let Some(rest) = waiting.len().checked_sub(shape.words) else { break };
        let state = waiting.split_off(rest);
        let due =
            visited.is_multiple_of(POLL_INTERVAL) || long_steps::is_due() || lookup.take_growth();
        if due {
            long_steps::polled();
        }
        if due && !may_continue(seen.bytes() + waiting.capacity() * size_of::<u64>()) {
            return Ok(None);
        }
        for thread in (0..shape.threads).map(ThreadId::new) {
            let pending = ask(&mut stepper, &state, thread, &mut scratch)?;
            for &(alternative, ref footprint) in &pending.footprints {
                if pending.status != Status::Enabled {
                    footprint
                        .accesses()
                        .iter()
                        .for_each(|&(location, access)| looks.add(location, access));
                    continue;
                }
                next.copy_from_slice(&state);
                if let Step::Full(capacity) =
                    stepper.step(&mut next, Choice { thread, alternative })
                {
                    return Err(capacity);
                }
                if seen.insert(&next, &mut lookup).is_err() {
                    return Ok(None);
                }
                if !lookup.fresh.is_empty() {
                    waiting.extend_from_slice(&next);
                }
            }
        }
    }
    Ok(Some(Waits::At(looks)))
}
