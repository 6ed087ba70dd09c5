//! The cost of the searches within a bound on the work-stealing queue, next to that of a prototype.
//!
//! Every search runs in a child process, which reports its executions, its CPU time and its peak
//! memory. Times are from different machines: only the time per execution and its growth can be
//! compared.

use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::cursor::Cursor;
use preempt_explore::execution::{Ignore, Stop};
use preempt_explore::reduce::budgeted_sleep::{self, budgeted_sleep_sets};
use preempt_explore::reduce::{Dependence, cb_por};
use preempt_explore::{Cache, Count, Order, Plan};
use preempt_system::{Model, System as _};
use serde::Deserialize;

use super::queue::{self, Lock};
use crate::measure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    row: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    size: u32,
    lock: String,
    dependence: String,
    bound: u32,
    cb_dfs: Cost,
    cb_por: Cost,
    budgeted_sleep: Cost,
    icb: Option<Cost>,
}

/// The counts and costs of a search.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    executions: u64,
    /// cb-por's.
    marks: Option<u64>,
    /// icb's: steps from distinct happens-before graphs.
    steps: Option<u64>,
    seconds: f64,
    megabytes: Option<f64>,
}

impl Cost {
    /// Microseconds per execution, if the time is long enough to be measured.
    fn each(&self) -> Option<f64> {
        (self.seconds >= 0.01).then(|| self.seconds * 1e6 / self.executions as f64)
    }
}

/// The greatest bound of a quick run.
const QUICK: u32 = 3;

/// Prints the table; returns whether the counts that must be equal are. `quick` stops at 3
/// preemptions.
pub fn table(quick: bool) -> Result<bool> {
    let data: Data = toml::from_str(include_str!("../../data/growth.toml"))?;
    println!(
        "The work-stealing queue within a bound: executions, microseconds for each, and peak \
         memory; a prototype's beside ours"
    );
    println!(
        "{:<31} {:<14} {:>9} {:>9}  {:<9} {:>8} {:>8}  {:>7} {:>7}",
        "size, lock, dependence, bound",
        "search",
        "its",
        "ours",
        "",
        "its µs",
        "our µs",
        "its MB",
        "our MB"
    );
    let mut good = true;
    for row in data.row.iter().filter(|row| !quick || row.bound <= QUICK) {
        let name = format!("{}, {}, {}, c = {}", row.size, row.lock, row.dependence, row.bound);
        let searches = [
            ("cb-dfs", Some(row.cb_dfs), true),
            ("cb-por", Some(row.cb_por), true),
            ("icb", row.icb, false),
            ("budgeted-sleep", Some(row.budgeted_sleep), false),
        ];
        for (search, its, must) in searches {
            let Some(its) = its else { continue };
            let ours = in_child(search, row)?;
            let equal = its.executions == ours.executions
                && its.marks == ours.marks
                && its.steps == ours.steps;
            good &= equal || !must;
            let word = if equal {
                "equal"
            } else if must {
                "DIFFERENT"
            } else {
                "other"
            };
            let micros = |cost: &Cost| {
                cost.each().map_or_else(|| "–".to_owned(), |each| format!("{each:.1}"))
            };
            let megabytes = |cost: &Cost| {
                cost.megabytes.map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}"))
            };
            println!(
                "{name:<31} {search:<14} {:>9} {:>9}  {word:<9} {:>8} {:>8}  {:>7} {:>7}",
                its.executions,
                ours.executions,
                micros(&its),
                micros(&ours),
                megabytes(&its),
                megabytes(&ours)
            );
        }
    }
    println!(
        "other: these counts depend on the order in which threads are tried, which is not the \
         prototype's"
    );
    println!("our MB: of the whole process, with the program and its table of states");
    Ok(good)
}

/// Runs a search in a child process (this program, command `growth-one`).
fn in_child(search: &str, row: &Row) -> Result<Cost> {
    let me = std::env::current_exe()?;
    let row =
        [row.size.to_string(), row.lock.clone(), row.dependence.clone(), row.bound.to_string()];
    let output = Command::new(me).arg("growth-one").arg(search).args(row).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(toml::from_str(&String::from_utf8(output.stdout)?)?)
}

/// Runs one search in this process and prints its cost.
pub fn one(search: &str, size: u32, lock: &str, dependence: &str, bound: u32) -> Result<()> {
    let lock = if lock == "blocking" { Lock::Blocking } else { Lock::Plain };
    let dependence = if dependence == "all" { Dependence::All } else { Dependence::ReadWrite };
    let mut steps = None;
    let mut marks = None;
    let executions = match search {
        "cb-dfs" | "icb" => {
            let order = if search == "icb" {
                Order::Icb { cache: Cache::Hb }
            } else {
                Order::ContextBounded
            };
            let plan = Plan::new().order(order).bound(bound).count(Count::Executions);
            let tally = queue::run(plan, size, lock)?
                .tally
                .context("a search over executions counts them")?;
            steps = (search == "icb").then_some(tally.steps);
            tally.executions
        }
        _ => {
            let machine = grown(size, lock)?.with_stable_names();
            let mut cursor = Cursor::new(&machine).map_err(|_| anyhow!("the queue fits"))?;
            let stopped = |stop: Stop| anyhow!("the queue is explored to the end: {stop:?}");
            if search == "cb-por" {
                let config = cb_por::Config { bound, dependence, ..cb_por::Config::default() };
                let counts =
                    cb_por::terminals(&mut cursor, &mut Ignore, &config).map_err(stopped)?;
                marks = Some(counts.marks);
                counts.executions
            } else {
                let waits = cursor
                    .system_mut()
                    .waits(&mut |_| true)
                    .map_err(|_| anyhow!("the queue fits"))?;
                let waits = waits.context("there is memory for its states")?;
                let config = budgeted_sleep::Config { bound, dependence, waits };
                budgeted_sleep_sets(&mut cursor, &mut Ignore, &config).map_err(stopped)?.executions
            }
        }
    };
    println!("executions = {executions}");
    marks.iter().for_each(|marks| println!("marks = {marks}"));
    steps.iter().for_each(|steps| println!("steps = {steps}"));
    println!(
        "seconds = {:?}\nmegabytes = {:?}",
        measure::own_seconds()?,
        measure::own_peak()? as f64 / 1e6
    );
    Ok(())
}

/// The queue with states that are large enough.
fn grown(size: u32, lock: Lock) -> Result<preempt_machine::Machine> {
    let search = Plan::new().build().map_err(|refusal| anyhow!("{refusal}"))?;
    Ok(search.run(queue::machine(size, lock)?.with_stable_names(), &preempt_explore::Silent).1)
}
