//! Checks release what they use: the memory of the process does not grow with their number. That
//! includes executions that do not run to their end, because they deadlock, spin, or are abandoned
//! while a loop is followed.

use std::sync::Arc;

use preempt::{Check, Memory, Order};
use preempt_closures::program::{Program, Statement};
use preempt_closures::reference::{Kind, Summary};
use preempt_closures::{generate, mirror, reference};

/// The resident memory in KiB, where the operating system reports it.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4)
}

/// The kinds of programs, by whether all of their executions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Always,
    /// A thread that seems to spin is followed in an execution that does not run to its end.
    AlwaysWithLoops,
    /// Some executions deadlock or spin forever.
    NotAlways,
}

fn has_loops(program: &Program) -> bool {
    program.any(|statement| matches!(statement, Statement::WaitFor(..) | Statement::Poll { .. }))
}

/// The kind of a program; `None` if it is too large to know.
fn ends(program: &Program) -> Option<Ends> {
    let Summary { failures, .. } = reference::explore(program, 60)?;
    let hangs = failures.keys().any(|kind| matches!(kind, Kind::Deadlock | Kind::Livelock));
    Some(match (hangs, has_loops(program)) {
        (true, _) => Ends::NotAlways,
        (false, true) => Ends::AlwaysWithLoops,
        (false, false) => Ends::Always,
    })
}

/// Runs checks of every program in many rounds, including those that panic or race. Returns by how
/// many KiB the process has grown after the first rounds, and how many checks that took.
fn growth(kind: Ends) -> Option<(usize, usize)> {
    let programs: Vec<_> = (0..200)
        .map(generate::program)
        // The checks below have no spurious wakeups, and some programs wait forever without them.
        .filter(|program| !program.spurious_wakeups && ends(program) == Some(kind))
        .take(24)
        .map(Arc::new)
        .collect();
    assert!(programs.len() > 5, "the generator makes all kinds");
    let sc = || Check::new().memory(Memory::Sc);
    let checks = || [sc().bound(1), sc().order(Order::Random).runs(5)];
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
    for kind in [Ends::Always, Ends::AlwaysWithLoops, Ends::NotAlways] {
        let Some((grown, checks)) = growth(kind) else { return };
        assert!(
            grown < 4096,
            "{grown} KiB more after {checks} checks of programs that end {kind:?}"
        );
    }
}
