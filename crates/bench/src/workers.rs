//! The speed-up by several workers: icb on the work-stealing queue, wall time and CPU time, as
//! ratios within one run.

use std::time::Instant;

use anyhow::{Result, ensure};
use preempt_explore::{Cache, Count, Order, Outcome, Plan};

use crate::measure;
use crate::papers::queue::{self, Lock};

/// The cost of one search.
struct Took {
    outcome: Outcome,
    wall: f64,
    cpu: f64,
}

fn search(plan: Plan, size: u32) -> Result<Took> {
    let (started, cpu) = (Instant::now(), measure::own_seconds()?);
    let outcome = queue::run(plan, size, Lock::Plain)?;
    Ok(Took { outcome, wall: started.elapsed().as_secs_f64(), cpu: measure::own_seconds()? - cpu })
}

/// The fastest of several repetitions.
fn fastest(plan: Plan, size: u32, repetitions: u32) -> Result<Took> {
    let mut best = search(plan, size)?;
    for _ in 1..repetitions {
        let next = search(plan, size)?;
        ensure!(
            next.outcome.tally == best.outcome.tally,
            "two searches by the same plan count the same"
        );
        if next.wall < best.wall {
            best = next;
        }
    }
    Ok(best)
}

/// Measures searches by one worker up to `most`, for a queue of this size, and prints a table.
/// Returns whether all counts are equal.
pub fn compare(most: usize, size: u32, repetitions: u32) -> Result<bool> {
    println!(
        "icb, cache hb, bound 3, work-stealing queue of size {size}; seconds, the fastest of \
         {repetitions}"
    );
    println!(
        "{:<12} {:>4} {:>10} {:>7} {:>7} {:>8} {:>10}",
        "count", "jobs", "steps", "wall", "CPU", "speed-up", "CPU ratio"
    );
    let mut same = true;
    for count in [Count::Executions, Count::States] {
        let plan =
            Plan::new().order(Order::Icb { cache: Cache::Hb }).bound(3).count(count).keep_going();
        let one = fastest(plan, size, repetitions)?;
        for jobs in 1..=most {
            let took = if jobs == 1 { &one } else { &fastest(plan.jobs(jobs), size, repetitions)? };
            same &= took.outcome.tally == one.outcome.tally
                && took.outcome.bounds == one.outcome.bounds;
            println!(
                "{:<12} {jobs:>4} {:>10} {:>7.2} {:>7.2} {:>8.2} {:>10.2}",
                format!("{count:?}").to_lowercase(),
                took.outcome.coverage.transitions,
                took.wall,
                took.cpu,
                one.wall / took.wall,
                took.cpu / one.cpu.max(0.01),
            );
        }
    }
    Ok(same)
}
