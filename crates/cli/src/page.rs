//! The HTML pages that `--html` writes.

use preempt_machine::Machine;
use preempt_report::html::Page;
use preempt_report::{CheckReport, Trace};

/// The page of a check of this model.
pub fn checked(machine: &Machine, checked: &CheckReport<'_>) -> String {
    page(machine, Some(checked), None, checked.traces)
}

/// The page of one schedule, with a sentence about it.
pub fn replayed(machine: &Machine, trace: &Trace, sentence: &str) -> String {
    page(machine, None, Some(sentence), std::slice::from_ref(trace))
}

fn page(
    machine: &Machine,
    checked: Option<&CheckReport<'_>>,
    replayed: Option<&str>,
    traces: &[Trace],
) -> String {
    let source = &machine.program().source;
    let sources = [(source.name.to_string(), source.text.to_string())];
    Page { subject: &source.name, checked, replayed, traces, sources: &sources }.to_html()
}
