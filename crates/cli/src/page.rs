//! Pages to look at: what `--html` writes.

use preempt_explore::{Replay, replay};
use preempt_machine::Machine;
use preempt_report::html::Page;
use preempt_report::{CheckReport, Trace, ValueHistory};
use preempt_system::{Model as _, Schedule};

/// The page of a check of this model.
pub fn checked(machine: &Machine, checked: &CheckReport<'_>) -> String {
    let history = |schedule: &Schedule| {
        // With the names of the traces.
        let told = replay(machine.clone().with_stable_names(), schedule);
        let (told, stable) = told.expect("a finding was replayed before it was reported");
        ValueHistory::of(&stable, schedule, &told)
    };
    let histories: Vec<ValueHistory> =
        checked.outcome.findings.iter().map(|finding| history(&finding.schedule)).collect();
    let shown: Vec<(&Trace, &ValueHistory)> = checked.traces.iter().zip(&histories).collect();
    page(machine, Some(checked), None, &shown)
}

/// The page of one schedule, with what is to be said about it.
pub fn replayed(
    machine: &Machine,
    schedule: &Schedule,
    replay: &Replay,
    trace: &Trace,
    said: &str,
) -> String {
    page(machine, None, Some(said), &[(trace, &ValueHistory::of(machine, schedule, replay))])
}

fn page(
    machine: &Machine,
    checked: Option<&CheckReport<'_>>,
    replayed: Option<&str>,
    shown: &[(&Trace, &ValueHistory)],
) -> String {
    let source = &machine.program().source;
    let sources = [(source.name.to_string(), source.text.to_string())];
    Page { subject: &source.name, checked, replayed, shown, sources: &sources }.to_html()
}
