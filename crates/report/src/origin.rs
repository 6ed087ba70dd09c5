//! Where the values come from that a failing step has read.
//!
//! An assertion that fails says what it read; why it read that is the question. The answer is the
//! last step that wrote it. If the failing step looks at nothing shared, its values are older: then
//! the last step of its thread that looked at something counts.

use preempt_explore::Replay;
use preempt_system::{
    Access, Failure, FailureKind, Footprint, Location, Model, Narrate, Schedule, Stepper as _,
};

/// A value and where it comes from. Steps are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The variable or object, as it is called in the program.
    pub variable: String,
    /// What was read, if that is known.
    pub value: Option<String>,
    /// The step that read it; `None` if it was looked at after the last step, as invariants are.
    pub read: Option<usize>,
    /// The step that wrote it last before that; `None` if it was as it is from the beginning.
    pub written: Option<usize>,
}

/// The values that led to `failure` at the end of an execution of `model`.
pub(crate) fn origins<'m, M>(
    model: &'m M,
    schedule: &Schedule,
    replay: &Replay,
    failure: &Failure,
) -> Vec<Origin>
where
    M: Model<Stepper<'m>: Narrate>,
{
    let mut stepper = model.stepper();
    let mut touched = |at: usize| {
        let mut footprint = Footprint::new();
        stepper.step_with_footprint(
            &mut replay.state(at).to_vec(),
            schedule.steps()[at],
            &mut footprint,
        );
        footprint
    };
    let footprints: Vec<Footprint> = (0..replay.steps()).map(&mut touched).collect();
    let writer = |location: Location, before: usize| {
        footprints[..before]
            .iter()
            .rposition(|footprint| footprint.accesses().contains(&(location, Access::Write)))
    };
    let mut found = |locations: &Footprint, read: Option<usize>| -> Vec<Origin> {
        let at = read.unwrap_or(replay.steps());
        let all = locations.accesses().iter().filter_map(|&(location, _)| {
            let (variable, value) = stepper.value(replay.state(at), location)?;
            Some(Origin { variable, value: Some(value), read, written: writer(location, at) })
        });
        all.collect()
    };
    match (failure.kind, schedule.steps().last()) {
        (FailureKind::Invariant, _) => {
            let mut footprint = Footprint::new();
            // What it says is known.
            let _ = model
                .stepper()
                .invariant_with_footprint(replay.state(replay.steps()), &mut footprint);
            found(&footprint, None)
        }
        (FailureKind::Assertion | FailureKind::Runtime, Some(last)) => {
            let own =
                (0..replay.steps()).rev().filter(|&at| schedule.steps()[at].thread == last.thread);
            own.map(|at| found(&footprints[at], Some(at)))
                .find(|origins| !origins.is_empty())
                .unwrap_or_default()
        }
        _ => Vec::new(),
    }
}
