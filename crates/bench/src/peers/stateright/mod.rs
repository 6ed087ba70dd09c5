//! stateright on philosophers and on two-phase commit: the same models in its API and in our
//! language, full searches, on one core and on two.
//!
//! Its states are as small as possible (bits in a few integers), smaller than in its own examples.
//! It searches breadth first, as we do, and stores 64-bit hashes of visited states; our store has
//! whole states. Every search runs in a child process.

#[cfg(feature = "peers")]
mod models;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::measure::{self, Cap, Measured, Search};
use crate::table::{Table, grouped};

/// The models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// Dining philosophers with forks as bits.
    Philosophers,
    /// Two-phase commit.
    TwoPhaseCommit,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Subject::Philosophers => "philosophers",
            Subject::TwoPhaseCommit => "two-phase-commit",
        }
    }

    /// Our model, and the constant that is its size.
    fn ours(self) -> (&'static str, &'static str) {
        match self {
            Subject::Philosophers => ("bench/phil.pre", "N"),
            Subject::TwoPhaseCommit => ("two-phase-commit/model.pre", "RMS"),
        }
    }
}

/// Sizes with `--quick` and without.
const SIZES: [[(Subject, u32); 2]; 2] = [
    [(Subject::Philosophers, 10), (Subject::TwoPhaseCommit, 6)],
    [(Subject::Philosophers, 14), (Subject::TwoPhaseCommit, 8)],
];

/// Limits that no run reaches.
const ROOMY: Cap = Cap { megabytes: 20_000, minutes: 60 };

/// The error if stateright was not built.
const NOT_BUILT: &str = "stateright is built on request only: \
    cargo run --release -p preempt-bench --features peers -- peers stateright";

/// Prints the comparison; returns whether the counts agree.
pub fn compare(quick: bool) -> Result<bool> {
    if !cfg!(feature = "peers") {
        bail!("{NOT_BUILT}");
    }
    let head =
        ["model", "search", "states", "transitions", "seconds", "wall", "Ms/s", "B/state", ""];
    let mut table = Table::new(head);
    let mut agree = true;
    for (subject, size) in SIZES[usize::from(!quick)] {
        for jobs in [1, 2] {
            let (file, constant) = subject.ours();
            let model = crate::corpus::root().join(Path::new(file));
            let ours = measure::in_child(
                Search::Full,
                jobs,
                &model,
                &[format!("{constant}={size}")],
                ROOMY,
            )?;
            let theirs = in_child(subject, size, jobs)?;
            let same = (ours.states, ours.transitions) == (theirs.states, theirs.transitions);
            agree &= same;
            let name = if jobs == 1 { format!("{} {size}", subject.name()) } else { String::new() };
            let cores = if jobs == 1 { "" } else { ", 2 cores" };
            let word = if same { "counts agree" } else { "COUNTS DIFFER" };
            let ratio = format!(
                "{:.1} × its Ms/s, {:.2} × its B/state",
                ours.states_rate() / theirs.states_rate(),
                ours.bytes_per_state() / theirs.bytes_per_state()
            );
            table.row(line(&name, format!("Preempt{cores}"), ours, ratio));
            table.row(line("", format!("stateright{cores}"), theirs, word.to_owned()));
        }
    }
    println!(
        "stateright 0.31 and Preempt, full search, breadth first\n{}",
        table.to_text().trim_end()
    );
    println!(
        "seconds: CPU time; Ms/s: million states per CPU-second; wall: elapsed; B/state: peak \
         memory of the process per state"
    );
    Ok(agree)
}

fn line(model: &str, search: String, run: Measured, word: String) -> [String; 9] {
    [
        model.to_owned(),
        search,
        grouped(run.states),
        grouped(run.transitions),
        format!("{:.2}", run.seconds),
        format!("{:.2}", run.wall),
        format!("{:.2}", run.states_rate()),
        format!("{:.1}", run.bytes_per_state()),
        word,
    ]
}

/// stateright in a child process (this program, command `stateright-one`).
fn in_child(subject: Subject, size: u32, jobs: usize) -> Result<Measured> {
    let me = std::env::current_exe()?;
    let numbers = [size.to_string(), jobs.to_string()];
    let output =
        Command::new(me).args(["stateright-one", subject.name()]).args(numbers).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Measured::parse(&String::from_utf8(output.stdout)?)
}

/// stateright in this process: prints its counts and costs.
#[cfg(feature = "peers")]
pub fn one(subject: Subject, size: u32, jobs: usize) -> Result<()> {
    let started = std::time::Instant::now();
    let (states, transitions) = models::search(subject, size, jobs);
    let wall = started.elapsed().as_secs_f64();
    let (seconds, peak_bytes) = (measure::own_seconds()?, measure::own_peak()?);
    println!(
        "{}",
        Measured { states, transitions, seconds, wall, peak_bytes, disk_bytes: 0, complete: true }
            .line()
    );
    Ok(())
}

/// Without stateright in the build: an error.
#[cfg(not(feature = "peers"))]
pub fn one(_: Subject, _: u32, _: usize) -> Result<()> {
    bail!("{NOT_BUILT}")
}
