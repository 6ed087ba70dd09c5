//! Searches that are resumed from each of their checkpoints, in every strategy: the outcome is that
//! of a search that was not interrupted.

use std::io::{self, Cursor, Write};
use std::sync::Mutex;
use std::time::Duration;

use crate::toy::{Op, Toy, grid, philosophers, random};
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{
    Cache, Checkpoints, Estimate, Keeper, Limits, Observer, Order, Outcome, Plan, Points, Progress,
    Reduction, Sampling, Saved, Silent, StoreKind, oracle,
};

/// The program of all checkpoints here.
const PROGRAM: u64 = 3;

/// Keeps a checkpoint after every step, or none.
#[derive(Default)]
struct Tape {
    keeps: bool,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl Keeper for Tape {
    fn is_due(&self) -> bool {
        self.keeps
    }

    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("a vector takes all");
        self.kept.lock().expect("mutex poisoned").push(bytes);
    }

    fn poll_interval(&self) -> u64 {
        1
    }
}

fn run(plan: &Plan, toy: &Toy, checkpoints: Checkpoints<'_>) -> Outcome {
    observe(plan, toy, &Silent, checkpoints)
}

fn observe(
    plan: &Plan,
    toy: &Toy,
    observer: &dyn Observer,
    checkpoints: Checkpoints<'_>,
) -> Outcome {
    let search = plan.build().unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"));
    let (outcome, _) = search
        .run_with(toy.clone(), observer, checkpoints)
        .unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"));
    Outcome { elapsed: Duration::ZERO, ..outcome }
}

/// The strategies, some with a limit that ends them.
fn plans() -> Vec<Plan> {
    let of = |order| Plan::new().order(order);
    let icb = |cache| of(Order::Icb { cache });
    let limited = |plan: Plan| plan.limits(Limits { executions: Some(9), ..Limits::default() });
    let states = |plan: Plan| plan.limits(Limits { states: Some(25), ..Limits::default() });
    let cartesian = |reading| Plan::new().reduction(Reduction::Cartesian { reading });
    let bounded = |reduction| of(Order::ContextBounded).bound(1).reduction(reduction);
    let unbounded = |reduction| of(Order::Executions).reduction(reduction);
    let transactions = |reduction| of(Order::DepthFirst).reduction(reduction).ignore_deadlocks();
    let mut plans = vec![
        of(Order::BreadthFirst),
        states(of(Order::BreadthFirst)),
        of(Order::DepthFirst).store(StoreKind::Tree),
        states(of(Order::DepthFirst)),
        of(Order::DepthFirst).limits(Limits { depth: Some(4), ..Limits::default() }),
        of(Order::BreadthFirst).store(StoreKind::Fingerprint),
        of(Order::BreadthFirst).store(StoreKind::Sorted),
        cartesian(Reading::Late),
        cartesian(Reading::Literal).order(Order::DepthFirst),
        transactions(Reduction::Transactions),
        transactions(Reduction::TransactionsCycle),
        icb(Cache::None),
        of(Order::Delay { cache: Cache::None }).bound(2),
        of(Order::Delay { cache: Cache::State }),
        of(Order::Delay { cache: Cache::Hb }),
        icb(Cache::None).bound(1),
        limited(icb(Cache::None)),
        icb(Cache::State),
        icb(Cache::Hb).sampling(Sampling::Every(3)),
        icb(Cache::Hb).bound(1),
        icb(Cache::None).points(Points::Sync),
        of(Order::ContextBounded).bound(1),
        of(Order::DfsHb),
        of(Order::DfsHb).bound(1),
        of(Order::Executions).sampling(Sampling::Decades),
        limited(of(Order::Executions)),
        of(Order::Depth { steps: 4 }),
        of(Order::IterativeDepth { by: 3 }),
        of(Order::Random).runs(9),
        of(Order::Pct { depth: 3 }).runs(9),
        of(Order::Urw).runs(9),
        unbounded(Reduction::Sleep),
        unbounded(Reduction::FlanaganGodefroid),
        unbounded(Reduction::Source),
        unbounded(Reduction::Optimal),
        limited(unbounded(Reduction::Optimal)),
        bounded(Reduction::BudgetedSleep),
        bounded(Reduction::CbPor),
        bounded(Reduction::CbPorStates),
    ];
    plans.extend(plans.clone().into_iter().map(|plan| plan.keep_going()));
    plans
}

/// Programs with choices, locks, waits and failures that have few executions, all finite.
fn programs() -> Vec<(String, Toy)> {
    let add = |cell| Op::Add { cell, value: 1 };
    let choosing = vec![
        vec![Op::Choose { cell: 0, count: 3, absent: 0 }, add(1)],
        vec![Op::Pick { cell: 1, count: 2, bad: 1 }, add(0)],
        vec![Op::Await { cell: 0, value: 2 }, Op::AssertNot { cell: 1, value: 2 }],
    ];
    let mut programs = vec![
        ("two philosophers".to_owned(), philosophers(2)),
        ("alternatives and waits".to_owned(), Toy::new(2, choosing)),
    ];
    let finite = |toy: &Toy| {
        let executions = oracle::executions(toy).map(|bounds| bounds.values().sum::<u128>());
        executions.is_some_and(|executions| (20..=150).contains(&executions))
    };
    let few = (0..).map(|seed| (seed, Toy { bits: 10, ..random(seed) }));
    programs.extend(
        few.filter(|(_, toy)| finite(toy))
            .map(|(seed, toy)| (format!("random program {seed}"), toy))
            .take(3),
    );
    programs
}

/// The number of checkpoints of one search that are resumed.
const RESUMED: usize = 8;

#[test]
fn every_checkpoint_leads_to_the_same_outcome() {
    let (mut searches, mut resumed) = (0, 0);
    for (what, toy) in programs() {
        for plan in plans() {
            let search = plan.build().unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"));
            if search.suits(&toy).is_err() {
                continue;
            }
            let (silent, tape) = (Tape::default(), Tape { keeps: true, ..Tape::default() });
            let through = run(&plan, &toy, Checkpoints::of(PROGRAM, &silent));
            let paused = run(&plan, &toy, Checkpoints::of(PROGRAM, &tape));
            assert_eq!(paused, through, "with pauses, {plan:?} on {what}: {toy:?}");
            let kept = tape.kept.into_inner().expect("mutex poisoned");
            for at in (0..kept.len()).step_by(kept.len().div_ceil(RESUMED).max(1)) {
                let saved = Saved::open(Cursor::new(kept[at].clone()));
                let saved = saved.unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"));
                let rest = run(&plan, &toy, Checkpoints::of(PROGRAM, &silent).resume(saved));
                assert_eq!(rest, through, "checkpoint {at}, {plan:?} on {what}: {toy:?}");
                resumed += 1;
            }
            searches += 1;
        }
    }
    assert!(searches > 250 && resumed > 1_200, "{searches} searches, {resumed} resumed");
}

/// An observer that requests estimates and keeps the last one.
#[derive(Default)]
struct LastEstimate(Mutex<Option<Estimate>>);

impl Observer for LastEstimate {
    fn progress(&self, progress: &Progress) {
        let mut last = self.0.lock().expect("mutex poisoned");
        *last = progress.estimate.or(*last);
    }

    fn wants_estimates(&self) -> bool {
        true
    }
}

/// A search that makes estimates writes weights to its checkpoints, from the first one on. Resumed
/// from a checkpoint without weights, it makes no estimates.
#[test]
fn estimates_are_the_same_after_a_checkpoint() {
    let of = |order| Plan::new().order(order);
    let toy = grid(2, 4);
    for plan in [
        of(Order::Executions),
        of(Order::ContextBounded).bound(2),
        of(Order::Icb { cache: Cache::None }),
    ] {
        let last = |observer: LastEstimate| observer.0.into_inner().expect("mutex poisoned");
        let silent = Tape::default();
        let estimating = LastEstimate::default();
        let through = observe(&plan, &toy, &estimating, Checkpoints::of(PROGRAM, &silent));
        let expected = last(estimating);
        assert!(expected.is_some(), "{plan:?}");
        for wanted in [true, false] {
            let tape = Tape { keeps: true, ..Tape::default() };
            let (estimating, checkpoints) =
                (LastEstimate::default(), Checkpoints::of(PROGRAM, &tape));
            let observer: &dyn Observer = if wanted { &estimating } else { &Silent };
            observe(&plan, &toy, observer, checkpoints);
            let kept = tape.kept.into_inner().expect("mutex poisoned");
            for at in [0, 1, 2, kept.len() / 2, kept.len() / 4 * 3] {
                let saved = Saved::open(Cursor::new(kept[at].clone()));
                let saved = saved.unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"));
                let estimating = LastEstimate::default();
                let checkpoints = Checkpoints::of(PROGRAM, &silent).resume(saved);
                let rest = observe(&plan, &toy, &estimating, checkpoints);
                let what = format!("{plan:?}, checkpoint {at}, with estimates: {wanted}");
                assert_eq!(rest, through, "{what}");
                let estimate = last(estimating);
                assert!(
                    estimate == expected || !wanted && estimate.is_none(),
                    "{what}: {estimate:?}, not {expected:?}"
                );
            }
        }
    }
}
