//! The sorted search with hardly any memory, in files and without files, against breadth-first
//! search with a table.

use std::path::Path;

use super::*;
use crate::engine::control::SearchControl;
use crate::engine::store;
use crate::order::{bfs, retrace};
use crate::plan::{Plan, StoreKind};
use crate::toy::{Toy, grid, philosophers, random};

fn resolved(plan: Plan) -> ResolvedPlan {
    plan.resolve().unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Searches with a table.
fn with_table(plan: Plan, toy: &Toy) -> Explored {
    let (plan, mut explored) = (resolved(plan), Explored::default());
    let control = SearchControl::unobserved(plan.limits);
    let words = toy.shape().words;
    let store = store::build(StoreKind::Exact, words, 1).expect("there is memory");
    let wanted = bfs::search::<_, 0>(&plan, toy, &control, &*store, &mut explored);
    assert!(!matches!(control.reason(), Some(Stop::Restart(_))), "toys need not grow here");
    if !wanted.is_empty() {
        explored.failures = retrace::retrace(&plan, toy, &wanted, &control, 0);
    }
    explored
}

/// Searches with sorted runs and no memory for them.
fn without_memory(plan: Plan, toy: &Toy, directory: Option<&Path>) -> (Explored, Option<Stop>) {
    let (plan, mut explored) = (resolved(plan.store(StoreKind::Sorted)), Explored::default());
    let control = SearchControl::unobserved(plan.limits).spilling(directory);
    match toy.shape().words {
        1 => search_within::<_, 1>(&plan, toy, &control, 0, &mut explored),
        2 => search_within::<_, 2>(&plan, toy, &control, 0, &mut explored),
        _ => search_within::<_, 0>(&plan, toy, &control, 0, &mut explored),
    }
    (explored, control.reason())
}

#[test]
fn files_change_neither_counts_nor_schedules() {
    let directory = std::env::temp_dir();
    let (mut failing, mut spilled) = (0, 0);
    let small = (0..150).map(random);
    let large = [philosophers(5), grid(4, 9)];
    for (number, toy) in small.chain(large).enumerate() {
        for (plan, words) in [(Plan::new(), 1), (Plan::new().keep_going(), 2), (Plan::new(), 5)] {
            let toy = toy.clone().words(words);
            let expected = with_table(plan, &toy);
            failing += u32::from(!expected.failures.is_empty());
            for (directory, jobs) in [(Some(&*directory), 1), (Some(&*directory), 2), (None, 2)] {
                let (explored, _) = without_memory(plan.jobs(jobs), &toy, directory);
                let what = format!("program {number}, {words} words, {plan:?}, {directory:?}");
                let frontier = expected.seen.frontier;
                assert_eq!(Coverage { frontier, ..explored.seen }, expected.seen, "{what}");
                assert_eq!(explored.failures, expected.failures, "{what}");
                spilled += u32::from(explored.spilled_bytes > 0);
            }
        }
    }
    assert!(failing > 150 && spilled > 800, "{failing} {spilled}");
}

#[test]
fn a_directory_that_cannot_be_written_is_a_limit() {
    let toy = grid(3, 20);
    let nowhere = std::env::temp_dir().join("preempt has no such directory");
    let (explored, stop) = without_memory(Plan::new(), &toy, Some(&nowhere));
    assert_eq!(stop, Some(Stop::Limit(Limit::Disk)));
    assert!(explored.seen.states < 21u64.pow(3), "{:?}", explored.seen);
}

#[test]
fn a_finding_is_reported_even_if_files_cannot_be_written() {
    let toy = philosophers(3).words(1);
    let expected = with_table(Plan::new(), &toy);
    let nowhere = std::env::temp_dir().join("preempt has no such directory");
    let plan = resolved(Plan::new().store(StoreKind::Sorted));
    let control = SearchControl::unobserved(plan.limits).spilling(Some(&nowhere));
    let wanted: Failures = [(expected.failures[0].0.clone(), 3)].into_iter().collect();
    let found = marking::schedules::<_, 1>(&plan, &toy, &control, 0, &wanted);
    assert_eq!(found, expected.failures);
}
