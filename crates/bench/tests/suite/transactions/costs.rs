//! Readings of the paper's Figures 5 to 7 that lose no error, and their costs.

use preempt_bench::agree::transactions::{compare, misses};
use preempt_bench::corpus;
use preempt_explore::mutants::{self, Mutant};
use preempt_explore::reduce::cpc::{self, Config, Propagation, Variant};
use preempt_explore::{Plan, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;

fn machine(name: &str, settings: &[(&str, &str)]) -> Machine {
    let settings: Vec<_> =
        settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    corpus::machine(&corpus::root().join(name), &settings).expect("the corpus is well")
}

/// Philosophers with forks that are given back in the opposite order.
fn philosophers() -> Machine {
    machine("philosophers/stack-order.pre", &[("N", "6")])
}

fn states(machine: Machine, variant: Variant) -> u64 {
    cpc::run(machine, Config { variant, propagation: Propagation::AtPop }).states
}

/// The states of the repaired search, and of one that reads a line in this way.
fn cost(machine: Machine, mutant: Mutant) -> (u64, u64) {
    (
        states(machine.clone(), Variant::Repaired),
        mutants::with(Some(mutant), || states(machine, Variant::Repaired)),
    )
}

#[test]
fn local_steps_move_both_ways() {
    assert_eq!(cost(philosophers(), Mutant::LocalsMoveNowhere), (31, 832));
    // If every local step ends a transaction, nothing is ignored, so Figure 1 shows no difference.
    let text =
        std::fs::read_to_string(corpus::root().join("cpc/fig1.pre")).expect("the corpus is well");
    assert!(misses(&text, Variant::Unsound).expect("a small program"));
    let seeded = || misses(&text, Variant::Unsound).expect("a small program");
    assert!(!mutants::with(Some(Mutant::LocalsMoveNowhere), seeded));
}

#[test]
fn table_and_stack_share_their_flags() {
    assert_eq!(cost(philosophers(), Mutant::TableCopies), (31, 3325));
}

#[test]
fn a_record_completes_whichever_thread_it_is_of() {
    assert_eq!(cost(machine("peterson/local-loop.pre", &[]), Mutant::SameThreadOnly), (91, 109));
}

#[test]
fn threads_begin_outside_of_a_transaction() {
    assert_eq!(cost(philosophers(), Mutant::StartsRight), (31, 1024));
}

/// The first thread's two paths to the release lead to the same state except for the phase: one of
/// them has committed. The second thread never moves; its read of `g` makes the write a commit.
const PHASES: &str = "
    steps statement;
    mutex m;
    atomic var g: 0..2 = 0;
    thread t { m.lock(); choose { g = 0; } or { skip; } m.unlock(); }
    thread u { await g == 1; }
";

#[test]
fn states_that_differ_in_a_phase_are_distinguished() {
    let compared = compare(PHASES).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.full, compared.reduced), (6, 7));
}

/// The first thread never ends its transaction by itself. Where it is forced to, the second thread
/// runs and returns to states of the first thread's loop in which only the first thread has run.
/// Everything that the third thread can observe there, it can observe elsewhere.
const MET_BEFORE: &str = "
    steps statement;
    atomic var x: 0..3 = 0;
    atomic var y = 0;
    thread t { y = 1; loop { skip; skip; skip; } }
    thread u { loop { x = 1; x = 2; x = 0; } }
    thread v { await y == 1; assert x != 2; }
";

#[test]
fn a_state_reached_inside_a_transaction_is_not_explored_again_as_its_end() {
    let compared = compare(MET_BEFORE).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.failing, compared.full, compared.reduced), (1, 39, 39), "{compared:?}");
    // Every state is reached, but not every thread is run in each.
    let machine = preempt_lang::load(&Source::new("met.pre", MET_BEFORE), &[]).expect("a model");
    let full = Plan::new().ignore_deadlocks().keep_going().build().expect("the plan is valid");
    let (full, machine) = full.run(machine, &Silent);
    let reduced = cpc::run(machine, Config::default());
    assert_eq!((full.coverage.transitions, reduced.transitions), (96, 60), "measured");
}

#[test]
fn figure_5_is_not_the_lower_bound() {
    assert_eq!(cpc::figure_5(philosophers()).states, 1024);
    assert_eq!(states(philosophers(), Variant::Unsound), 31);
}
