//! Linearizability of published data structures.
//!
//! `data/structures.toml` lists constructors and operations. The crates are downloaded on demand,
//! copied, and std's atomics replaced by Preempt's in the copy; the copy is never part of the
//! repository. Each structure is then checked by [`preempt::linearize`](fn@preempt::linearize),
//! with its serial behaviour as the specification, under sequential consistency: the list says
//! which structures have to pass, and which violations were reported and have to be found.

mod list;
mod rewrite;
mod run;
mod workshop;

use std::path::PathBuf;

use anyhow::Result;

use self::list::{List, Structure};
pub use self::run::Limits;
use self::run::{Run, run};
use self::workshop::Workshop;
use crate::table::{Table, absent, grouped};

/// The structures to check, and the limits of each check.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Only structures of these crates; all that are listed if empty.
    pub crates: Vec<String>,
    /// The limits of each check.
    pub limits: Limits,
}

/// Checks the structures and prints the table. Returns whether all drivers were built and all
/// verdicts are the expected ones.
pub fn print(ask: &Ask) -> Result<bool> {
    let mut list = List::read()?;
    list.retain(&ask.crates)?;
    let workshop = Workshop::open()?;
    let logs = logs()?;
    let mut table = Table::new([
        "structure",
        "operations",
        "crate",
        "calls",
        "scenarios",
        "all schedules",
        "executions",
        "CPU s",
        "verdict",
        "smallest failing scenario",
    ]);
    let mut wrong = Vec::new();
    for group in list.structures.chunk_by(|a, b| a.name == b.name) {
        let group: Vec<&Structure> = group.iter().collect();
        // A crate that cannot be built says nothing about the others.
        let driver = match workshop.build(&group, &list) {
            Ok(driver) => driver,
            Err(why) => {
                wrong.push(format!("{why:#}"));
                continue;
            }
        };
        let version = &list.source(&group[0].name)?.version;
        for (number, structure) in group.iter().enumerate() {
            let run = run(&driver, number, structure, ask.limits, &logs)?;
            let cells = cells(structure, version, &run, ask.limits);
            // Checks take long, so intermediate results are shown.
            eprintln!("{}", cells.join("  "));
            table.row(cells);
            let title = format!("{} {}", structure.name, structure.constructor());
            wrong.extend(run.differs(structure, ask.limits).map(|why| format!("{title}: {why}")));
        }
    }
    println!(
        "Scenarios of up to `calls` calls, smallest first; with at most {} preemption(s) inside \
         operations, those in `all\nschedules` without that bound; at most {} CPU-seconds each; \
         sequential consistency; specification: the serial\nbehaviour of the structure itself",
        ask.limits.bound,
        ask.limits.time.as_secs(),
    );
    print!("{}", table.to_text());
    wrong.iter().for_each(|why| println!("{why}"));
    Ok(wrong.is_empty())
}

fn cells(structure: &Structure, version: &str, run: &Run, limits: Limits) -> [String; 10] {
    [
        structure.constructor().to_owned(),
        structure.operations(),
        format!("{} {version}", structure.name),
        limits.calls_of(structure).to_string(),
        grouped(run.scenarios),
        grouped(run.exhaustive),
        grouped(run.executions),
        format!("{:.2}", run.seconds),
        run.verdict.class().to_owned(),
        run.verdict.scenario().map_or_else(absent, str::to_owned),
    ]
}

/// A folder for the output of drivers.
fn logs() -> Result<PathBuf> {
    let name = format!("preempt-structures-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
