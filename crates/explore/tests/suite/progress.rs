//! The numbers that an observer gets during a search over states, and their maxima in the outcome.

use std::io::{self, Write};
use std::sync::Mutex;

use crate::toy::{Op, Toy, grid};
use preempt_explore::{Cache, Checkpoints, Keeper, Observer, Order, Outcome, Plan, Progress};

/// Lets a search report after every state, and keeps no checkpoint.
struct EveryState;

impl Keeper for EveryState {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, _: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        unreachable!("no checkpoint is due")
    }

    fn poll_interval(&self) -> u64 {
        1
    }
}

#[derive(Default)]
struct Reports(Mutex<Vec<Progress>>);

impl Observer for Reports {
    fn progress(&self, progress: &Progress) {
        self.0.lock().expect("mutex poisoned").push(*progress);
    }
}

fn observe(plan: Plan, toy: &Toy) -> (Outcome, Vec<Progress>) {
    let reports = Reports::default();
    let search = plan.keep_going().build().expect("the plan is valid");
    let checkpoints = Checkpoints::of(1, &EveryState);
    let (outcome, _) =
        search.run_with(toy.clone(), &reports, checkpoints).expect("there is no checkpoint");
    (outcome, reports.0.into_inner().expect("mutex poisoned"))
}

/// Three failures: an assertion, an invariant and a deadlock.
fn failing() -> Toy {
    let add = |cell| Op::Add { cell, value: 1 };
    let threads = vec![
        vec![add(0), Op::AssertNot { cell: 1, value: 1 }],
        vec![add(1), add(1), Op::Await { cell: 0, value: 2 }],
    ];
    Toy { invariant: Some((1, 2)), ..Toy::new(2, threads) }
}

/// In a breadth-first search, a report ends every level: all states of the levels so far are known
/// and expanded, and those of the next level are not distributed yet.
#[test]
fn breadth_first_reports_level_by_level() {
    let (outcome, reports) = observe(Plan::new(), &grid(2, 3));
    let last = |depth| {
        let report = reports.iter().rfind(|report| report.depth == depth);
        report.map(|report| (report.states, report.transitions, report.frontier))
    };
    // The states within 0, 1, … steps of a corner of a square of four by four, and their steps.
    let states = [1, 3, 6, 10, 13, 15, 16];
    let steps = [2, 6, 12, 18, 22, 24, 24];
    for (depth, (states, steps)) in states.into_iter().zip(steps).enumerate() {
        assert_eq!(last(depth as u32), Some((states, steps, 0)), "level {depth}");
    }
    assert_eq!(last(7), None);
    assert_eq!((outcome.coverage.states, outcome.coverage.frontier), (16, 4));
}

/// In a depth-first search, a report follows every state; the waiting states are the stack.
#[test]
fn depth_first_reports_state_by_state() {
    let toy = grid(3, 2);
    let (outcome, reports) = observe(Plan::new().order(Order::DepthFirst), &toy);
    let (seen, last) = (outcome.coverage, reports.last().expect("there were reports"));
    assert_eq!(reports.len() as u64, seen.states);
    assert_eq!((reports[0].states, reports[0].transitions, reports[0].frontier), (1, 3, 3));
    assert_eq!((last.transitions, last.depth, last.frontier), (seen.transitions, seen.depth, 0));
    assert_eq!((seen.states, seen.depth), (27, 6));
    let most = reports.iter().map(|report| report.frontier).max();
    assert_eq!(Some(seen.frontier), most);
    // Every state of the stack has its words and the step that leads to it.
    assert!(outcome.frontier_bytes > 8 * seen.frontier as usize * toy.words);
}

/// Steps wait at two of the states of an execution, in icb for the next level, otherwise on the
/// stack; at the end none is left.
#[test]
fn searches_over_executions_report_the_steps_that_wait() {
    let toy = grid(2, 2);
    for order in [Order::Icb { cache: Cache::None }, Order::Executions] {
        let (outcome, reports) = observe(Plan::new().order(order), &toy);
        let waiting: Vec<u64> = reports.iter().map(|report| report.frontier).collect();
        assert_eq!(waiting.last(), Some(&0), "{order:?}: {waiting:?}");
        assert_eq!(waiting.iter().max(), Some(&2), "{order:?}: {waiting:?}");
        assert_eq!(outcome.coverage.frontier, 2, "{order:?}");
        assert_eq!(outcome.executions(), Some(6), "{order:?}");
    }
}

#[test]
fn failures_are_counted_when_they_are_found() {
    // One failure, found once.
    let once = Toy::new(1, vec![vec![Op::AssertNot { cell: 0, value: 0 }]]);
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        let (_, reports) = observe(Plan::new().order(order), &once);
        assert_eq!(reports.last().map(|report| report.failures), Some(1), "{order:?}");
    }
    let toy = failing();
    let all = preempt_explore::oracle::reachable(&toy);
    assert_eq!(all.failures.len(), 3);
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        let (outcome, reports) = observe(Plan::new().order(order), &toy);
        let failures: Vec<u64> = reports.iter().map(|report| report.failures).collect();
        assert!(failures.is_sorted() && failures[0] == 0, "{failures:?}");
        assert_eq!((outcome.findings.len(), failures.last()), (3, Some(&3)), "{order:?}");
        assert_eq!(outcome.coverage.failed, toy.failed(&all), "{order:?}");
    }
}
