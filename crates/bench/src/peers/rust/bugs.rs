//! Counts the executions to the first report of an error.

use anyhow::Result;

use super::meter::{Ended, Run};
use super::table::{Table, grouped};
use super::{Ask, Times, Tool, Way};

/// The tests with an error.
const TESTS: [&str; 3] = ["ABBA", "Chase-Lev bug, 1 steal", "Chase-Lev bug, 2 steals"];

/// A way to search that depends on a seed.
type Seeded = fn(u64) -> Way;

/// The systematic searches, by the headings of their columns.
const WAYS: [(&str, Tool, Way); 10] = [
    ("Preempt", Tool::Preempt, Way::All),
    ("≤1", Tool::Preempt, Way::Bound(1)),
    ("≤2", Tool::Preempt, Way::Bound(2)),
    ("≤3", Tool::Preempt, Way::Bound(3)),
    ("dfs", Tool::Preempt, Way::Dfs),
    ("loom", Tool::Loom, Way::All),
    ("≤1", Tool::Loom, Way::Bound(1)),
    ("≤2", Tool::Loom, Way::Bound(2)),
    ("≤3", Tool::Loom, Way::Bound(3)),
    ("shuttle dfs", Tool::Shuttle, Way::Dfs),
];

/// Searches for the errors and prints the numbers of executions.
pub fn first(times: Times, behind: &mut Vec<String>) -> Result<()> {
    println!("\nExecutions to the first report (none: explored so many without one)");
    let mut table = Table::new(std::iter::once("test").chain(WAYS.iter().map(|(head, ..)| *head)));
    for test in TESTS {
        let mut cells = vec![test.to_owned()];
        let mut found = Vec::new();
        for (_, tool, way) in WAYS {
            let run = Ask { tool, way, test, repeat: 0.0, cap: times.cap }.in_child()?;
            cells.push(to_first(&run));
            found.push((tool, way, run));
        }
        for (tool, way, run) in found.iter().filter(|(tool, ..)| *tool != Tool::Preempt) {
            let fails = |run: &Run| matches!(run.ended, Ended::Failed(_));
            let ours = found.iter().find(|(other, ours, _)| *other == Tool::Preempt && ours == way);
            if let Some((.., ours)) =
                ours.filter(|(.., ours)| fails(run) && (!fails(ours) || ours.first > run.first))
            {
                behind.push(format!(
                    "{test}: Preempt {} takes {} executions to the first report, {tool:?} {}",
                    way.name(),
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
    println!("\nThe same at random: mean over {} seeds (and the greatest)", times.seeds);
    let ways: [(&str, Tool, Seeded); 4] = [
        ("random", Tool::Preempt, Way::Random),
        ("shuttle's", Tool::Shuttle, Way::Random),
        ("pct", Tool::Preempt, Way::Pct),
        ("shuttle's", Tool::Shuttle, Way::Pct),
    ];
    let mut table = Table::new(std::iter::once("test").chain(ways.iter().map(|(head, ..)| *head)));
    for test in TESTS {
        let mut cells = vec![test.to_owned()];
        for (_, tool, way) in ways {
            let mut firsts = Vec::new();
            for seed in 1..=times.seeds {
                let run =
                    Ask { tool, way: way(seed), test, repeat: 0.0, cap: times.cap }.in_child()?;
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
