//! Scheduling points at synchronisation only, and data races: the programs R1 to R7 of icb's
//! section 3.1, and random ones.

use std::collections::BTreeSet;

use preempt_bench::corpus;
use preempt_bench::random::{Shape, program};
use preempt_explore::{Cache, Limits, Order, Outcome, Plan, Points, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::FailureKind;

fn explore(machine: &Machine, points: Points, order: Order) -> Outcome {
    let limits = Limits { states: Some(3_000), ..Limits::default() };
    let plan = Plan::new().order(order).points(points).limits(limits).keep_going();
    plan.build().expect("the plan is valid").run(machine.clone(), &Silent).0
}

/// The fewest preemptions with which each kind of failure occurs.
fn failures(outcome: &Outcome) -> BTreeSet<(FailureKind, String, u32)> {
    outcome
        .findings
        .iter()
        .map(|f| (f.failure.kind, f.failure.message.clone(), f.preemptions))
        .collect()
}

#[test]
fn the_papers_programs() {
    /// Program, executions with exactly c preemptions at all points and at synchronisation only,
    /// fewest preemptions of a race.
    type Row = (&'static str, &'static [u64], &'static [u64], Option<u32>);
    let rows: [Row; 7] = [
        ("r1", &[2], &[2], None),
        ("r2", &[2, 3, 4, 1], &[2, 1], None),
        ("r3", &[2, 2, 2], &[2, 2, 2], Some(0)),
        ("r4", &[2, 2, 5], &[2], Some(0)),
        ("r5", &[2, 2, 1, 1], &[2, 1], Some(1)),
        ("r6", &[2, 2, 2], &[2, 2, 2], None),
        ("r7", &[2, 4, 8, 4, 2], &[2, 2, 2], Some(0)),
    ];
    for (name, all, sync, race) in rows {
        let machine =
            corpus::machine(&corpus::root().join("races").join(format!("{name}.pre")), &[])
                .expect("a model");
        let order = Order::Icb { cache: Cache::None };
        let per_bound =
            |outcome: &Outcome| outcome.bounds.iter().map(|b| b.new.executions).collect::<Vec<_>>();
        assert_eq!(per_bound(&explore(&machine, Points::All, order)), all, "{name}, all points");
        let coarse = explore(&machine, Points::Sync, order);
        assert_eq!(per_bound(&coarse), sync, "{name}, points at synchronisation");
        let races = coarse.findings.iter().filter(|f| f.failure.kind == FailureKind::Race);
        assert_eq!(
            races.map(|f| f.preemptions).min(),
            race,
            "{name}, fewest preemptions of a race"
        );
    }
}

#[test]
fn coarse_points_lose_nothing_without_a_race_or_where_it_is_promoted() {
    let order = Order::Icb { cache: Cache::Hb };
    let (mut compared, mut racy) = (0, 0);
    for seed in 0..1_500 {
        let text = program(seed, Shape { threads: (2, 3), statements: 3 });
        let machine = preempt_lang::load(&Source::new("random.pre", text.as_str()), &[])
            .expect("random programs are programs");
        let coarse = explore(&machine, Points::Sync, order);
        let fine = explore(&machine, Points::All, order);
        if coarse.stopped.is_some() || fine.stopped.is_some() {
            continue;
        }
        if coarse.findings.iter().any(|f| f.failure.kind == FailureKind::Race) {
            racy += 1;
            let limits = Limits { states: Some(3_000), ..Limits::default() };
            let plan =
                Plan::new().order(order).points(Points::Sync).limits(limits).keep_going().promote();
            let (mut all, _) = plan.build().expect("the plan is valid").run(machine, &Silent);
            all.findings.retain(|finding| finding.failure.kind != FailureKind::Race);
            if all.stopped.is_none() {
                assert_eq!(failures(&all), failures(&fine), "with what races promoted:\n{text}");
            }
            continue;
        }
        compared += 1;
        assert_eq!(failures(&coarse), failures(&fine), "{text}");
        let ends = |outcome: &Outcome| outcome.tally.as_ref().and_then(|tally| tally.ends);
        assert_eq!(ends(&coarse), ends(&fine), "distinct final states of\n{text}");
    }
    assert!(compared > 150 && racy > 150, "{compared} without and {racy} with a race are too few");
}

#[test]
fn a_race_names_both_accesses_and_may_be_promoted() {
    let text = "var d = 0; atomic var x = 0;
thread t1 {
    d = 1;
    x = 1;
}
thread t2 {
    var seen = d;
    assert seen == 0 || x == 1;
}";
    let machine = preempt_lang::load(&Source::new("race.pre", text), &[]).expect("a program");
    let plan = Plan::new().order(Order::Icb { cache: Cache::Hb }).points(Points::Sync);
    let run = |plan: Plan| plan.build().expect("the plan is valid").run(machine.clone(), &Silent).0;
    let race = "one thread writes `d` (race.pre:3), another reads it (race.pre:7), and no synchronisation orders them";
    let stopped = run(plan);
    assert_eq!(
        stopped.findings.iter().map(|f| f.failure.message.as_str()).collect::<Vec<_>>(),
        [race]
    );
    // After the race there is an error that only a switch between the accesses shows.
    let promoted = run(plan.promote());
    let kinds: Vec<_> = promoted.findings.iter().map(|finding| finding.failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Race, FailureKind::Assertion]);
    assert_eq!(promoted.findings[0].failure.message, race);
    assert_eq!(promoted.promoted, ["d"]);
    assert!(
        promoted.guarantee().ends_with("accesses to d race, and threads were switched there too")
    );
    assert!(Plan::new().promote().build().is_err(), "without such points there are no races");
}
