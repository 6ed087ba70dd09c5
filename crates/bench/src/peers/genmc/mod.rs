//! Numbers of executions that GenMC publishes, next to ours.
//!
//! GenMC explores each execution graph (program order, reads-from, modification order) once, under
//! a memory model of choice. Under sequential consistency these graphs correspond to
//! happens-before graphs, each of which `dpor-optimal` explores once; under weak memory `graphs`
//! explores execution graphs as GenMC does, of Rust's memory model instead of RC11. So the numbers
//! have to be equal, or `data/genmc.toml` has to give a reason.

mod programs;

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use preempt::{Cache, Check, Count, Memory, Order, Reduction};
use serde::Deserialize;

use self::programs::program;
use crate::measure::thread_seconds;
use crate::table::{Table, grouped};

/// A benchmark with its numbers of executions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The benchmark.
    program: String,
    /// Its N.
    size: usize,
    /// The published number under sequential consistency.
    sc: u64,
    /// The published number under RC11.
    rc11: u64,
    /// Our number under sequential consistency, if it differs.
    #[serde(default)]
    our_sc: Option<u64>,
    /// Our number under weak memory, if it differs.
    #[serde(default)]
    our_weak: Option<u64>,
    /// Why a number differs.
    #[serde(default)]
    reason: Option<String>,
    /// Whether the traces of `icb` are counted under weak memory: `graphs` refuses assumptions and
    /// waiting loops.
    #[serde(default)]
    icb: bool,
    /// Whether quick runs leave it out.
    #[serde(default)]
    long: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    row: Vec<Row>,
}

/// A search that takes longer is stopped, and its number is not compared.
const CAP: Duration = Duration::from_secs(600);

/// The executions of a search, and its cost.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Executions without those in which an assumption failed.
    pub executions: u64,
    /// CPU time.
    pub seconds: f64,
}

/// The benchmarks; with `quick` only the small ones.
pub fn rows(quick: bool) -> Result<Vec<Row>> {
    let file: File =
        toml::from_str(include_str!("../../../data/genmc.toml")).context("data/genmc.toml")?;
    Ok(file.row.into_iter().filter(|row| !quick || !row.long).collect())
}

impl Row {
    /// The benchmark with its size.
    pub fn title(&self) -> String {
        match self.size {
            0 => self.program.clone(),
            size => format!("{}({size})", self.program),
        }
    }

    /// The published number.
    pub fn published(&self, memory: Memory) -> u64 {
        match memory {
            Memory::Weak => self.rc11,
            _ => self.sc,
        }
    }

    /// The number that our search has to have.
    pub fn expected(&self, memory: Memory) -> u64 {
        let ours = match memory {
            Memory::Weak => self.our_weak,
            _ => self.our_sc,
        };
        ours.unwrap_or(self.published(memory))
    }

    /// Why a number differs from the published one, if one does.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Explores all executions under this memory model.
    pub fn count(&self, memory: Memory) -> Result<Counted> {
        let body = program(&self.program)
            .with_context(|| format!("{} is not one of the programs", self.program))?;
        let check = Check::new().unbounded().memory(memory).time(CAP).quiet();
        let by_traces = memory == Memory::Weak && self.icb;
        let check = match memory {
            _ if by_traces => check.order(Order::Icb { cache: Cache::Hb }),
            Memory::Weak => check.reduce(Reduction::Graphs).count(Count::Executions),
            _ => check.reduce(Reduction::Optimal).count(Count::Executions),
        };
        let before = thread_seconds()?;
        let outcome = check.try_run(|| body(self.size)).map_err(|refusal| anyhow!("{refusal}"))?;
        let seconds = thread_seconds()? - before;
        ensure!(outcome.complete && outcome.findings.is_empty(), "{}", outcome.guarantee());
        let tally = outcome.tally.context("a search over executions")?;
        let executions = match tally.traces {
            Some(traces) if by_traces => traces,
            _ => tally.executions,
        };
        Ok(Counted { executions, seconds })
    }
}

/// Prints the table. Returns whether all our numbers are the expected ones.
pub fn compare(quick: bool) -> Result<bool> {
    let mut table = Table::new([
        "benchmark",
        "GenMC SC",
        "dpor-optimal",
        "ratio",
        "CPU s",
        "GenMC RC11",
        "graphs",
        "ratio",
        "CPU s",
    ]);
    let mut wrong = Vec::new();
    let mut reasons = Vec::new();
    for row in rows(quick)? {
        let mut cells = vec![row.title()];
        for memory in [Memory::Sc, Memory::Weak] {
            let published = row.published(memory);
            cells.push(grouped(published));
            match row.count(memory) {
                Ok(Counted { executions, seconds }) => {
                    let ratio = executions as f64 / published as f64;
                    let texts =
                        [grouped(executions), format!("{ratio:.2}"), format!("{seconds:.2}")];
                    cells.extend(texts);
                    let expected = row.expected(memory);
                    if executions != expected {
                        wrong.push(format!("{}: {executions} instead of {expected}", row.title()));
                    }
                }
                Err(why) => {
                    cells.extend(std::iter::repeat_with(crate::table::absent).take(3));
                    wrong.push(format!("{}: {why}", row.title()));
                }
            }
        }
        // Searches take long, so intermediate results are shown.
        eprintln!("{}", cells.join("  "));
        table.row(cells);
        reasons.extend(row.reason().map(|why| format!("{}: {why}", row.title())));
    }
    println!("Executions that GenMC 0.11.0 publishes for its tests, and ours");
    print!("{}", table.to_text());
    for (heading, lines) in [("why numbers differ", &reasons), ("unexpected", &wrong)] {
        if !lines.is_empty() {
            println!("\n{heading}:");
            lines.iter().for_each(|line| println!("{line}"));
        }
    }
    Ok(wrong.is_empty())
}
