//! All strategies over executions agree on the programs of the corpus.

use preempt_explore::plan::strategies::{Entry, STRATEGIES, Value};
use preempt_explore::{Cache, Order, Plan, Reduction, Subject};
use preempt_system::{FailureKind, Verdict};

use crate::compile::program;

const PROGRAMS: [&str; 17] = [
    "abba",
    "abba_ordered",
    "lost_update",
    "lost_wakeup",
    "handover",
    "detached",
    "overwritten",
    "yields",
    "polls_early",
    "polls_lock",
    "sleepers",
    "sleep_poll",
    "timeout_checked",
    "timed_all",
    "ping_pong",
    "pipe_deadlock",
    "epoll_loop",
];

fn systematic() -> Vec<(&'static str, Plan)> {
    let executions = |reduction| Plan { order: Order::Executions, reduction, ..Plan::new() };
    let bounded = |order| Plan { order, bound: Some(2), ..Plan::new() };
    vec![
        ("icb", bounded(Order::Icb { cache: Cache::None })),
        ("icb with a cache", bounded(Order::Icb { cache: Cache::Hb })),
        ("delay", bounded(Order::Delay { cache: Cache::None })),
        ("delay with a cache", bounded(Order::Delay { cache: Cache::Hb })),
        ("dfs-hb", bounded(Order::DfsHb)),
        ("cb-dfs", bounded(Order::ContextBounded)),
        ("cb-por", Plan { reduction: Reduction::CbPor, ..bounded(Order::ContextBounded) }),
        ("sleep", executions(Reduction::Sleep)),
        ("dpor", executions(Reduction::Source)),
        ("dpor-optimal", executions(Reduction::Optimal)),
    ]
}

/// Every strategy of the table that can search real code, with a bound if it needs one.
#[test]
fn every_strategy_of_the_table_finds_an_error() {
    let searches =
        |entry: &&Entry| entry.searches(Subject::Program) && entry.searches(Subject::Model);
    for entry in STRATEGIES.iter().filter(searches) {
        let (order, reduction) = match entry.value_for(Subject::Program) {
            // With a smaller increment there would be thousands of short executions.
            Value::Order(Order::IterativeDepth { .. }) => {
                (Some(Order::IterativeDepth { by: 100 }), None)
            }
            Value::Order(order) => (Some(order), None),
            Value::Reduction(reduction) => (None, Some(reduction)),
        };
        let plan = Plan { shrink: None, runs: 60, ..Plan::new() };
        let plan = plan.choose_with_usual_bound(order, reduction, 100);
        let search = plan.build_for_program().expect("the plan is possible");
        let (outcome, native) = search.run_program(program("lost_update"), &());
        assert_eq!(native.refusal(), None, "{}", entry.name);
        assert_eq!(outcome.verdict, Verdict::Violation, "{}", entry.name);
        assert_eq!(search.plan().entry().name, entry.name);
    }
}

#[test]
fn systematic_searches_agree_on_the_verdict() {
    for name in PROGRAMS {
        let mut verdicts = Vec::new();
        for (strategy, plan) in systematic() {
            let search = plan.build_for_program().expect("the plan is possible");
            let (outcome, native) = search.run_program(program(name), &());
            assert_eq!(native.refusal(), None, "{name} by {strategy}");
            assert!(
                outcome.findings.iter().all(|f| f.failure.kind != FailureKind::Nondeterminism),
                "{name} by {strategy}: {:?}",
                outcome.findings
            );
            verdicts.push((strategy, outcome.verdict));
        }
        let first = verdicts[0].1;
        assert!(verdicts.iter().all(|(_, verdict)| *verdict == first), "{name}: {verdicts:?}");
    }
}

#[test]
fn a_reduction_has_one_execution_for_each_trace() {
    for name in ["handover", "c11", "main_leaves", "polls_lock"] {
        let counts: Vec<u64> = [Reduction::None, Reduction::Optimal]
            .into_iter()
            .map(|reduction| {
                let plan = Plan { order: Order::Executions, reduction, ..Plan::new() };
                let limits = preempt_explore::Limits { executions: Some(20_000), ..plan.limits };
                let search =
                    Plan { limits, ..plan }.build_for_program().expect("the plan is allowed");
                let (outcome, _) = search.run_program(program(name), &());
                assert!(outcome.complete, "{name}: {reduction:?}");
                let tally = outcome.tally.expect("executions are counted");
                if reduction == Reduction::None { tally.traces } else { Some(tally.executions) }
                    .expect("traces are counted")
            })
            .collect();
        assert_eq!(counts[0], counts[1], "{name}: all executions, and dpor-optimal");
    }
}

#[test]
fn random_searches_find_errors_and_are_reproducible() {
    for order in [Order::Random, Order::Pct { depth: 3 }, Order::Urw] {
        let explore = |seed| {
            let plan = Plan { order, runs: 60, seed, shrink: None, ..Plan::new() };
            let search = plan.build_for_program().expect("the plan is possible");
            search.run_program(program("lost_update"), &()).0
        };
        let (one, again) = (explore(1), explore(1));
        assert_eq!(one.verdict, Verdict::Violation, "{order:?}");
        assert_eq!(one.findings, again.findings, "{order:?}");
    }
}
