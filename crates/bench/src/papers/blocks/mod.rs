//! blocks: Tables 1 and 2, the programs of the zoo, Theorems 1 and 2, and the data behind Figures 1
//! to 5.

pub(super) mod growth;
mod theorem;

use std::cmp::Reverse;
use std::convert::Infallible;

use anyhow::{Result, anyhow, ensure};
use preempt_explore::reduce::Dependence;
use preempt_explore::reduce::blocks::{Blocks, Figures, po_graphs};
use preempt_explore::{Order, Plan, Reduction, Silent};
use preempt_machine::Machine;
use preempt_report::recorder::{Fairness, replay};
use preempt_system::{Choice, Model as _, Schedule, ThreadId};
use serde::Deserialize;

use super::sheet::{Mark, Marks, Sheet, columns};
use super::{Ask, Part};
use crate::corpus;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
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

/// Prints the selected parts. A quick run skips what takes more than a few seconds.
pub fn print(ask: &Ask) -> Result<Marks> {
    let mut marks = Marks::default();
    if ask.wants_table(1) {
        let Orders { orders } = ask.data.read("blocks-table-1.toml")?;
        marks = marks + table_1(&orders)?.print();
    }
    if ask.wants_table(2) {
        let Orders { orders } = ask.data.read("blocks-table-2.toml")?;
        marks = marks + table_2(&orders)?.print();
    }
    let data: Data = ask.data.read("blocks.toml")?;
    if ask.part == Part::All {
        marks = marks + Marks::of(programs(&data.program)?);
        marks = marks + Marks::of(theorem::theorem_1(&data.theorem, ask.is_quick())?);
        marks = marks + Marks::of(theorem::theorem_2(&data.theorem_2)?);
    }
    if ask.wants_figure(&[1, 2, 3, 4, 5]) {
        marks = marks + Marks::of(growth::figures(&data.stated, ask.is_quick()));
        marks = marks + Marks::of(growth::three_times_twenty(&data.growth)?);
        println!();
    }
    Ok(marks)
}

fn word(equal: bool) -> &'static str {
    if equal { "equal" } else { "DIFFERENT" }
}

fn zoo(file: &str) -> Result<Machine> {
    corpus::machine(&corpus::root().join(file), &[])
}

/// The number of executions of a search.
fn executions(machine: Machine, reduction: Reduction) -> Result<u128> {
    let search = Plan::new()
        .order(Order::Executions)
        .reduction(reduction)
        .build()
        .map_err(|why| anyhow!("{why}"))?;
    search.suits(&machine).map_err(|why| anyhow!("{why}"))?;
    let (outcome, _) = search.run(machine, &Silent);
    ensure!(outcome.complete, "{}", outcome.guarantee());
    Ok(outcome.executions().unwrap_or(0).into())
}

/// One execution of a PO graph.
struct Executed {
    /// The blocks in order, numbered from 1 thread by thread as in the paper.
    order: Vec<usize>,
    /// The shared variables at the end.
    variables: Vec<i64>,
}

/// One execution of each PO graph.
fn results(machine: Machine) -> Result<Vec<Executed>> {
    let lines = machine.straight_lines().map_err(|why| anyhow!("{why}"))?;
    let blocks = Blocks::new(&lines, Dependence::All);
    let mut orders = Vec::new();
    let done: Result<_, Infallible> = po_graphs(&blocks, |graph| {
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
        let schedule = Schedule::new(steps.collect());
        let (replayed, _) = replay(machine.clone(), &schedule, Fairness::Ignored, |_| None);
        ensure!(replayed.misfit.is_none(), "an order of blocks is a schedule");
        let variables = replayed.trace.variables;
        let variables =
            variables.into_iter().map(|(_, value)| Ok(value.parse()?)).collect::<Result<_>>()?;
        Ok(Executed { order: order.into_iter().map(|id| id + 1).collect(), variables })
    };
    orders.into_iter().map(run).collect()
}

fn table_1(published: &[(String, i64)]) -> Result<Sheet> {
    let results = results(zoo("zoo/c.pre")?)?;
    let mut sheet = Sheet::new(
        "blocks, Table 1: x := 4; x := x + 3 (a, b) beside x := 2; x := x * x + 1 (c, d)",
        columns("order", ["x"]),
    );
    for (order, x) in published {
        let blocks: Vec<usize> =
            order.bytes().map(|letter| usize::from(letter - b'a') + 1).collect();
        let ours =
            results.iter().find(|result| result.order == blocks).map(|result| result.variables[0]);
        let mark = if ours == Some(*x) { Mark::Equal } else { Mark::Different };
        sheet.row(order).cell(Some(x), ours, mark).end();
    }
    sheet.row("all orders").same(published.len(), results.len()).end();
    Ok(sheet)
}

fn table_2(published: &[(String, i64, i64)]) -> Result<Sheet> {
    let mut results = results(zoo("zoo/d.pre")?)?;
    // The paper lists them by their results, the greatest first.
    results.sort_by_key(|result| Reverse(result.variables.clone()));
    let title =
        "blocks, Table 2: the four graphs of Figure 6, a topological order and the results of each";
    let mut sheet = Sheet::new(title, columns("graph", ["order", "e", "f"]));
    let other = sheet.note("another order of the same graph, as footnote 3 allows");
    for (graph, (order, e, f)) in (1..).zip(published) {
        let ours = results.get(graph - 1);
        let digits =
            ours.map(|ours| ours.order.iter().map(ToString::to_string).collect::<String>());
        let mark =
            if digits.as_ref() == Some(order) { Mark::Equal } else { Mark::Explained(other) };
        let line = sheet.row(graph.to_string()).cell(Some(order), digits, mark);
        let variable = |i: usize| ours.and_then(|ours| ours.variables.get(i).copied());
        let same = |published: i64, ours| {
            if ours == Some(published) { Mark::Equal } else { Mark::Different }
        };
        let line = line.cell(Some(e), variable(0), same(*e, variable(0)));
        line.cell(Some(f), variable(1), same(*f, variable(1))).end();
    }
    sheet.row("all graphs").same(published.len(), results.len()).end();
    Ok(sheet)
}

fn programs(programs: &[Program]) -> Result<bool> {
    println!(
        "blocks, the zoo: interleavings; blocks, orders of each variable, their product, PO \
         graphs; where reads commute, PO graphs and"
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
        let (all, traces, optimal) =
            (ran(Reduction::None)?, ran(Reduction::Blocks)?, ran(Reduction::Optimal)?);
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
