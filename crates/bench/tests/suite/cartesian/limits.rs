//! A search that is ended early says so, even in the middle of a vector.

use preempt_bench::corpus;
use preempt_bench::papers::cartesian::CARTESIAN;
use preempt_explore::{Limit, Limits, Observer, Order, Plan, Points, Progress, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;

/// A thread whose prefix never ends.
fn endless() -> Machine {
    let text = "var x = 0; thread t { loop { x += 1; } } thread u { }";
    preempt_lang::load(&Source::new("endless.pre", text), &[]).expect("a model")
}

struct Interrupting;

impl Observer for Interrupting {
    fn progress(&self, progress: &Progress) {
        assert!(progress.transitions > 0);
    }

    fn interrupted(&self) -> bool {
        true
    }
}

#[test]
fn a_prefix_without_end_can_be_interrupted() {
    let plan = Plan::new().reduction(CARTESIAN);
    let (outcome, _) = plan.build().expect("the plan is valid").run(endless(), &Interrupting);
    assert_eq!((outcome.stopped, outcome.complete), (Some(Limit::Interrupt), false));
    assert!(outcome.guarantee().starts_with("INCOMPLETE"), "{}", outcome.guarantee());
    let memory = Limits { memory: Some(16 << 20), ..Limits::default() };
    let (outcome, _) =
        plan.limits(memory).build().expect("the plan is valid").run(endless(), &Silent);
    assert_eq!(outcome.stopped, Some(Limit::Memory));
}

#[test]
fn the_limit_of_states_counts_covered_ones() {
    let machine = corpus::machine(
        &corpus::root().join("philosophers/model.pre"),
        &[("N".into(), "6".into())],
    );
    let limits = Limits { states: Some(100), ..Limits::default() };
    let search =
        Plan::new().reduction(CARTESIAN).limits(limits).build().expect("the plan is valid");
    let (outcome, _) = search.run(machine.expect("a model"), &Silent);
    assert_eq!(outcome.stopped, Some(Limit::States));
    assert!((101..300).contains(&outcome.coverage.states), "{}", outcome.coverage.states);
}

#[test]
fn invalid_combinations_are_refused() {
    let plan = Plan::new().reduction(CARTESIAN);
    let depth = Limits { depth: Some(3), ..Limits::default() };
    for plan in [
        plan.bound(1),
        plan.points(Points::Sync),
        plan.order(Order::Executions),
        plan.limits(depth),
    ] {
        assert!(plan.build().is_err(), "{plan:?}");
    }
    assert!(plan.order(Order::DepthFirst).jobs(2).build().is_ok());
}

#[test]
fn a_complete_search_says_what_it_proves() {
    let machine =
        corpus::machine(&corpus::root().join("philosophers/model.pre"), &[]).expect("a model");
    let (outcome, _) =
        Plan::new().reduction(CARTESIAN).build().expect("the plan is valid").run(machine, &Silent);
    let text = outcome.guarantee();
    assert!(text.starts_with("complete: every local state of every thread"), "{text}");
    assert!(text.contains("deadlocks"), "{text}");
}
