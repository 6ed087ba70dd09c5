//! Other people's suites: loom tests of published crates, run by loom and by Preempt in loom's place.
//!
//! The authors' tests pass under loom, so a failure that only Preempt reports is either a bug of the crate that loom misses or
//! a false alarm of ours; the command lists every one of them with its reason and fails. Sources are downloaded on demand.

pub mod run;
pub mod source;
pub mod suite;

use std::path::PathBuf;

use anyhow::Result;

use self::run::{Limits, Run, Verdict};
use self::source::Workshop;
use self::suite::Suite;
use crate::table::{Table, grouped};

/// Who runs the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// loom itself.
    Loom,
    /// Preempt under loom's name.
    Preempt,
}

impl Tool {
    /// In tables and folders.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Loom => "loom",
            Tool::Preempt => "preempt",
        }
    }
}

/// Which suites and tests to run, and the limits of each test.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The crates; all that are listed if empty.
    pub crates: Vec<String>,
    /// Only tests whose names contain this.
    pub test: Option<String>,
    /// For each test.
    pub limits: Limits,
}

/// Sums over the tests of a suite that one tool ran.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    passed: u32,
    executions: u64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, run: &Run) {
        self.passed += u32::from(run.verdict == Verdict::Passed);
        self.executions += run.executions;
        self.seconds += run.seconds;
    }
}

/// Runs suites and prints the table. Returns whether every test that passes with loom passes with Preempt, too.
pub fn print(ask: &Ask) -> Result<bool> {
    let workshop = Workshop::open()?;
    let logs = tempdir()?;
    let head =
        ["suite", "tests", "loom passes", "executions", "CPU s", "preempt passes", "alarms", "executions", "CPU s"];
    let mut table = Table::new(head);
    let mut alarms = 0;
    for suite in Suite::named(&ask.crates)? {
        let title = format!("{} {}", suite.name, suite.version);
        println!("{title}");
        let with_loom = workshop.build(&suite, Tool::Loom)?;
        let with_preempt = match workshop.build(&suite, Tool::Preempt) {
            Ok(binary) => binary,
            Err(error) => {
                println!("  {error:#}");
                alarms += 1;
                continue;
            }
        };
        let (mut loom, mut preempt, mut tests, mut only_ours) = (Sum::default(), Sum::default(), 0, 0);
        for test in run::tests(&with_loom, &suite)? {
            if ask.test.as_ref().is_some_and(|part| !test.contains(part)) {
                continue;
            }
            tests += 1;
            let theirs = run::run(&with_loom, &test, ask.limits, &logs.join("loom"))?;
            let ours = run::run(&with_preempt, &test, ask.limits, &logs.join("preempt"))?;
            loom.add(&theirs);
            preempt.add(&ours);
            if ours.verdict != Verdict::Passed || theirs.verdict != Verdict::Passed {
                println!("  {test}\n    loom:    {}\n    preempt: {}", describe(&theirs), describe(&ours));
            }
            only_ours += u32::from(is_alarm(&theirs, &ours));
        }
        alarms += only_ours;
        let cells = |sum: &Sum| [grouped(sum.executions), format!("{:.1}", sum.seconds)];
        let mut row = vec![title, tests.to_string(), loom.passed.to_string()];
        row.extend(cells(&loom));
        row.extend([preempt.passed.to_string(), only_ours.to_string()]);
        row.extend(cells(&preempt));
        table.row(row);
    }
    println!("\n{}", table.to_text());
    println!(
        "An alarm is a test that fails with Preempt and not with loom. Both run with LOOM_MAX_PREEMPTIONS={}, whose meaning differs: \
         Preempt counts only switches away from a thread that could go on. A test may take {} s.",
        ask.limits.bound,
        ask.limits.time.as_secs()
    );
    Ok(alarms == 0)
}

/// Whether Preempt reports a failure where loom passes. A test that ran out of time says nothing.
fn is_alarm(theirs: &Run, ours: &Run) -> bool {
    let failed = matches!(ours.verdict, Verdict::Failed(_) | Verdict::Aborted(_));
    failed && matches!(theirs.verdict, Verdict::Passed | Verdict::TimedOut)
}

fn describe(run: &Run) -> String {
    match &run.verdict {
        Verdict::Passed => format!("passed, {} executions", grouped(run.executions)),
        Verdict::Failed(reason) => format!("failed: {reason}"),
        Verdict::Aborted(reason) => format!("aborted: {reason}"),
        Verdict::TimedOut => format!("stopped after {:.0} CPU-seconds", run.seconds),
    }
}

/// A folder for the output of tests.
fn tempdir() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("preempt-suites-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
