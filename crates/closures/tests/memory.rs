//! Checks release what they use: the memory of the process does not grow with their number.
//!
//! Executions that do not run to their end are a documented exception (`runtime/arena.rs`): what
//! their threads own stays allocated, since it may have been handed to code outside. Programs that
//! can deadlock are therefore excluded, and those with loops have a bound of their own: a thread
//! that seems to spin is followed for a while in an execution that is not run to its end.

use std::sync::Arc;

use preempt::{Check, Order};
use preempt_closures::program::{Program, Statement};
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

/// The most that a check of a program with loops may leave behind, in KiB.
const PER_LOOPING_CHECK: usize = 16;

fn has_loops(program: &Program) -> bool {
    program.any(|statement| matches!(statement, Statement::WaitFor(..) | Statement::Poll { .. }))
}

/// Runs checks of every program in many rounds, including those that panic or race. Returns by how
/// many KiB the process has grown after the first rounds, and how many checks that took.
fn growth(loops: bool) -> Option<(usize, usize)> {
    let programs: Vec<_> = (0..200)
        .map(generate::program)
        // The checks below have no spurious wakeups, and some programs wait forever without them.
        .filter(|program| !program.spurious_wakeups && has_loops(program) == loops)
        .filter(|program| reference::explore(program, 60).is_some_and(|summary| ends(&summary)))
        .take(24)
        .map(Arc::new)
        .collect();
    assert!(!programs.is_empty(), "the generator makes both kinds");
    let checks = || [Check::new().bound(1), Check::new().order(Order::Random).runs(5)];
    let round = || {
        for program in &programs {
            for check in checks() {
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
    let before = resident()?;
    (0..40).for_each(|_| round());
    let grown = resident()?.saturating_sub(before);
    Some((grown, 40 * programs.len() * checks().len()))
}

/// One test, since the memory is that of the whole process.
#[test]
fn memory_does_not_grow_with_the_number_of_checks() {
    let Some((grown, checks)) = growth(false) else { return };
    assert!(grown < 4096, "{grown} KiB more after {checks} checks");
    let Some((grown, checks)) = growth(true) else { return };
    assert!(
        grown < PER_LOOPING_CHECK * checks,
        "{grown} KiB more after {checks} checks with loops"
    );
}
