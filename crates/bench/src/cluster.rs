//! Searches in several processes compared with one: CPU time.
//!
//! Each program is searched by `preempt check --order bfs` as it is, and with `--processes` 1, 2
//! and 4, by a binary that was built with the feature `cluster`. The time is the CPU time of all
//! processes, so that it does not depend on the number of cores. All runs must count the same.
//!
//! A second table says what these costs would mean for 10 and 100 machines. It is computed, not
//! measured: no machine waits for another one, and all cores of a machine are equally fast.

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

/// What a search costs, from runs in one process and in several.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// CPU seconds per state in one process.
    state: f64,
    /// Steps per state.
    steps: f64,
    /// CPU seconds per state that is sent, on both sides together.
    sent: f64,
}

/// Bytes of a state of one word that is sent as it is.
const SENT_BYTES: f64 = 8.0;

/// Workers of a machine.
const WORKERS: f64 = 8.0;

impl Costs {
    /// The costs by the time of one process and of `processes`. A step leads to a state of another
    /// process with probability 1 - 1 / processes.
    fn of(alone: &Run, together: &Run, processes: f64) -> Option<Costs> {
        let (states, steps) = (alone.counts[0].as_f64()?, alone.counts[1].as_f64()?);
        let sent = steps * (1.0 - 1.0 / processes);
        Some(Costs {
            state: alone.seconds / states,
            steps: steps / states,
            sent: ((together.seconds - alone.seconds) / sent).max(0.0),
        })
    }

    /// States per second of so many machines, as their processors allow.
    fn by_processors(&self, machines: f64) -> f64 {
        let sent = self.steps * (1.0 - 1.0 / machines);
        machines * WORKERS / (self.state + sent * self.sent)
    }

    /// States per second, as links of `bytes` bytes per second and direction allow.
    fn by_network(&self, machines: f64, bytes: f64) -> f64 {
        machines * bytes / (self.steps * (1.0 - 1.0 / machines) * SENT_BYTES)
    }
}

/// The table for many machines.
fn computed(costs: Costs) -> Table {
    let mut table =
        Table::new(["machines", "processors", "1 Gbit/s", "10 Gbit/s", "bytes/s per machine"]);
    let millions = |rate: f64| format!("{:.0} M", rate / 1e6);
    for machines in [10.0, 100.0] {
        let rate = costs.by_processors(machines);
        let gigabit = |count: f64| costs.by_network(machines, count * 125e6).min(rate);
        let traffic = rate / costs.by_network(machines, 1.0);
        table.row([
            format!("{machines}"),
            millions(rate),
            millions(gigabit(1.0)),
            millions(gigabit(10.0)),
            millions(traffic),
        ]);
    }
    table
}

/// Prints the table. Returns whether all counts agree.
pub fn compare(preempt: &Path, extent: Extent) -> Result<bool> {
    let mut table = Table::new(["program", "states", "processes", "CPU s", "ratio"]);
    let mut agree = true;
    let mut costs = None;
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
            if processes == 4 && matches!(subject, Subject::Grid { .. }) {
                costs = Costs::of(&alone, &together, 4.0);
            }
            table.row(row(&processes.to_string(), &together, false));
        }
    }
    print!("{}", table.to_text());
    println!("\nratio: CPU time of all processes to that of a search that is not distributed.");
    if let Some(costs) = costs {
        println!(
            "\nComputed from the costs of the grid, not measured: states per second of machines \
             with {WORKERS} workers,\nif no machine waits, as the processors allow, and with \
             links of 1 and 10 Gbit/s and parcels of whole states.\nA state costs {:.0} ns, a \
             state that is sent {:.0} ns more; {:.1} steps per state.\n",
            costs.state * 1e9,
            costs.sent * 1e9,
            costs.steps
        );
        print!("{}", computed(costs).to_text());
    }
    Ok(agree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_the_costs() {
        let run = |seconds: f64| Run { counts: serde_json::json!([1_000_000, 4_000_000]), seconds };
        let costs = Costs::of(&run(0.4), &run(0.7), 4.0).expect("there are counts");
        // 3 million states are sent, for 0.3 seconds: 100 ns each.
        assert!((costs.state - 4e-7).abs() < 1e-12 && (costs.sent - 1e-7).abs() < 1e-12);
        // 10 machines: 0.4 µs and 3.6 × 0.1 µs per state, 80 workers.
        assert!((costs.by_processors(10.0) / (80.0 / 0.76e-6) - 1.0).abs() < 1e-9);
        // 3.6 × 8 bytes per state through each of 10 links of 125 MB/s.
        assert!((costs.by_network(10.0, 125e6) / (1.25e9 / 28.8) - 1.0).abs() < 1e-9);
        assert_eq!(computed(costs).to_text().lines().count(), 3);
    }
}
