//! blocks: Tables 1 and 2, the programs of the zoo, Theorems 1 and 2, and the data behind Figures 1 to 5.

pub(super) mod growth;
mod theorem;

use std::cmp::Reverse;
use std::convert::Infallible;

use anyhow::{Result, anyhow, ensure};
use preempt_explore::reduce::Dependence;
use preempt_explore::reduce::blocks::{Blocks, Figures, Mutant, po_graphs};
use preempt_explore::{Order, Plan, Reduction, Silent, replay};
use preempt_lang::machine::Machine;
use preempt_system::{Choice, Model as _, Narrate as _, Schedule, ThreadId};
use serde::Deserialize;

use crate::corpus;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    table_1: Orders<(String, i64)>,
    table_2: Orders<(String, i64, i64)>,
    stated: growth::Stated,
    growth: growth::Claims,
    program: Vec<Program>,
    theorem: Vec<theorem::Row>,
    theorem_2: Vec<theorem::Row2>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Orders<T> {
    orders: Vec<T>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    file: String,
    interleavings: u128,
    blocks: Vec<usize>,
    orders: Vec<u128>,
    product: u128,
    graphs: u128,
    traces: u128,
    claimed: f64,
}

/// Prints all; says whether all figures that must be equal are. `quick` leaves out what takes more than a few seconds.
pub fn tables(quick: bool) -> Result<bool> {
    let data: Data = toml::from_str(include_str!("../../../data/blocks.toml"))?;
    let mut good = table_1(&data.table_1.orders)?;
    good &= table_2(&data.table_2.orders)?;
    good &= programs(&data.program)?;
    good &= theorem::theorem_1(&data.theorem, quick)?;
    good &= theorem::theorem_2(&data.theorem_2)?;
    good &= growth::figures(&data.stated, quick);
    good &= growth::three_times_twenty(&data.growth)?;
    Ok(good)
}

fn word(equal: bool) -> &'static str {
    if equal { "equal" } else { "DIFFERENT" }
}

fn zoo(file: &str) -> Result<Machine> {
    corpus::machine(&corpus::root().join(file), &[])
}

/// How many executions a search runs.
fn executions(machine: Machine, reduction: Reduction) -> Result<u128> {
    let search = Plan::new().order(Order::Executions).reduction(reduction).build().map_err(|why| anyhow!("{why}"))?;
    search.suits(&machine).map_err(|why| anyhow!("{why}"))?;
    let (outcome, _) = search.run(machine, &Silent);
    ensure!(outcome.complete, "{}", outcome.guarantee());
    Ok(outcome.executions().unwrap_or(0).into())
}

/// One execution of a PO graph.
struct Executed {
    /// The blocks in their order, numbered from 1 thread by thread as in the paper.
    order: Vec<usize>,
    /// The shared variables at the end.
    variables: Vec<i64>,
}

/// One execution of each PO graph.
fn results(machine: Machine) -> Result<Vec<Executed>> {
    let lines = machine.straight_lines().map_err(|why| anyhow!("{why}"))?;
    let blocks = Blocks::new(&lines, Dependence::All);
    let mut orders = Vec::new();
    let done: Result<_, Infallible> = po_graphs(&blocks, Mutant::None, |graph| {
        orders.extend(graph.sort());
        Ok(())
    });
    let Ok(counts) = done;
    ensure!(orders.len() as u64 == counts.graphs, "a PO graph has an order");
    let run = |order: Vec<usize>| {
        let steps = order.iter().flat_map(|&id| {
            let block = &blocks.all[id];
            block.steps.clone().map(|_| Choice::of(ThreadId::new(block.thread)))
        });
        let (replayed, machine) = replay(machine.clone(), &Schedule(steps.collect()))?;
        let variables = machine.stepper().variables(replayed.state(replayed.steps()));
        let variables = variables.into_iter().map(|(_, value)| Ok(value.parse()?)).collect::<Result<_>>()?;
        Ok(Executed { order: order.into_iter().map(|id| id + 1).collect(), variables })
    };
    orders.into_iter().map(run).collect()
}

fn table_1(published: &[(String, i64)]) -> Result<bool> {
    println!("blocks, Table 1: x := 4; x := x + 3 (a, b) beside x := 2; x := x * x + 1 (c, d)");
    let results = results(zoo("zoo/c.pre")?)?;
    let mut good = results.len() == published.len();
    for (order, x) in published {
        let blocks: Vec<usize> = order.bytes().map(|letter| usize::from(letter - b'a') + 1).collect();
        let ours = results.iter().find(|result| result.order == blocks).map(|result| result.variables[0]);
        good &= ours == Some(*x);
        println!("  {order}  {x:>3}  {:>3}  {}", ours.map_or("-".into(), |x| x.to_string()), word(ours == Some(*x)));
    }
    Ok(good)
}

fn table_2(published: &[(String, i64, i64)]) -> Result<bool> {
    println!("\nblocks, Table 2: the four graphs of Figure 6, the paper's order and ours, e and f");
    let mut results = results(zoo("zoo/d.pre")?)?;
    // The paper lists them by their results, the larger first.
    results.sort_by_key(|result| Reverse(result.variables.clone()));
    let mut good = results.len() == published.len();
    for ((order, e, f), ours) in published.iter().zip(&results) {
        let digits: String = ours.order.iter().map(ToString::to_string).collect();
        let equal = ours.variables == [*e, *f];
        good &= equal;
        let why = if *order == digits { "" } else { " (another order of the same graph, as footnote 3 allows)" };
        println!("  {order} {digits}  {e} {f}  {:?}  {}{why}", ours.variables, word(equal));
    }
    Ok(good)
}

fn programs(programs: &[Program]) -> Result<bool> {
    println!(
        "\nblocks, the zoo: interleavings; blocks, orders of each variable, their product, PO graphs; where reads commute, PO graphs and"
    );
    println!("executions of optimal dynamic reduction; formula (12)");
    let mut good = true;
    for program in programs {
        let machine = zoo(&program.file)?;
        let lines = machine.straight_lines().map_err(|why| anyhow!("{why}"))?;
        let blocks = Blocks::new(&lines, Dependence::All);
        let figures = Figures::of(&blocks);
        let orders: Vec<u128> = figures.orders.iter().flatten().copied().collect();
        let ran = |reduction| executions(machine.clone(), reduction);
        let graphs = ran(Reduction::BlocksPaper)?;
        let (all, traces, optimal) = (ran(Reduction::None)?, ran(Reduction::Blocks)?, ran(Reduction::Optimal)?);
        let equal = blocks.per_thread() == program.blocks
            && orders == program.orders
            && (figures.interleavings, all) == (Some(program.interleavings), program.interleavings)
            && figures.product == Some(program.product)
            && (figures.graphs, graphs) == (Some(program.graphs), program.graphs)
            && (traces, optimal) == (program.traces, program.traces)
            && (figures.claimed - program.claimed).abs() < 0.005;
        good &= equal;
        println!(
            "  {:<10} {all:>3} {:<10} {:<7} {:>3} {graphs:>3} {traces:>3} {optimal:>3} {:>6.2}  {}",
            program.file,
            format!("{:?}", blocks.per_thread()),
            format!("{orders:?}"),
            figures.product.unwrap_or(0),
            figures.claimed,
            word(equal)
        );
    }
    Ok(good)
}
