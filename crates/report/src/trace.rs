//! An execution as text: numbered steps, one column for each thread where they fit, otherwise one for all.
//!
//! ```text
//!      line  inc(0)                    inc(1)
//!   1     4  t = x      // x = 0
//!            ── preemption: inc(0) could have gone on ──────────────
//!   2     4                            t = x      // x = 0
//! ```

use std::fmt::Write as _;

use preempt_system::{Failure, FailureKind, Site, ThreadId, ThreadSet};

use crate::columns::{Cell, Columns};
use crate::fold::{Part, fold};
use crate::schedule::describe;
use crate::story::{Story, Told};
use crate::style::{Layout, paint};
use crate::wrap::{clean, shortened, width, wrap, wrap_list};

/// The trace of `story`, up to and with its failure. Ends with a newline.
pub fn trace(story: &Story, layout: &Layout) -> String {
    let mut page = Page::new(story, layout);
    page.head();
    page.steps();
    page.end();
    page.text
}

/// A trace that is being written.
struct Page<'a> {
    story: &'a Story,
    layout: &'a Layout,
    /// Whether all steps are in one file, so that a line number is enough.
    one_file: bool,
    number_width: usize,
    place_width: usize,
    columns: Columns,
    text: String,
}

impl<'a> Page<'a> {
    fn new(story: &'a Story, layout: &'a Layout) -> Page<'a> {
        let mut files = story.steps.iter().filter_map(|step| step.narration.site.as_ref()).map(|site| &site.file);
        let first = files.next();
        let one_file = files.all(|file| Some(file) == first);
        let places = story.steps.iter().map(|step| width(&place(step.narration.site.as_ref(), one_file)));
        let number_width = story.steps.len().to_string().len().max(2);
        let place_width = places.max().unwrap_or(0).max(4);
        let movers: ThreadSet = story.steps.iter().map(|step| step.thread).collect();
        let names: Vec<(ThreadId, String)> = movers.iter().map(|thread| (thread, clean(story.name(thread)))).collect();
        let cells: Vec<(ThreadId, Cell)> = story.steps.iter().map(|step| (step.thread, cell(step))).collect();
        let room = layout.width.saturating_sub(number_width + 2 + place_width + 2);
        let columns = Columns::new(names, &cells, room);
        Page { story, layout, one_file, number_width, place_width, columns, text: String::new() }
    }

    /// The characters before the columns.
    fn margin(&self) -> usize {
        self.number_width + 2 + self.place_width + 2
    }

    fn head(&mut self) {
        if self.story.steps.is_empty() {
            return;
        }
        let place = if self.one_file { "line" } else { "place" };
        let margin = format!("{:>1$}  ", place, self.number_width + 2 + self.place_width);
        let style = &self.layout.style;
        self.text += &paint(style.faint, margin);
        self.text += self.columns.heading(style).trim_end();
        self.text.push('\n');
    }

    fn steps(&mut self) {
        let parts = fold(&self.story.steps);
        // A few at the beginning show where everything starts; the failure is near the end.
        let left_out = parts.len().saturating_sub(self.layout.most_steps);
        let first = if left_out > 0 { self.layout.most_steps / 5 } else { parts.len() };
        let mut last = None;
        let mut hidden = 0;
        for (at, &part) in parts.iter().enumerate() {
            if (first..first + left_out).contains(&at) {
                hidden += match part {
                    Part::Step(_) => 1,
                    Part::Again { length, times } => length * times,
                };
                last = None;
                if at + 1 == first + left_out {
                    self.ruler(&format!("{hidden} steps are not shown here; replay shows them all"));
                }
                continue;
            }
            match part {
                Part::Step(number) => {
                    let step = &self.story.steps[number];
                    self.step(number, step, last);
                    last = Some(step.thread);
                }
                Part::Again { length: 1, times } => self.ruler(&format!("{times} times more the same step")),
                Part::Again { length, times } => {
                    self.ruler(&format!("{times} times more the same {length} steps"));
                }
            }
        }
    }

    fn step(&mut self, number: usize, step: &Told, last: Option<ThreadId>) {
        if let Some(preempted) = step.preempts {
            self.ruler(&format!("preemption: {} could have gone on", clean(self.story.name(preempted))));
        }
        let style = &self.layout.style;
        let place = place(step.narration.site.as_ref(), self.one_file);
        let numbers = format!("{:>1$}  {place:>2$}  ", number + 1, self.number_width, self.place_width);
        for (at, line) in self.columns.lines(step.thread, &cell(step), last, style).iter().enumerate() {
            let margin = if at == 0 { paint(style.faint, &numbers) } else { " ".repeat(self.margin()) };
            self.text += format!("{margin}{line}").trim_end();
            self.text.push('\n');
        }
    }

    /// A line across all columns.
    fn ruler(&mut self, words: &str) {
        let indent = self.margin();
        let room = self.layout.width.saturating_sub(indent).max(20);
        let words = shortened(words, room - 6);
        let length = self.columns.width().min(room);
        let rest = length.saturating_sub(width(&words) + 4).max(2);
        let line = format!("── {words} {}", "─".repeat(rest));
        let _ = writeln!(self.text, "{:indent$}{}", "", paint(self.layout.style.alert, line));
    }

    /// The failure, and in a deadlock who waits for what.
    fn end(&mut self) {
        let Some(failure) = &self.story.failure else { return };
        let style = &self.layout.style;
        let indent = self.number_width + 2;
        for (at, line) in wrap(&headline(failure), self.layout.width.saturating_sub(indent)).iter().enumerate() {
            let mark = if at == 0 { format!("{:>1$}  ", "✗", self.number_width) } else { " ".repeat(indent) };
            self.text += &format!("{}\n", paint(style.bad, format!("{mark}{line}")));
        }
        if self.story.is_deadlock() {
            self.waiting();
        }
    }

    fn waiting(&mut self) {
        let style = &self.layout.style;
        let indent = self.number_width + 2;
        let names = self.story.waiting.iter().map(|waiting| width(self.story.name(waiting.thread))).max().unwrap_or(0);
        for waiting in &self.story.waiting {
            let told = &waiting.narration;
            let place = match &told.site {
                Some(site) if self.one_file => format!(" at line {}", site.line),
                Some(site) => format!(" at {site}"),
                None => String::new(),
            };
            let name = format!("{:names$}", clean(self.story.name(waiting.thread)));
            let words = format!(" waits{place}: {}", clean(&told.source));
            let effects = cleaned(&told.effects);
            let note = effects.join(", ");
            let _ = write!(self.text, "{:indent$}{}{words}", "", paint(style.name, &name));
            if note.is_empty() {
                self.text.push('\n');
            } else if indent + width(&name) + width(&words) + 5 + width(&note) <= self.layout.width {
                let _ = writeln!(self.text, "  {}", paint(style.effect, format!("// {note}")));
            } else {
                self.text.push('\n');
                for line in wrap_list(&effects, self.layout.width.saturating_sub(indent + 7)) {
                    let _ = writeln!(self.text, "{:1$}{2}", "", indent + 4, paint(style.effect, format!("// {line}")));
                }
            }
        }
    }
}

/// What a step has to say.
fn cell(step: &Told) -> Cell {
    let mut effects = cleaned(&step.narration.effects);
    // Usually the effects show what was chosen.
    if let (Some(alternative), true) = (step.alternative, effects.is_empty()) {
        effects.push(format!("alternative {alternative}"));
    }
    Cell { source: clean(&step.narration.source), effects }
}

fn cleaned(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| clean(text)).filter(|text| !text.is_empty()).collect()
}

fn place(site: Option<&Site>, one_file: bool) -> String {
    match site {
        None => String::new(),
        Some(site) if one_file => site.line.to_string(),
        Some(site) => format!("{}:{}", site.file.rsplit(['/', '\\']).next().unwrap_or(&site.file), site.line),
    }
}

/// A failure on one line, with its place.
pub(crate) fn headline(failure: &Failure) -> String {
    match &failure.site {
        // It names two places itself.
        Some(_) if failure.kind == FailureKind::Race => format!("race: {}", clean(&failure.message)),
        Some(site) => format!("{} ({})", describe(failure), clean(&site.to_string())),
        None => describe(failure),
    }
}
