//! Runs the tests of a suite in child processes: a test may abort or never end.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::suite::Suite;
use crate::measure::{children_seconds, wait_within};

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed, with this line of its output.
    Failed(String),
    /// A signal ended the process: the other tests of the binary would be lost.
    Aborted(String),
    /// It was still running when its time was up.
    Unfinished,
}

/// The result of a test.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it ended.
    pub verdict: Verdict,
    /// Executions of all its models, if the tool reports them.
    pub executions: u64,
    /// CPU time.
    pub seconds: f64,
}

/// The preemption bound and the time limit of a test.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `LOOM_MAX_PREEMPTIONS`, for both tools.
    pub bound: u32,
    /// CPU time of one test, as [`wait_within`] limits it.
    pub time: Duration,
}

/// The tests of a suite, by name.
#[derive(Clone, Debug)]
pub struct Tests {
    /// Those that `cargo test` runs.
    pub run: Vec<String>,
    /// Those that their authors marked `#[ignore]`.
    pub ignored: Vec<String>,
}

/// Lists the tests of a suite.
pub fn tests(binary: &Path, suite: &Suite) -> Result<Tests> {
    let list = |more: &[&str]| -> Result<Vec<String>> {
        let mut command = Command::new(binary);
        let output = command.args(["--list", "--format", "terse"]).args(more).output()?;
        ensure!(output.status.success(), "{} lists no tests", binary.display());
        let text = String::from_utf8(output.stdout)?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.filter(|name| name.contains(&suite.filter)).map(str::to_owned).collect())
    };
    let ignored = list(&["--ignored"])?;
    let mut run = list(&[])?;
    run.retain(|test| !ignored.contains(test));
    Ok(Tests { run, ignored })
}

/// Runs one test. Its output goes to `log`.
pub fn run(binary: &Path, test: &str, limits: Limits, log: &Path) -> Result<Run> {
    let output = File::create(log).with_context(|| format!("making {}", log.display()))?;
    let before = children_seconds()?;
    let mut child = Command::new(binary)
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env("LOOM_MAX_PREEMPTIONS", limits.bound.to_string())
        .env("LOOM_LOG", "info")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    let status = wait_within(&mut child, limits.time)?;
    let seconds = children_seconds()? - before;
    let said = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let verdict = match status {
        None => Verdict::Unfinished,
        Some(status) if status.success() => Verdict::Passed,
        Some(status) if status.code().is_none() => Verdict::Aborted(reason(&said)),
        Some(_) => Verdict::Failed(reason(&said)),
    };
    Ok(Run { verdict, executions: executions(&said), seconds })
}

/// The line with the reason of a failure: the one after the last panic's location.
fn reason(said: &str) -> String {
    let mut lines = said.lines().skip_while(|line| !line.contains("panicked at")).skip(1);
    let line = lines.find(|line| !line.trim().is_empty()).or_else(|| said.lines().last());
    line.unwrap_or("no output").trim().chars().take(120).collect()
}

/// The executions of all models of a test. loom prints `Completed in 12 iterations`, Preempt
/// `searched  12 executions`.
fn executions(said: &str) -> u64 {
    let of = |line: &str| {
        let rest = match line.split_once("Completed in ") {
            Some((_, rest)) => rest,
            None => line.trim_start().strip_prefix("searched")?,
        };
        let digits: String =
            rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        digits.replace(',', "").parse::<u64>().ok()
    };
    said.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_of_both_tools_are_read() {
        assert_eq!(
            executions(
                "INFO loom::model: Completed in 12 iterations\nINFO Completed in 3 iterations"
            ),
            15
        );
        assert_eq!(
            executions("  covered   complete\n  searched  1,204 executions, 3 steps\n"),
            1204
        );
        assert_eq!(executions("nothing"), 0);
    }

    #[test]
    fn the_reason_is_what_the_panic_said() {
        let said = "running 1 test\nthread 'a' panicked at src/lib.rs:3:\nassertion failed: x\n\
                    note: run with\n";
        assert_eq!(reason(said), "assertion failed: x");
        assert_eq!(reason(""), "no output");
    }
}
