//! Misreadings of the paper's Figures 5 to 7, each with the smallest program that shows the lost
//! error.

use preempt_bench::agree::transactions::{compare, misses};
use preempt_bench::corpus;
use preempt_explore::mutants::{self, Mutant};
use preempt_explore::reduce::cpc::{self, Config, Propagation, Variant};
use preempt_explore::{Order, Plan, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_system::FailureKind;

/// The text of a program of the corpus.
fn text(name: &str) -> String {
    std::fs::read_to_string(corpus::root().join(name)).expect("the corpus is well")
}

/// Checks that the misreading misses an error that the right reading finds.
fn loses(text: &str, variant: Variant, mutant: Option<Mutant>) {
    assert!(
        mutants::with(mutant, || misses(text, variant)).expect("a small program"),
        "{variant:?} {mutant:?} is not noticed:\n{text}"
    );
    let compared = compare(text).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.programs, compared.failing), (1, 1), "{text}");
}

#[test]
fn the_stack_is_empty_before_the_last_thread_had_its_turn() {
    loses(
        "steps statement; thread t { } thread u { assert false; }",
        Variant::Repaired,
        Some(Mutant::EmptyStackEnds),
    );
}

#[test]
fn line_l19_as_printed_leaves_threads_that_wait() {
    for program in ["cpc/l19-loop.pre", "cpc/l19-branch.pre"] {
        loses(&text(program), Variant::Printed, None);
        assert!(
            !misses(&text(program), Variant::Unsound).expect("a small program"),
            "even this finds it"
        );
    }
}

#[test]
fn every_left_mover_makes_a_commit_point() {
    loses(&text("cpc/fig3.pre"), Variant::Printed, Some(Mutant::CommitsOnce));
    loses(&text("cpc/fig3.pre"), Variant::Repaired, Some(Mutant::CommitsOnce));
    let machine =
        corpus::machine(&corpus::root().join("cpc/fig3.pre"), &[]).expect("the corpus is well");
    let config = Config { variant: Variant::Printed, propagation: Propagation::AtPop };
    let found = mutants::with(Some(Mutant::CommitsOnce), || cpc::run(machine, config));
    assert_eq!(found.states, 36);
}

#[test]
fn update_keeps_the_flags() {
    let text = "steps statement; thread t { } thread u { loop { skip; skip; } } thread v { assert false; }";
    loses(text, Variant::Repaired, Some(Mutant::UpdateForgets));
}

#[test]
fn a_state_on_the_stack_is_not_complete_by_itself() {
    loses(&text("cpc/fig1.pre"), Variant::Repaired, Some(Mutant::StackCompletes));
    loses(&text("cpc/fig1.pre"), Variant::WithoutL19, Some(Mutant::StackCompletes));
}

#[test]
fn cycle_detection_has_to_end_transactions_of_blocked_threads() {
    let text = "atomic var x = 0; thread t { assert x != 1; } thread u { x = 1; }";
    loses(text, Variant::CycleDetection, Some(Mutant::StuckGoesOn));
}

#[test]
fn the_unsound_search_ignores_threads() {
    for program in ["cpc/fig1.pre", "cpc/fig3.pre", "cpc/fig8.pre"] {
        loses(&text(program), Variant::Unsound, None);
    }
}

#[test]
fn a_step_without_choices_is_taken_once() {
    let text = "steps statement; thread t { loop { skip; skip; } }";
    let machine = preempt_lang::load(&Source::new("once.pre", text), &[]).expect("a model");
    let found = cpc::run(machine, Config::default());
    assert_eq!((found.states, found.transitions), (2, 2));
}

/// Two threads, two locks, two orders.
const ABBA: &str = "
    steps statement;
    mutex a, b;
    thread t { a.lock(); b.lock(); b.unlock(); a.unlock(); }
    thread u { b.lock(); a.lock(); a.unlock(); b.unlock(); }
";

#[test]
fn deadlocks_are_lost_and_refused() {
    let machine = preempt_lang::load(&Source::new("abba.pre", ABBA), &[]).expect("a model");
    let full = Plan::new().keep_going().build().expect("the plan is valid");
    let (outcome, machine) = full.run(machine, &Silent);
    let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
    assert_eq!((outcome.coverage.states, kinds), (19, vec![FailureKind::Deadlock]));
    for (variant, states) in
        [(Variant::WithoutL19, 16), (Variant::Repaired, 16), (Variant::CycleDetection, 16)]
    {
        let found = cpc::run(machine.clone(), Config { variant, propagation: Propagation::AtPop });
        assert_eq!((found.states, found.failures.len()), (states, 0), "{variant:?}");
    }
    for reduction in
        [Reduction::Transactions, Reduction::TransactionsCycle, Reduction::TransactionsUnsound]
    {
        let refusal = Plan::new()
            .order(Order::DepthFirst)
            .reduction(reduction)
            .build()
            .expect_err("deadlocks are lost");
        assert!(refusal.to_string().contains("`ignore_deadlocks`"), "{refusal}");
    }
}
