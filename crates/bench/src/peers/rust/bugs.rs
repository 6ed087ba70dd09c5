//! Counts the executions to the first report of an error.

use anyhow::Result;

use super::meter::{Ended, Run};
use super::table::{Table, grouped};
use super::{Mode, Request, Times, Tool};

/// The tests with an error.
const TESTS: [&str; 3] = ["ABBA", "Chase-Lev bug, 1 steal", "Chase-Lev bug, 2 steals"];

/// A search mode with a seed.
type Seeded = fn(u64) -> Mode;

/// The systematic searches, by the headings of their columns.
const MODES: [(&str, Tool, Mode); 10] = [
    ("Preempt", Tool::Preempt, Mode::All),
    ("≤1", Tool::Preempt, Mode::Bound(1)),
    ("≤2", Tool::Preempt, Mode::Bound(2)),
    ("≤3", Tool::Preempt, Mode::Bound(3)),
    ("dfs", Tool::Preempt, Mode::Dfs),
    ("loom", Tool::Loom, Mode::All),
    ("≤1", Tool::Loom, Mode::Bound(1)),
    ("≤2", Tool::Loom, Mode::Bound(2)),
    ("≤3", Tool::Loom, Mode::Bound(3)),
    ("shuttle dfs", Tool::Shuttle, Mode::Dfs),
];

/// Searches for the errors and prints the numbers of executions.
pub fn first(times: Times, behind: &mut Vec<String>) -> Result<()> {
    println!("\nExecutions to the first report (none: executions explored without one)");
    let mut table = Table::new(std::iter::once("test").chain(MODES.iter().map(|(head, ..)| *head)));
    for test in TESTS {
        let mut cells = vec![test.to_owned()];
        let mut found = Vec::new();
        for (_, tool, mode) in MODES {
            let run = Request { tool, mode, test, repeat: 0.0, cap: times.cap }.in_child()?;
            cells.push(to_first(&run));
            found.push((tool, mode, run));
        }
        for (tool, mode, run) in found.iter().filter(|(tool, ..)| *tool != Tool::Preempt) {
            let fails = |run: &Run| matches!(run.ended, Ended::Failed(_));
            let ours =
                found.iter().find(|(other, ours, _)| *other == Tool::Preempt && ours == mode);
            if let Some((.., ours)) =
                ours.filter(|(.., ours)| fails(run) && (!fails(ours) || ours.first > run.first))
            {
                behind.push(format!(
                    "{test}: Preempt {} takes {} executions to the first report, {tool:?} {}",
                    mode.name(),
                    to_first(ours),
                    to_first(run),
                ));
            }
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    at_random(times)
}

fn at_random(times: Times) -> Result<()> {
    println!("\nThe same at random: mean over {} seeds (and the maximum)", times.seeds);
    let modes: [(&str, Tool, Seeded); 4] = [
        ("random", Tool::Preempt, Mode::Random),
        ("shuttle's", Tool::Shuttle, Mode::Random),
        ("pct", Tool::Preempt, Mode::Pct),
        ("shuttle's", Tool::Shuttle, Mode::Pct),
    ];
    let mut table = Table::new(std::iter::once("test").chain(modes.iter().map(|(head, ..)| *head)));
    for test in TESTS {
        let mut cells = vec![test.to_owned()];
        for (_, tool, mode) in modes {
            let mut firsts = Vec::new();
            for seed in 1..=times.seeds {
                let run = Request { tool, mode: mode(seed), test, repeat: 0.0, cap: times.cap }
                    .in_child()?;
                firsts.extend(matches!(run.ended, Ended::Failed(_)).then_some(run.first));
            }
            let missed = times.seeds - firsts.len() as u64;
            let mean = firsts.iter().sum::<u64>() as f64 / firsts.len().max(1) as f64;
            let missed = if missed > 0 { format!(", {missed} without") } else { String::new() };
            cells.push(format!("{mean:.0} ({}{missed})", firsts.iter().max().unwrap_or(&0)));
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(())
}

fn to_first(run: &Run) -> String {
    match run.ended {
        Ended::Failed(_) => grouped(run.first),
        Ended::Complete => format!("none ({})", grouped(run.first)),
        Ended::Capped => format!("none ({}+)", grouped(run.first)),
    }
}
