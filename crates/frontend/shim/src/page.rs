//! The HTML page of a check: the file that is written, and the source files that it shows.

use std::collections::BTreeSet;
use std::fs;
use std::panic::Location;
use std::path::Path;

use preempt_report::{CheckReport, Trace, html};

use crate::source;

/// A page that is to be written.
pub(crate) struct Page<'c> {
    path: &'c Path,
    /// The position of the check in the source.
    check: &'static Location<'static>,
}

impl<'c> Page<'c> {
    /// A page for the check at this position. A file that cannot be written is refused before a
    /// long search.
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

    /// Writes it. Returns the line for the report, which says where it is, or why it could not be
    /// written: a finding counts more than its page.
    pub(crate) fn write(&self, checked: &CheckReport<'_>) -> String {
        let subject = format!("{}:{}", self.check.file(), self.check.line());
        let page = html::Page {
            subject: &subject,
            checked: Some(checked),
            replayed: None,
            traces: checked.traces,
            sources: &sources(checked.traces),
        };
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
