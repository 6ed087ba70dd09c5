//! Counters of a process that runs one tool: executions, scheduling steps where the tool permits
//! it, CPU time, and the results that executions observed.
//!
//! All of them are global, because tools take closures with a static lifetime, and because a tool
//! without a time limit can only be ended where it calls us.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result, anyhow};

use crate::measure;

/// The number of calls between two readings of the clock.
const EVERY: u64 = 64;

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static STARTS: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static LIMIT: OnceLock<f64> = OnceLock::new();

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It explored everything.
    Complete,
    /// It reached the time limit.
    Capped,
    /// It reported a failure.
    Failed(String),
}

/// The counts and costs of one process.
#[derive(Clone, Debug)]
pub struct Run {
    /// Executions of the first search.
    pub first: u64,
    /// Calls of the body by the first search, including executions that were abandoned or repeated.
    pub starts: u64,
    /// Executions of all searches.
    pub executions: u64,
    /// Scheduling steps of all searches, where they could be counted.
    pub steps: u64,
    /// CPU time of all searches.
    pub seconds: f64,
    /// Peak memory of the process.
    pub peak_bytes: u64,
    /// The results that executions observed.
    pub seen: Vec<String>,
    /// How the first search ended.
    pub ended: Ended,
}

impl Run {
    /// Executions per CPU-second.
    pub fn rate(&self) -> f64 {
        self.executions as f64 / self.seconds
    }

    /// Calls of the body per CPU-second, including abandoned executions.
    pub fn runs_rate(&self) -> f64 {
        self.rate() * self.starts as f64 / self.first as f64
    }

    /// Scheduling steps per CPU-second.
    pub fn steps_rate(&self) -> f64 {
        self.steps as f64 / self.seconds
    }

    /// One line, for the parent process.
    pub fn line(&self) -> String {
        let ended = match &self.ended {
            Ended::Complete => "complete".to_owned(),
            Ended::Capped => "capped".to_owned(),
            Ended::Failed(message) => {
                format!("failed {}", message.lines().next().unwrap_or_default())
            }
        };
        let Run { first, starts, executions, steps, seconds, peak_bytes, .. } = self;
        format!(
            "{first} {starts} {executions} {steps} {seconds} {peak_bytes} {} {ended}",
            self.seen.join(",") + ";"
        )
    }

    /// Parses the result of [`line`](Run::line).
    pub fn parse(line: &str) -> Result<Run> {
        let mut words = line.splitn(8, ' ');
        let mut next = || words.next().ok_or_else(|| anyhow!("eight words expected, not {line:?}"));
        let (first, starts) = (next()?.parse()?, next()?.parse()?);
        let (executions, steps) = (next()?.parse()?, next()?.parse()?);
        let (seconds, peak_bytes) = (next()?.parse()?, next()?.parse()?);
        let seen = next()?.trim_end_matches(';');
        let seen = seen.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let ended = match next()? {
            "complete" => Ended::Complete,
            "capped" => Ended::Capped,
            failed => Ended::Failed(
                failed.strip_prefix("failed ").context("complete, capped or failed")?.to_owned(),
            ),
        };
        Ok(Run { first, starts, executions, steps, seconds, peak_bytes, seen, ended })
    }
}

/// Ends this process after this many CPU-seconds with the results so far: for tools without a time
/// limit.
pub fn limit(seconds: f64) {
    LIMIT.get_or_init(|| seconds);
}

/// Counts a call of the body.
pub fn start() {
    STARTS.fetch_add(1, Relaxed);
}

/// The number of calls of the body.
pub fn starts() -> u64 {
    STARTS.load(Relaxed)
}

/// Counts an execution of a tool that does not count them.
pub fn execution() {
    start();
    let before = EXECUTIONS.fetch_add(1, Relaxed);
    if before.is_multiple_of(EVERY)
        && let Some(&limit) = LIMIT.get()
        && let Ok(seconds) = measure::thread_seconds()
        && seconds > limit
    {
        println!(
            "{}",
            run((before, starts()), Ended::Capped, seconds)
                .map_or_else(|error| format!("{error:#}"), |run| run.line())
        );
        std::process::exit(0);
    }
}

/// Counts a choice of a tool's scheduler.
pub fn step() {
    STEPS.fetch_add(1, Relaxed);
}

/// The executions so far.
pub fn executions() -> u64 {
    EXECUTIONS.load(Relaxed)
}

/// Sets the counts of a tool that counts by itself.
pub fn counted(executions: u64, steps: u64) {
    EXECUTIONS.fetch_add(executions, Relaxed);
    STEPS.fetch_add(steps, Relaxed);
}

/// Records a result that an execution observed.
pub fn saw(what: impl Display) {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_string());
}

/// All counts so far, with the executions and the calls of the first search.
pub fn run((first, starts): (u64, u64), ended: Ended, seconds: f64) -> Result<Run> {
    Ok(Run {
        first,
        starts,
        executions: executions(),
        steps: STEPS.load(Relaxed),
        seconds,
        peak_bytes: measure::own_peak()?,
        seen: SEEN.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect(),
        ended,
    })
}
