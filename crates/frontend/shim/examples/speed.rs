//! How fast executions are made: executions and steps per CPU-second, for the strategies that keep
//! no table.
//!
//! `cargo run --release -p preempt --example speed`
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, Count, Order, Reduction, thread};

fn adds(threads: usize, times: usize) {
    let n = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let n = n.clone();
            thread::spawn(move || {
                for _ in 0..times {
                    n.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

fn locked(threads: usize, times: usize) {
    let n = Arc::new(Mutex::new(0));
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let n = n.clone();
            thread::spawn(move || {
                for _ in 0..times {
                    *n.lock().unwrap() += 1;
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

/// The seconds that this thread has run, where the system tells.
fn cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}

fn main() {
    let dfs = || {
        Check::new()
            .order(Order::Executions)
            .count(Count::Executions)
            .executions(400_000)
            .allow_incomplete()
    };
    let random = |runs| Check::new().order(Order::Random).count(Count::Executions).runs(runs);
    let rows: [(&str, Check, &(dyn Fn() + Sync)); 9] = [
        ("dfs, atomic 3×4 (20 steps)", dfs(), &|| adds(3, 4)),
        ("dfs, mutex 3×2", dfs(), &|| locked(3, 2)),
        ("random, atomic 3×4", random(100_000), &|| adds(3, 4)),
        ("random, atomic 4×250", random(2_000), &|| adds(4, 250)),
        ("pct, atomic 4×250", random(2_000).order(Order::Pct { depth: 3 }), &|| adds(4, 250)),
        ("random, mutex 4×100", random(2_000), &|| locked(4, 100)),
        ("icb, atomic 3×3, bound 2", Check::new(), &|| adds(3, 3)),
        ("cb-por, atomic 3×3, bound 2", Check::new().reduce(Reduction::CbPor), &|| adds(3, 3)),
        ("optimal, atomic 3×3", Check::new().unbounded(), &|| adds(3, 3)),
    ];
    println!("{:32} {:>10} {:>8} {:>14} {:>14}", "", "executions", "s", "executions/s", "steps/s");
    for (name, check, body) in rows {
        let (start, before) = (Instant::now(), cpu());
        let outcome = check.run(body);
        let seconds = cpu()
            .zip(before)
            .map_or(start.elapsed().as_secs_f64(), |(after, before)| after - before);
        let tally = outcome.tally.expect("a search over executions");
        let (executions, steps) = (tally.executions as f64, tally.steps as f64);
        println!(
            "{name:32} {executions:>10} {seconds:>8.2} {:>14.0} {:>14.0}",
            executions / seconds,
            steps / seconds
        );
    }
}
