//! The driver: limits, interrupts, restarts, refusals and coverage statements.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::toy::{Op, Toy, grid, philosophers};
use preempt_explore::cursor::Cursor;
use preempt_explore::portfolio::{FIRST, Portfolio};
use preempt_explore::replay::end;
use preempt_explore::{
    Cache, Limit, Limits, Observer, Order, Outcome, Plan, Progress, Search, Silent, StoreKind,
};
use preempt_system::{Model, Verdict};

const ORDERS: [Order; 2] = [Order::BreadthFirst, Order::DepthFirst];

fn run(plan: Plan, toy: &Toy) -> Outcome {
    plan.build().expect("the plan is valid").run(toy.clone(), &Silent).0
}

#[test]
fn every_limit_ends_incomplete_and_says_which() {
    let toy = grid(6, 6);
    let limits = [
        (Limit::States, Limits { states: Some(1000), ..Limits::default() }),
        (Limit::Depth, Limits { depth: Some(9), ..Limits::default() }),
        (Limit::Memory, Limits { memory: Some(100_000), ..Limits::default() }),
        (Limit::Time, Limits { time: Some(Duration::from_nanos(1)), ..Limits::default() }),
    ];
    for order in ORDERS {
        for jobs in [1, 3] {
            for (limit, limits) in limits {
                let outcome = run(Plan::new().order(order).jobs(jobs).limits(limits), &toy);
                assert_eq!(outcome.stopped, Some(limit), "{order:?} {jobs}");
                assert_eq!(
                    (outcome.verdict, outcome.complete),
                    (Verdict::Incomplete, false),
                    "{order:?} {limit:?}"
                );
                assert!(outcome.coverage.states < 7u64.pow(6), "{order:?} {limit:?}");
                assert!(
                    outcome.guarantee().starts_with("INCOMPLETE: stopped "),
                    "{}",
                    outcome.guarantee()
                );
            }
        }
    }
}

#[test]
fn the_time_of_an_earlier_search_counts() {
    let before = Duration::from_secs(5);
    let run = |time, toy| {
        let plan = Plan::new().limits(Limits { time, ..Limits::default() });
        plan.build().expect("the plan is valid").after(before).run(toy, &Silent).0
    };
    let all = run(None, grid(3, 3));
    assert!(all.complete && all.elapsed >= before, "{:?}", all.elapsed);
    assert_eq!(run(Some(before), grid(6, 6)).stopped, Some(Limit::Time));
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let toy = grid(3, 3);
    let limits = Limits {
        states: Some(64),
        executions: None,
        depth: Some(10),
        memory: Some(1 << 30),
        resident: Some(1 << 40),
        time: Some(Duration::from_secs(3600)),
    };
    for order in ORDERS {
        let outcome = run(Plan::new().order(order).limits(limits), &toy);
        assert_eq!((outcome.verdict, outcome.complete, outcome.stopped), (Verdict::Ok, true, None));
        assert_eq!(outcome.coverage, run(Plan::new().order(order), &toy).coverage);
    }
}

#[test]
fn the_state_limit_is_exceeded_only_slightly() {
    for order in ORDERS {
        let limits = Limits { states: Some(1000), ..Limits::default() };
        let states = run(Plan::new().order(order).limits(limits), &grid(6, 6)).coverage.states;
        assert!(states > 1000 && states < 1100, "{states}");
    }
}

#[test]
fn breadth_first_covers_a_depth_before_it_stops() {
    // Within 4 steps of the origin of a grid of 3 dimensions: (4 + 3 choose 3) states.
    let toy = grid(3, 5);
    let outcome = run(Plan::new().limits(Limits { depth: Some(4), ..Limits::default() }), &toy);
    assert_eq!(outcome.coverage.states, 35);
    assert_eq!((outcome.coverage.depth, outcome.coverage.settled), (4, Some(3)));
    assert_eq!(
        outcome.guarantee(),
        "INCOMPLETE: stopped at the depth limit; 35 states, all within 3 steps expanded; no \
         error"
    );
}

#[test]
fn a_failure_is_found_within_the_depth_and_not_beyond() {
    let toy = philosophers(4);
    for order in ORDERS {
        let limit = |depth| Limits { depth: Some(depth), ..Limits::default() };
        let short = run(Plan::new().order(order).limits(limit(4)), &toy);
        assert_eq!(
            (short.verdict, short.stopped),
            (Verdict::Incomplete, Some(Limit::Depth)),
            "{order:?}"
        );
        let long = run(Plan::new().order(order).limits(limit(5)), &toy);
        assert_eq!((long.verdict, long.stopped), (Verdict::Deadlock, None), "{order:?}");
    }
}

/// Interrupts after `max_reports` reports, and checks that the numbers do not decrease.
struct InterruptAfter {
    reports: AtomicU64,
    states: AtomicU64,
    max_reports: u64,
}

impl Observer for InterruptAfter {
    fn progress(&self, progress: &Progress) {
        self.reports.fetch_add(1, Relaxed);
        let before = self.states.swap(progress.states, Relaxed);
        assert!(before <= progress.states && progress.transitions > 0 && progress.store_bytes > 0);
    }

    fn interrupted(&self) -> bool {
        self.reports.load(Relaxed) >= self.max_reports
    }
}

#[test]
fn an_observer_sees_progress_and_can_interrupt() {
    for order in ORDERS {
        let observer = |max_reports| InterruptAfter {
            reports: AtomicU64::new(0),
            states: AtomicU64::new(0),
            max_reports,
        };
        let search = Plan::new().order(order).build().expect("the plan is valid");
        let patient = observer(u64::MAX);
        assert!(search.run(grid(6, 6), &patient).0.complete);
        let reports = patient.reports.load(Relaxed);
        assert!(reports >= 10, "only {reports} reports for 117,649 states");
        let (outcome, _) = search.run(grid(6, 6), &observer(3));
        assert_eq!(
            (outcome.stopped, outcome.verdict),
            (Some(Limit::Interrupt), Verdict::Incomplete)
        );
        assert!(outcome.coverage.states < 7u64.pow(6));
    }
}

#[test]
fn a_state_that_is_too_small_grows_and_the_search_restarts() {
    // The cell reaches 40, so its 2 bits grow to 3, 4, 5 and 6.
    let threads = vec![vec![Op::Add { cell: 0, value: 2 }; 10]; 2];
    let small = Toy { bits: 2, ..Toy::new(1, threads) };
    let large = Toy { bits: 6, ..small.clone() };
    for order in ORDERS {
        for jobs in [1, 4] {
            let plan = Plan::new().order(order).jobs(jobs);
            let (grown, model) =
                plan.build().expect("the plan is valid").run(small.clone(), &Silent);
            let straight = run(plan, &large);
            assert_eq!(model.bits, 6);
            assert!((1..=4).contains(&grown.restarts), "{}", grown.restarts);
            assert_eq!(straight.restarts, 0);
            assert_eq!(grown.coverage.states, 121);
            assert_eq!(grown.coverage.transitions, straight.coverage.transitions);
            assert_eq!(grown.verdict, Verdict::Ok);
        }
    }
}

#[test]
fn the_schedule_of_a_finding_belongs_to_the_grown_model() {
    let threads =
        vec![vec![Op::Add { cell: 0, value: 9 }], vec![Op::AssertNot { cell: 0, value: 9 }]];
    let small = Toy { bits: 2, ..Toy::new(1, threads) };
    for order in ORDERS {
        let (outcome, model) = Plan::new()
            .order(order)
            .build()
            .expect("the plan is valid")
            .run(small.clone(), &Silent);
        let schedule = &outcome.findings[0].schedule;
        assert!(model.shape().words == 1 && model.bits == 4);
        let cursor = Cursor::new(&model).expect("the model has grown");
        let ended = end(cursor, schedule).expect("a schedule of this program");
        assert_eq!(ended.failures, [outcome.findings[0].failure.clone()]);
    }
}

#[test]
fn invalid_plans_are_refused_with_advice() {
    let refusal = |plan: Plan| plan.build().expect_err("a refusal").to_string();
    let zero = Limits { states: Some(0), ..Limits::default() };
    let never = Limits { time: Some(Duration::ZERO), ..Limits::default() };
    let tight = Limits { memory: Some(4096), ..Limits::default() };
    for (plan, advice) in [
        (Plan::new().jobs(0), "`jobs` must be at least 1"),
        (Plan::new().jobs(1_000_000), "`jobs` must be at most 1024"),
        (Plan::new().store(StoreKind::Bitstate { bytes: 1023 }), "must be at least 1024"),
        (Plan::new().store(StoreKind::Bitstate { bytes: 4096 }).limits(tight), "raise the limit"),
        (Plan::new().limits(zero), "`limits.states` must be at least 1"),
        (Plan::new().limits(never), "`limits.time` must be greater than 0"),
    ] {
        assert!(refusal(plan).contains(advice), "{plan:?}: {}", refusal(plan));
    }
    assert!(Plan::new().store(StoreKind::Bitstate { bytes: 1024 }).build().is_ok());
}

#[test]
fn guarantees_say_what_was_covered() {
    let outcome = run(Plan::new(), &grid(3, 12).words(2));
    assert_eq!(outcome.guarantee(), "complete: all 2,197 states; no error");

    let outcome = run(Plan::new().store(StoreKind::Fingerprint), &grid(3, 12).words(2));
    assert_eq!((outcome.verdict, outcome.complete), (Verdict::Ok, true));
    assert_eq!(
        outcome.guarantee(),
        "complete: all 2,197 states; no error; unless fingerprints collided: 1.3e-13 missed \
         states are to be expected among 2,197"
    );

    let outcome = run(Plan::new().store(StoreKind::Bitstate { bytes: 1 << 20 }), &grid(3, 12));
    assert_eq!(
        (outcome.verdict, outcome.complete, outcome.stopped),
        (Verdict::Incomplete, false, None)
    );
    let guarantee = outcome.guarantee();
    assert!(guarantee.starts_with(
        "INCOMPLETE: 2,197 states, none left to expand, but some may have been missed"
    ));
    assert!(
        guarantee
            .ends_with("bitstate: at the end a new state was overlooked with probability 4.8e-10"),
        "{guarantee}"
    );

    let outcome = run(Plan::new(), &philosophers(3));
    assert!(
        outcome.guarantee().starts_with("stopped at the first error: "),
        "{}",
        outcome.guarantee()
    );
    assert!(
        outcome.guarantee().ends_with("no error needs fewer than 3 steps"),
        "{}",
        outcome.guarantee()
    );

    let outcome = run(Plan::new().keep_going(), &philosophers(3));
    assert!(outcome.guarantee().ends_with("states; 1 distinct error"), "{}", outcome.guarantee());
}

#[test]
fn a_full_bitstate_misses_states_and_says_so() {
    let outcome = run(Plan::new().store(StoreKind::Bitstate { bytes: 1024 }), &grid(5, 5));
    assert!(outcome.coverage.states < 7776);
    assert_eq!((outcome.complete, outcome.verdict), (false, Verdict::Incomplete));
    let preempt_explore::Omission::Bits { probability } = outcome.omission else {
        panic!("a bitstate store omits states")
    };
    assert!(probability > 0.1, "{probability}");
}

#[test]
fn simple_errors_come_first_and_then_everything() {
    let search = |plan: Plan, model: &Toy| {
        let portfolio = Portfolio::new(plan.scout(), plan).expect("the plan is allowed");
        let run = |search: &Search, model: Toy, observer: &dyn Observer| {
            Ok::<_, ()>(search.run(model, observer))
        };
        portfolio.run(model.clone(), &Silent, run).expect("searches do not fail")
    };
    // The main search finds an error, and a scout one with the fewest preemptions.
    let simple = search(Plan::new(), &philosophers(3));
    let icb = Plan::new().order(Order::Icb { cache: Cache::State });
    let fewest = run(icb, &philosophers(3)).findings[0].preemptions;
    assert_eq!(simple.outcome.findings[0].preemptions, fewest);
    assert!(simple.outcome.strategy.is_of_executions() && simple.scouted.is_none());
    // A small model without errors is searched once.
    let small = search(Plan::new(), &grid(3, 12));
    assert!(small.outcome.complete && small.outcome.strategy.is_full_search_of_states());
    assert!(small.scouted.is_none() && small.outcome.coverage.states < FIRST);
    // Scouts run beside the search of a larger one, each within its share of the states.
    let large = search(Plan::new(), &grid(6, 6));
    assert!(large.outcome.complete && large.outcome.coverage.states == 7u64.pow(6));
    let scouted = large.scouted.expect("the model has more states than the first scout needs");
    assert_eq!(scouted.stopped, Some(Limit::States));
    assert!(scouted.coverage.states < large.outcome.coverage.states / 40, "{scouted:?}");
    assert!(large.outcome.elapsed >= scouted.elapsed, "the times count together");
    // A limit of states ends the main search, and a scout covers more.
    let limits = Limits { states: Some(900), ..Limits::default() };
    let limited = search(Plan::new().limits(limits), &grid(3, 12));
    assert_eq!(limited.outcome.stopped, Some(Limit::States));
    assert!(limited.scouted.is_some());
    // A bitstate search may have missed an error, so a scout covers simple ones exactly.
    let bitstate = search(Plan::new().store(StoreKind::Bitstate { bytes: 1024 }), &grid(5, 5));
    assert_eq!((bitstate.outcome.stopped, bitstate.outcome.complete), (None, false));
    assert!(bitstate.scouted.is_some());
    // If the counts of one search are requested, there is only one.
    let depth = Limits { depth: Some(9), ..Limits::default() };
    for plan in [Plan::new().keep_going(), Plan::new().limits(depth), icb] {
        assert_eq!(plan.scout(), None, "{plan:?}");
    }
}

/// The error is 40 steps away, after millions of states, and needs no preemption.
#[test]
fn a_scout_ends_the_search_of_a_large_model_with_a_simple_error() {
    struct MostStates(AtomicU64);
    impl Observer for MostStates {
        fn progress(&self, progress: &Progress) {
            self.0.fetch_max(progress.states, Relaxed);
        }
    }
    let mut toy = grid(5, 12);
    let mut long = vec![Op::Set { cell: 0, value: 0 }; 40];
    long.push(Op::AssertNot { cell: 0, value: 0 });
    toy.threads.push(long);
    for jobs in [1, 2] {
        let plan = Plan::new().jobs(jobs);
        let portfolio = Portfolio::new(plan.scout(), plan).expect("the plan is allowed");
        let most = MostStates(AtomicU64::new(0));
        let run = |search: &Search, model: Toy, observer: &dyn Observer| {
            Ok::<_, ()>(search.run(model, observer))
        };
        let result = portfolio.run(toy.clone(), &most, run).expect("searches do not fail");
        assert_eq!(result.outcome.verdict, Verdict::Violation);
        assert_eq!(result.outcome.findings[0].preemptions, 0);
        assert!(result.search.strategy().is_of_executions());
        let most = most.0.load(Relaxed);
        assert!((FIRST..4 * FIRST).contains(&most), "the main search went on to {most} states");
    }
}
