//! Simpler schedules of findings on random machines, compared with the oracle's fewest preemptions.

use std::time::Duration;

use crate::toy::{Op, Toy, philosophers, random};
use preempt_explore::cursor::Cursor;
use preempt_explore::replay::end;
use preempt_explore::{Cache, Limits, Observer, Order, Plan, Progress, Shrink, Silent, oracle};
use preempt_system::{Choice, FailureKind, Finding, Schedule, ThreadId};

/// Enough for every small program, so that the result does not depend on the speed of the machine.
const ENOUGH: Shrink = Shrink { executions: 1_000_000, time: Duration::from_secs(3600) };

fn find(plan: Plan, toy: &Toy) -> Option<Finding> {
    let search = plan.build().expect("the plan is valid");
    let found = search.run(toy.clone(), &Silent).0.findings.into_iter().next();
    // The oracle does not detect livelocks, and a failure before the first step cannot be
    // simplified.
    found.filter(|finding| {
        finding.failure.kind != FailureKind::Livelock && !finding.schedule.steps().is_empty()
    })
}

fn plans() -> [Plan; 5] {
    let orders = [
        Order::BreadthFirst,
        Order::DepthFirst,
        Order::Random,
        Order::Pct { depth: 3 },
        Order::Urw,
    ];
    // Some programs run forever.
    let depth = |order: Order| order.samples().then_some(200);
    orders.map(|order| {
        Plan::new()
            .order(order)
            .runs(100)
            .limits(Limits { depth: depth(order), ..Limits::default() })
    })
}

fn least(toy: &Toy, finding: &Finding) -> u32 {
    let same = |kind: FailureKind, message: &str| {
        (kind, message) == (finding.failure.kind, &finding.failure.message)
    };
    let all = oracle::least_preemptions(toy);
    let shown = all
        .into_iter()
        .filter(|((kind, message, _), _)| same(*kind, message))
        .map(|(_, least)| least);
    shown.min().expect("the oracle finds the failure")
}

#[test]
fn random_machines_fail_with_the_fewest_preemptions() {
    let (mut compared, mut fewer) = (0, 0);
    for seed in 0..200 {
        let toy = random(seed);
        for plan in plans() {
            let Some(found) = find(plan, &toy) else { continue };
            let shrunk = find(plan.shrink(ENOUGH), &toy).expect("the failure is found again");
            let shortened = shrunk.shrunk.expect("a simpler schedule was searched for");
            let name = format!("seed {seed}, {:?}: {found:?}, {shrunk:?}", plan.order);
            assert!(shortened.fewest && shrunk.failure.is_same_error(&found.failure), "{name}");
            let least = least(&toy, &found);
            // Searches that hold back threads which spin count a switch away from one as no
            // preemption; the oracle does.
            let agrees =
                shrunk.preemptions == least || plan.order.samples() && shrunk.preemptions < least;
            assert!(agrees, "{name}: the fewest preemptions are {least}");
            let rank = |finding: &Finding| (finding.preemptions, finding.schedule.steps().len());
            assert!(rank(&shrunk) <= rank(&found), "{name}");
            let cursor = Cursor::new(&toy).expect("the states have room");
            let ended = end(cursor, &shrunk.schedule).expect("the schedule can be replayed");
            assert!(ended.failures.contains(&shrunk.failure), "{name}");
            compared += 1;
            fewer += u32::from(shrunk.preemptions < found.preemptions);
        }
    }
    assert!(compared > 150 && fewer > 20, "{compared} compared, {fewer} with fewer preemptions");
}

#[test]
fn a_small_budget_makes_no_false_claims() {
    let (mut unknown, mut known) = (0, 0);
    for seed in 0..400 {
        let toy = random(seed);
        for plan in plans() {
            let Some(found) = find(plan, &toy) else { continue };
            let budget = Shrink { executions: 1 + seed % 4, ..ENOUGH };
            let shrunk = find(plan.shrink(budget), &toy).expect("the failure is found again");
            let shortened = shrunk.shrunk.expect("a simpler schedule was searched for");
            let least = least(&toy, &found);
            let fair = plan.order.samples();
            assert!(shrunk.preemptions <= found.preemptions, "seed {seed}: {shrunk:?}");
            assert!(fair || shrunk.preemptions >= least, "seed {seed}: {shrunk:?}");
            assert!(
                !shortened.fewest || shrunk.preemptions <= least,
                "seed {seed}, {:?}: {shrunk:?}",
                plan.order
            );
            // The budget is used at most twice from above, and by two searches from below.
            assert!(shortened.executions <= 4 * budget.executions, "seed {seed}: {shortened:?}");
            unknown += u32::from(!shortened.fewest);
            known += u32::from(shortened.fewest && shrunk.preemptions > 0);
        }
    }
    assert!(unknown > 5 && known > 5, "{unknown} unknown, {known} known");
}

/// A finding of iterative context bounding already has the fewest preemptions, but not the fewest
/// steps.
#[test]
fn irrelevant_steps_are_removed() {
    let idle = vec![Op::Turn { cell: 1 }; 5];
    let toy = Toy::new(2, vec![idle, vec![Op::AssertNot { cell: 0, value: 0 }]]);
    let plan = Plan::new().order(Order::Icb { cache: Cache::State });
    assert_eq!(find(plan, &toy).expect("the program fails").schedule.steps().len(), 6);
    let shrunk = find(plan.shrink(ENOUGH), &toy).expect("the program fails");
    assert_eq!(shrunk.schedule, Schedule::new(vec![Choice::of(ThreadId::new(1))]));
    assert_eq!(
        shrunk.shrunk.map(|shortened| (shortened.steps, shortened.preemptions, shortened.fewest)),
        Some((6, 0, true))
    );
}

/// A deadlock that needs a preemption is not found without one.
#[test]
fn a_needed_preemption_is_kept() {
    for order in [Order::BreadthFirst, Order::DepthFirst, Order::Random] {
        let plan = Plan::new().order(order).shrink(ENOUGH);
        let finding = find(plan, &philosophers(4)).expect("a deadlock");
        let shortened = finding.shrunk.expect("a simpler schedule was searched for");
        assert_eq!(
            (finding.preemptions, finding.schedule.steps().len(), shortened.fewest),
            (1, 4, true),
            "{order:?}"
        );
    }
}

/// An interrupt ends the shrinking, and the finding keeps its schedule.
#[test]
fn an_interrupt_leaves_the_schedule_as_it_is() {
    struct Interrupting;
    impl Observer for Interrupting {
        fn progress(&self, _: &Progress) {}
        fn interrupted(&self) -> bool {
            true
        }
    }
    let plan = Plan::new().order(Order::DepthFirst).limits(Limits::default());
    let found = find(plan, &philosophers(3)).expect("a deadlock");
    let search = plan.shrink(ENOUGH).build().expect("the plan is valid");
    let finding = search
        .run(philosophers(3), &Interrupting)
        .0
        .findings
        .into_iter()
        .next()
        .expect("a deadlock");
    assert_eq!(finding.schedule, found.schedule);
}
