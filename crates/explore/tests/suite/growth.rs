//! Growth curves: a sample has the counts of a search that ends at the same execution.

use crate::toy::{Op, Toy, philosophers};
use preempt_explore::{Cache, Limits, Order, Outcome, Plan, Reduction, Sampling, Silent};
use preempt_system::Verdict;

fn run(plan: Plan, toy: &Toy) -> Outcome {
    plan.build().expect("the plan is valid").run(toy.clone(), &Silent).0
}

fn orders() -> Vec<Plan> {
    let orders = [
        Order::Icb { cache: Cache::None },
        Order::Icb { cache: Cache::Hb },
        Order::Icb { cache: Cache::State },
        Order::Executions,
        Order::Depth { steps: 7 },
        Order::Random,
        Order::Pct { depth: 3 },
    ];
    let mut plans: Vec<Plan> =
        orders.map(|order| Plan::new().order(order).runs(300).keep_going()).into();
    plans.push(Plan::new().order(Order::Executions).reduction(Reduction::Sleep).keep_going());
    plans
}

#[test]
fn samples_have_the_counts_of_a_shorter_search() {
    let mut compared = 0;
    for toy in [philosophers(3), crate::toy::grid(2, 5)] {
        for plan in orders() {
            let sampled = run(plan.sampling(Sampling::Decades), &toy);
            let growth = sampled.growth.as_ref().expect("growth was requested");
            let plain = run(plan, &toy);
            let but_for_growth =
                Outcome { growth: None, elapsed: plain.elapsed, ..sampled.clone() };
            assert_eq!(plain, but_for_growth, "{plan:?}: sampling does not change the search");
            compared += growth.samples.len();
            assert_eq!(growth.samples.last(), sampled.tally.as_ref(), "the last sample is the end");
            // The sample after the last execution has no shorter search.
            for sample in &growth.samples[..growth.samples.len() - 1] {
                let limits = Limits { executions: Some(sample.taken()), ..Limits::default() };
                let short = run(plan.limits(limits), &toy).tally.expect("a search over executions");
                let seen = |tally: &preempt_explore::Tally| {
                    (tally.executions, tally.cut, tally.traces, tally.ends, tally.states)
                };
                assert_eq!(seen(&short), seen(sample), "{plan:?} after {}", sample.taken());
            }
        }
    }
    assert!(compared > 100, "{compared} samples");
}

#[test]
fn coverage_never_shrinks_and_the_first_failure_is_known() {
    // The second thread fails if it comes between the two steps of the first.
    let first = vec![Op::Set { cell: 0, value: 1 }, Op::Set { cell: 0, value: 2 }];
    let second = vec![Op::Set { cell: 1, value: 1 }, Op::AssertNot { cell: 0, value: 1 }];
    let toy = Toy::new(2, vec![first, second]);
    let plan = Plan::new().order(Order::Executions).sampling(Sampling::Every(1));
    let outcome = run(plan.keep_going(), &toy);
    let growth = outcome.growth.expect("growth was requested");
    assert_eq!(
        growth.samples.iter().map(|tally| tally.taken()).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    let states: Vec<u64> = growth.samples.iter().filter_map(|tally| tally.states).collect();
    assert!(states.windows(2).all(|two| two[0] <= two[1]) && states.len() == 6, "{states:?}");
    // If the search ends at the finding, the finding is in its last execution.
    let stopped = run(plan, &toy);
    assert_eq!(stopped.verdict, Verdict::Violation);
    let at_end = run(
        plan.keep_going().limits(Limits { executions: growth.first_failure, ..Limits::default() }),
        &toy,
    );
    assert_eq!(at_end.findings.len(), 1);
    let before = growth.first_failure.expect("the program fails") - 1;
    assert!(before > 0);
    let none = run(
        plan.keep_going().limits(Limits { executions: Some(before), ..Limits::default() }),
        &toy,
    );
    assert!(none.findings.is_empty(), "{none:?}");
}

#[test]
fn a_curve_needs_one_worker_and_a_search_over_executions() {
    let plan = Plan::new().order(Order::Executions).sampling(Sampling::Decades);
    for refused in
        [plan.jobs(2), plan.order(Order::BreadthFirst), plan.sampling(Sampling::Every(0))]
    {
        assert!(refused.build().is_err(), "{refused:?}");
    }
    assert_eq!(run(Plan::new().order(Order::Executions), &crate::toy::grid(2, 2)).growth, None);
}
