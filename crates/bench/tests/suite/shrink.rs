//! Simpler schedules of findings, compared with the oracle's fewest preemptions.

use std::collections::BTreeMap;
use std::time::Duration;

use preempt_bench::corpus;
use preempt_bench::random::{Shape, program};
use preempt_explore::cursor::Cursor;
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::replay::end;
use preempt_explore::{Limits, Order, Plan, Reduction, Shrink, Silent, oracle};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Failure, Finding};

/// Enough for any small program, so that the result does not depend on the machine.
const ENOUGH: Shrink = Shrink { executions: 1_000_000, time: Duration::from_secs(3600) };

/// Searches whose schedules are not the simplest.
fn plans() -> Vec<Plan> {
    let orders = [Order::BreadthFirst, Order::DepthFirst, Order::Random, Order::Urw];
    let mut plans: Vec<Plan> = orders.map(|order| Plan::new().order(order).runs(200)).into();
    let few = Limits { executions: Some(500), ..Limits::default() };
    plans.push(Plan::new().order(Order::Executions).limits(few));
    plans.push(Plan::new().order(Order::Pct { depth: 3 }).runs(200));
    plans.push(Plan::new().reduction(Reduction::Cartesian { reading: Reading::Late }));
    plans.push(
        Plan::new().order(Order::DepthFirst).reduction(Reduction::Transactions).ignore_deadlocks(),
    );
    plans
}

fn load(text: &str) -> Machine {
    preempt_lang::load(&Source::new("random.pre", text), &[]).expect("a random program can be read")
}

/// The program with states that are large enough, if it is small.
fn small(text: &str) -> Option<Machine> {
    let limits = Limits { states: Some(1_000), ..Limits::default() };
    let search = Plan::new().keep_going().limits(limits).build().expect("the plan is valid");
    let (outcome, machine) = search.run(load(text), &Silent);
    outcome.complete.then_some(machine)
}

fn first(plan: Plan, machine: &Machine) -> Option<Finding> {
    let search = plan.build().expect("the plan is valid");
    search.suits(machine).ok()?;
    search.run(machine.clone(), &Silent).0.findings.into_iter().next()
}

/// The fewest preemptions with which the error of a failure occurs, whatever its message.
fn least(all: &BTreeMap<oracle::FailureName, u32>, failure: &Failure) -> u32 {
    let (kind, message, site) = oracle::name(failure);
    let same = |name: &oracle::FailureName| {
        name.0 == kind && name.2 == site && (site.is_some() || name.1 == message)
    };
    all.iter()
        .filter(|(name, _)| same(name))
        .map(|(_, &least)| least)
        .min()
        .expect("the oracle knows it")
}

#[test]
fn random_programs_fail_with_the_fewest_preemptions() {
    let (mut compared, mut fewer, mut shorter) = (0, 0, 0);
    for seed in 0..150 {
        let text = program(seed, Shape::default());
        let Some(machine) = small(&text) else { continue };
        let expected = oracle::least_preemptions(&machine);
        if expected.is_empty() {
            continue;
        }
        for plan in plans() {
            let Some(found) = first(plan, &machine) else { continue };
            let shrunk =
                first(plan.shrink(ENOUGH), &machine).expect("the shrunk search finds the failure");
            let result = shrunk.shrunk.expect("the finding was shrunk");
            let name =
                format!("{:?} {:?} on\n{text}\n{found:?}\n{shrunk:?}", plan.order, plan.reduction);
            assert_eq!(
                (result.steps, result.preemptions),
                (found.schedule.steps().len(), found.preemptions),
                "{name}"
            );
            assert!(shrunk.failure.is_same_error(&found.failure), "{name}");
            assert!(result.fewest, "{name}");
            assert_eq!(shrunk.preemptions, least(&expected, &found.failure), "{name}");
            let rank = |finding: &Finding| (finding.preemptions, finding.schedule.steps().len());
            assert!(rank(&shrunk) <= rank(&found), "{name}");
            let cursor = Cursor::new(&machine).expect("the states have room");
            let ended = end(cursor, &shrunk.schedule).expect("the schedule can be replayed");
            assert!(ended.failures.contains(&shrunk.failure), "{name}");
            compared += 1;
            fewer += u32::from(shrunk.preemptions < found.preemptions);
            shorter += u32::from(shrunk.schedule.steps().len() < found.schedule.steps().len());
        }
    }
    assert!(
        compared > 200 && fewer > 30 && shorter > 30,
        "{compared} compared, {fewer} fewer, {shorter} shorter"
    );
}

/// With a budget of very few executions, no claim is wrong and no schedule gets worse.
#[test]
fn a_small_budget_claims_nothing_wrong() {
    let (mut unknown, mut known) = (0, 0);
    for seed in 0..400 {
        let text = program(seed, Shape::default());
        let Some(machine) = small(&text) else { continue };
        let expected = oracle::least_preemptions(&machine);
        if expected.is_empty() {
            continue;
        }
        for plan in plans() {
            let Some(found) = first(plan, &machine) else { continue };
            let budget = Shrink { executions: 2 + seed % 40, ..ENOUGH };
            let shrunk =
                first(plan.shrink(budget), &machine).expect("the shrunk search finds the failure");
            let Some(result) = shrunk.shrunk else {
                assert!(
                    shrunk.schedule.steps().is_empty(),
                    "seed {seed}: only a schedule that fails at once is not shrunk"
                );
                continue;
            };
            let least = least(&expected, &found.failure);
            assert!(
                (least..=found.preemptions).contains(&shrunk.preemptions),
                "seed {seed}: {shrunk:?}"
            );
            assert!(
                !result.fewest || shrunk.preemptions == least,
                "seed {seed}, {:?}: {shrunk:?}",
                plan.order
            );
            match result.fewest {
                true => known += u32::from(shrunk.preemptions > 0),
                false => unknown += 1,
            }
        }
    }
    assert!(unknown > 3 && known > 3, "{unknown} unknown, {known} known");
}

/// Errors that differ only in their messages stay separate when all of them are requested.
#[test]
fn every_distinct_failure_keeps_its_own_schedule() {
    let mut several = 0;
    for seed in 0..800 {
        let Some(machine) = small(&program(seed, Shape::default())) else { continue };
        let search = Plan::new().keep_going().shrink(ENOUGH).build().expect("the plan is valid");
        let (outcome, machine) = search.run(machine, &Silent);
        let expected = oracle::least_preemptions(&machine);
        assert_eq!(outcome.findings.len(), expected.len(), "seed {seed}");
        for finding in &outcome.findings {
            assert_eq!(
                finding.preemptions,
                expected[&oracle::name(&finding.failure)],
                "seed {seed}: {finding:?}"
            );
        }
        several += u32::from(expected.len() > 1);
    }
    assert!(several > 5, "{several} programs with several failures");
}

/// A program that runs forever and whose threads spin: the search from below still ends.
#[test]
fn endless_programs_are_shrunk_too() {
    let file = corpus::root().join("philosophers/left-right.pre");
    let machine = corpus::machine(&file, &[]).expect("a program of the corpus");
    let budget = Shrink { executions: 2_000, ..ENOUGH };
    for order in [Order::Random, Order::DepthFirst, Order::Pct { depth: 3 }] {
        let plan = Plan::new().order(order).runs(3_000).shrink(budget);
        let plan = if order.samples() {
            plan.limits(Limits { depth: Some(400), ..Limits::default() })
        } else {
            plan
        };
        let finding = first(plan, &machine).expect("a deadlock");
        let result = finding.shrunk.expect("the finding was shrunk");
        // A minimal number of steps is not guaranteed.
        let steps = finding.schedule.steps().len();
        assert!(finding.preemptions == 1 && steps <= 8, "{order:?}: {finding:?}");
        assert!(result.preemptions > 1 && result.steps >= steps, "{order:?}: {result:?}");
    }
}
