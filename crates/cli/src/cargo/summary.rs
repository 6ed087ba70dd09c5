//! The table of tests: what each one cost, what was covered, and the verdict.

use preempt_explore::Cost;
use preempt_native::{Level, Races};
use preempt_report::json::Value;
use preempt_report::number::{counted, grouped, time};
use preempt_report::{Style, wrap};
use preempt_system::{MemoryModel, Verdict};

use super::build::Built;
use crate::run::Explored;
use crate::{Exit, Refused, screen};

/// The result of one test.
pub(super) enum Row {
    /// It was explored.
    Explored {
        verdict: Verdict,
        executions: u64,
        /// The number of distinct happens-before graphs, if they were counted.
        graphs: Option<u64>,
        covered: Covered,
        elapsed: std::time::Duration,
        /// Why the search is incomplete, if it is.
        why: Option<String>,
    },
    /// It is marked `#[ignore]`.
    Ignored,
    /// It cannot be explored, for this reason.
    Refused(String),
    /// The user has ended the search before.
    NotRun,
}

/// The covered schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Covered {
    /// The test has no threads, and so one schedule.
    NoThreads,
    /// All schedules.
    All,
    /// Those with at most this many preemptions or delays.
    Bound(u32, Cost),
    /// A sample, or the beginning of a search.
    Some,
    /// Some, up to an error, whose schedule has this many preemptions.
    Error { preemptions: u32 },
}

impl Row {
    /// The row of a test that was explored.
    pub(super) fn of(explored: &Explored, no_threads: bool) -> Row {
        let outcome = &explored.outcome;
        let covered = match outcome.bounds.last() {
            _ if no_threads => Covered::NoThreads,
            _ if outcome.complete => Covered::All,
            Some(bound) if !bound.cut && outcome.stopped.is_none() && !outcome.at_finding => {
                Covered::All
            }
            Some(bound) => Covered::Bound(bound.bound, outcome.strategy.cost()),
            None => Covered::Some,
        };
        let covered = match outcome.findings.first() {
            Some(finding) => Covered::Error { preemptions: finding.preemptions },
            None => covered,
        };
        Row::Explored {
            verdict: outcome.verdict,
            executions: outcome.executions().unwrap_or(0),
            graphs: outcome.traces(),
            covered,
            elapsed: outcome.elapsed,
            why: (outcome.verdict == Verdict::Incomplete).then(|| match outcome.findings.first() {
                Some(finding) => finding.failure.message.clone(),
                None => outcome.guarantee(),
            }),
        }
    }

    /// The text below the row.
    fn note(&self) -> Option<&str> {
        match self {
            Row::Refused(why) => Some(why.strip_prefix("error: ").unwrap_or(why).trim_end()),
            Row::Explored { why, .. } => why.as_deref(),
            Row::Ignored | Row::NotRun => None,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Row::Ignored => Exit::Covered,
            Row::Refused(_) => Exit::Refused,
            Row::NotRun => Exit::Incomplete,
            Row::Explored { verdict: Verdict::Ok, .. } => Exit::Covered,
            Row::Explored { verdict: Verdict::Incomplete, .. } => Exit::Incomplete,
            Row::Explored { .. } => Exit::Finding,
        }
    }

    /// The verdict in a word.
    fn word(&self) -> &str {
        match self {
            Row::Ignored => "ignored",
            Row::Refused(_) => "refused",
            Row::NotRun => "not run",
            Row::Explored { verdict, .. } => verdict.word(),
        }
    }

    /// The cells after the name: executions, graphs, preemptions, time.
    fn cells(&self) -> [String; 4] {
        let Row::Explored { executions, graphs, covered, elapsed, .. } = self else {
            return Default::default();
        };
        let covered = match covered {
            Covered::NoThreads => "no threads".to_owned(),
            Covered::All => "all".to_owned(),
            Covered::Bound(bound, Cost::Preemptions) => format!("≤ {bound}"),
            Covered::Bound(bound, Cost::Delays) => {
                format!("≤ {}", counted((*bound).into(), "delay"))
            }
            Covered::Some => String::new(),
            Covered::Error { preemptions } => preemptions.to_string(),
        };
        [grouped(*executions), graphs.map(grouped).unwrap_or_default(), covered, time(*elapsed)]
    }
}

/// The format of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A table, a line for each test as soon as it has ended.
    Table,
    /// One object at the end.
    Json,
}

/// The tests so far.
pub(super) struct Summary {
    form: Form,
    /// The width of the column of names.
    names: usize,
    rows: Vec<(String, String, Row)>,
    target: String,
    /// The report of the first test that fails.
    report: Option<(String, String)>,
    /// Executables whose tests cannot be listed.
    unlisted: Vec<String>,
    explored: Explorations,
}

/// What the explorations of all tests have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explorations {
    pub(super) memory: MemoryModel,
    pub(super) races: Races,
}

/// The width of the columns after the names.
const WIDTHS: [usize; 4] = [10, 8, 11, 9];

impl Summary {
    /// For tests with these names.
    pub(super) fn new<'n>(
        names: impl Iterator<Item = &'n str>,
        form: Form,
        explored: Explorations,
    ) -> Summary {
        let names = names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(4, 60);
        let (rows, unlisted) = (Vec::new(), Vec::new());
        Summary { form, names, rows, target: String::new(), report: None, unlisted, explored }
    }

    /// Begins with the tests of an executable.
    pub(super) fn group(&mut self, built: &Built, tests: usize) -> Result<(), Refused> {
        self.target = built.title();
        if tests == 0 {
            return Ok(());
        }
        let heads = ["executions", "graphs", "preemptions", "time"];
        let head = self.line("test", &heads.map(str::to_owned), "verdict", anstyle::Style::new());
        let Style { name, faint, .. } = screen::layout().style;
        let title = &self.target;
        self.print(&format!("\n{name}{title}{name:#}\n\n{faint}{}{faint:#}\n", head.trim_end()))
    }

    /// Adds an executable with a harness of its own.
    pub(super) fn add_unlisted(&mut self, built: &Built) {
        self.unlisted.push(built.title());
    }

    /// Adds a test.
    pub(super) fn add(&mut self, name: &str, row: Row) -> Result<(), Refused> {
        let Style { good, bad, alert, faint, .. } = screen::layout().style;
        let style = match row.exit() {
            Exit::Covered if matches!(row, Row::Ignored) => faint,
            Exit::Covered => good,
            Exit::Finding => bad,
            _ => alert,
        };
        let mut line = self.line(name, &row.cells(), row.word(), style) + "\n";
        if let Some(why) = row.note() {
            line += &format!("    {}\n", why.replace('\n', "\n    "));
        }
        self.rows.push((self.target.clone(), name.to_owned(), row));
        self.print(&line)
    }

    /// Whether no test has failed before.
    pub(super) fn has_no_report(&self) -> bool {
        self.report.is_none()
    }

    /// Keeps the report of a test that fails.
    pub(super) fn keep_report(&mut self, test: &str, text: String) {
        self.report = Some((test.to_owned(), text));
    }

    fn line(
        &self,
        name: &str,
        cells: &[String; 4],
        verdict: &str,
        style: anstyle::Style,
    ) -> String {
        let mut line = format!("{name:0$}", self.names);
        for (cell, width) in cells.iter().zip(WIDTHS) {
            line += &format!("  {cell:>width$}");
        }
        format!("{line}  {style}{verdict}{style:#}")
    }

    fn print(&self, text: &str) -> Result<(), Refused> {
        match self.form {
            Form::Table => screen::print(text),
            Form::Json => Ok(()),
        }
    }

    /// The end: the report of the first test that fails, and what was counted. `reports` has the
    /// report of each test that was explored, in the order of the rows.
    pub(super) fn finish(&self, reports: Vec<Value>) -> Result<(), Refused> {
        if self.form == Form::Json {
            return screen::print(&format!("{}\n", self.to_json(reports)));
        }
        let mut text = String::new();
        if let Some((test, report)) = &self.report {
            let Style { name, .. } = screen::layout().style;
            text += &format!("\n{name}{test}{name:#}\n\n{report}");
        }
        for title in &self.unlisted {
            text += &format!(
                "\n{title}: has its own test harness, which does not list its tests; explore it as a \
                 program with `preempt run`\n"
            );
        }
        let passed = |(.., row): &(String, String, Row)| {
            matches!(row, Row::Explored { verdict: Verdict::Ok, covered, .. }
                if *covered != Covered::NoThreads)
        };
        text += &format!("\n{}\n", self.counts());
        if self.rows.iter().any(passed) {
            let Explorations { memory, races } = self.explored;
            let sentence = Level::passing_assumes("a test that passes", memory, races);
            text += &(wrap(&sentence, screen::layout().width).join("\n") + "\n");
        }
        screen::print(&text)
    }

    /// The number of tests with each verdict, in one sentence.
    fn counts(&self) -> String {
        let count = |word: &dyn Fn(&Row) -> bool| {
            self.rows.iter().filter(|(.., row)| word(row)).count() as u64
        };
        let ran = count(&|row| matches!(row, Row::Explored { .. }));
        let failed = count(&|row| row.exit() == Exit::Finding);
        let open = count(&|row| matches!(row, Row::Explored { verdict: Verdict::Incomplete, .. }));
        let mut parts = vec![
            format!("{} explored", counted(ran, "test")),
            format!("{} failed", grouped(failed)),
        ];
        let others = [
            (open, "incomplete"),
            (count(&|row| matches!(row, Row::Refused(_))), "refused"),
            (count(&|row| matches!(row, Row::Ignored)), "ignored"),
            (count(&|row| matches!(row, Row::NotRun)), "not run"),
        ];
        parts.extend(
            others
                .iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, word)| format!("{} {word}", grouped(*n))),
        );
        format!("{}; doctests are not explored", parts.join(", "))
    }

    fn to_json(&self, reports: Vec<Value>) -> Value {
        let mut reports = reports.into_iter();
        let test = |(target, name, row): &(String, String, Row)| {
            let report = match row {
                Row::Explored { .. } => reports.next(),
                _ => None,
            };
            Value::Object(vec![
                ("target", target.as_str().into()),
                ("test", name.as_str().into()),
                ("verdict", row.word().into()),
                ("covered", row.cells()[2].as_str().into()),
                ("error", row.note().map(str::to_owned).into()),
                ("report", report.into()),
            ])
        };
        let tests: Vec<Value> = self.rows.iter().map(test).collect();
        let verdict = match self.exit() {
            Exit::Covered => "ok",
            Exit::Finding => "failed",
            Exit::Incomplete => "incomplete",
            Exit::Refused | Exit::Fault => "refused",
        };
        Value::Object(vec![
            ("verdict", verdict.into()),
            ("complete", (self.exit() == Exit::Covered).into()),
            ("tests", Value::List(tests)),
            ("unlisted", self.unlisted.iter().map(|title| Value::from(title.as_str())).collect()),
        ])
    }

    /// The exit code: an error counts most, then what could not be explored.
    pub(super) fn exit(&self) -> Exit {
        let exits: Vec<Exit> = self.rows.iter().map(|(.., row)| row.exit()).collect();
        let worst = [Exit::Finding, Exit::Refused, Exit::Incomplete];
        worst.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Covered)
    }
}
