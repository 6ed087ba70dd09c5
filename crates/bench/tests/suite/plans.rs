//! Every plan over executions compared with the oracle: the same failures, within the bound if
//! there is one.

use preempt_bench::agree::executions::{self, orders, reductions};
use preempt_bench::corpus;
use preempt_explore::{Cache, Order, Plan, Reduction, Silent, oracle};
use preempt_lang::source::Source;

/// Compares all plans on a program.
fn compare(text: &str) {
    for plans in [orders, reductions] {
        match executions::compare_text(text, plans) {
            Ok(compared) => assert!(compared >= 13, "only {compared} comparisons"),
            Err(error) => panic!("{error:#} on\n{text}"),
        }
    }
}

/// Compares plans on random programs. Returns the number of comparisons.
fn on_random_programs(plans: fn(Option<u32>) -> Vec<Plan>) -> u64 {
    let compared = (0..400)
        .map(|seed| executions::one(seed, plans).unwrap_or_else(|error| panic!("{error:#}")));
    compared.sum()
}

#[test]
fn orders_on_random_programs() {
    let compared = on_random_programs(orders);
    assert!(compared > 4_000, "only {compared} comparisons");
}

#[test]
fn reductions_on_random_programs() {
    let compared = on_random_programs(reductions);
    assert!(compared > 4_000, "only {compared} comparisons");
}

#[test]
fn on_programs_with_a_heap() {
    // Records are created, linked, unlinked and created again in all orders.
    let text = "
        record Node { value: int, next: *Node }
        atomic var top: *Node;
        var sum = 0;
        fn push(v: int) { var n = new Node { value: v, next: top }; if !cas(top, n.next, n) { sum = -1; } }
        fn pop() -> int { var n = top; if n == null { return 0; } if cas(top, n, n.next) { return n.value; } return 0; }
        thread a { push(1); sum += pop(); }
        thread b { push(2); assert sum >= 0; var got = pop(); assert got != 1; }
    ";
    compare(text);
}

#[test]
fn a_model_with_invariants_is_refused_where_states_are_left_out() {
    let machine = corpus::machine(&corpus::root().join("bakery/model.pre"), &[])
        .expect("a model with invariants");
    for reduction in [Reduction::Source, Reduction::Optimal, Reduction::FlanaganGodefroid] {
        let search = Plan::new()
            .order(Order::Executions)
            .reduction(reduction)
            .build()
            .expect("the plan is valid");
        let refusal = search.suits(&machine).expect_err("not every state is visited");
        assert!(refusal.to_string().contains("invariants"), "{refusal}");
    }
}

#[test]
fn unsound_combinations_cannot_be_built() {
    let bounded =
        |reduction| Plan::new().order(Order::Executions).reduction(reduction).bound(0).build();
    for reduction in
        [Reduction::Sleep, Reduction::Source, Reduction::Optimal, Reduction::FlanaganGodefroid]
    {
        let refusal = bounded(reduction).expect_err("loses executions within a bound");
        assert!(refusal.to_string().contains("corpus/zoo/x.pre"), "{refusal}");
    }
    for reduction in [Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates] {
        assert!(
            Plan::new().order(Order::ContextBounded).reduction(reduction).build().is_err(),
            "there is no bound"
        );
    }
}

#[test]
fn no_alternative_after_a_failing_one_is_lost() {
    // The first alternative fails at once. The next one fails after another choice, so that the
    // next number belongs to the first alternative again and does not exist; the alternatives that
    // do not fail come later.
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
    let reachable = oracle::reachable(&machine);
    // Without u: t at its beginning, wrong, done with 2 or 3: a step that fails writes nothing.
    // After u the same, the first two with 7; and t done before u, with 7.
    assert_eq!((reachable.states.len(), reachable.failures.len()), (9, 2));
    let (all, _) =
        Plan::new().keep_going().build().expect("the plan is valid").run(machine, &Silent);
    assert_eq!((all.coverage.states, all.findings.len()), (9, 2));
    compare(text);
}

#[test]
fn unreferenced_records_are_not_an_error() {
    let text = "
        record Node { next: *Node }
        var one: *Node;
        thread t { for k in 0..1200 { one = new Node { next: null }; } }
    ";
    let machine = preempt_lang::load(&Source::new("garbage.pre", text), &[]).expect("a model");
    let states = Plan::new().order(Order::Icb { cache: Cache::State });
    let traces = Plan::new().order(Order::Executions).reduction(Reduction::Source);
    for (plan, complete) in [(Plan::new(), true), (states, true), (traces, false)] {
        let (outcome, _) = plan.build().expect("the plan is valid").run(machine.clone(), &Silent);
        // If records keep their names, there are more than fit, and the search says so.
        assert_eq!(
            (outcome.findings.len(), outcome.complete),
            (0, complete),
            "{:?} {:?}",
            plan.order,
            plan.reduction
        );
    }
}
