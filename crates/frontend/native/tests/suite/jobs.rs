//! Several workers, each with its own fork server, have the results of one.

use preempt_explore::{Cache, Order, Outcome, Plan};
use preempt_native::narrate::narrate;
use preempt_report::recorder::Numbering;

use crate::compile::program;

const PROGRAMS: [&str; 7] =
    ["abba", "handover", "lost_update", "main_exits_early", "nested", "philosophers", "yields"];

fn plans() -> Vec<(&'static str, Plan)> {
    let bounded = |order| Plan { order, bound: Some(2), keep_going: true, ..Plan::new() };
    vec![
        ("icb with a cache", bounded(Order::Icb { cache: Cache::Hb })),
        ("icb", Plan { bound: Some(1), ..bounded(Order::Icb { cache: Cache::None }) }),
        (
            "icb up to the first error",
            Plan { keep_going: false, ..bounded(Order::Icb { cache: Cache::Hb }) },
        ),
        ("dfs-hb", Plan { order: Order::DfsHb, keep_going: true, ..Plan::new() }),
        ("cb-dfs", Plan { bound: Some(1), ..bounded(Order::ContextBounded) }),
        ("random", Plan { order: Order::Random, runs: 40, seed: 3, ..Plan::new() }),
    ]
}

/// Everything that a report shows and that does not depend on the machine.
fn report(name: &str, strategy: &str, plan: Plan, jobs: usize) -> String {
    let search = Plan { jobs, ..plan }.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(program(name), &());
    assert_eq!(native.refusal(), None, "{name} by {strategy} with {jobs} workers");
    let Outcome { verdict, complete, findings, tally, bounds, .. } = outcome;
    let traces = findings.iter().map(|finding| {
        let narrated = narrate(&native, &finding.schedule, Numbering::Slots, |_| None);
        narrated.expect("a finding can be described").replayed.trace.steps
    });
    let traces: Vec<_> = traces.collect();
    let assumptions = native.assumptions();
    format!("{verdict:?} {complete} {tally:?} {bounds:?} {findings:?} {traces:?} {assumptions:?}")
}

#[test]
fn any_number_of_workers_has_the_same_counts_and_findings() {
    for name in PROGRAMS {
        for (nth, (strategy, plan)) in plans().into_iter().enumerate() {
            let one = report(name, strategy, plan, 1);
            // How workers share a search is tested for every strategy in `preempt-explore`. Here
            // they share names and slots, for which one strategy with more workers is enough.
            let jobs: &[usize] = if nth == 0 { &[2, 3] } else { &[2] };
            for &jobs in jobs {
                let several = report(name, strategy, plan, jobs);
                assert_eq!(several, one, "{name} by {strategy} with {jobs} workers");
            }
        }
    }
}

#[test]
fn several_workers_take_every_execution_once() {
    let plan = Plan { order: Order::Executions, ..Plan::new() };
    let [one, several] = [1, 2].map(|jobs| report("handover", "executions", plan, jobs));
    assert_eq!(one, several);
}
