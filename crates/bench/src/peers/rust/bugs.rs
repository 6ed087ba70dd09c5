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
    let modes: [(&str, Tool, Seeded); 2] =
        [("random", Tool::Preempt, Mode::Random), ("shuttle's", Tool::Shuttle, Mode::Random)];
    let mut table = Table::new(std::iter::once("test").chain(modes.iter().map(|(head, ..)| *head)));
    for test in TESTS {
        let mut cells = vec![test.to_owned()];
        for (_, tool, mode) in modes {
            let (firsts, missed) = firsts(tool, mode, test, times.seeds, times.cap)?;
            let missed = if missed > 0 { format!(", {missed} without") } else { String::new() };
            let (mean, most) = (mean(&firsts), firsts.iter().max().unwrap_or(&0));
            cells.push(format!("{mean:.0} ({most}{missed})"));
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(())
}

/// Random priorities (PCT) of both tools, with the same depth: the mean number of executions to the
/// first report over many seeds, and its standard error. A seed without a report within the cap
/// counts with the executions that it had, so its mean is too low; the table says how many.
pub fn priorities(times: Times, behind: &mut Vec<String>) -> Result<()> {
    let seeds = times.priority_seeds;
    println!(
        "\nRandom priorities, depth {}: executions to the first report, mean over {seeds} seeds ± \
         its standard error",
        super::tools::DEPTH
    );
    let mut table = Table::new(["test", "Preempt", "shuttle", "ours/shuttle's"]);
    for test in TESTS {
        let mut cells = vec![test.to_owned()];
        let mut means = Vec::new();
        for tool in [Tool::Preempt, Tool::Shuttle] {
            let (firsts, missed) = firsts(tool, Mode::Pct, test, seeds, times.cap)?;
            let (mean, error) = (mean(&firsts), standard_error(&firsts));
            let missed = if missed > 0 { format!(", {missed} without") } else { String::new() };
            cells.push(format!("{mean:.1} ± {error:.1}{missed}"));
            means.push((mean, error));
        }
        let [(ours, our_error), (theirs, their_error)] = means[..] else {
            unreachable!("two tools were measured")
        };
        cells.push(format!("{:.2}", ours / theirs));
        // Two means that differ by less than two standard errors of their difference are equal.
        if ours > theirs + 2.0 * our_error.hypot(their_error) {
            behind.push(format!(
                "{test}: Preempt pct takes {ours:.1} executions on average, shuttle {theirs:.1}"
            ));
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(())
}

/// The executions to the first report from each seed, and the number of seeds without one.
fn firsts(tool: Tool, mode: Seeded, test: &str, seeds: u64, cap: f64) -> Result<(Vec<u64>, u64)> {
    let (mut firsts, mut missed) = (Vec::new(), 0);
    for seed in 1..=seeds {
        let run = Request { tool, mode: mode(seed), test, repeat: 0.0, cap }.in_child()?;
        firsts.push(run.first);
        missed += u64::from(!matches!(run.ended, Ended::Failed(_)));
    }
    Ok((firsts, missed))
}

fn mean(numbers: &[u64]) -> f64 {
    numbers.iter().sum::<u64>() as f64 / numbers.len().max(1) as f64
}

/// The standard error of the mean.
fn standard_error(numbers: &[u64]) -> f64 {
    let mean = mean(numbers);
    let squares: f64 = numbers.iter().map(|&number| (number as f64 - mean).powi(2)).sum();
    let count = numbers.len() as f64;
    (squares / (count - 1.0).max(1.0) / count.max(1.0)).sqrt()
}

fn to_first(run: &Run) -> String {
    match run.ended {
        Ended::Failed(_) => grouped(run.first),
        Ended::Complete => format!("none ({})", grouped(run.first)),
        Ended::Capped => format!("none ({}+)", grouped(run.first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_its_error_are_those_of_the_textbook() {
        let numbers = [2, 4, 4, 4, 5, 5, 7, 9];
        assert!((mean(&numbers) - 5.0).abs() < 1e-12);
        // The sum of the squared deviations is 32.
        assert!((standard_error(&numbers) - (32.0_f64 / 7.0 / 8.0).sqrt()).abs() < 1e-12);
        assert!(standard_error(&[3]).abs() < 1e-12);
    }
}
