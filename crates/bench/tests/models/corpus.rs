//! One test per run of every subject and order.

use libtest_mimic::Trial;
use preempt_bench::corpus;

pub fn trials() -> Vec<Trial> {
    let subjects = corpus::subjects().expect("the corpus is well-formed");
    let mut trials = Vec::new();
    for subject in subjects {
        let subject = std::sync::Arc::new(subject);
        for run in subject.runs.iter().filter(|run| !run.big) {
            for &order in run.strategy.orders() {
                let (subject, run) = (subject.clone(), run.clone());
                let name = format!("{} {run} {order:?}", subject.name());
                trials.push(Trial::test(name, move || {
                    subject
                        .check(&run, order)
                        .map(|_| ())
                        .map_err(|error| format!("{error:#}").into())
                }));
            }
        }
    }
    assert!(!trials.is_empty(), "the corpus has runs");
    trials
}
