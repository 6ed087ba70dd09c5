//! loom and shuttle on the same sources as Preempt, in one run.
//!
//! Every exploration has a process of its own, one after the other. Rates are per CPU-second of the
//! thread that explores, because the machine may have other work, and the fastest of three runs
//! counts, made by turns. A search that ends soon is made again and again until the time that is
//! measured is long enough; one that does not end is capped, and its count has a `+`.
//!
//! Preempt is measured in two ways: by default (all happens-before classes once: few executions,
//! each of which costs the work of the reduction) and without a reduction (`dfs`, what shuttle's
//! exhaustive search does). shuttle has no reduction and no bound. loom's bound is not the same
//! one: it counts switches away from threads that cannot go on.

pub mod bugs;
pub mod child;
pub mod meter;
pub mod plain;
pub mod sources;
pub mod speed;
pub mod table;
pub mod tools;
pub mod truth;

use anyhow::{Result, bail};

pub use self::child::Ask;
pub use self::tools::{Tool, Way};

/// What to do if loom and shuttle were not built.
pub const HOW: &str = "loom and shuttle are built on request only: \
    cargo run --release -p preempt-bench --features peers -- peers rust";

/// How long things are run.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// CPU-seconds over which a rate is measured, at least.
    pub rate: f64,
    /// CPU-seconds after which a search is given up.
    pub cap: f64,
    /// Seeds of randomised searches.
    pub seeds: u64,
}

/// Prints the tables; says whether Preempt answered all that has a known answer as it should.
pub fn compare(quick: bool) -> Result<bool> {
    if !cfg!(feature = "peers") {
        bail!("{HOW}");
    }
    let times = match quick {
        true => Times { rate: 0.1, cap: 0.5, seeds: 3 },
        false => Times { rate: 0.5, cap: 5.0, seeds: 10 },
    };
    println!("loom 0.7, shuttle 0.9 and Preempt on the same sources; one core; {}", machine());
    let mut behind = Vec::new();
    speed::tests(times, &mut behind)?;
    speed::long(times, &mut behind)?;
    bugs::first(times, &mut behind)?;
    let right = truth::probes(times)?;
    println!(
        "\nbehind, or not as far ahead as is wanted (10 × loom, 1.5 × shuttle, 1 × shuttle on long runs; never more executions):"
    );
    for line in &behind {
        println!("  {line}");
    }
    if behind.is_empty() {
        println!("  nothing");
    }
    Ok(right)
}

/// The shape of the machine.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    format!("{cores} cores of {}", model.trim_start_matches([' ', '\t', ':']))
}
