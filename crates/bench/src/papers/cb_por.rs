//! cb-por, Table 1: executions of cb-dfs and of cb-por on the work-stealing queue.
//!
//! The paper's program has a lock that does not exclude. Column cb-dfs depends on nothing else and must be equal, up to one
//! misprint. Column cb-por depends on which steps depend on each other, which the paper does not say; no fixed relation gives
//! its figures. Ours are those of the usual relation, which is not the paper's: with one preemption the paper's cb-por saves nothing,
//! so reads cannot be independent there.

use anyhow::{Context, Result};
use preempt_explore::{Count, Order, Plan, Reduction};
use serde::Deserialize;

use super::queue::{self, Lock};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    queue: Vec<Rows>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    size: u32,
    /// By bound, from 0.
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

/// Prints the table; says whether all figures that must be equal are. `quick` stops at 2 preemptions.
pub fn table_1(quick: bool) -> Result<bool> {
    let table: Table = toml::from_str(include_str!("../../data/cb-por-table-1.toml"))?;
    println!("cb-por, Table 1: executions on the work-stealing queue, the paper's beside ours");
    println!("{:>4} {:>2} {:>9} {:>9}  {:<9} {:>9} {:>9}", "size", "c", "cb-dfs", "ours", "", "cb-por", "ours");
    let mut good = true;
    for rows in &table.queue {
        for (bound, ((&cb_dfs, &cb_por), &expected)) in (0..).zip(rows.cb_dfs.iter().zip(&rows.cb_por).zip(&rows.ours))
        {
            if quick && bound > QUICK {
                break;
            }
            let (plain, reduced) =
                (executions(rows.size, bound, Reduction::None)?, executions(rows.size, bound, Reduction::CbPor)?);
            let misprint = rows.misprints.iter().find(|m| m.bound == bound && m.printed == cb_dfs);
            let first = match misprint {
                Some(misprint) if plain == misprint.meant => "explained",
                None if plain == cb_dfs => "equal",
                _ => "DIFFERENT",
            };
            let second = match (reduced == expected, reduced == cb_por) {
                (false, _) => format!("DIFFERENT: {expected} traces were to be expected"),
                (true, true) => "equal".to_owned(),
                (true, false) => "explained".to_owned(),
            };
            good &= first != "DIFFERENT" && reduced == expected;
            let size = rows.size;
            println!("{size:>4} {bound:>2} {cb_dfs:>9} {plain:>9}  {first:<9} {cb_por:>9} {reduced:>9}  {second}");
        }
    }
    for (size, m) in table.queue.iter().flat_map(|rows| rows.misprints.iter().map(|m| (rows.size, m))) {
        println!("explained: cb-dfs, size {size}, c = {}: {} is a misprint of {}", m.bound, m.printed, m.meant);
    }
    println!(
        "explained: cb-por: the paper does not say which steps are dependent, and no fixed relation gives its column; in ours two accesses to \
         a location are dependent if one of them is a write, and the figures are those of an independent prototype"
    );
    Ok(good)
}

/// The executions within a bound.
fn executions(size: u32, bound: u32, reduction: Reduction) -> Result<u64> {
    let plan = Plan::new().order(Order::ContextBounded).reduction(reduction).bound(bound).count(Count::Executions);
    queue::run(plan, size, Lock::Plain)?.executions().context("a search over executions counts them")
}
