//! Checks release what they use: the memory of the process does not grow with their number.
//!
//! Executions that cannot end are a documented exception (`runtime/arena.rs`): what their threads
//! own stays allocated. Programs that can deadlock are therefore excluded.

use std::sync::Arc;

use preempt::{Check, Order};
use preempt_closures::reference::{Kind, Summary};
use preempt_closures::{generate, mirror, reference};

/// The resident memory in KiB, where the operating system reports it.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4)
}

/// Whether all executions end.
fn ends(summary: &Summary) -> bool {
    !summary.failures.keys().any(|kind| matches!(kind, Kind::Deadlock | Kind::Livelock))
}

/// Runs every program in every round, including those that panic or race.
#[test]
fn memory_does_not_grow_with_the_number_of_checks() {
    let programs: Vec<_> = (0..200)
        .map(generate::program)
        // The checks below have no spurious wakeups, and some programs wait forever without them.
        .filter(|program| !program.spurious_wakeups)
        .filter(|program| reference::explore(program, 60).is_some_and(|summary| ends(&summary)))
        .take(24)
        .map(Arc::new)
        .collect();
    let round = || {
        for program in &programs {
            for check in [Check::new().bound(1), Check::new().order(Order::Random).runs(5)] {
                check
                    .keep_going()
                    .quiet()
                    .max_steps(500)
                    .executions(60)
                    .run(|| drop(mirror::execute(program)));
            }
        }
    };
    (0..10).for_each(|_| round());
    let Some(before) = resident() else { return };
    (0..40).for_each(|_| round());
    let after = resident().unwrap_or(0);
    assert!(after < before + 4096, "{before} KiB after 10 rounds, {after} KiB after 50");
}
