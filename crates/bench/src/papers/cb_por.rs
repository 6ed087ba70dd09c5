//! cb-por, Table 1: executions of cb-dfs and of cb-por on the work-stealing queue.
//!
//! The paper's program has a lock that does not exclude. Column cb-dfs depends on nothing else and
//! must be equal, up to one misprint. Column cb-por depends on which steps depend on each other,
//! which the paper does not say; no fixed relation gives its figures. Ours are those of the usual
//! relation, which is not the paper's: with one preemption the paper's cb-por saves nothing, so
//! reads cannot be independent there.

use anyhow::{Context, Result};
use preempt_explore::{Count, Order, Plan, Reduction};
use serde::Deserialize;

use super::Ask;
use super::queue::{self, Lock};
use super::sheet::{Mark, Marks, Sheet, columns};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    queue: Vec<Rows>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    size: u32,
    /// The numbers of executions by bound, from 0.
    cb_dfs: Vec<u64>,
    #[serde(default)]
    misprints: Vec<Misprint>,
    cb_por: Vec<u64>,
    ours: Vec<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Misprint {
    bound: u32,
    printed: u64,
    meant: u64,
}

/// The greatest bound of a quick run.
const QUICK: u32 = 2;

/// Prints the table. A quick run stops at 2 preemptions.
pub fn print(ask: &Ask) -> Result<Marks> {
    if !ask.wants_table(1) {
        return Ok(Marks::default());
    }
    let table: Table = ask.data.read("cb-por-table-1.toml")?;
    let mut sheet = Sheet::new(
        "cb-por, Table 1: terminal executions on the work-stealing queue, by size and bound on \
         preemptions",
        columns("size, bound", ["cb-dfs", "cb-por"]),
    );
    let relation = sheet.note(
        "the paper does not say which steps are dependent, and no fixed relation gives its column; \
         in ours two accesses to a location are dependent if one of them is a write, and the \
         figures are those of an independent prototype",
    );
    for rows in &table.queue {
        for (bound, ((&cb_dfs, &cb_por), &expected)) in
            (0..).zip(rows.cb_dfs.iter().zip(&rows.cb_por).zip(&rows.ours))
        {
            let name = format!("{}, {bound}", rows.size);
            if ask.is_quick() && bound > QUICK {
                let line = sheet.row(name).cell(Some(cb_dfs), None::<u64>, Mark::LeftOut);
                line.cell(Some(cb_por), None::<u64>, Mark::LeftOut).end();
                continue;
            }
            let plain = executions(rows.size, bound, Reduction::None)?;
            let reduced = executions(rows.size, bound, Reduction::CbPor)?;
            let misprint = rows.misprints.iter().find(|m| m.bound == bound && m.printed == cb_dfs);
            let misprinted = misprint.map(|m| {
                (m.meant, sheet.note(format!("{} is a misprint of {}", m.printed, m.meant)))
            });
            let line = sheet.row(name);
            let line = match misprinted {
                Some((meant, note)) => line.explained(cb_dfs, plain, meant, note),
                None => line.same(cb_dfs, plain),
            };
            line.explained(cb_por, reduced, expected, relation).end();
        }
    }
    Ok(sheet.print())
}

/// The executions within a bound.
fn executions(size: u32, bound: u32, reduction: Reduction) -> Result<u64> {
    let plan = Plan::new()
        .order(Order::ContextBounded)
        .reduction(reduction)
        .bound(bound)
        .count(Count::Executions);
    queue::run(plan, size, Lock::Plain)?
        .executions()
        .context("a search over executions counts them")
}
