//! Pages to look at: what `--html` writes.

use preempt_explore::{Replay, replay};
use preempt_machine::Machine;
use preempt_report::html::Page;
use preempt_report::{Checked, Story, Timeline};
use preempt_system::{Model as _, Schedule};

/// The page of a check of this model.
pub fn checked(machine: &Machine, checked: &Checked<'_>) -> String {
    let timeline = |schedule: &Schedule| {
        // With the names of the stories.
        let told = replay(machine.clone().with_stable_names(), schedule);
        let (told, stable) = told.expect("a finding was replayed before it was reported");
        Timeline::of(&stable, schedule, &told)
    };
    let timelines: Vec<Timeline> =
        checked.outcome.findings.iter().map(|finding| timeline(&finding.schedule)).collect();
    let shown: Vec<(&Story, &Timeline)> = checked.stories.iter().zip(&timelines).collect();
    page(machine, Some(checked), None, &shown)
}

/// The page of one schedule, with what is to be said about it.
pub fn replayed(
    machine: &Machine,
    schedule: &Schedule,
    replay: &Replay,
    story: &Story,
    said: &str,
) -> String {
    page(machine, None, Some(said), &[(story, &Timeline::of(machine, schedule, replay))])
}

fn page(
    machine: &Machine,
    checked: Option<&Checked<'_>>,
    replayed: Option<&str>,
    shown: &[(&Story, &Timeline)],
) -> String {
    let source = &machine.program().source;
    let sources = [(source.name.to_string(), source.text.to_string())];
    Page { subject: &source.name, checked, replayed, shown, sources: &sources }.to_html()
}
