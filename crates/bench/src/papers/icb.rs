//! icb: Tables 1 and 2 are in [`tables`]; this file has Figures 1 and 2: how coverage grows on the
//! work-stealing queue, with its bound and with the number of executions.
//!
//! The paper has curves, not numbers, and another queue: the new traces of each bound must be equal
//! to those that an independent prototype counted. The happens-before states after a number of
//! executions depend on the order in which threads are tried: here the running thread comes first.

use anyhow::{Context, Result};
use preempt_explore::{Cache, Count, Limits, Order, Plan, Sampling};
use serde::Deserialize;

use super::Ask;
use super::queue::{self, Lock};
use super::sheet::Marks;

mod extent;
mod tables;

/// The sizes of the queue.
const SIZES: [u32; 2] = [3, 5];

#[derive(Debug, Deserialize)]
struct Figures {
    queue: Vec<Queue>,
}

#[derive(Debug, Deserialize)]
struct Queue {
    size: u32,
    locked: u32,
    /// The new traces of each bound, from 0 until the search is complete.
    #[serde(default)]
    new_traces: Vec<u64>,
}

/// The numbers of executions after which states are counted. A quick run skips the last.
const MARKS: [u64; 4] = [10, 100, 1_000, 10_000];

/// Prints the selected parts. A quick run stops after 1,000 executions.
pub fn print(ask: &Ask) -> Result<Marks> {
    let mut marks = Marks::default();
    if ask.wants_table(1) {
        marks = marks + tables::table_1(&ask.data)?.print();
    }
    if ask.wants_table(2) {
        marks = marks + tables::table_2(&ask.data)?.print();
    }
    if ask.wants_figure(&[1]) {
        marks = marks + Marks::of(by_bound()?);
        println!();
    }
    if ask.wants_figure(&[2]) {
        by_executions(if ask.is_quick() { &MARKS[..3] } else { &MARKS })?;
        println!();
    }
    Ok(marks)
}

/// Figure 1.
fn by_bound() -> Result<bool> {
    println!("icb, Figure 1: the work-stealing queue (blocking lock), what each bound adds");
    println!(
        "{:>4} {:>2} {:>9} {:>9} {:>7} {:>9} {:>7}",
        "size", "c", "traces", "in all", "", "states", ""
    );
    let mut good = true;
    let Figures { queue } = toml::from_str(include_str!("../../data/bounded.toml"))?;
    for Queue { size, new_traces, .. } in
        queue.into_iter().filter(|q| q.locked == 1 && SIZES.contains(&q.size))
    {
        let outcome =
            queue::run(Plan::new().order(Order::Icb { cache: Cache::Hb }), size, Lock::Blocking)?;
        let all = outcome.tally.context("a search over executions has a tally")?;
        let mut found = Vec::new();
        for bound in &outcome.bounds {
            let (new, so_far, graphs) = (bound.new.traces, bound.all.traces, bound.all.graphs);
            println!(
                "{size:>4} {:>2} {:>9} {:>9} {:>6.1}% {:>9} {:>6.1}%",
                bound.bound,
                new.unwrap_or(0),
                so_far.unwrap_or(0),
                percent(so_far, all.traces),
                graphs.unwrap_or(0),
                percent(graphs, all.graphs),
            );
            found.extend(new);
        }
        // A bound that only shows that nothing is left adds nothing.
        let beyond = found.iter().skip(new_traces.len()).sum::<u64>();
        let equal = outcome.complete
            && found.starts_with(&new_traces)
            && beyond == 0
            && !new_traces.is_empty();
        println!("size {size}: {}", if equal { "equal" } else { "DIFFERENT" });
        good &= equal;
    }
    Ok(good)
}

fn percent(part: Option<u64>, all: Option<u64>) -> f64 {
    100.0 * part.unwrap_or(0) as f64 / all.unwrap_or(1) as f64
}

/// Figure 2.
fn by_executions(marks: &[u64]) -> Result<()> {
    println!(
        "icb, Figure 2: distinct happens-before states, including the initial one, by number of \
         executions"
    );
    print!("{:>4} {:<8}", "size", "");
    marks.iter().for_each(|mark| print!(" {mark:>9}"));
    println!();
    let orders = [
        ("icb", Order::Icb { cache: Cache::None }),
        ("random", Order::Random),
        ("dfs", Order::Executions),
        ("db:40", Order::Depth { steps: 40 }),
        ("db:20", Order::Depth { steps: 20 }),
    ];
    let most = marks.last().copied().context("there are some")?;
    for size in SIZES {
        for (name, order) in orders {
            let limits = Limits { executions: Some(most), ..Limits::default() };
            let plan =
                Plan::new().order(order).seed(1).runs(most).count(Count::States).limits(limits);
            let growth = queue::run(plan.sampling(Sampling::Decades), size, Lock::Blocking)?.growth;
            let samples = growth.context("it was asked for")?.samples;
            print!("{size:>4} {name:<8}");
            for &mark in marks {
                let sample = samples.iter().find(|sample| sample.taken() == mark);
                print!(
                    " {:>9}",
                    sample.and_then(|sample| sample.graphs).map_or("·".into(), |n| n.to_string())
                );
            }
            println!();
        }
    }
    Ok(())
}
