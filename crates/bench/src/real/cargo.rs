//! Calls of cargo: with Preempt, and natively.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::table::grouped;

/// An error that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind, in a word.
    pub kind: String,
    /// Its message.
    pub message: String,
    /// The preemptions of its schedule.
    pub preemptions: u64,
}

/// A test whose schedules were explored.
#[derive(Clone, Debug)]
pub struct Explored {
    pub verdict: String,
    pub guarantee: String,
    pub executions: u64,
    pub seconds: f64,
    pub finding: Option<Finding>,
    /// The highest bound that was covered, if the search has bounds.
    bound: Option<u64>,
    complete: bool,
}

impl Explored {
    /// The covered schedules: all, those up to a number of preemptions, or a sample.
    pub fn covered(&self) -> String {
        match self.bound {
            _ if self.complete => "all".to_owned(),
            Some(bound) => format!("≤ {bound}"),
            None => "sample".to_owned(),
        }
    }
}

/// The target directory for the crates of a folder.
fn target(folder: &Path) -> PathBuf {
    let name: Vec<_> = folder.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real");
    root.join(if name[0] == "fixed" { format!("{}-fixed", name[1]) } else { name[0].to_string() })
}

/// The command `cargo preempt`, which is built beside this one.
pub(crate) fn cargo_preempt() -> Result<Command> {
    let own = std::env::current_exe().context("where is this program?")?;
    let path = own.with_file_name("cargo-preempt");
    ensure!(
        path.exists(),
        "there is no {}: build it in the same profile (cargo build -p preempt-cli)",
        path.display()
    );
    Ok(Command::new(path))
}

/// Explores the test `bug` of a crate.
pub fn explore(folder: &Path, search: &[String], seconds: u32) -> Result<Explored> {
    let output = cargo_preempt()?
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target(folder))
        .args(["preempt", "test", "--locked", "--json", "--time", &seconds.to_string()])
        .args(search)
        .args(["--", "--exact", "bug"])
        .output()
        .context("cargo-preempt can be started")?;
    parse(&output).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn parse(output: &Output) -> Result<Explored> {
    let json: Value = serde_json::from_slice(&output.stdout).context("one JSON object")?;
    let test = &json["tests"][0];
    let report = &test["report"];
    if report.is_null() {
        bail!("{}{}", json["error"], test["error"]);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding = report.get("finding").filter(|finding| !finding.is_null());
    // Reaching the step limit is not an error of the program.
    let finding = finding.filter(|_| report["verdict"] != "incomplete").map(|finding| Finding {
        kind: text(&report["verdict"]),
        message: text(&finding["message"]),
        preemptions: finding["preemptions"].as_u64().unwrap_or_default(),
    });
    let bounds = report["bounds"].as_array().cloned().unwrap_or_default();
    Ok(Explored {
        verdict: text(&report["verdict"]),
        guarantee: text(&report["guarantee"]),
        executions: report["executions"].as_u64().unwrap_or_default(),
        seconds: report["seconds"].as_f64().unwrap_or_default(),
        finding,
        bound: bounds.last().and_then(|bound| bound["bound"].as_u64()),
        complete: report["complete"].as_bool().unwrap_or_default(),
    })
}

/// Runs the scenario of a crate natively for as long as a search took, at least a second. Returns
/// how often it ran, if it says so, and how it failed.
pub fn stress(folder: &Path, seconds: f64) -> Result<(Option<u64>, String)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let Output { status, stdout, stderr } = Command::new(cargo)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target(folder))
        .env("STRESS_SECONDS", format!("{:.3}", seconds.max(1.0)))
        .args(["test", "--release", "--locked", "--quiet", "--test", "bug", "--"])
        .args(["--ignored", "--exact", "stress", "--nocapture"])
        .output()
        .context("cargo can be started")?;
    let text = String::from_utf8_lossy(&stdout);
    let line = text.lines().find_map(|line| line.split_once("stress: ").map(|(_, line)| line));
    let numbers = line.and_then(|line| {
        let (runs, failed) = line.split_once(" runs, ")?;
        Some((runs.parse().ok()?, failed.strip_suffix(" failed")?.parse::<u64>().ok()?))
    });
    if let Some((runs, failed)) = numbers {
        return Ok((Some(runs), grouped(failed)));
    }
    let after = text.lines().find_map(|line| line.split_once("hangs after ")?.1.parse().ok());
    if let Some(runs) = after {
        return Ok((Some(runs), "hangs".to_owned()));
    }
    let why = String::from_utf8_lossy(&stderr);
    ensure!(why.contains("signal"), "the native loop cannot be run ({status}): {why}");
    Ok((None, "crashes".to_owned()))
}
