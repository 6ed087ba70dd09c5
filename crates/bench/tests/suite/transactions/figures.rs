//! The paper's figures with the counts of an independent prototype, and random programs.

use preempt_bench::agree::transactions;
use preempt_bench::corpus;
use preempt_bench::papers::cpc::figures;
use preempt_system::Model;

#[test]
fn every_search_of_every_figure_visits_the_expected_number_of_states() {
    let figures = figures().expect("the data can be read");
    assert_eq!(figures.len(), 5);
    for figure in &figures {
        assert_eq!(
            figure.show().expect("the corpus is well"),
            figure.expected(),
            "{}",
            figure.name
        );
    }
}

#[test]
fn transactions_agree_with_the_full_search_on_random_programs() {
    let [locked, records, any] = transactions::GENERATORS.map(|generator| {
        transactions::many(&[generator], 0..1_000, |_, _| {})
            .unwrap_or_else(|error| panic!("{error:#}"))
    });
    for (all, failing) in [(locked, 300), (records, 200), (any, 40)] {
        assert!(all.programs > 950, "only {} programs were small enough", all.programs);
        assert!(all.failing > failing, "only {} programs fail", all.failing);
        assert!(all.reduced * 5 < all.full * 4, "there is something to reduce: {all:?}");
        assert!(all.breaches > 30, "assumptions that prove wrong during a search: {all:?}");
    }
    assert!(locked.missed > 0, "the random programs show the ignoring problem: {locked:?}");
}

#[test]
fn transactions_agree_with_the_full_search_on_the_corpus() {
    let (mut compared, mut failing) = (0, 0);
    for subject in corpus::subjects().expect("the corpus can be read") {
        for run in subject.runs.iter().filter(|run| !run.big) {
            let machine = subject.machine(run).expect("a model");
            if machine.has_invariants() {
                continue;
            }
            let seen = transactions::compare_machine(machine)
                .unwrap_or_else(|error| panic!("{} {run}: {error:#}", subject.name()));
            compared += seen.programs;
            failing += seen.failing;
        }
    }
    assert!(
        compared > 90 && failing > 15,
        "{compared} runs compared, {failing} of them with failures"
    );
}
