//! Programs that run forever: reductions over executions say that they would not end.

use preempt_explore::{Limit, Order, Outcome, Plan, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_system::Verdict;

const UNBOUNDED: [Reduction; 4] =
    [Reduction::Sleep, Reduction::FlanaganGodefroid, Reduction::Source, Reduction::Optimal];
const BOUNDED: [Reduction; 3] =
    [Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates];

fn run(text: &str, reduction: Reduction) -> Outcome {
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a model");
    let plan = match reduction.is_bounded() {
        true => Plan::new().order(Order::ContextBounded).bound(1),
        false => Plan::new().order(Order::Executions),
    };
    let plan = plan.reduction(reduction);
    plan.build()
        .unwrap_or_else(|refusal| panic!("{reduction:?}: {refusal}"))
        .run(machine, &Silent)
        .0
}

#[test]
fn an_infinite_loop_is_reported() {
    let spins = "atomic var stop = false; thread spinner { while !stop { skip; } } thread main { stop = true; }";
    let wanders = "atomic var x = 0; thread a { loop { x = 1; } } thread b { loop { x = 2; } }";
    for reduction in UNBOUNDED.into_iter().chain(BOUNDED) {
        for text in [spins, wanders] {
            let outcome = run(text, reduction);
            assert_eq!(
                (outcome.stopped, outcome.verdict),
                (Some(Limit::Round), Verdict::Incomplete),
                "{reduction:?}"
            );
            assert!(
                outcome.guarantee().contains("returned to an earlier state"),
                "{}",
                outcome.guarantee()
            );
        }
    }
}

#[test]
fn a_long_execution_is_not_an_infinite_loop() {
    let text = "atomic var x = 0; thread a { while x < 1500 { x += 1; } } thread b { skip; }";
    for reduction in UNBOUNDED.into_iter().chain(BOUNDED) {
        let outcome = run(text, reduction);
        assert!(
            outcome.complete && outcome.coverage.depth > 2_000,
            "{reduction:?}: {}",
            outcome.guarantee()
        );
    }
}
