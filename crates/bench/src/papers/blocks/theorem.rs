//! Theorems 1 and 2 of blocks, which are false.
//!
//! Formula (5) counts the pairs of accesses of different threads, where it should count orders. For
//! n threads that access one variable k times each there are (nk)! / (k!)ⁿ of these, about nⁿᵏ, and
//! all of them are PO graphs.

use anyhow::{Result, anyhow};
use preempt_explore::Reduction;
use preempt_explore::reduce::Dependence;
use preempt_explore::reduce::blocks::{Blocks, Figures};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::Model as _;
use serde::Deserialize;

use super::{executions, word};

/// Each of `threads` accesses each of `variables` this often.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    threads: usize,
    variables: usize,
    accesses: usize,
    /// Formula (12).
    claimed: f64,
    /// The true number.
    graphs: u128,
}

/// The same with one variable.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row2 {
    threads: usize,
    accesses: usize,
    claimed: f64,
    graphs: u128,
}

/// In a quick run, more graphs are counted but not run.
const QUICK: u128 = 20_000;

/// Threads that write one variable after the other, each often.
fn machine(threads: usize, variables: usize, accesses: usize) -> Result<Machine> {
    let declared: String = (0..variables).map(|v| format!("atomic var v{v} = 0; ")).collect();
    let body: String =
        (0..variables * accesses).map(|at| format!("v{} = t; ", at / accesses)).collect();
    let text = format!("{declared} thread writer(t in 0..{threads}) {{ {body} }}");
    preempt_lang::load(&Source::new("theorem.pre", text), &[])
        .map_err(|d| anyhow!("{}", d[0].message))
}

fn figures(machine: &Machine) -> Result<Figures> {
    let lines = machine.straight_lines().map_err(|why| anyhow!("{why}"))?;
    Ok(Figures::of(&Blocks::new(&lines, Dependence::All)))
}

pub(super) fn theorem_1(rows: &[Row], quick: bool) -> Result<bool> {
    println!(
        "\nblocks, Theorem 1: n threads access each of r variables k times; formula (12) against \
         the number of PO graphs"
    );
    println!("  {:>2} {:>2} {:>2} {:>9} {:>9} {:>9}", "n", "r", "k", "(12)", "graphs", "run");
    let mut good = true;
    for row in rows {
        let machine = machine(row.threads, row.variables, row.accesses)?;
        let figures = figures(&machine)?;
        let run = !quick || row.graphs <= QUICK;
        let ran = if run { Some(executions(machine, Reduction::BlocksPaper)?) } else { None };
        let equal = figures.graphs == Some(row.graphs)
            && figures.product == Some(row.graphs)
            && ran.is_none_or(|ran| ran == row.graphs)
            && (figures.claimed - row.claimed).abs() < 1e-6 * row.claimed;
        let verdict = match row.graphs as f64 - row.claimed {
            more if more > 1e-6 => "violated",
            more if more > -1e-6 => "reached",
            _ => "holds",
        };
        println!(
            "  {:>2} {:>2} {:>2} {:>9.0} {:>9} {:>9}  {verdict}; figures {}",
            row.threads,
            row.variables,
            row.accesses,
            figures.claimed,
            row.graphs,
            ran.map_or("-".into(), |ran| ran.to_string()),
            word(equal)
        );
        good &= equal;
    }
    Ok(good)
}

pub(super) fn theorem_2(rows: &[Row2]) -> Result<bool> {
    println!(
        "\nblocks, Theorem 2: n threads access one variable k times, b = nk; b e^(2b/e) against \
         the number of PO graphs"
    );
    let mut good = true;
    for row in rows {
        let b = (row.threads * row.accesses) as f64;
        let claimed = b * (2.0 * b / std::f64::consts::E).exp();
        let graphs = figures(&machine(row.threads, 1, row.accesses)?)?.graphs;
        let equal =
            graphs == Some(row.graphs) && (claimed - row.claimed).abs() < 0.5 + 1e-6 * claimed;
        good &= equal && row.graphs as f64 > claimed;
        println!(
            "  {:>2} {:>2} {claimed:>11.0} {:>11}  violated; figures {}",
            row.threads,
            row.accesses,
            row.graphs,
            word(equal)
        );
    }
    Ok(good)
}
