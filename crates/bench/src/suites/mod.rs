//! Published test suites: loom tests of crates, run by loom and by Preempt in loom's place.
//!
//! The authors' tests pass under loom, so a failure that only Preempt reports is either a bug of
//! the crate that loom misses or a false alarm of ours. The command lists every one of them with
//! its reason; it fails unless `data/suites.toml` says where the bug was reported. Sources are
//! downloaded on demand.

pub mod run;
pub mod source;
pub mod suite;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use self::run::{Limits, Run, Verdict};
use self::source::Workshop;
use self::suite::Suite;
use crate::table::{Table, grouped};

/// The tool that runs the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// loom itself.
    Loom,
    /// Preempt under loom's name.
    Preempt,
}

impl Tool {
    /// Its name in tables and folders.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Loom => "loom",
            Tool::Preempt => "preempt",
        }
    }
}

/// The suites and tests to run, and the limits of each test.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The crates; all that are listed if empty.
    pub crates: Vec<String>,
    /// Only tests whose names contain this.
    pub test: Option<String>,
    /// The limits of each test.
    pub limits: Limits,
}

/// Sums over the tests of a suite that one tool ran.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    passed: u32,
    unfinished: u32,
    executions: u64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, run: &Run) {
        self.passed += u32::from(run.verdict == Verdict::Passed);
        self.unfinished += u32::from(run.verdict == Verdict::Unfinished);
        self.executions += run.executions;
        self.seconds += run.seconds;
    }
}

/// The results of a suite with both tools.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    tests: u32,
    /// Failures that only Preempt reports, where the crate is known to be wrong.
    bugs: u32,
    /// Such bugs that Preempt does not report.
    missed: u32,
    /// The other failures that only Preempt reports.
    alarms: u32,
    loom: Sum,
    preempt: Sum,
}

impl Row {
    /// Adds a test. `known`: the crate is known to be wrong there.
    fn add(&mut self, loom: &Run, preempt: &Run, known: bool) {
        self.tests += 1;
        let alone = u32::from(fails_alone(loom, preempt));
        if known {
            self.bugs += alone;
            self.missed += 1 - alone;
        } else {
            self.alarms += alone;
        }
        self.loom.add(loom);
        self.preempt.add(preempt);
    }

    fn cells(&self, title: String) -> Vec<String> {
        let of = |sum: &Sum| {
            let Sum { passed, unfinished, executions, seconds } = sum;
            [
                passed.to_string(),
                unfinished.to_string(),
                grouped(*executions),
                format!("{seconds:.1}"),
            ]
        };
        let mut cells = vec![title, self.tests.to_string()];
        cells.extend(of(&self.loom));
        cells.extend(of(&self.preempt));
        cells.extend([self.bugs.to_string(), self.alarms.to_string()]);
        cells
    }
}

impl std::iter::Sum for Row {
    fn sum<I: Iterator<Item = Row>>(rows: I) -> Row {
        let add = |a: Sum, b: Sum| Sum {
            passed: a.passed + b.passed,
            unfinished: a.unfinished + b.unfinished,
            executions: a.executions + b.executions,
            seconds: a.seconds + b.seconds,
        };
        rows.fold(Row::default(), |all, row| Row {
            tests: all.tests + row.tests,
            bugs: all.bugs + row.bugs,
            missed: all.missed + row.missed,
            alarms: all.alarms + row.alarms,
            loom: add(all.loom, row.loom),
            preempt: add(all.preempt, row.preempt),
        })
    }
}

/// Runs suites and prints the table. Returns whether all were built, every test that passes with
/// loom also passes with Preempt, and Preempt reports every known bug.
pub fn print(ask: &Ask) -> Result<bool> {
    let workshop = Workshop::open()?;
    let logs = tempdir()?;
    let mut rows = Vec::new();
    let mut built = true;
    for suite in Suite::named(&ask.crates)? {
        let title = format!("{} {}", suite.name, suite.version);
        println!("{title}");
        let binaries: Result<Vec<PathBuf>> =
            [Tool::Loom, Tool::Preempt].iter().map(|tool| workshop.build(&suite, *tool)).collect();
        match binaries {
            Ok(binaries) => rows.push((title, run_suite(&suite, &binaries, ask, &logs)?)),
            Err(error) => {
                println!("  {error:#}");
                built = false;
            }
        }
    }
    let all: Row = rows.iter().map(|(_, row)| *row).sum();
    println!("\n{}", table(&rows, &all));
    println!(
        "Tests that run no model are left out. An alarm is a test that fails with Preempt and not \
         with loom,\nunless the crate is known to be wrong there: that is a bug. A test that has \
         not ended after {} CPU-seconds\nis unfinished; executions of a model that did not end are \
         not counted. Both run with LOOM_MAX_PREEMPTIONS={},\nwhose meaning differs: Preempt \
         counts only switches away from a thread that could continue.",
        ask.limits.time.as_secs(),
        ask.limits.bound,
    );
    Ok(built && all.alarms == 0 && all.missed == 0)
}

/// Runs the tests of a suite with the binaries of loom and Preempt, and prints those that do not
/// pass with both.
fn run_suite(suite: &Suite, binaries: &[PathBuf], ask: &Ask, logs: &Path) -> Result<Row> {
    let [with_loom, with_preempt] = binaries else { bail!("a binary for each tool was built") };
    let mut row = Row::default();
    let asked = |test: &&String| ask.test.as_ref().is_none_or(|part| test.contains(part));
    let tests = run::tests(with_loom, suite)?;
    for test in tests.ignored.iter().filter(asked) {
        println!("  {test}: ignored by its authors");
    }
    for test in tests.run.iter().filter(asked) {
        let loom = run::run(with_loom, test, ask.limits, &logs.join("loom"))?;
        let preempt = run::run(with_preempt, test, ask.limits, &logs.join("preempt"))?;
        let passed = [&loom, &preempt].iter().all(|run| run.verdict == Verdict::Passed);
        if passed && loom.executions == 0 && preempt.executions == 0 {
            continue;
        }
        if !passed {
            println!("  {test}\n    loom:    {}", describe(&loom));
            println!("    preempt: {}", describe(&preempt));
        }
        let bug = suite.bugs.get(test);
        if let Some(reported) = bug {
            let found = if fails_alone(&loom, &preempt) { "found" } else { "missed" };
            println!("    {found} a bug of the crate: {reported}");
        }
        row.add(&loom, &preempt, bug.is_some());
    }
    Ok(row)
}

fn table(rows: &[(String, Row)], all: &Row) -> String {
    let head = ["suite", "tests"].into_iter();
    let head = head.chain(["loom: passed", "unfinished", "executions", "CPU s"]);
    let head = head.chain(["preempt: passed", "unfinished", "executions", "CPU s"]);
    let head = head.chain(["bugs", "alarms"]);
    let mut table = Table::new(head);
    for (title, row) in rows {
        table.row(row.cells(title.clone()));
    }
    table.row(all.cells("all".to_owned()));
    table.to_text()
}

/// Whether Preempt reports a failure where loom does not. An unfinished test reports nothing.
fn fails_alone(theirs: &Run, ours: &Run) -> bool {
    let failed = matches!(ours.verdict, Verdict::Failed(_) | Verdict::Aborted(_));
    failed && matches!(theirs.verdict, Verdict::Passed | Verdict::Unfinished)
}

fn describe(run: &Run) -> String {
    match &run.verdict {
        Verdict::Passed => format!("passed, {} executions", grouped(run.executions)),
        Verdict::Failed(reason) => format!("failed: {reason}"),
        Verdict::Aborted(reason) => format!("aborted: {reason}"),
        Verdict::Unfinished => format!("unfinished after {:.0} CPU-seconds", run.seconds),
    }
}

/// A folder for the output of tests.
fn tempdir() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("preempt-suites-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(verdict: Verdict) -> Run {
        Run { verdict, executions: 3, seconds: 0.5 }
    }

    #[test]
    fn what_is_unfinished_is_no_pass_and_no_alarm() {
        let mut row = Row::default();
        row.add(&run(Verdict::Passed), &run(Verdict::Unfinished), false);
        row.add(&run(Verdict::Unfinished), &run(Verdict::Passed), false);
        row.add(&run(Verdict::Passed), &run(Verdict::Passed), false);
        let failed = run(Verdict::Failed("both".to_owned()));
        row.add(&failed, &failed, false);
        let cells = ["4", "2", "1", "12", "2.0", "2", "1", "12", "2.0", "0", "0"];
        assert_eq!(row.cells("a".to_owned())[1..], cells);
        row.add(&run(Verdict::Unfinished), &run(Verdict::Failed("ours".to_owned())), false);
        row.add(&run(Verdict::Passed), &run(Verdict::Aborted("ours".to_owned())), false);
        row.add(&run(Verdict::Passed), &run(Verdict::Failed("reported".to_owned())), true);
        row.add(&run(Verdict::Passed), &run(Verdict::Passed), true);
        assert_eq!((row.alarms, row.bugs, row.missed), (2, 1, 1));
        let all: Row = [row, row].into_iter().sum();
        assert_eq!((all.tests, all.alarms, all.bugs, all.missed), (16, 4, 2, 2));
    }
}
