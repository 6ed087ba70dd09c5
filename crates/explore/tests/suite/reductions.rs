//! Reductions compared with searches of all executions, on random programs: they report the same
//! failures and traces, and those that promise it take one execution for each trace.

use std::collections::BTreeSet;

use crate::toy::{Toy, random};
use preempt_explore::oracle::{self, name};
use preempt_explore::{Order, Outcome, Plan, Reduction, Silent};

/// The outcome of a plan, unless the plan does not suit the program.
fn run(plan: Plan, toy: &Toy) -> Option<Outcome> {
    let search = plan.keep_going().build().expect("the plan is valid");
    search.suits(toy).is_ok().then(|| search.run(toy.clone(), &Silent).0)
}

/// Compares the reduction `plan` with the unreduced search `all`. The program has `traces` traces
/// in total.
fn compare(plan: Plan, (all, traces): (&Outcome, Option<u64>), toy: &Toy, what: &str) -> bool {
    let Some(outcome) = run(plan, toy) else { return false };
    let what = format!("{:?}, bound {:?}, on {what}", plan.reduction, plan.bound);
    let failures = |outcome: &Outcome| -> BTreeSet<_> {
        outcome.findings.iter().map(|finding| name(&finding.failure)).collect()
    };
    assert_eq!(failures(&outcome), failures(all), "failures of {what}");
    // Some executions beyond the bound have the same traces as executions within it, so a reduction
    // may be complete where the search that it reduces is not.
    assert!(outcome.complete || !all.complete, "{what}");
    assert!(!outcome.complete || outcome.traces() == traces, "{what}");
    let (seen, every) = (outcome.tally, all.tally);
    let (seen, every) = seen.zip(every).expect("searches over executions");
    assert_eq!(seen.traces, every.traces, "traces of {what}");
    let takes_one =
        !matches!(plan.reduction, Reduction::FlanaganGodefroid | Reduction::BudgetedSleep);
    if takes_one {
        assert_eq!(Some(seen.executions), every.traces, "executions of {what}");
    }
    if plan.reduction == Reduction::Optimal {
        assert_eq!(seen.pruned, 0, "abandoned executions of {what}");
    }
    // Each of them takes one step to every happens-before graph but the empty one.
    if matches!(plan.reduction, Reduction::Sleep | Reduction::CbPorStates) {
        assert_eq!(Some(seen.steps + 1), seen.graphs, "graphs of {what}");
    }
    true
}

#[test]
fn reductions_lose_no_trace_and_no_failure() {
    let (mut unbounded, mut bounded) = (0, 0);
    for seed in 0..400 {
        // Cells that never outgrow their bits: the oracle does not grow.
        let toy = Toy { bits: 10, ..random(seed) };
        let executions = oracle::executions(&toy).map(|all| all.values().sum::<u128>());
        if executions.is_none_or(|executions| executions > 400) {
            continue;
        }
        let what = format!("program {seed}: {toy:?}");
        let all = Plan::new().order(Order::Executions);
        let every = run(all, &toy).expect("the plan suits every program");
        let traces = every.traces();
        for reduction in
            [Reduction::Sleep, Reduction::FlanaganGodefroid, Reduction::Source, Reduction::Optimal]
        {
            let plan = all.reduction(reduction);
            unbounded += u32::from(compare(plan, (&every, traces), &toy, &what));
        }
        for bound in 0..3 {
            let all = Plan::new().order(Order::ContextBounded).bound(bound);
            let every = run(all, &toy).expect("the plan suits every program");
            for reduction in [Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates] {
                let plan = all.reduction(reduction);
                bounded += u32::from(compare(plan, (&every, traces), &toy, &what));
            }
        }
    }
    assert!(unbounded > 150 && bounded > 500, "{unbounded} unbounded, {bounded} bounded");
}
