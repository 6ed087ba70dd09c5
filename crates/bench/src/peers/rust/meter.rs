//! What is counted in a process that runs one tool: executions, scheduling steps where the tool
//! lets us count them, CPU time, and what the executions showed.
//!
//! All of it is global, because tools take closures that live forever, and because a tool that
//! knows no limit has to be ended where it calls us.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result, anyhow};

use crate::measure;

/// How often the clock is read.
const EVERY: u64 = 64;

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static STARTS: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static LIMIT: OnceLock<f64> = OnceLock::new();

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It explored all that it wanted.
    Complete,
    /// Its time was over.
    Capped,
    /// It reported a failure.
    Failed(String),
}

/// What one process did and took.
#[derive(Clone, Debug)]
pub struct Run {
    /// Executions of the first search, to its end.
    pub first: u64,
    /// How often the body was called by the first search: also for executions that were given up,
    /// or made again.
    pub starts: u64,
    /// Executions of all searches.
    pub executions: u64,
    /// Scheduling steps of all searches, where they could be counted.
    pub steps: u64,
    /// CPU time of all searches.
    pub seconds: f64,
    /// The most memory that the process had.
    pub peak_bytes: u64,
    /// What the executions showed.
    pub seen: Vec<String>,
    /// How the first search ended.
    pub ended: Ended,
}

impl Run {
    /// Executions per CPU-second.
    pub fn rate(&self) -> f64 {
        self.executions as f64 / self.seconds
    }

    /// Calls of the body per CPU-second, also those whose executions were given up.
    pub fn runs_rate(&self) -> f64 {
        self.rate() * self.starts as f64 / self.first as f64
    }

    /// Scheduling steps per CPU-second.
    pub fn steps_rate(&self) -> f64 {
        self.steps as f64 / self.seconds
    }

    /// In one line, for the process that asked.
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

    /// Reads what [`line`](Run::line) wrote.
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
                failed.strip_prefix("failed ").context("three ways to end")?.to_owned(),
            ),
        };
        Ok(Run { first, starts, executions, steps, seconds, peak_bytes, seen, ended })
    }
}

/// Ends this process, with what is known, when it has run for so many CPU-seconds: for tools that
/// know no limit of time.
pub fn limit(seconds: f64) {
    LIMIT.get_or_init(|| seconds);
}

/// The body is called.
pub fn start() {
    STARTS.fetch_add(1, Relaxed);
}

/// How often the body was called.
pub fn starts() -> u64 {
    STARTS.load(Relaxed)
}

/// An execution begins, of a tool that does not count them.
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

/// The scheduler of a tool chooses.
pub fn step() {
    STEPS.fetch_add(1, Relaxed);
}

/// The executions so far.
pub fn executions() -> u64 {
    EXECUTIONS.load(Relaxed)
}

/// A tool has counted so much itself.
pub fn counted(executions: u64, steps: u64) {
    EXECUTIONS.fetch_add(executions, Relaxed);
    STEPS.fetch_add(steps, Relaxed);
}

/// An execution showed this.
pub fn saw(what: impl Display) {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_string());
}

/// All that is known now, with the executions and the starts of the first search.
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
