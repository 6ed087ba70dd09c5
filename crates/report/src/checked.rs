//! All that is known when a check has ended, ready to be [told](crate::text) or [recorded](crate::record).

use preempt_explore::{Outcome, Plan, Replay};
use preempt_system::{Finding, Model, Narrate};

use crate::story::Story;

/// A check that has ended.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// How it searched.
    pub plan: &'a Plan,
    /// Why it searched so, if the choice was ours.
    pub chosen: Option<&'a str>,
    /// What it found.
    pub outcome: &'a Outcome,
    /// The executions of its findings, in the same order.
    pub stories: &'a [Story],
    /// The most memory that the process had, in bytes, if the system tells.
    pub peak_memory: Option<u64>,
    /// The command that replays a schedule, but for the token at its end.
    pub replay: &'a str,
}

/// The executions of the findings of `outcome`. `model` is the one that the search returned.
pub fn stories<'m, M>(model: &'m M, outcome: &Outcome) -> Vec<Story>
where
    M: Model<Stepper<'m>: Narrate>,
{
    let story = |finding: &Finding| {
        let replay = Replay::of(model, &finding.schedule).expect("a finding was replayed before it was reported");
        let fair = replay.preemptions() > finding.preemptions;
        let again = if fair { replay.fair(model, &finding.schedule) } else { Ok(replay) };
        let replay = again.expect("a schedule that was replayed fits the states");
        Story::of(model, &finding.schedule, &replay, Some(&finding.failure))
    };
    outcome.findings.iter().map(story).collect()
}
