//! A trace as text: numbered steps, in one column for each thread if the columns fit, otherwise in
//! one column.
//!
//! ```text
//!      line  inc(0)                    inc(1)
//!   1     4  t = x      // x = 0
//!            ── preemption: inc(0) could have continued ────────────
//!   2     4                            t = x      // x = 0
//! ```

use std::fmt::Write as _;

use preempt_system::{Failure, FailureKind, Site, ThreadId, ThreadSet};

use crate::columns::{Cell, Columns};
use crate::fold::{Part, fold};
use crate::origin::Origin;
use crate::schedule::describe;
use crate::statements::by_statement;
use crate::style::{FileNames, Folding, Layout, paint};
use crate::text_report::variables;
use crate::trace::{NarratedStep, ThreadPosition, Trace};
use crate::wrap::{clean, shortened, width, wrap, wrap_list};

/// The most characters of source in the origin of a value.
const LONGEST_SOURCE: usize = 60;
/// The most origins that are listed: more do not explain a failure.
const MOST_ORIGINS: usize = 4;

/// The most lines for the failure below the last step.
const MOST_LINES: usize = 2;

impl Trace {
    /// The steps and the failure as text. Ends with a newline.
    pub fn to_text(&self, layout: &Layout) -> String {
        let mut page = Page::new(self, layout);
        page.head();
        page.steps();
        page.end();
        page.text
    }

    /// The state after the last step as text, for an execution that was stopped: what each thread
    /// would do next, and the values of the variables. Ends with a newline.
    pub fn state_to_text(&self, layout: &Layout) -> String {
        let mut page = Page::new(self, layout);
        let names =
            self.next.iter().chain(&self.waiting).map(|thread| width(self.name(thread.thread)));
        let names = names.max().unwrap_or(0);
        page.threads(&self.next, "continues", names);
        page.threads(&self.waiting, "waits", names);
        let values = variables(self, layout);
        if values.is_empty() { page.text } else { format!("{}\n{values}", page.text) }
    }
}

/// A trace that is being written.
struct Page<'a> {
    trace: &'a Trace,
    /// The lines, each with the number of its first step.
    lines: Vec<NarratedStep>,
    numbers: Vec<usize>,
    layout: &'a Layout,
    /// The heading of the positions.
    heading: String,
    /// Whether all positions are in one file, so that line numbers are enough.
    one_file: bool,
    number_width: usize,
    place_width: usize,
    columns: Columns,
    text: String,
}

impl<'a> Page<'a> {
    fn new(trace: &'a Trace, layout: &'a Layout) -> Page<'a> {
        // The steps of a cycle are those that repeat, so all of them are shown.
        let lines = match layout.folding {
            Folding::Statements if trace.cycle == 0 => by_statement(&trace.steps),
            _ => trace.steps.iter().cloned().enumerate().collect(),
        };
        let (numbers, lines): (Vec<usize>, Vec<NarratedStep>) = lines.into_iter().unzip();
        let heading = heading(trace, &lines, layout);
        let one_file = heading.is_some();
        let heading = heading.unwrap_or_else(|| "place".to_owned());
        let places = lines.iter().map(|step| width(&place(step.narration.site.as_ref(), one_file)));
        let number_width = trace.steps.len().to_string().len().max(2);
        let place_width = places.max().unwrap_or(0).max(width(&heading)).max(4);
        let movers: ThreadSet = lines.iter().map(|step| step.thread).collect();
        let names: Vec<(ThreadId, String)> =
            movers.iter().map(|thread| (thread, clean(trace.name(thread)))).collect();
        let cells: Vec<(ThreadId, Cell)> =
            lines.iter().map(|step| (step.thread, cell(step))).collect();
        let room = layout.width.saturating_sub(number_width + 2 + place_width + 2);
        let columns = Columns::new(names, &cells, room);
        Page {
            trace,
            lines,
            numbers,
            layout,
            heading,
            one_file,
            number_width,
            place_width,
            columns,
            text: String::new(),
        }
    }

    /// The characters before the columns.
    fn margin(&self) -> usize {
        self.number_width + 2 + self.place_width + 2
    }

    fn head(&mut self) {
        if self.trace.steps.is_empty() {
            return;
        }
        let margin = format!("{:>1$}  ", self.heading, self.number_width + 2 + self.place_width);
        let style = &self.layout.style;
        self.text += &paint(style.faint, margin);
        self.text += self.columns.heading(style).trim_end();
        self.text.push('\n');
    }

    fn steps(&mut self) {
        let (stem, cycle) = self.lines.split_at(self.lines.len() - self.trace.cycle);
        // Folded separately, so that the first step of the cycle is shown.
        let mut parts = fold(stem);
        parts.extend(fold(cycle).into_iter().map(|part| part.later_by(stem.len())));
        // A few steps at the beginning show the start; the failure is near the end.
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
                    self.ruler(&format!(
                        "{hidden} steps are not shown here; replay shows them all"
                    ));
                }
                continue;
            }
            match part {
                Part::Step(number) => {
                    let step = self.lines[number].clone();
                    if self.trace.cycle_start() == Some(number) {
                        let all = self.trace.steps.len();
                        self.ruler(&match self.trace.cycle {
                            1 => format!("cycle: step {all} repeats forever"),
                            _ => format!("cycle: steps {} to {all} repeat forever", number + 1),
                        });
                    }
                    self.step(self.numbers[number], &step, last);
                    last = Some(step.thread);
                }
                Part::Again { length, times } => {
                    let often = if times == 1 {
                        "once more".to_owned()
                    } else {
                        format!("{times} more times")
                    };
                    let what = if length == 1 {
                        "the same step".to_owned()
                    } else {
                        format!("the same {length} steps")
                    };
                    self.ruler(&format!("{what}, {often}"));
                }
            }
        }
    }

    fn step(&mut self, number: usize, step: &NarratedStep, last: Option<ThreadId>) {
        if let Some(preempted) = step.preempts {
            self.ruler(&format!(
                "preemption: {} could have continued",
                clean(self.trace.name(preempted))
            ));
        }
        let style = &self.layout.style;
        let place = place(step.narration.site.as_ref(), self.one_file);
        let numbers =
            format!("{:>1$}  {place:>2$}  ", number + 1, self.number_width, self.place_width);
        for (at, line) in
            self.columns.lines(step.thread, &cell(step), last, style).iter().enumerate()
        {
            let margin =
                if at == 0 { paint(style.faint, &numbers) } else { " ".repeat(self.margin()) };
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

    /// The failure, the origins of its values, and the threads that wait.
    fn end(&mut self) {
        let Some(failure) = &self.trace.failure else { return };
        let style = &self.layout.style;
        let indent = self.number_width + 2;
        let mut lines = wrap(&headline(failure), self.layout.width.saturating_sub(indent + 2));
        if lines.len() > MOST_LINES {
            // The whole message is above the trace.
            lines.truncate(MOST_LINES);
            lines[MOST_LINES - 1] += " …";
        }
        for (at, line) in lines.iter().enumerate() {
            let mark = if at == 0 {
                format!("{:>1$}  ", "✗", self.number_width)
            } else {
                " ".repeat(indent)
            };
            self.text += &format!("{}\n", paint(style.bad, format!("{mark}{line}")));
        }
        self.origins();
        self.waiting();
    }

    /// The origins of the values that the failing step read.
    fn origins(&mut self) {
        let indent = self.number_width + 2;
        let all = &self.trace.origins;
        for origin in all.iter().take(MOST_ORIGINS) {
            let words = self.origin(origin);
            for (at, line) in
                wrap(&words, self.layout.width.saturating_sub(indent + 2)).iter().enumerate()
            {
                let hanging = if at == 0 { indent } else { indent + 2 };
                let _ = writeln!(self.text, "{:hanging$}{line}", "");
            }
        }
        if all.len() > MOST_ORIGINS {
            let _ = writeln!(self.text, "{:indent$}and {} more", "", all.len() - MOST_ORIGINS);
        }
    }

    fn origin(&self, origin: &Origin) -> String {
        let variable = clean(&origin.variable);
        let mut words = match &origin.value {
            Some(value) => format!("{variable} = {}", clean(value)),
            None => variable,
        };
        if let Some(read) = origin.read.filter(|read| read + 1 < self.trace.steps.len()) {
            words += &format!(", read in step {},", read + 1);
        }
        match origin.written.map(|at| (at + 1, &self.trace.steps[at])) {
            Some((number, step)) => {
                let (name, source) = (self.trace.name(step.thread), &step.narration.source);
                let source = shortened(&clean(source), LONGEST_SOURCE);
                words + &format!(" was last written in step {number} by {}: {source}", clean(name))
            }
            None => words + " is its initial value",
        }
    }

    fn waiting(&mut self) {
        let trace = self.trace;
        let names = trace
            .waiting
            .iter()
            .map(|waiting| width(trace.name(waiting.thread)))
            .max()
            .unwrap_or(0);
        self.threads(&trace.waiting, "waits", names);
    }

    /// The positions of threads, each on one line if there is room.
    fn threads(&mut self, threads: &[ThreadPosition], verb: &str, names: usize) {
        let style = &self.layout.style;
        let indent = self.number_width + 2;
        for waiting in threads {
            let narration = &waiting.narration;
            let place = match &narration.site {
                Some(site) if self.one_file => format!(" at line {}", site.line),
                Some(site) => format!(" at {site}"),
                None => String::new(),
            };
            let name = format!("{:names$}", clean(self.trace.name(waiting.thread)));
            let words = format!(" {verb}{place}: {}", clean(&narration.source));
            let effects = cleaned(&narration.effects);
            let note = effects.join(", ");
            let _ = write!(self.text, "{:indent$}{}{words}", "", paint(style.name, &name));
            if note.is_empty() {
                self.text.push('\n');
            } else if indent + width(&name) + width(&words) + 5 + width(&note) <= self.layout.width
            {
                let _ = writeln!(self.text, "  {}", paint(style.effect, format!("// {note}")));
            } else {
                self.text.push('\n');
                for line in wrap_list(&effects, self.layout.width.saturating_sub(indent + 7)) {
                    let _ = writeln!(
                        self.text,
                        "{:1$}{2}",
                        "",
                        indent + 4,
                        paint(style.effect, format!("// {line}"))
                    );
                }
            }
        }
    }
}

/// The heading above line numbers: `line` if the reader knows the file, otherwise its name. `None`
/// if there are several files.
fn heading(trace: &Trace, lines: &[NarratedStep], layout: &Layout) -> Option<String> {
    let ends = trace.waiting.iter().chain(&trace.next).map(|thread| &thread.narration);
    let shown = lines.iter().map(|step| &step.narration).chain(ends);
    let mut sites = shown.filter_map(|narration| narration.site.as_ref());
    let first = sites.next();
    let named = |site: &Site| {
        layout.files == FileNames::Implied
            || trace.failure.as_ref().is_some_and(|of| headline(of).contains(&*site.file))
    };
    match first {
        Some(first) if !sites.all(|site| site.file == first.file) => None,
        Some(first) if !named(first) => Some(clean(base_name(&first.file))),
        _ => Some("line".to_owned()),
    }
}

/// A file without its folders.
fn base_name(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}

/// The contents of a step's cell.
fn cell(step: &NarratedStep) -> Cell {
    let mut effects = cleaned(&step.narration.effects);
    // Usually the effects show which alternative was taken.
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
        Some(site) => {
            format!("{}:{}", base_name(&site.file), site.line)
        }
    }
}

/// A failure on one line, with its position.
pub(crate) fn headline(failure: &Failure) -> String {
    match &failure.site {
        // Their messages contain positions.
        Some(_) if names_places(failure.kind) => {
            let message = clean(&failure.message).split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{}: {message}", failure.kind.word())
        }
        Some(site) => format!("{} ({})", describe(failure), clean(&site.to_string())),
        None => describe(failure),
    }
}

/// Whether the messages of such failures contain positions.
fn names_places(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Race | FailureKind::Panic | FailureKind::Leak | FailureKind::Nondeterminism
    )
}
