//! Searches in several processes compared with one: CPU time.
//!
//! Each program is searched by `preempt check --order bfs` as it is, and with `--processes` 1, 2
//! and 4, by a binary that was built with the feature `cluster`. The time is the CPU time of all
//! processes, so that it does not depend on the number of cores. All runs must count the same.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::corpus;
use crate::measure;
use crate::papers::Extent;
use crate::scale::curves::Subject;
use crate::table::{Table, grouped};

fn subjects(extent: Extent) -> Vec<Subject> {
    match extent {
        Extent::Quick => vec![
            Subject::Counter { threads: 4, rounds: 3 },
            Subject::Grid { threads: 5, rounds: 8 },
            Subject::Philosophers { threads: 11 },
        ],
        Extent::Whole => vec![
            Subject::Counter { threads: 4, rounds: 4 },
            Subject::Grid { threads: 7, rounds: 8 },
            Subject::Philosophers { threads: 14 },
            Subject::Indexer { threads: 5 },
        ],
    }
}

/// What a search counts, and its CPU time.
struct Run {
    counts: Value,
    seconds: f64,
}

fn run(preempt: &Path, subject: Subject, processes: Option<usize>) -> Result<Run> {
    let mut command = Command::new(preempt);
    command.arg("check").arg(corpus::root().join(subject.file()));
    command.args(["--order", "bfs", "--keep-going", "--no-shrink", "--json"]);
    for setting in subject.settings() {
        command.args(["--set", &setting]);
    }
    if let Some(processes) = processes {
        command.args(["--processes", &processes.to_string()]);
    }
    // The command waits for the processes that it starts, so their time is part of its own.
    let before = measure::children_seconds()?;
    let output = command.output().with_context(|| format!("cannot run {}", preempt.display()))?;
    let seconds = measure::children_seconds()? - before;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code().is_some_and(|code| code < 2),
        "{subject}: {error}\nIs the binary built with --features cluster?"
    );
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let counts = ["states", "transitions", "depth", "failed"].map(|name| report[name].clone());
    Ok(Run { counts: Value::from(counts.to_vec()), seconds })
}

/// Prints the table. Returns whether all counts agree.
pub fn compare(preempt: &Path, extent: Extent) -> Result<bool> {
    let mut table = Table::new(["program", "states", "processes", "CPU s", "ratio"]);
    let mut agree = true;
    for subject in subjects(extent) {
        let alone = run(preempt, subject, None)?;
        let states = alone.counts[0].as_u64().context("the report has a number of states")?;
        let row = |name: &str, run: &Run, is_first: bool| {
            let (program, states) = match is_first {
                true => (subject.to_string(), grouped(states)),
                false => Default::default(),
            };
            let ratio = format!("{:.2}", run.seconds / alone.seconds);
            [program, states, name.to_owned(), format!("{:.2}", run.seconds), ratio]
        };
        table.row(row("not distributed", &alone, true));
        for processes in [1, 2, 4] {
            let together = run(preempt, subject, Some(processes))?;
            agree &= together.counts == alone.counts;
            table.row(row(&processes.to_string(), &together, false));
        }
    }
    print!("{}", table.to_text());
    println!("\nratio: CPU time of all processes to that of a search that is not distributed.");
    Ok(agree)
}
