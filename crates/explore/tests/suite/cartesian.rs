//! The cartesian search over toy programs, which loop forever: the same failures as the full
//! search, and the same counts for every order, store and number of workers.

use std::collections::BTreeSet;

use crate::toy::{Op, Toy};
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{Order, Outcome, Plan, Reduction, Silent, StoreKind};
use preempt_system::Failure;

const READINGS: [Reading; 2] = [Reading::Late, Reading::Literal];

fn run(plan: Plan, toy: &Toy) -> Outcome {
    plan.build().expect("the plan is valid").run(toy.clone(), &Silent).0
}

fn failures(outcome: &Outcome) -> BTreeSet<String> {
    let name = |failure: &Failure| format!("{:?} {}", failure.kind, failure.message);
    outcome.findings.iter().map(|finding| name(&finding.failure)).collect()
}

#[test]
fn programs_with_loops_have_the_failures_of_the_full_search() {
    let (mut failing, mut saved) = (0, 0);
    for seed in 0..6_000 {
        let toy = crate::toy::random(seed);
        let full = run(Plan::new().keep_going(), &toy);
        for reading in READINGS {
            let plan = Plan::new().reduction(Reduction::Cartesian { reading });
            let all = run(plan.keep_going(), &toy);
            assert!(all.complete);
            assert_eq!(failures(&all), failures(&full), "seed {seed} {reading:?} {toy:?}");
            assert!(all.coverage.states <= full.coverage.states, "seed {seed}");
            let first = run(plan, &toy);
            assert_eq!(first.findings.len(), usize::from(!full.findings.is_empty()), "seed {seed}");
            saved += full.coverage.states - all.coverage.states;
        }
        failing += u32::from(!full.findings.is_empty());
    }
    assert!(failing > 2_000 && saved > 10_000, "{failing} failing, {saved} states saved");
}

#[test]
fn numbers_do_not_depend_on_order_workers_or_store() {
    for seed in 0..300 {
        let toy = crate::toy::random(seed);
        let plan =
            Plan::new().reduction(Reduction::Cartesian { reading: Reading::Late }).keep_going();
        let of = |plan: Plan| {
            let outcome = run(plan, &toy);
            let seen = outcome.coverage;
            (
                seen.states,
                seen.transitions,
                seen.blocked,
                seen.ended,
                seen.failed,
                failures(&outcome),
            )
        };
        let expected = of(plan);
        for plan in [
            plan.jobs(2),
            plan.jobs(4),
            plan.order(Order::DepthFirst),
            plan.order(Order::DepthFirst).jobs(3),
        ] {
            assert_eq!(of(plan), expected, "seed {seed} {plan:?}");
        }
        for store in [StoreKind::Tree, StoreKind::Fingerprint] {
            assert_eq!(of(plan.store(store)), expected, "seed {seed} {store:?}");
        }
    }
}

#[test]
fn states_that_are_too_small_grow() {
    let count = vec![Op::Add { cell: 0, value: 5 }; 9];
    let toy = Toy::new(
        2,
        vec![count.clone(), [count, vec![Op::AssertNot { cell: 0, value: 90 }]].concat()],
    );
    let full = run(Plan::new().keep_going(), &toy);
    let plan = Plan::new().reduction(Reduction::Cartesian { reading: Reading::Late });
    let cartesian = run(plan.keep_going(), &toy);
    assert!(full.restarts > 0 && cartesian.restarts > 0);
    assert_eq!(failures(&cartesian), failures(&full));
    assert_eq!(failures(&full).len(), 1);
}

#[test]
fn a_failing_initial_state_is_reported() {
    let toy = Toy { fails_initially: true, ..crate::toy::philosophers(2) };
    let plan = Plan::new().reduction(Reduction::Cartesian { reading: Reading::Late });
    assert_eq!(failures(&run(plan, &toy)), failures(&run(Plan::new(), &toy)));
    assert_eq!(
        failures(&run(plan.keep_going(), &toy)),
        failures(&run(Plan::new().keep_going(), &toy))
    );
}
