//! All that is known when a check has ended, ready to be [told](crate::text) or [recorded](crate::record).

use preempt_explore::{Outcome, Plan, Replay, replay};
use preempt_system::{Finding, Model, Narrate};

use crate::story::Story;

/// A check that has ended.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// How it searched.
    pub plan: &'a Plan,
    /// Why it searched so, if the choice was ours.
    pub chosen: Option<&'a str>,
    /// What it found. Its time includes that of `scouted`.
    pub outcome: &'a Outcome,
    /// The end of a quick search for the simplest errors, if one was made before and found none.
    pub scouted: Option<&'a Outcome>,
    /// The executions of its findings, in the same order.
    pub stories: &'a [Story],
    /// The most memory that the process had, in bytes, if the system tells.
    pub peak_memory: Option<u64>,
    /// The command that replays a schedule, but for the token at its end.
    pub replay: &'a str,
}

/// The executions of the findings of `outcome`. `model` is the one that the search returned.
pub fn stories<M>(model: &M, outcome: &Outcome) -> Vec<Story>
where
    M: Model + Clone,
    for<'m> M::Stepper<'m>: Narrate,
{
    outcome.findings.iter().map(|finding| story(model, finding)).collect()
}

fn story<M>(model: &M, finding: &Finding) -> Story
where
    M: Model + Clone,
    for<'m> M::Stepper<'m>: Narrate,
{
    let Finding { schedule, failure, .. } = finding;
    let counted = Replay::of(model, schedule).expect("a finding was replayed before it was reported");
    let fair = counted.preemptions() > finding.preemptions;
    let again = if fair { counted.fair(model, schedule) } else { Ok(counted) };
    let counted = again.expect("a schedule that was replayed fits the states");
    // What a thread has made keeps its name from the first step to the last.
    let told = replay(model.clone().with_stable_names(), schedule);
    let (told, stable) = told.expect("names decide nothing");
    Story::of(&stable, schedule, &told.preempting_as(&counted), Some(failure))
}
