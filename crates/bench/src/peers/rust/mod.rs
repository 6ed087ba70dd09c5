//! loom, shuttle and lincheck on the same sources as Preempt, in one run.
//!
//! Explorations run in child processes, one after the other. Rates are per CPU-second of the
//! exploring thread, because the machine may be busy, and the fastest of three runs counts; the
//! tools take turns. A short search is repeated until the measured time is long enough; one that
//! does not end is stopped, and its count has a `+`.
//!
//! Preempt is measured in two ways: by default (every happens-before class once: few executions,
//! each with the cost of the reduction) and without a reduction (`dfs`, as shuttle's exhaustive
//! search). shuttle has neither a reduction nor a bound. loom's bound differs: it counts switches
//! away from threads that cannot continue.

pub mod bugs;
pub mod child;
pub mod linearize;
mod litmus;
pub mod meter;
pub mod plain;
pub mod sources;
pub mod speed;
pub mod structures;
pub mod table;
pub mod tools;
pub mod truth;

use anyhow::{Result, bail};

pub use self::child::Request;
pub use self::tools::{Mode, Tool};

/// The error if loom and shuttle were not built.
pub const NOT_BUILT: &str = "loom and shuttle are built on request only: \
    cargo run --release -p preempt-bench --features peers -- peers rust";

/// The durations of runs.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The minimum of CPU-seconds over which a rate is measured.
    pub rate: f64,
    /// CPU-seconds after which a search is stopped.
    pub cap: f64,
    /// Seeds of random searches.
    pub seeds: u64,
    /// Seeds of random priorities.
    pub priority_seeds: u64,
}

impl Times {
    fn of(quick: bool) -> Times {
        match quick {
            true => Times { rate: 0.1, cap: 0.5, seeds: 3, priority_seeds: 10 },
            false => Times { rate: 0.5, cap: 5.0, seeds: 10, priority_seeds: 800 },
        }
    }
}

/// Prints the table of random priorities only; returns whether Preempt needs no more executions
/// than shuttle.
pub fn compare_priorities(quick: bool) -> Result<bool> {
    if !cfg!(feature = "peers") {
        bail!("{NOT_BUILT}");
    }
    let mut behind = Vec::new();
    bugs::priorities(Times::of(quick), &mut behind)?;
    behind.iter().for_each(|line| println!("{line}"));
    Ok(behind.is_empty())
}

/// Prints the table of linearizability only; returns whether all of Preempt's verdicts are correct.
pub fn compare_linearizability(quick: bool) -> Result<bool> {
    if !cfg!(feature = "peers") {
        bail!("{NOT_BUILT}");
    }
    linearize::structures(Times::of(quick))
}

/// Prints the table of litmus tests only; returns whether Preempt shows exactly what is allowed.
pub fn compare_litmus(quick: bool) -> Result<bool> {
    if !cfg!(feature = "peers") {
        bail!("{NOT_BUILT}");
    }
    litmus::compare(Times::of(quick))
}

/// Prints the tables; returns whether all of Preempt's answers to known questions are correct.
pub fn compare(quick: bool) -> Result<bool> {
    if !cfg!(feature = "peers") {
        bail!("{NOT_BUILT}");
    }
    let times = Times::of(quick);
    println!("loom 0.7, shuttle 0.9 and Preempt on the same sources; one core; {}", machine());
    let mut behind = Vec::new();
    speed::tests(times, &mut behind)?;
    speed::long(times, &mut behind)?;
    bugs::first(times, &mut behind)?;
    bugs::priorities(times, &mut behind)?;
    let right = truth::probes(times)? & linearize::structures(times)? & litmus::compare(times)?;
    println!(
        "\nbehind, or not as far ahead as is wanted (10 × loom, 1.5 × shuttle, 1 × shuttle on long \
         runs; never more executions):"
    );
    for line in &behind {
        println!("  {line}");
    }
    if behind.is_empty() {
        println!("  nothing");
    }
    Ok(right)
}

/// The processor of this machine, for the heading.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    format!("{cores} cores of {}", model.trim_start_matches([' ', '\t', ':']))
}
