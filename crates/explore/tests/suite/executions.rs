//! Searches over executions, compared with the brute-force oracle and with each other.

use std::collections::{BTreeMap, HashSet};

use preempt_system::{Choice, FailureKind, System as _, ThreadSet, Verdict};

use crate::toy::{Op, Toy, philosophers, random};
use preempt_explore::cursor::Cursor;
use preempt_explore::model::ModelExecution;
use preempt_explore::oracle::{self, name};
use preempt_explore::{
    Cache, Limit, Limits, Observer, Order, Outcome, Plan, Points, Progress, Reduction, Refusal,
    Requirement, Setting, Silent, Tally,
};

const CACHES: [Cache; 3] = [Cache::None, Cache::State, Cache::Hb];

fn run(plan: Plan, toy: &Toy) -> Outcome {
    plan.build().expect("the plan is valid").run(toy.clone(), &Silent).0
}

fn icb(cache: Cache) -> Plan {
    Plan::new().order(Order::Icb { cache })
}

fn tally(outcome: &Outcome) -> Tally {
    outcome.tally.expect("a search over executions")
}

/// Random programs that always end and do not have too many executions, with the numbers of
/// executions.
fn finite(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Toy, Vec<u64>)> {
    seeds.filter_map(|seed| {
        // Cells that never outgrow their bits: the oracle does not grow.
        let toy = Toy { bits: 10, ..random(seed) };
        let executions = oracle::executions(&toy)?;
        (executions.values().sum::<u128>() <= 2_000).then(|| {
            let most = executions.keys().max().copied().unwrap_or(0);
            (seed, toy, (0..=most).map(|c| executions.get(&c).map_or(0, |&n| n as u64)).collect())
        })
    })
}

#[test]
fn executions_of_each_bound_are_those_of_the_oracle() {
    let mut programs = 0;
    for (seed, toy, exactly) in finite(0..600) {
        programs += 1;
        let outcome = run(icb(Cache::None).keep_going(), &toy);
        let found: Vec<u64> = outcome.bounds.iter().map(|bound| bound.new.executions).collect();
        assert_eq!(found, exactly, "icb on program {seed}");
        assert!(outcome.complete, "icb on program {seed}");
        let all = run(Plan::new().order(Order::Executions).keep_going(), &toy);
        assert_eq!(
            all.executions(),
            Some(exactly.iter().sum()),
            "all executions of program {seed}"
        );
        assert!(all.complete, "all executions of program {seed}");
        for bound in 0..exactly.len() {
            for order in [Order::ContextBounded, Order::Icb { cache: Cache::None }] {
                let outcome = run(Plan::new().order(order).bound(bound as u32).keep_going(), &toy);
                let what = format!("{order:?} on program {seed} within {bound}");
                assert_eq!(outcome.executions(), Some(exactly[..=bound].iter().sum()), "{what}");
                assert_eq!(outcome.complete, bound + 1 == exactly.len(), "{what}");
            }
        }
    }
    assert!(programs > 150, "only {programs} programs");
}

#[test]
fn caches_lose_no_failure_within_any_bound() {
    for (seed, toy, exactly) in finite(600..1_200) {
        let [hb, states] =
            [Cache::Hb, Cache::State].map(|cache| run(icb(cache).keep_going(), &toy));
        for bound in 0..exactly.len() {
            let plan = Plan::new().bound(bound as u32).keep_going();
            let plain = tally(&run(plan.order(Order::ContextBounded), &toy));
            let within =
                |outcome: &Outcome| outcome.bounds[bound.min(outcome.bounds.len() - 1)].all;
            for (what, found) in
                [("icb hb", within(&hb)), ("dfs-hb", tally(&run(plan.order(Order::DfsHb), &toy)))]
            {
                let counts = |tally: &Tally| (tally.traces, tally.ends, tally.states, tally.graphs);
                assert_eq!(
                    counts(&found),
                    counts(&plain),
                    "{what} on program {seed} within {bound}"
                );
            }
            let bounded = run(icb(Cache::Hb).bound(bound as u32).keep_going(), &toy);
            assert_eq!(
                bounded.complete,
                bound + 1 >= hb.bounds.len(),
                "icb hb on {seed} within {bound}"
            );
            assert_eq!(
                bounded.bounds.last().map(|b| b.all),
                Some(within(&hb)),
                "icb hb on {seed} within {bound}"
            );
            let found = within(&states);
            assert_eq!(
                (found.states, found.ends),
                (plain.states, plain.ends),
                "icb state on {seed} within {bound}"
            );
        }
        assert!(hb.complete && states.complete, "program {seed}");
    }
}

#[test]
fn findings_of_icb_have_the_fewest_preemptions() {
    let (mut failing, mut preempting) = (0, 0);
    for seed in 0..400 {
        let toy = Toy { bits: 10, ..random(seed) };
        let least = oracle::least_preemptions(&toy);
        let finite = oracle::executions(&toy).is_some_and(|n| n.values().sum::<u128>() <= 2_000);
        // A program that can run forever has finitely many states, but neither executions nor
        // their graphs.
        for cache in CACHES.into_iter().filter(|&cache| finite || cache == Cache::State) {
            let what = format!("program {seed}, cache {cache:?}");
            let outcome = run(icb(cache).keep_going(), &toy);
            let found: BTreeMap<_, _> =
                outcome.findings.iter().map(|f| (name(&f.failure), f.preemptions)).collect();
            assert_eq!(found, least, "{what}");
            assert!(outcome.complete, "{what}");
            let first = run(icb(cache), &toy);
            assert_eq!(
                first.findings.first().map(|f| f.preemptions),
                least.values().min().copied(),
                "{what}"
            );
            assert_eq!(first.at_finding, !least.is_empty(), "{what}");
        }
        failing += usize::from(!least.is_empty());
        preempting += usize::from(least.values().any(|&least| least > 0));
    }
    assert!(
        failing > 100 && preempting > 20,
        "{failing} programs fail, {preempting} of them need preemptions"
    );
}

#[test]
fn the_bound_is_part_of_the_guarantee() {
    let three = philosophers(3);
    let says = |plan: Plan| run(plan, &three).guarantee();
    assert_eq!(
        says(icb(Cache::Hb)),
        "stopped at the first error after 8 complete executions, the rest not explored; no error \
         needs fewer than 1 preemption"
    );
    assert_eq!(
        says(icb(Cache::Hb).bound(0)),
        "all 6 traces with at most 0 preemptions (6 executions); no error; any error needs at \
         least 1 preemption"
    );
    let within = run(icb(Cache::None).bound(0), &three);
    assert_eq!((within.verdict, within.complete, within.stopped), (Verdict::Ok, false, None));
    let all = run(icb(Cache::None).keep_going(), &three);
    assert_eq!(all.verdict, Verdict::Deadlock);
    assert!(
        all.guarantee().starts_with("complete: the bound excluded nothing; all "),
        "{}",
        all.guarantee()
    );
    assert!(all.guarantee().ends_with("; 1 distinct error"), "{}", all.guarantee());
    let other = says(Plan::new().order(Order::ContextBounded).bound(2).keep_going());
    assert!(
        other.ends_with("; 1 distinct error; any other error needs at least 3 preemptions"),
        "{other}"
    );
    let cut = |order| run(Plan::new().order(order), &three);
    let steps = cut(Order::Depth { steps: 2 });
    assert_eq!(
        (steps.verdict, steps.complete, steps.stopped),
        (Verdict::Incomplete, false, Some(Limit::Depth))
    );
    let longer = cut(Order::Depth { steps: 100 });
    assert_eq!((longer.complete, longer.stopped), (longer.findings.is_empty(), None));
    let limits = Limits { depth: Some(2), ..Limits::default() };
    let deeper = run(Plan::new().order(Order::IterativeDepth { by: 1 }).limits(limits), &three);
    assert_eq!(
        (deeper.verdict, deeper.complete, deeper.stopped),
        (Verdict::Incomplete, false, Some(Limit::Depth))
    );
    assert_eq!(deeper.guarantee(), steps.guarantee());
    let depth = says(Plan::new().order(Order::Depth { steps: 2 }));
    assert_eq!(
        depth,
        "INCOMPLETE: all executions up to 2 steps: 0 complete, 9 cut; no error; any error needs \
         at least 3 steps"
    );
}

/// Twenty interleavings with up to four preemptions, but after one preemption every step was taken
/// from every graph.
#[test]
fn icb_ends_when_all_deferred_steps_are_covered() {
    let toy = independent(2, 3);
    let levels = |cache| run(icb(cache), &toy).bounds.len();
    assert_eq!([levels(Cache::None), levels(Cache::State), levels(Cache::Hb)], [5, 2, 2]);
    assert!(run(icb(Cache::Hb).bound(1), &toy).complete);
    assert!(!run(icb(Cache::None).bound(1), &toy).complete);
}

#[test]
fn a_search_continues_past_its_bound_while_that_is_cheap() {
    let mut levels_past = 0;
    for (seed, toy, _) in finite(0..900) {
        for (cache, jobs) in [(Cache::None, 1), (Cache::Hb, 1), (Cache::Hb, 2)] {
            let all = run(icb(cache).keep_going(), &toy);
            if !all.findings.is_empty() {
                continue;
            }
            for (bound, budget) in [(0, 1), (0, 5), (1, 20), (1, 100), (9, 1)] {
                let taken = |level: usize| all.bounds[level].all.taken();
                let mut last = all.bounds.len().min(bound + 1) - 1;
                while last + 1 < all.bounds.len()
                    && taken(last) < budget
                    && taken(last + 1) <= budget
                {
                    last += 1;
                    levels_past += 1;
                }
                let plan =
                    icb(cache).keep_going().bound(bound as u32).past_bound(budget).jobs(jobs);
                let outcome = run(plan, &toy);
                let what = format!(
                    "program {seed}, {cache:?}, {jobs} jobs, bound {bound}, budget {budget}"
                );
                let executions = |outcome: &Outcome, to| {
                    outcome.bounds[..=to]
                        .iter()
                        .map(|bound| bound.new.executions)
                        .collect::<Vec<_>>()
                };
                assert_eq!(outcome.bounds.len(), last + 1, "{what}");
                assert_eq!(executions(&outcome, last), executions(&all, last), "{what}");
                assert_eq!(outcome.executions(), Some(all.bounds[last].all.executions), "{what}");
                assert_eq!(outcome.complete, last + 1 == all.bounds.len(), "{what}");
                assert_eq!((outcome.verdict, outcome.stopped), (Verdict::Ok, None), "{what}");
            }
        }
    }
    assert!(levels_past > 40, "{levels_past}");
    // A finding past the bound is a finding, and its number of preemptions is right.
    let found = run(icb(Cache::Hb).bound(0).past_bound(1_000), &philosophers(3));
    assert_eq!(
        found.findings[0].preemptions,
        run(icb(Cache::Hb), &philosophers(3)).findings[0].preemptions
    );
    // Limits that are reached within the bound are limits.
    let limits = Limits { executions: Some(2), ..Limits::default() };
    let limited =
        run(icb(Cache::Hb).bound(1).past_bound(1_000).limits(limits), &crate::toy::grid(3, 6));
    assert_eq!((limited.verdict, limited.stopped), (Verdict::Incomplete, Some(Limit::Executions)));
    let plan = Plan::new().order(Order::DfsHb).bound(1).past_bound(9);
    let Err(refused) = plan.build() else { panic!("there are no levels") };
    assert_eq!(refused.to_string(), "`past_bound` needs `Order::Icb` with `bound`");
}

#[test]
fn iterative_deepening_finds_the_fewest_steps() {
    let outcome = run(Plan::new().order(Order::IterativeDepth { by: 1 }), &philosophers(3));
    assert_eq!(outcome.findings[0].schedule.steps().len(), 3);
    assert!(
        outcome.guarantee().ends_with("; no error needs fewer than 3 steps"),
        "{}",
        outcome.guarantee()
    );
}

/// An observer that interrupts at the first poll.
struct Interrupting;

impl Observer for Interrupting {
    fn progress(&self, _: &Progress) {}

    fn interrupted(&self) -> bool {
        true
    }
}

#[test]
fn limits_and_interrupts_end_a_search() {
    let grid = crate::toy::grid(3, 6);
    let search = icb(Cache::Hb).build().expect("the plan is valid");
    let (outcome, _) = search.run(grid.clone(), &Interrupting);
    assert_eq!((outcome.verdict, outcome.stopped), (Verdict::Incomplete, Some(Limit::Interrupt)));
    assert!(
        outcome.guarantee().contains(
            " inside bound 1; 91 executions; covered: all 6 traces with at most 0 preemptions (6 \
             executions)"
        ),
        "{}",
        outcome.guarantee()
    );
    let states =
        run(icb(Cache::State).limits(Limits { states: Some(20), ..Limits::default() }), &grid);
    assert_eq!(states.stopped, Some(Limit::States));
    let memory =
        run(icb(Cache::Hb).limits(Limits { memory: Some(50_000), ..Limits::default() }), &grid);
    assert_eq!(memory.stopped, Some(Limit::Memory));
    let tight = Limits { memory: Some(1_000_000), ..Limits::default() };
    let reduced = Plan {
        order: Order::ContextBounded,
        reduction: Reduction::CbPorStates,
        bound: Some(2),
        ..Plan::new()
    };
    assert_eq!(
        run(reduced.limits(tight), &grid).stopped,
        Some(Limit::Memory),
        "its tables count too"
    );
    for order in [Order::Executions, Order::Icb { cache: Cache::None }, Order::Random] {
        let limits = Limits { depth: Some(3), ..Limits::default() };
        let outcome = run(Plan::new().order(order).limits(limits), &crate::toy::grid(2, 2));
        assert_eq!(
            (outcome.verdict, outcome.stopped),
            (Verdict::Incomplete, Some(Limit::Depth)),
            "{order:?}"
        );
        assert!(
            !outcome.complete && outcome.guarantee().starts_with("INCOMPLETE"),
            "{}",
            outcome.guarantee()
        );
    }
}

#[test]
fn programs_without_steps_are_handled() {
    let still = Toy::new(1, vec![vec![Op::Await { cell: 0, value: 1 }]]);
    let done = Toy::new(1, vec![vec![], vec![]]);
    let failing = Toy { fails_initially: true, ..done.clone() };
    let broken = Toy { invariant: Some((0, 0)), ..Toy::new(2, vec![vec![]]) };
    for order in [
        Order::Icb { cache: Cache::Hb },
        Order::Executions,
        Order::DfsHb,
        Order::Random,
        Order::Urw,
    ] {
        let plan = Plan::new().order(order).runs(1);
        let outcome = run(plan, &still);
        let found: Vec<_> =
            outcome.findings.iter().map(|f| (f.failure.kind, f.preemptions)).collect();
        assert_eq!(found, [(FailureKind::Deadlock, 0)], "{order:?}");
        let outcome = run(plan, &done);
        assert_eq!((outcome.executions(), outcome.verdict), (Some(1), Verdict::Ok), "{order:?}");
        assert_eq!(outcome.complete, !order.samples(), "{order:?}");
        for (toy, kind) in [(&failing, FailureKind::Runtime), (&broken, FailureKind::Invariant)] {
            let found: Vec<_> = run(plan, toy)
                .findings
                .iter()
                .map(|f| (f.failure.kind, f.schedule.steps().len()))
                .collect();
            assert_eq!(found, [(kind, 0)], "{order:?}");
        }
    }
}

#[test]
fn a_model_that_is_too_small_grows() {
    let counter = Toy::new(
        1,
        vec![vec![Op::Add { cell: 0, value: 9 }; 2], vec![Op::Add { cell: 0, value: 9 }]],
    );
    for order in [Order::Icb { cache: Cache::State }, Order::ContextBounded, Order::Random] {
        let plan = Plan { bound: (!order.samples()).then_some(5), ..Plan::new().order(order) };
        let outcome = run(plan, &counter);
        assert!(outcome.restarts > 0 && outcome.verdict == Verdict::Ok, "{order:?}");
    }
}

#[test]
fn invalid_combinations_are_refused() {
    let of = |order| Plan::new().order(order);
    let limits = |limits: Limits, plan: Plan| plan.limits(limits);
    let depth = |depth| Limits { depth: Some(depth), ..Limits::default() };
    let executions = |executions| Limits { executions: Some(executions), ..Limits::default() };
    for (plan, setting, least) in [
        (of(Order::Pct { depth: 0 }), Setting::PctDepth, 1),
        (of(Order::Depth { steps: 0 }), Setting::Depth, 1),
        (limits(depth(0), of(Order::IterativeDepth { by: 1 })), Setting::Depth, 1),
        (of(Order::Random).runs(0), Setting::Runs, 1),
        (limits(executions(0), icb(Cache::Hb)), Setting::Executions, 1),
    ] {
        let refusal = plan.build().err();
        assert_eq!(refusal, Some(Refusal::TooSmall { setting, least }), "{plan:?}");
    }
    let stored = icb(Cache::Hb).store(preempt_explore::StoreKind::Fingerprint);
    let reduced = of(Order::Executions).reduction(Reduction::Sleep);
    for (plan, strategy, with) in [
        (of(Order::DepthFirst).bound(2), "dfs", &[Setting::Bound][..]),
        (of(Order::BreadthFirst).bound(2), "bfs", &[Setting::Bound]),
        (of(Order::Executions).bound(1), "executions", &[Setting::Bound]),
        (of(Order::Pct { depth: 2 }).bound(1), "pct", &[Setting::Bound]),
        (of(Order::DfsHb).bound(1).jobs(2), "dfs-hb", &[Setting::Bound, Setting::Jobs]),
        (of(Order::Urw).jobs(2), "urw", &[Setting::Jobs]),
        (of(Order::Pct { depth: 2 }).jobs(2), "pct", &[Setting::Jobs]),
        (reduced.jobs(2), "sleep", &[Setting::Jobs]),
        (limits(depth(9), icb(Cache::State)).jobs(2), "icb", &[Setting::Depth, Setting::Jobs]),
        (icb(Cache::Hb).points(Points::Sync).jobs(2), "icb", &[Setting::Points, Setting::Jobs]),
        (of(Order::DfsHb).points(Points::Sync).jobs(2), "dfs-hb", {
            &[Setting::Points, Setting::Jobs]
        }),
        (icb(Cache::State).points(Points::Sync), "icb", &[Setting::Points]),
        (stored, "icb", &[Setting::Store]),
        (limits(depth(9), of(Order::Depth { steps: 9 })), "depth", &[Setting::Depth]),
    ] {
        match plan.build().err() {
            Some(Refusal::Conflict { strategy: name, conflict }) => {
                assert_eq!((name, conflict.with), (strategy, with), "{plan:?}");
            }
            other => panic!("{plan:?}: {other:?}"),
        }
    }
    let unbounded = Refusal::NeedsBound { strategy: "cb-dfs", instead: "executions" };
    assert_eq!(of(Order::ContextBounded).build().err(), Some(unbounded));
    let limited = limits(executions(9), of(Order::DepthFirst));
    let requirement = Requirement::Executions;
    let refusal = Refusal::Requires { term: Setting::Executions.into(), requirement };
    assert_eq!(limited.build().err(), Some(refusal));
    // Combinations that differ only in the cache can be built.
    for plan in [
        limits(depth(9), icb(Cache::None)).jobs(2),
        icb(Cache::None).points(Points::Sync).jobs(2),
        icb(Cache::Hb).points(Points::Sync),
    ] {
        assert!(plan.build().is_ok(), "{plan:?}");
    }
}

/// `n` independent threads of `k` steps each.
fn independent(n: usize, k: usize) -> Toy {
    Toy::new(n, (0..n).map(|cell| vec![Op::Set { cell, value: 0 }; k]).collect())
}

/// How often the first of two threads runs to its end before the second starts, in `runs` random
/// executions.
fn first_alone(order: Order, runs: u64) -> u64 {
    // The second thread fails if the first thread's last step comes before its own first step.
    let first = vec![
        Op::Set { cell: 0, value: 1 },
        Op::Set { cell: 0, value: 2 },
        Op::Set { cell: 0, value: 3 },
    ];
    let second = vec![
        Op::AssertNot { cell: 0, value: 3 },
        Op::Set { cell: 1, value: 0 },
        Op::Set { cell: 1, value: 0 },
    ];
    let toy = Toy::new(2, vec![first, second]);
    run(Plan::new().order(order).runs(runs).keep_going(), &toy).coverage.failed
}

#[test]
fn random_walks_are_reproducible_and_report_their_counts() {
    let toy = independent(2, 3);
    for order in [Order::Random, Order::Pct { depth: 3 }, Order::Urw] {
        let plan = Plan::new().order(order).runs(200);
        let once = run(plan, &toy);
        assert_eq!(tally(&once), tally(&run(plan, &toy)), "{order:?}");
        assert_eq!(
            (once.executions(), once.traces(), once.verdict),
            (Some(200), Some(1), Verdict::Ok),
            "{order:?}"
        );
        assert!(!once.complete);
        assert_eq!(
            once.guarantee(),
            "a sample of 1 trace (200 executions); no error in it; nothing is proved"
        );
    }
    let racy = Toy::new(
        1,
        vec![vec![Op::Set { cell: 0, value: 1 }; 4], vec![Op::Set { cell: 0, value: 2 }; 4]],
    );
    let traces = |seed| run(Plan::new().order(Order::Random).runs(20).seed(seed), &racy).traces();
    assert!((1..10).any(|seed| traces(seed) != traces(0)), "other seeds give other traces");
}

#[test]
fn urw_samples_interleavings_uniformly() {
    // The first thread takes all its steps first in 1 of 20 interleavings of 3 + 3 steps. A walk
    // that is uniform at every step would do so in 1 of 8 executions.
    let runs = 8_000;
    let (even, walk) = (first_alone(Order::Urw, runs), first_alone(Order::Random, runs));
    assert!((320..480).contains(&even), "{even} of 8,000, expected 400");
    assert!((900..1100).contains(&walk), "{walk} of 8,000, expected 1,000");
}

#[test]
fn urw_adds_the_steps_of_a_thread_to_those_of_the_thread_that_starts_it() {
    // Seven steps one after the other, of which the first starts the thread that takes the others,
    // and one step that fails if it comes before them: in 1 of 8 interleavings.
    let mut started = vec![Op::Set { cell: 1, value: 0 }; 6];
    started[0] = Op::Start { cell: 0 };
    let fails = vec![Op::AssertNot { cell: 0, value: 0 }];
    let toy = Toy::new(2, vec![vec![Op::Set { cell: 0, value: 1 }], started, fails]);
    let failed = run(Plan::new().order(Order::Urw).runs(8_000).keep_going(), &toy).coverage.failed;
    assert!((900..1100).contains(&failed), "{failed} of 8,000, expected 1,000");
}

#[test]
fn pct_finds_errors_with_the_guaranteed_probability() {
    // A lost update: depth 2, two threads, at most 4 steps of which 3 have a choice.
    let lost = |thread: u64| {
        vec![
            Op::Set { cell: 0, value: thread },
            Op::Set { cell: 1, value: 0 },
            Op::AssertNot { cell: 0, value: 3 - thread },
        ]
    };
    let toy = Toy::new(2, vec![lost(1), lost(2)]);
    let failing = |depth| {
        run(Plan::new().order(Order::Pct { depth }).runs(4_000).keep_going(), &toy).coverage.failed
    };
    assert_eq!(failing(1), 0, "without priority changes, threads run one after the other");
    let promised = 4_000 / (2 * 6);
    assert!(failing(2) >= promised, "{} of 4,000, promised {promised}", failing(2));
}

/// Two threads that have both been demoted: the later change hands over to the other thread, also
/// if the priorities of the change points are the other way round.
#[test]
fn pct_wastes_no_change_of_priorities_where_two_threads_alternate() {
    // Fails iff the first thread is interrupted between its steps, and the second one, which goes
    // to its end at once if it comes first, between its last two.
    let first = vec![Op::Set { cell: 1, value: 1 }, Op::AssertNot { cell: 0, value: 2 }];
    let second = vec![
        Op::JumpIf { cell: 1, value: 0, to: 3 },
        Op::Set { cell: 0, value: 2 },
        Op::Set { cell: 0, value: 0 },
    ];
    let toy = Toy::new(2, vec![first, second]);
    let plan = Plan::new().order(Order::Pct { depth: 3 }).runs(12_000).keep_going();
    // The first thread has the higher priority in 1 of 2. Three steps count: its second one and the
    // last two of the second thread. The changes are at the first and the third in 1 of 3.
    let failed = run(plan, &toy).coverage.failed;
    assert!((1800..2200).contains(&failed), "{failed} of 12,000, expected 2,000");
}

/// Depth-first search within a bound with a plain set of visited states, which a plan refuses.
fn naive(
    cursor: &mut Cursor<ModelExecution<'_, Toy>>,
    bound: u32,
    visited: &mut HashSet<Vec<u64>>,
) -> bool {
    if !visited.insert(cursor.system().words().expect("the states of a model are known").to_vec()) {
        return false;
    }
    let here = cursor.len();
    let mut fails = false;
    let running: ThreadSet =
        cursor.running().into_iter().filter(|&thread| cursor.enabled().contains(thread)).collect();
    let others = running.iter().fold(cursor.enabled(), ThreadSet::without);
    for thread in running.iter().chain(others.iter()) {
        if cursor.preemptions_with(thread) <= bound {
            fails |=
                cursor.step(Choice::of(thread)).expect("the states are large enough").is_some();
            fails |= naive(cursor, bound, visited);
            cursor.rewind(here);
        }
    }
    fails
}

#[test]
fn a_plain_set_of_states_loses_an_error_within_a_bound() {
    let first = vec![Op::Set { cell: 1, value: 1 }, Op::AssertNot { cell: 0, value: 1 }];
    let second = vec![Op::Set { cell: 0, value: 1 }, Op::Set { cell: 0, value: 0 }];
    let toy = Toy::new(2, vec![first, second]);
    let search = |bound| {
        let mut cursor = Cursor::new(&toy).unwrap_or_else(|_| panic!("the initial state fits"));
        naive(&mut cursor, bound, &mut HashSet::new())
    };
    assert!(!search(1), "the error, which needs 1 preemption, is missed");
    assert!(search(2), "with a sufficient bound it is found");
    for cache in CACHES {
        assert_eq!(run(icb(cache).bound(1), &toy).findings.len(), 1, "{cache:?}");
    }
    for order in [Order::ContextBounded, Order::DfsHb] {
        assert_eq!(run(Plan::new().order(order).bound(1), &toy).findings.len(), 1, "{order:?}");
    }
}
