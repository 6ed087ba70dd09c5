//! Runs a driver in a child process: a structure may abort or never end.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::list::{Expected, Structure};
use crate::measure::{children_seconds, wait_within};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All scenarios pass.
    Linearizable,
    /// The results of this smallest scenario have no serial order.
    Violation(String),
    /// Another error in a scenario: its kind and the scenario.
    Error(String, String),
    /// A limit ended the check.
    Incomplete(String),
}

/// A structure that was checked.
#[derive(Clone, Debug)]
pub struct Run {
    /// The result.
    pub verdict: Verdict,
    /// Scenarios, the failing one included.
    pub scenarios: u64,
    /// Scenarios that were explored under all schedules.
    pub exhaustive: u64,
    /// Executions of all scenarios.
    pub executions: u64,
    /// CPU time of the process.
    pub seconds: f64,
}

/// The limits of one check.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most calls of a scenario, if fewer than the list says.
    pub calls: Option<usize>,
    /// Most preemptions.
    pub bound: u32,
    /// CPU time.
    pub time: Duration,
}

impl Limits {
    /// The most calls of a scenario of this structure.
    pub fn calls_of(&self, structure: &Structure) -> usize {
        self.calls.map_or(structure.calls, |most| most.min(structure.calls))
    }
}

/// Checks the structure that is the driver's argument `number`. Its output goes to files in
/// `logs`.
pub fn run(
    driver: &Path,
    number: usize,
    structure: &Structure,
    limits: Limits,
    logs: &Path,
) -> Result<Run> {
    let [output, errors] = ["output", "errors"].map(|name| logs.join(name));
    let before = children_seconds()?;
    let mut child = Command::new(driver)
        .arg(number.to_string())
        .env("PREEMPT_OPERATIONS", limits.calls_of(structure).to_string())
        .env("PREEMPT_THREADS", structure.threads.to_string())
        .env("PREEMPT_BOUND", limits.bound.to_string())
        .env("PREEMPT_MEMORY", "sc")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(&errors)?)
        .spawn()?;
    let status = wait_within(&mut child, limits.time)?;
    let seconds = children_seconds()? - before;
    let Some(status) = status else {
        let why = format!("not finished within {} CPU-seconds", limits.time.as_secs());
        let verdict = Verdict::Incomplete(why);
        return Ok(Run { verdict, scenarios: 0, exhaustive: 0, executions: 0, seconds });
    };
    let why = fs::read_to_string(&errors)?;
    ensure!(status.success(), "the driver ended with {status}: {}", why.trim());
    parse(&fs::read_to_string(&output)?, seconds)
}

/// Reads the driver's output.
fn parse(text: &str, seconds: f64) -> Result<Run> {
    let json: Value = serde_json::from_str(text).context("the driver prints JSON")?;
    let outcome = &json["linearize"];
    let number = |name: &str| outcome[name].as_u64().with_context(|| format!("{name} is missing"));
    let failed = &outcome["failed"];
    let words = |name: &str| failed[name].as_str().unwrap_or_default().to_owned();
    let verdict = match (failed.is_null(), outcome["stopped"].as_str()) {
        (false, _) if words("kind") == "not linearizable" => Verdict::Violation(words("scenario")),
        (false, _) => Verdict::Error(words("kind"), words("scenario")),
        (true, Some(why)) => Verdict::Incomplete(why.to_owned()),
        (true, None) => Verdict::Linearizable,
    };
    Ok(Run {
        verdict,
        scenarios: number("scenarios")?,
        exhaustive: number("exhaustive")?,
        executions: number("executions")?,
        seconds,
    })
}

impl Run {
    /// How the result differs from the expected one, if it does. A violation is not expected in
    /// scenarios that are smaller than the known one.
    pub fn differs(&self, structure: &Structure, limits: Limits) -> Option<String> {
        let found = self.verdict.words();
        let Structure { smallest, .. } = structure;
        let smallest = smallest.as_deref().unwrap_or_default();
        let is_in_reach = smallest.matches('(').count() <= limits.calls_of(structure);
        let expected = match structure.expect? {
            Expected::Violation if is_in_reach => Verdict::Violation(smallest.to_owned()),
            Expected::Violation | Expected::Linearizable => Verdict::Linearizable,
        };
        (self.verdict != expected).then(|| format!("{found} instead of {}", expected.words()))
    }
}

impl Verdict {
    /// The verdict with its scenario.
    fn words(&self) -> String {
        match self {
            Verdict::Linearizable => "linearizable".to_owned(),
            Verdict::Violation(scenario) => format!("not linearizable ({scenario})"),
            Verdict::Error(kind, scenario) => format!("{kind} ({scenario})"),
            Verdict::Incomplete(why) => format!("incomplete: {why}"),
        }
    }

    /// The verdict without its scenario.
    pub fn class(&self) -> &str {
        match self {
            Verdict::Linearizable => "linearizable",
            Verdict::Violation(_) => "not linearizable",
            Verdict::Error(kind, _) => kind,
            Verdict::Incomplete(_) => "incomplete",
        }
    }

    /// The smallest scenario that fails, if one does.
    pub fn scenario(&self) -> Option<&str> {
        match self {
            Verdict::Violation(scenario) | Verdict::Error(_, scenario) => Some(scenario),
            Verdict::Linearizable | Verdict::Incomplete(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::List;
    use super::*;

    fn outcome(stopped: &str, failed: &str) -> Run {
        let text = format!(
            "{{\"linearize\":{{\"scenarios\":6,\"exhaustive\":3,\"executions\":78,\
             \"stopped\":{stopped},\"failed\":{failed}}},\"check\":null}}"
        );
        parse(&text, 0.5).expect("the fields are there")
    }

    fn failed(kind: &str) -> Run {
        let scenario = "enqueue(1); dequeue() || enqueue(3)";
        outcome("null", &format!("{{\"scenario\":\"{scenario}\",\"kind\":\"{kind}\"}}"))
    }

    #[test]
    fn the_output_of_a_driver_is_read() {
        let run = failed("not linearizable");
        assert_eq!((run.scenarios, run.exhaustive, run.executions), (6, 3, 78));
        assert_eq!(run.verdict.class(), "not linearizable");
        assert_eq!(run.verdict.scenario(), Some("enqueue(1); dequeue() || enqueue(3)"));
        assert_eq!(outcome("null", "null").verdict, Verdict::Linearizable);
        assert_eq!(outcome("\"time\"", "null").verdict.class(), "incomplete");
        assert_eq!(failed("data race").verdict.class(), "data race");
        assert!(parse("{}", 0.0).is_err());
    }

    #[test]
    fn only_the_expected_verdict_agrees() {
        let list = List::read().expect("the list is well-formed");
        let structure = |name: &str| {
            let mut all = list.structures.iter();
            all.find(|structure| structure.name == name).expect("it is listed")
        };
        let limits = |calls| Limits { calls, bound: 2, time: Duration::from_secs(1) };
        let differs = |run: &Run, name, calls| run.differs(structure(name), limits(calls));
        let passed = outcome("null", "null");
        assert_eq!(differs(&failed("not linearizable"), "heapless", None), None);
        assert_eq!(
            differs(&passed, "heapless", Some(3)).as_deref(),
            Some("linearizable instead of not linearizable (enqueue(1); dequeue() || enqueue(3))")
        );
        // The error needs three calls.
        assert_eq!(differs(&passed, "heapless", Some(2)), None);
        assert_eq!(differs(&passed, "rtrb", None), None);
        for run in [failed("not linearizable"), failed("deadlock"), outcome("\"time\"", "null")] {
            assert!(differs(&run, "rtrb", None).is_some(), "{run:?}");
        }
        // This list does not say which verdict is correct.
        assert_eq!(differs(&failed("not linearizable"), "concurrent-queue", None), None);
    }
}
