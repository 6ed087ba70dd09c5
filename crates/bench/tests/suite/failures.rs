//! A search that continues after the first failure reports exactly the errors that are the first
//! failure of some execution.
//!
//! Every model is data: its text, and the messages (or `deadlock`) that every strategy must report
//! with `--keep-going`.

use std::collections::BTreeSet;

use preempt_explore::{Cache, Order, Plan, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_system::FailureKind;

const MODELS: &[(&str, &[&str])] = &[
    // A failed thread does not unlock its mutexes, which is not a second error.
    (
        "mutex m; thread t { m.lock(); assert false, \"A\"; m.unlock(); } thread u { m.lock(); m.unlock(); }",
        &["A"],
    ),
    (
        "var x = 0; fn f() { x = 1; assert x == 2, \"A\"; } thread t { var h = spawn f(); join h; }",
        &["A"],
    ),
    // Nor is it an error that another thread spins on a write that the failed thread would have
    // made.
    (
        "var x = 0; thread t { assert x == 1, \"A\"; x = 1; } thread u { while x == 0 { yield; } }",
        &["A"],
    ),
    // A deadlock that does not depend on the failure is reported.
    (
        "mutex a, b; var x = 0; thread t { a.lock(); b.lock(); x = 1; b.unlock(); a.unlock(); } \
         thread u { b.lock(); a.lock(); a.unlock(); b.unlock(); } thread v { assert x == 0, \"A\"; }",
        &["A", "deadlock"],
    ),
    // Other threads do not see the writes of a failing step.
    (
        "var x = 0; thread t { atomic { x = 1; assert false, \"A\"; } } thread u { await x == 1; assert false, \"B\"; }",
        &["A"],
    ),
    (
        "var x = 0; thread t { atomic { x = 1; assert false, \"A\"; } } thread u { assert x == 0, \"B\"; }",
        &["A"],
    ),
    // Errors of different threads do not hide each other.
    (
        "var x = 0; thread t { assert x == 1, \"A\"; } thread u { assert x == 2, \"B\"; }",
        &["A", "B"],
    ),
    (
        "var x = 0; thread t { x = 1; assert x == 0, \"A\"; } thread u { x = 2; assert x == 0, \"B\"; }",
        &["A", "B"],
    ),
    // Before the first access, in threads that start at once and in spawned ones.
    ("thread t { assert false, \"A\"; } thread u { assert false, \"B\"; }", &["A", "B"]),
    (
        "var x = 0; thread t { assert false, \"A\"; } thread u { x = 1; assert x == 2, \"B\"; }",
        &["A", "B"],
    ),
    (
        "fn f(p: int) { assert false, \"A1\"; } thread t { var h: thread = spawn f(1); assert false, \"A2\"; }",
        &["A1", "A2"],
    ),
    (
        "var x = 0; fn f(p: int) { assert p == 2, \"A1\"; } thread t { spawn f(1); x = 1; assert x == 2, \"A2\"; }",
        &["A1", "A2"],
    ),
    (
        "fn f(p: int) { assert p != 1, \"F\"; } fn g(p: int) { assert p != 3, \"G\"; } \
         thread t { atomic { spawn f(1); spawn f(2); spawn g(3); assert false, \"T\"; } }",
        &["F", "G", "T"],
    ),
    (
        "fn f() { assert false, \"A1\"; } thread t { var h = spawn f(); join h; assert false, \"A2\"; }",
        &["A1"],
    ),
    ("fn f() { assert false, \"F\"; } thread t { skip; } init { spawn f(); }", &["F"]),
    // One alternative fails, the others continue.
    (
        "var x = 0; thread t { var k = choose(0..3); assert k != 1, \"one\"; x = k; assert x != 2, \"two\"; }",
        &["one", "two"],
    ),
    // If `init` fails, nothing else runs.
    (
        "var x = 0; invariant x == 0; init { x = 1; assert false, \"I\"; } mutex m; \
         thread t { m.lock(); m.lock(); } thread u { assert false, \"U\"; }",
        &["I"],
    ),
];

fn plans() -> Vec<Plan> {
    let plan = Plan::new().keep_going();
    let mut plans = vec![
        plan.order(Order::BreadthFirst),
        plan.order(Order::DepthFirst),
        plan.order(Order::DepthFirst).jobs(2),
    ];
    for order in [
        Order::Executions,
        Order::DfsHb,
        Order::Icb { cache: Cache::None },
        Order::Icb { cache: Cache::State },
        Order::Icb { cache: Cache::Hb },
    ] {
        plans.push(plan.order(order));
    }
    for reduction in
        [Reduction::Sleep, Reduction::FlanaganGodefroid, Reduction::Source, Reduction::Optimal]
    {
        plans.push(plan.order(Order::Executions).reduction(reduction));
    }
    for reduction in [Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates] {
        plans.push(plan.order(Order::ContextBounded).reduction(reduction).bound(20));
    }
    plans.push(plan.reduction(Reduction::Cartesian { reading: Default::default() }));
    plans.push(plan.reduction(Reduction::Transactions).ignore_deadlocks());
    plans
}

#[test]
fn every_strategy_reports_the_first_failures_and_nothing_else() {
    let mut compared = 0;
    for (text, expected) in MODELS {
        for plan in plans() {
            let machine =
                preempt_lang::load(&Source::new("model.pre", *text), &[]).expect("a good model");
            // Unsuitable plans are refused.
            let Ok(search) = plan.build() else { continue };
            if search.suits(&machine).is_err() {
                continue;
            }
            let (outcome, _) = search.run(machine, &Silent);
            let name = |message: &str| message.rsplit(": ").next().unwrap_or(message).to_owned();
            let found: BTreeSet<String> = outcome
                .findings
                .iter()
                .map(|finding| match finding.failure.kind {
                    FailureKind::Deadlock => "deadlock".to_owned(),
                    _ => name(&finding.failure.message),
                })
                .collect();
            let expected = expected.iter().filter(|&&error| plan.deadlock || error != "deadlock");
            let expected: BTreeSet<String> = expected.map(|&error| error.to_owned()).collect();
            assert_eq!(found, expected, "{:?} {:?}: {text}", plan.order, plan.reduction);
            compared += 1;
        }
    }
    assert!(compared > 10 * MODELS.len(), "most strategies suit most models: {compared}");
}
