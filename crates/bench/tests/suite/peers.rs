//! The tests that are compared with peers have the counts that follow from their design: Preempt
//! explores every happens-before class of their executions once, and errors need the intended
//! number of preemptions.

use preempt::{Check, Count, Memory, Order, Outcome, Reduction, Verdict};
use preempt_bench::peers::genmc;
use preempt_bench::peers::rust::linearize;
use preempt_bench::peers::rust::sources::of_preempt::body;

fn explore(check: Check, test: &str) -> Outcome {
    check.run(body(test).expect("the test is one of the sources"))
}

/// The number of classes, computed in another way: the distinct classes of all executions, or of
/// those that sleep sets leave.
fn classes(test: &str, reduction: Reduction) -> Option<u64> {
    let outcome = explore(
        Check::new().unbounded().order(Order::Executions).reduce(reduction).count(Count::Traces),
        test,
    );
    assert!(outcome.complete, "{test}");
    outcome.traces()
}

fn once_each(test: &str, expected: u64) {
    let outcome = explore(Check::new().unbounded(), test);
    let found = (outcome.verdict, outcome.complete, outcome.executions(), outcome.traces());
    assert_eq!(found, (Verdict::Ok, true, Some(expected), Some(expected)), "{test}");
}

#[test]
fn every_class_is_explored_once() {
    // (n k)! / (k!)^n for counters: all orders of the operations on one object.
    for (test, expected) in [
        ("atomic 2x5", 252),
        ("atomic 3x2", 90),
        ("atomic 3x3", 1680),
        ("mutex 2x3", 20),
        ("mutex 3x2", 90),
        ("independent 3x3", 1),
        ("independent 4x3", 1),
    ] {
        once_each(test, expected);
    }
}

#[test]
fn the_classes_are_those_of_the_full_search() {
    for test in
        ["atomic 3x2", "mutex 2x3", "Chase-Lev 3,2,1", "buffer of 1, 2 items", "spin lock, yields"]
    {
        once_each(test, classes(test, Reduction::None).expect("traces are counted"));
    }
    for test in ["Treiber 2+1", "Chase-Lev 3,2,2", "THE 2,2,1", "independent 3x3 in a Vec"] {
        once_each(test, classes(test, Reduction::Sleep).expect("traces are counted"));
    }
}

#[test]
fn an_error_is_found_with_as_few_preemptions_as_it_needs() {
    for (test, preemptions) in
        [("ABBA", 1), ("Chase-Lev bug, 1 steal", 2), ("Chase-Lev bug, 2 steals", 2)]
    {
        let below = explore(Check::new().bound(preemptions - 1), test);
        assert_eq!((below.verdict, below.stopped), (Verdict::Ok, None), "{test}");
        let outcome = explore(Check::new().bound(3), test);
        assert_eq!(
            outcome.findings.first().map(|finding| finding.preemptions),
            Some(preemptions),
            "{test}"
        );
    }
}

/// Under both memory models, the executions of GenMC's benchmarks are as many as GenMC publishes,
/// except where waiting loops are counted in another way.
#[test]
fn as_many_executions_as_genmc_publishes() {
    let rows = genmc::rows(true).expect("the list is well-formed");
    assert!(rows.len() >= 20);
    for row in rows {
        for memory in [Memory::Sc, Memory::Weak] {
            let counted = row.count(memory).expect("the search is complete");
            assert_eq!(counted.executions, row.expected(memory), "{} {memory:?}", row.title());
        }
    }
}

#[test]
fn a_number_that_differs_from_the_one_of_genmc_has_a_reason() {
    for row in genmc::rows(false).expect("the list is well-formed") {
        let differs =
            [Memory::Sc, Memory::Weak].map(|memory| row.expected(memory) != row.published(memory));
        assert_eq!(row.reason().is_some(), differs.contains(&true), "{}", row.title());
    }
}

/// The structures that are compared with lincheck. Two operations have 3, 8 and 10 scenarios of
/// 1+1, 2+1 and 2+2 calls.
#[test]
fn structures_are_linearizable_or_fail_in_a_smallest_scenario() {
    for (structure, scenarios, fails) in [
        ("counter", 21, None),
        ("counter, load and store", 1, Some("add(1) || add(2)")),
        ("queue with a lock", 21, None),
        ("queue, check-then-act", 7, Some("push(1); pop() || pop()")),
        ("one slot", 6, Some("push(1); pop() || push(3)")),
    ] {
        let outcome = linearize::ours(structure, 60.0).expect("the structure is listed");
        let failed = outcome.failed.as_ref().map(|failed| &*failed.scenario);
        assert_eq!((outcome.scenarios, failed), (scenarios, fails), "{structure}");
        assert_eq!(outcome.stopped, None, "{structure}");
    }
}
