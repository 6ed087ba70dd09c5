//! Regression tests: shrunk programs on which the library and brute force once disagreed.

use preempt_closures::compare::compare;
use preempt_closures::program::{Counter, Program, Statement, Wait};

fn program(threads: Vec<Vec<Statement>>) -> Program {
    Program { threads, capacity: None, receiver: 0, spurious_wakeups: false, weak_failures: false }
}

/// Compares every strategy.
fn agrees(wrong: &str, threads: Vec<Vec<Statement>>) {
    let program = program(threads);
    match compare(&program) {
        Ok(Some(compared)) => assert!(compared.verdicts > 5, "{wrong}: {compared:?}"),
        Ok(None) => panic!("{wrong}: the program is too large\n{program}"),
        Err(disagreement) => panic!("{wrong}: {disagreement}\n{program}"),
    }
}

#[test]
fn the_library_agrees_with_brute_force_now() {
    use Statement::{
        CellRead, CellWrite, Detach, Lock, NotifyOne, Poll, Read, Spawn, WaitFor, WaitWhile,
    };
    agrees(
        "dpor-fg lost a trace in which a notified thread gets its mutex first",
        vec![
            vec![Spawn(1), Spawn(2), WaitWhile(0, 0)],
            vec![Lock(0, vec![Lock(0, vec![])])],
            vec![NotifyOne(0)],
        ],
    );
    agrees(
        "cb-por reported a race with more preemptions than it needs",
        vec![
            vec![Spawn(1), Lock(0, vec![CellWrite(0)])],
            vec![Lock(0, vec![CellWrite(0)]), Read(0, vec![CellWrite(0)])],
        ],
    );
    agrees(
        "a livelock was not found again, because it counted which function resumed the thread",
        vec![vec![
            Poll { atomic: 1, rounds: 104, counter: Counter::Heap },
            WaitFor(1, Wait::Yield),
        ]],
    );
    agrees(
        "a search that keeps going followed an execution beyond the step limit, forever",
        vec![vec![WaitFor(0, Wait::Allocating)]],
    );
    agrees(
        "an execution that ran a use after a free was continued with a thread of the one before",
        vec![vec![CellRead(0), Spawn(1), Detach(1)], vec![]],
    );
    let long = || Poll { atomic: 0, rounds: 130, counter: Counter::Stack };
    agrees("the reference counted the steps of a thread in eight bits", vec![vec![long(), long()]]);
}
