//! A few random executions before the search, to find locations that are not protected.
//!
//! They only save time: a location that they show to be unprotected does not cause a restart of the
//! search. The set of locations that are given up by a complete search is the same without them.

use preempt_system::{Choice, Model, Step, StepLog, Stepper, ThreadId};

use super::discipline::Discipline;
use crate::engine::pcg::Pcg;

/// The number of executions.
const WALKS: u32 = 16;
/// The number of steps that are tried in each execution.
const TRIES: usize = 256;

/// Lets `discipline` see random executions of `model`.
pub(super) fn observe_random_walks<M: Model>(model: &M, discipline: &mut Discipline) {
    let shape = model.shape();
    let mut stepper = model.stepper();
    let (mut state, mut next) = (vec![0; shape.words], vec![0; shape.words]);
    let mut log = StepLog::new();
    for walk in 0..WALKS {
        let mut random = Pcg::new(0, walk.into());
        if !matches!(stepper.initial(&mut state), Step::Moved { .. }) {
            return;
        }
        for _ in 0..TRIES {
            let thread = ThreadId::new(random.below(shape.threads as u32) as usize);
            let choice = Choice { thread, alternative: random.below(4) };
            next.copy_from_slice(&state);
            log.clear();
            let step = stepper.step_with_log(&mut next, choice, &mut log);
            if matches!(step, Step::Moved { .. } | Step::Failed(_)) {
                // Finding breaches is the purpose here; nothing relies on the class.
                let _ = discipline.class(&stepper, &state, thread, &log);
                std::mem::swap(&mut state, &mut next);
            }
        }
    }
    discipline.restart();
}
