//! The page in which failing executions can be stepped through: what a closure's objects hold along
//! the way, the texts of its files, and the file that is written.

use std::collections::BTreeSet;
use std::fs;
use std::panic::Location;
use std::path::Path;

use preempt_replay::Op;
use preempt_report::value_history::Values;
use preempt_report::{CheckReport, Trace, ValueHistory, html};
use preempt_system::HbGraph;

use crate::narrator::{Narrator, held};
use crate::runtime::Runtime;
use crate::source;

/// A page that is to be written.
pub(crate) struct Page<'c> {
    path: &'c Path,
    /// Where the check stands.
    check: &'static Location<'static>,
}

impl<'c> Page<'c> {
    /// A page for the check at this place. A file that cannot be written is refused before a long
    /// search has gone by.
    #[track_caller]
    pub(crate) fn new(path: &'c Path, check: &'static Location<'static>) -> Page<'c> {
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let refuse = |why: String| -> ! {
            panic!(
                "this check cannot be made: the page cannot be saved as {}: {why}",
                path.display()
            )
        };
        if path.is_dir() {
            refuse("it is a directory".to_owned());
        }
        if !folder.is_dir() {
            refuse(format!("there is no directory {}", folder.display()));
        }
        Page { path, check }
    }

    /// Writes it. The line for the report says where, or why not: a finding is worth more than its
    /// page.
    pub(crate) fn write(&self, checked: &CheckReport<'_>, histories: &[ValueHistory]) -> String {
        let shown: Vec<(&Trace, &ValueHistory)> = checked.traces.iter().zip(histories).collect();
        let (subject, sources) =
            (format!("{}:{}", self.check.file(), self.check.line()), sources(checked.traces));
        let (checked, subject) = (Some(checked), subject.as_str());
        let page =
            html::Page { subject, checked, replayed: None, shown: &shown, sources: &sources };
        let path = self.path.display();
        match fs::write(self.path, page.to_html()) {
            Ok(()) => format!("  page      {path}\n"),
            Err(error) => format!("  page      cannot be saved as {path}: {error}\n"),
        }
    }
}

/// The texts of all files that the executions name, as far as they can be found.
fn sources(traces: &[Trace]) -> Vec<(String, String)> {
    let mut files = BTreeSet::new();
    for trace in traces {
        let steps = trace.steps.iter().map(|step| &step.narration.site);
        let waiting = trace.waiting.iter().map(|waiting| &waiting.narration.site);
        let failure = trace.failure.iter().map(|failure| &failure.site);
        files.extend(
            steps.chain(waiting).chain(failure).flatten().map(|site| site.file.to_string()),
        );
    }
    files.into_iter().filter_map(|file| source::text(&file).map(|text| (file, text))).collect()
}

/// Watches what objects hold: those that the execution has used so far, since no other is known.
pub(crate) struct Watch {
    used: BTreeSet<u32>,
    values: Values,
}

impl Watch {
    /// At the beginning nothing is known.
    pub(crate) fn new() -> Watch {
        let mut values = Values::default();
        values.note(Vec::new());
        Watch { used: BTreeSet::new(), values }
    }

    /// A step was taken.
    pub(crate) fn step(&mut self, runtime: &Runtime, op: Option<Op>, narrator: &Narrator) {
        self.used.extend(op.into_iter().flat_map(|op| op.objects()).map(|(_, object)| object));
        let known = self.used.iter().filter_map(|&object| {
            Some((None, narrator.name(runtime, object), held(runtime, object)?))
        });
        self.values.note(known.collect());
    }

    /// What is to be seen along the execution with this graph.
    pub(crate) fn history(self, graph: &HbGraph) -> ValueHistory {
        self.values.history(graph)
    }
}
