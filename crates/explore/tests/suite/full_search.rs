//! Full searches in every order, with every store and several numbers of workers, compared with the
//! brute-force oracle and with numbers computed by hand.

use std::collections::BTreeMap;

use crate::toy::{Op, Toy, grid, philosophers, random};
use preempt_explore::cursor::Cursor;
use preempt_explore::oracle::{self, name};
use preempt_explore::replay::end;
use preempt_explore::{Coverage, Limits, Omission, Order, Outcome, Plan, Silent, StoreKind};
use preempt_system::{FailureKind, Verdict};

const ORDERS: [Order; 2] = [Order::BreadthFirst, Order::DepthFirst];
const STORES: [StoreKind; 5] = [
    StoreKind::Exact,
    StoreKind::Tree,
    StoreKind::Sorted,
    StoreKind::Fingerprint,
    StoreKind::Bitstate { bytes: 1 << 19 },
];
const JOBS: [usize; 3] = [1, 2, 4];

fn run(plan: Plan, toy: &Toy) -> Outcome {
    plan.build().expect("the plan is valid").run(toy.clone(), &Silent).0
}

/// Every configuration.
fn plans() -> impl Iterator<Item = Plan> {
    let plans = ORDERS.into_iter().flat_map(|order| {
        STORES.into_iter().flat_map(move |store| {
            JOBS.into_iter().map(move |jobs| Plan::new().order(order).store(store).jobs(jobs))
        })
    });
    // A sorted store is for breadth-first search only.
    plans.filter(|plan| plan.store != StoreKind::Sorted || plan.order == Order::BreadthFirst)
}

/// Compares all configurations with the oracle on one program.
fn agrees_with_oracle(toy: &Toy, what: &str) {
    let all = oracle::reachable(toy);
    let failed = toy.failed(&all);
    for plan in plans() {
        let what = format!("{what}, {plan:?}");
        let outcome = run(plan.keep_going(), toy);
        let seen = outcome.coverage;
        assert_eq!(seen.states, all.states.len() as u64, "states: {what}");
        assert_eq!(seen.expanded, seen.states, "expanded: {what}");
        assert_eq!(seen.transitions, all.transitions, "transitions: {what}");
        assert_eq!((seen.blocked, seen.ended), (all.blocked, all.ended), "blocked, ended: {what}");
        assert_eq!(seen.failed, failed, "failed: {what}");
        let lossy = matches!(plan.store, StoreKind::Bitstate { .. });
        assert_eq!(outcome.complete, !lossy, "{what}");
        assert_eq!(outcome.stopped, None, "{what}");
        let lengths: BTreeMap<_, _> =
            outcome.findings.iter().map(|f| (name(&f.failure), f.schedule.steps().len())).collect();
        assert_eq!(lengths.len(), outcome.findings.len(), "each failure is reported once: {what}");
        assert!(
            lengths.keys().eq(all.failures.keys()),
            "failures: {what}: {lengths:?} {:?}",
            all.failures
        );
        if plan.order == Order::BreadthFirst {
            assert_eq!(seen.depth, all.depth, "depth: {what}");
            assert_eq!(lengths, all.failures, "shortest: {what}");
        }
        for finding in &outcome.findings {
            let cursor = Cursor::new(toy).expect("states of a toy have room");
            let ended = end(cursor, &finding.schedule).expect("a schedule of this program");
            assert!(ended.failures.contains(&finding.failure), "{what}");
            assert_eq!(ended.preemptions, finding.preemptions, "{what}");
        }
        stops_at_the_first(plan, toy, &all, &what);
    }
}

/// Checks a search without `keep_going`.
fn stops_at_the_first(plan: Plan, toy: &Toy, all: &oracle::Reachable, what: &str) {
    let outcome = run(plan, toy);
    assert_eq!(outcome.findings.len(), all.failures.len().min(1), "{what}");
    let expected = match outcome.findings.first() {
        Some(finding) => Verdict::from(finding.failure.kind),
        None if matches!(plan.store, StoreKind::Bitstate { .. }) => Verdict::Incomplete,
        None => Verdict::Ok,
    };
    assert_eq!(outcome.verdict, expected, "{what}");
    if plan.order == Order::BreadthFirst {
        let length = outcome.findings.first().map(|finding| finding.schedule.steps().len());
        assert_eq!(length, all.failures.values().min().copied(), "shortest: {what}");
        let single = run(Plan { jobs: 1, store: StoreKind::Exact, ..plan }, toy);
        assert_eq!(
            outcome.findings, single.findings,
            "the finding does not depend on workers or store: {what}"
        );
        assert_eq!(
            outcome.coverage,
            Coverage { frontier: outcome.coverage.frontier, ..single.coverage },
            "{what}"
        );
    }
}

#[test]
fn random_programs_agree_with_the_oracle() {
    let (mut kinds, mut choosing) = (BTreeMap::<FailureKind, u32>::new(), 0);
    for seed in 0..300 {
        let toy = random(seed);
        agrees_with_oracle(&toy, &format!("seed {seed}"));
        for (kind, ..) in oracle::reachable(&toy).failures.into_keys() {
            *kinds.entry(kind).or_default() += 1;
        }
        choosing += u32::from(
            toy.threads
                .iter()
                .flatten()
                .any(|op| matches!(op, Op::Choose { .. } | Op::Pick { .. })),
        );
    }
    // The comparison is meaningful only if the programs have failures of all kinds.
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert!(kinds.values().all(|&count| count >= 20) && choosing >= 100, "{kinds:?}");
}

#[test]
fn a_grid_has_the_states_of_its_product() {
    for (n, k) in [(1, 1), (3, 4), (5, 5)] {
        let toy = grid(n, k);
        let (n32, k64) = (n as u32, k as u64);
        for words in [1, 2, 3, 4, 7] {
            for plan in plans() {
                let outcome = run(plan, &toy.clone().words(words));
                let seen = outcome.coverage;
                assert_eq!(seen.states, (k64 + 1).pow(n32), "{n} {k} {words} {plan:?}");
                assert_eq!(seen.transitions, n as u64 * k64 * (k64 + 1).pow(n32 - 1));
                assert_eq!(seen.ended, n as u64 * (k64 + 1).pow(n32 - 1));
                assert_eq!(seen.blocked, 0);
                assert_eq!(seen.depth, (n * k) as u32);
            }
        }
    }
}

#[test]
fn large_levels_are_shared_without_loss() {
    // Some of its levels are larger than the part that one worker keeps for itself.
    let toy = grid(6, 6).words(2);
    let expected = 7u64.pow(6);
    for store in STORES {
        let store = if let StoreKind::Bitstate { .. } = store {
            StoreKind::Bitstate { bytes: 1 << 27 }
        } else {
            store
        };
        for order in ORDERS {
            if store == StoreKind::Sorted && order != Order::BreadthFirst {
                continue;
            }
            for jobs in JOBS {
                let outcome = run(Plan::new().order(order).store(store).jobs(jobs), &toy);
                assert_eq!(outcome.coverage.states, expected, "{store:?} {order:?} {jobs}");
                assert_eq!(
                    outcome.coverage.transitions,
                    6 * 6 * 7u64.pow(5),
                    "{store:?} {order:?} {jobs}"
                );
                let exact = matches!(store, StoreKind::Exact | StoreKind::Tree | StoreKind::Sorted);
                assert_eq!(outcome.omission == Omission::Never, exact);
            }
        }
    }
}

#[test]
fn philosophers_starve_with_one_fork_each() {
    for n in 2..6 {
        let toy = philosophers(n);
        agrees_with_oracle(&toy, &format!("{n} philosophers"));
        let outcome = run(Plan::new(), &toy);
        assert_eq!(outcome.verdict, Verdict::Deadlock);
        assert_eq!(outcome.findings[0].schedule.steps().len(), n, "each takes one fork");
        assert_eq!(
            outcome.findings[0].preemptions,
            n as u32 - 1,
            "each but the last is preempted after its first fork"
        );
        assert_eq!(run(Plan::new().ignore_deadlocks(), &toy).verdict, Verdict::Ok);
    }
}

#[test]
fn a_thread_may_rest_but_not_wait_forever() {
    let rest = Op::Rest { cell: 0, value: 1 };
    let wait = Op::Await { cell: 0, value: 1 };
    for (threads, verdict) in [
        (vec![vec![rest], vec![rest]], Verdict::Ok),
        (vec![vec![rest], vec![wait]], Verdict::Deadlock),
        (vec![vec![], vec![rest]], Verdict::Ok),
        (vec![vec![wait], vec![Op::Set { cell: 0, value: 1 }]], Verdict::Ok),
    ] {
        let toy = Toy::new(1, threads);
        for plan in plans().filter(|plan| !matches!(plan.store, StoreKind::Bitstate { .. })) {
            assert_eq!(run(plan, &toy).verdict, verdict, "{toy:?} {plan:?}");
        }
    }
}

#[test]
fn the_alternatives_after_one_that_fails_are_tried() {
    // Alternative 0 fails at once and cannot say that there are two more.
    let toy = Toy::new(
        1,
        vec![vec![Op::Pick { cell: 0, count: 3, bad: 0 }, Op::AssertNot { cell: 0, value: 2 }]],
    );
    let outcome = run(Plan::new().keep_going(), &toy);
    assert_eq!(outcome.coverage.transitions, 3 + 2);
    assert_eq!(outcome.findings.len(), 2);
}

#[test]
fn a_failing_initial_state_has_an_empty_schedule() {
    let toy = Toy { fails_initially: true, invariant: Some((0, 0)), ..grid(2, 2) };
    for plan in plans() {
        let outcome = run(plan, &toy);
        assert_eq!(outcome.verdict, Verdict::Violation);
        assert_eq!(outcome.findings.len(), 1);
        assert!(outcome.findings[0].schedule.steps().is_empty());
        assert_eq!((outcome.coverage.states, outcome.coverage.failed), (1, 1), "{plan:?}");
        let outcome = run(plan.keep_going(), &toy);
        assert_eq!((outcome.findings.len(), outcome.coverage.states), (2, 9), "{plan:?}");
        assert_eq!(outcome.coverage.failed, 1 + 9, "the invariant fails in every state");
    }
}

/// A memory limit that is enough for the search leaves no space for the parents of all states. The
/// path is then found in several parts, and is the same.
#[test]
fn the_path_of_a_finding_is_found_within_the_memory_limit() {
    let adds = |cell| vec![Op::Add { cell, value: 1 }; 12];
    let waits = |cell| Op::Await { cell, value: 12 };
    let late = vec![waits(0), waits(1), waits(2), Op::AssertNot { cell: 0, value: 12 }];
    let early = vec![waits(1), Op::AssertNot { cell: 1, value: 12 }];
    let toy = Toy::new(3, vec![adds(0), adds(1), adds(2), late, early]);
    for store in [StoreKind::Exact, StoreKind::Tree] {
        for plan in [Plan::new().store(store), Plan::new().store(store).keep_going()] {
            let free = run(plan, &toy);
            assert_eq!(free.findings.len(), if plan.keep_going { 2 } else { 1 });
            let needed = free.store_bytes + free.frontier_bytes;
            assert!(free.coverage.states as usize * 12 > needed / 16, "all links fit: {needed}");
            let limits = Limits { memory: Some(needed), ..Limits::default() };
            let limited = run(plan.limits(limits), &toy);
            assert_eq!((limited.stopped, limited.complete), (None, free.complete));
            assert_eq!(limited.findings, free.findings, "{plan:?}");
        }
    }
}
