//! cartesian, Table 1: its rows and how they are run; [`table`] prints it.
//!
//! The *standard* columns are a full search, the *cartesian* ones the reduction. The paper's
//! transitions are our steps, plus a self-loop for every thread that waits and, except in File
//! System and Indexer, for every thread that has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{Limits, Plan, Reduction, Silent};
use serde::Deserialize;

use super::Data;
use crate::corpus;

mod table;

pub use table::print;

/// Rows that need more bytes are skipped.
const MEMORY: usize = 8 << 30;

/// `--quick` skips rows with more states, in the standard columns and in the cartesian ones.
const QUICK: [u64; 2] = [100_000, 10_000];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    row: Vec<Row>,
}

/// Published running times.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Milliseconds {
    standard: Option<u64>,
    cartesian: Option<u64>,
    concurrent: Option<u64>,
}

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its heading.
    pub name: String,
    subject: String,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    /// Published states and transitions of the standard algorithm.
    pub standard: Option<[u64; 2]>,
    /// The same of the cartesian one.
    pub cartesian: Option<[u64; 2]>,
    /// The percentages of states and transitions that the paper claims to save.
    saved: Option<[f64; 2]>,
    #[serde(default)]
    milliseconds: Milliseconds,
    /// The states and transitions of Figure 6 as printed. Not in the paper: measured with an
    /// independent prototype.
    pub literal: Option<[u64; 2]>,
    #[serde(default)]
    counts_ended: bool,
}

/// The result of one search of a row.
#[derive(Clone, Copy, Debug)]
pub struct Ours {
    /// States and transitions, counted as the paper counts them.
    pub figures: [u64; 2],
    /// Steps, blocked and ended threads, whether or not the paper counts them.
    executed: u64,
    elapsed: Duration,
}

/// The rows.
pub fn rows() -> Result<Vec<Row>> {
    rows_of(&Data::default())
}

fn rows_of(data: &Data) -> Result<Vec<Row>> {
    Ok(data.read::<Table>("cartesian-table-1.toml")?.row)
}

/// The same programs in small sizes.
pub fn small_rows() -> Result<Vec<Row>> {
    Ok(Data::default().read::<Table>("cartesian-small.toml")?.row)
}

impl Row {
    /// Searches the row's program; `None` if that needs too much memory.
    pub fn run(&self, reduction: Reduction, jobs: usize) -> Result<Option<Ours>> {
        let settings: Vec<(String, String)> =
            self.set.iter().map(|(name, v)| (name.clone(), v.to_string())).collect();
        let machine =
            corpus::machine(&corpus::root().join(&self.subject).join("model.pre"), &settings)?;
        let limits = Limits { memory: Some(MEMORY), ..Limits::default() };
        let plan = Plan::new().limits(limits).reduction(reduction).jobs(jobs);
        let (outcome, _) =
            plan.build().map_err(|refusal| anyhow!("{refusal}"))?.run(machine, &Silent);
        let seen = outcome.coverage;
        let ended = if self.counts_ended { seen.ended } else { 0 };
        Ok(outcome.complete.then_some(Ours {
            figures: [seen.states, seen.transitions + seen.blocked + ended],
            executed: seen.transitions + seen.blocked + seen.ended,
            elapsed: outcome.elapsed,
        }))
    }
}

/// The reduction of the paper's columns.
pub const CARTESIAN: Reduction = Reduction::Cartesian { reading: Reading::Late };

/// Figure 6 as it is printed.
pub const LITERAL: Reduction = Reduction::Cartesian { reading: Reading::Literal };

/// Rows on which the two algorithms are timed: as large as the full search can do in a few seconds.
const TIMED: [&str; 6] =
    ["File System 6", "Indexer 8", "Philosophers 9", "CMIS C=2 N=8", "CMIS C=4 N=16", "3 Robots"];

/// Rows that only the cartesian search can do.
const ALONE: [&str; 4] = ["File System 16", "Indexer 15", "CMIS C=32 N=128", "CMIS C=64 N=256"];

/// Shorter searches end before a second worker has started.
const WORTH_SHARING: Duration = Duration::from_millis(5);

/// Repetitions of each search; the fastest counts.
const ROUNDS: usize = 5;

/// Prints the times of the two searches, as ratios within this run.
pub fn times() -> Result<bool> {
    let rows = rows()?;
    let named = |name: &&str| {
        rows.iter().find(|row| row.name == *name).with_context(|| format!("no row {name}"))
    };
    println!(
        "{:<18} {:>9} {:>10} {:>14} {:>16} {:>14}",
        "", "states", "time", "per state", "per transition", "2 jobs"
    );
    for row in TIMED.iter().chain(&ALONE).map(named) {
        let row = row?;
        let best = |reduction, jobs| -> Result<Ours> {
            let mut best: Option<Ours> = None;
            for _ in 0..ROUNDS {
                let ours = row.run(reduction, jobs)?.context("it fits the memory")?;
                best = best.filter(|best| best.elapsed <= ours.elapsed).or(Some(ours));
            }
            best.context("there is a round")
        };
        let one = best(CARTESIAN, 1)?;
        let seconds = |ours: Ours| ours.elapsed.as_secs_f64();
        let concurrent = if one.elapsed < WORTH_SHARING {
            "-".to_owned()
        } else {
            format!("{:.2}×", seconds(best(CARTESIAN, 2)?) / seconds(one))
        };
        if ALONE.contains(&row.name.as_str()) {
            let each = seconds(one) / one.executed as f64 * 1e9;
            println!(
                "{:<18} {:>9} {:>10} {:>14} {each:>13.0} ns {concurrent:>14}",
                row.name, "-", "-", "-"
            );
            continue;
        }
        let full = best(Reduction::None, 1)?;
        let ratio = |of: fn(Ours) -> f64| of(one) / of(full);
        println!(
            "{:<18} {:>8.4}× {:>9.4}× {:>13.2}× {:>15.2}× {concurrent:>14}",
            row.name,
            ratio(|ours| ours.figures[0] as f64),
            ratio(|ours| ours.elapsed.as_secs_f64()),
            ratio(|ours| ours.elapsed.as_secs_f64() / ours.figures[0] as f64),
            ratio(|ours| ours.elapsed.as_secs_f64() / ours.executed as f64),
        );
    }
    println!("cartesian by full search; the last column: two workers by one");
    Ok(true)
}
