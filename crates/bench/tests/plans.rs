//! Every plan over executions against the oracle: the same failures, within the bound if there is one.

use std::collections::BTreeSet;

use preempt_bench::corpus;
use preempt_bench::random::{Shape, program};
use preempt_explore::oracle::{self, FailureName};
use preempt_explore::{Cache, Count, Limits, Order, Plan, Reduction, Silent};
use preempt_lang::machine::Machine;
use preempt_lang::source::Source;

/// The plans without a bound, and those with one.
fn plans(bound: Option<u32>) -> Vec<Plan> {
    let Some(bound) = bound else {
        let reductions = [Reduction::Sleep, Reduction::Source, Reduction::Optimal, Reduction::FlanaganGodefroid];
        let reduced = reductions.map(|reduction| Plan::new().order(Order::Executions).reduction(reduction));
        return reduced.into_iter().chain([Plan::new().order(Order::DfsHb)]).collect();
    };
    let reductions = [Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates];
    let reduced = reductions.map(|reduction| Plan::new().order(Order::ContextBounded).reduction(reduction));
    let orders = [Order::Icb { cache: Cache::State }, Order::Icb { cache: Cache::Hb }, Order::DfsHb];
    let plans = reduced.into_iter().chain(orders.map(|order| Plan::new().order(order)));
    plans.map(|plan| plan.bound(bound)).collect()
}

/// What a plan finds; `None` if it does not come to its end.
fn failures(plan: Plan, machine: &Machine) -> Option<BTreeSet<FailureName>> {
    let limits = Limits { states: Some(5_000), ..Limits::default() };
    let search = plan.keep_going().count(Count::States).limits(limits).build().expect("a plan that makes sense");
    let (outcome, _) = search.run(machine.clone(), &Silent);
    outcome.stopped.is_none().then(|| outcome.findings.iter().map(|f| oracle::name(&f.failure)).collect())
}

/// Compares all plans with the oracle; says how many comparisons were made.
fn compare(machine: &Machine, what: &str) -> usize {
    let least = oracle::least_preemptions(machine);
    let mut compared = 0;
    for bound in [None, Some(0), Some(1), Some(2)] {
        let within = |count: u32| bound.is_none_or(|bound| count <= bound);
        let expected: BTreeSet<_> =
            least.iter().filter(|&(_, &count)| within(count)).map(|(name, _)| name.clone()).collect();
        for plan in plans(bound) {
            if let Some(found) = failures(plan, machine) {
                assert_eq!(found, expected, "{:?} {:?}, bound {bound:?}, of\n{what}", plan.order, plan.reduction);
                compared += 1;
            }
        }
    }
    compared
}

/// The machine, large enough for all its states, unless it has too many.
fn grown(machine: Machine) -> Option<Machine> {
    let limits = Limits { states: Some(2_000), ..Limits::default() };
    let search = Plan::new().keep_going().limits(limits).build().expect("a plan that makes sense");
    let (outcome, machine) = search.run(machine, &Silent);
    outcome.complete.then_some(machine)
}

#[test]
fn on_random_programs() {
    let mut compared = 0;
    for seed in 0..400 {
        let text = program(seed, Shape { threads: (2, 3), statements: 3 });
        let machine =
            preempt_lang::load(&Source::new("random.pre", text.as_str()), &[]).expect("random programs are programs");
        if let Some(machine) = grown(machine) {
            compared += compare(&machine, &text);
        }
    }
    assert!(compared > 4_000, "only {compared} comparisons");
}

#[test]
fn on_programs_with_a_heap() {
    // Records are made, linked, unlinked and made again in all orders.
    let text = "
        record Node { value: int, next: *Node }
        atomic var top: *Node;
        var sum = 0;
        fn push(v: int) { var n = new Node { value: v, next: top }; if !cas(top, n.next, n) { sum = -1; } }
        fn pop() -> int { var n = top; if n == null { return 0; } if cas(top, n, n.next) { return n.value; } return 0; }
        thread a { push(1); sum += pop(); }
        thread b { push(2); assert sum >= 0; var got = pop(); assert got != 1; }
    ";
    let machine = preempt_lang::load(&Source::new("heap.pre", text), &[]).expect("a model");
    let machine = grown(machine).expect("a small model");
    assert!(compare(&machine, text) > 10);
}

#[test]
fn a_model_with_invariants_is_refused_where_states_are_left_out() {
    let machine = corpus::machine(&corpus::root().join("bakery/model.pre"), &[]).expect("a model with invariants");
    for reduction in [Reduction::Source, Reduction::Optimal, Reduction::FlanaganGodefroid] {
        let search =
            Plan::new().order(Order::Executions).reduction(reduction).build().expect("a plan that makes sense");
        let refusal = search.suits(&machine).expect_err("not every state is visited");
        assert!(refusal.to_string().contains("invariants"), "{refusal}");
    }
}

#[test]
fn unsound_combinations_cannot_be_built() {
    let bounded = |reduction| Plan::new().order(Order::Executions).reduction(reduction).bound(0).build();
    for reduction in [Reduction::Sleep, Reduction::Source, Reduction::Optimal, Reduction::FlanaganGodefroid] {
        let refusal = bounded(reduction).expect_err("loses executions within a bound");
        assert!(refusal.to_string().contains("corpus/zoo/x.pre"), "{refusal}");
    }
    for reduction in [Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates] {
        assert!(Plan::new().order(Order::ContextBounded).reduction(reduction).build().is_err(), "there is no bound");
    }
}

#[test]
fn no_alternative_is_lost_behind_one_that_fails() {
    // The first way fails at once. The next fails after another choice, so that the number behind it belongs to the first
    // way again and does not exist; those that do not fail come later.
    let text = "
        var x = 0;
        thread t {
            atomic {
                if choose(0..2) == 0 { assert false, \"at once\"; }
                x = choose(0..4);
                assert x >= 2, \"later\";
            }
        }
        thread u { x = 7; }
    ";
    let machine = preempt_lang::load(&Source::new("choices.pre", text), &[]).expect("a model");
    let machine = grown(machine).expect("a small model");
    let reachable = oracle::reachable(&machine);
    // Without u: t at its beginning, wrong with 0 or 1, done with 2 or 3. After u the same, the beginning and one way to be wrong
    // with 7; and t wrong or done before u, with 7.
    assert_eq!((reachable.states.len(), reachable.failures.len()), (12, 2));
    let (all, _) = Plan::new().keep_going().build().expect("a plan that makes sense").run(machine.clone(), &Silent);
    assert_eq!((all.coverage.states, all.findings.len()), (12, 2));
    assert!(compare(&machine, text) > 10);
}
