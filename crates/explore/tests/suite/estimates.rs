//! The errors of estimates on trees of known size. The errors that `estimate.rs` states are checked
//! here.

use std::io::{self, Write};
use std::sync::Mutex;

use crate::toy::{Op, Toy};
use preempt_explore::{
    Cache, Checkpoints, Estimate, Keeper, Limits, Observer, Order, Outcome, Plan, Progress,
};

/// Records all progress reports.
#[derive(Default)]
struct Reports(Mutex<Vec<Progress>>);

impl Observer for Reports {
    fn progress(&self, progress: &Progress) {
        self.0.lock().expect("mutex poisoned").push(*progress);
    }

    fn wants_estimates(&self) -> bool {
        true
    }
}

/// The progress reports of a search, and its number of executions.
fn watch(plan: Plan, toy: Toy) -> (Vec<Progress>, u64) {
    let notes = Reports::default();
    let search = plan.build().expect("the plan is valid");
    let (outcome, _) = search.run(toy, &notes);
    (
        notes.0.into_inner().expect("mutex poisoned"),
        outcome.tally.expect("a search over executions").taken(),
    )
}

/// Lets a search report after every step, and keeps no checkpoint.
struct EveryStep;

impl Keeper for EveryStep {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, _: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        unreachable!("no checkpoint is due")
    }

    fn poll_interval(&self) -> u64 {
        1
    }
}

fn watch_every_step(plan: Plan, toy: Toy) -> (Vec<Progress>, Outcome) {
    let notes = Reports::default();
    let search = plan.build().expect("the plan is valid");
    let (outcome, _) = search
        .run_with(toy, &notes, Checkpoints::of(1, &EveryStep))
        .expect("there is no checkpoint");
    (notes.0.into_inner().expect("mutex poisoned"), outcome)
}

/// Threads of these lengths, all of whose steps depend on each other.
fn threads(lengths: &[usize]) -> Toy {
    Toy::new(1, lengths.iter().map(|&steps| vec![Op::Set { cell: 0, value: 0 }; steps]).collect())
}

/// One thread that chooses among `k` values, `d` times.
fn choices(k: u64, d: usize) -> Toy {
    Toy::new(1, vec![vec![Op::Choose { cell: 0, count: k, absent: 0 }; d]])
}

fn all() -> Plan {
    Plan::new().order(Order::Executions)
}

fn within(bound: u32) -> Plan {
    Plan::new().order(Order::ContextBounded).bound(bound)
}

/// The estimates, each with the part of the tree that was explored by then.
fn estimates(notes: &[Progress], all: u64) -> Vec<(f64, Estimate)> {
    notes
        .iter()
        .filter_map(|note| Some((note.executions as f64 / all as f64, note.estimate?)))
        .collect()
}

/// The factor by which the estimate of the whole is too large or too small.
fn error(estimate: Estimate, all: u64) -> f64 {
    let ratio = (estimate.done + estimate.remaining) as f64 / all as f64;
    ratio.max(1.0 / ratio)
}

#[test]
fn errors_are_as_small_as_stated() {
    // The factors that hold once a hundredth and once a tenth of the tree is explored.
    let trees: [(&str, Plan, Toy, u64, f64, f64); 8] = [
        ("3 choices, 10 times", all(), choices(3, 10), 59_049, 1.001, 1.001),
        ("9 and 9 steps", all(), threads(&[9, 9]), 48_620, 3.0, 1.25),
        ("5, 5 and 5 steps", all(), threads(&[5, 5, 5]), 756_756, 3.0, 1.25),
        ("3, 3, 3 and 3 steps", all(), threads(&[3, 3, 3, 3]), 369_600, 3.0, 1.25),
        ("5 and 20 steps", all(), threads(&[5, 20]), 53_130, 15.0, 3.0),
        ("20 and 5 steps", all(), threads(&[20, 5]), 53_130, 150.0, 60.0),
        ("20 and 20 steps within 3", within(3), threads(&[20, 20]), 7_260, 10.0, 2.0),
        ("8, 8 and 8 steps within 3", within(3), threads(&[8, 8, 8]), 21_132, 10.0, 2.0),
    ];
    for (name, plan, toy, size, early, late) in trees {
        let (notes, executions) = watch(plan, toy);
        assert_eq!(executions, size, "{name}");
        let seen = estimates(&notes, size);
        for (least, factor) in [(0.01, early), (0.1, late)] {
            let worst = seen
                .iter()
                .filter(|(part, _)| *part >= least)
                .map(|&(_, estimate)| error(estimate, size));
            let worst = worst.fold(1.0, f64::max);
            println!("{name}: from {least} on, at most a factor of {worst:.3}");
            assert!(
                worst <= factor,
                "{name}: from {least} on a factor of {worst:.3}, not {factor}"
            );
        }
        assert!(
            seen.iter().any(|(part, _)| (0.01..0.2).contains(part)),
            "{name} is long enough to be looked at early"
        );
    }
}

#[test]
fn the_spread_contains_the_remaining_executions() {
    let trees = [
        ("3 choices", all(), choices(3, 10)),
        ("9 and 9", all(), threads(&[9, 9])),
        ("3, 3, 3 and 3", all(), threads(&[3, 3, 3, 3])),
        ("5 and 20", all(), threads(&[5, 20])),
        ("20 and 20 within 3", within(3), threads(&[20, 20])),
        ("8, 8 and 8 within 3", within(3), threads(&[8, 8, 8])),
    ];
    for (name, plan, toy) in trees {
        let (notes, all) = watch(plan, toy);
        let (mut inside, mut looks) = (0, 0);
        for (part, estimate) in
            estimates(&notes, all).into_iter().filter(|(part, _)| (0.03..0.97).contains(part))
        {
            let left = all - (part * all as f64).round() as u64;
            looks += 1;
            inside += u32::from((estimate.least..=estimate.most).contains(&left));
            assert!(
                (estimate.least..=estimate.most).contains(&estimate.remaining),
                "{name}: {estimate:?}"
            );
        }
        println!("{name}: {inside} of {looks}");
        assert!(inside * 10 >= looks * 9, "{name}: only {inside} of {looks}");
    }
}

#[test]
fn random_executions_are_counted_down_exactly() {
    let (notes, all) = watch(Plan::new().order(Order::Random).runs(3_000), threads(&[5, 5]));
    assert_eq!(all, 3_000);
    assert!(notes.len() > 10);
    for note in notes {
        let estimate = note.estimate.expect("the number is known");
        assert_eq!(
            (estimate.remaining, estimate.least, estimate.most),
            (all - note.executions, all - note.executions, all - note.executions)
        );
    }
}

#[test]
fn levels_of_icb_are_estimated_one_by_one() {
    let (notes, _) =
        watch(Plan::new().order(Order::Icb { cache: Cache::None }).bound(4), threads(&[12, 12]));
    let outcome = Plan::new()
        .order(Order::Icb { cache: Cache::None })
        .bound(4)
        .build()
        .expect("a plan")
        .run(threads(&[12, 12]), &())
        .0;
    let mut looked = 0;
    for note in &notes {
        let (Some(bound), Some(estimate)) = (note.bound, note.estimate) else { continue };
        let of = |bound: u32| outcome.bounds[bound as usize].new.executions;
        let factor = error(estimate, of(bound));
        println!("bound {bound}: {estimate:?} of {}, factor {factor:.2}", of(bound));
        // The first items are those of the longest prefixes.
        if estimate.done * 4 >= of(bound) {
            looked += 1;
            assert!(factor <= 2.0, "bound {bound}: {estimate:?} of {}", of(bound));
        }
        assert_eq!(estimate.next.is_some(), bound < 4, "the last bound has no next");
        if let Some(next) = estimate.next.filter(|_| estimate.done * 4 >= of(bound)) {
            let factor =
                (next as f64 / of(bound + 1) as f64).max(of(bound + 1) as f64 / next as f64);
            assert!(factor <= 4.0, "bound {}: {next} of {}", bound + 1, of(bound + 1));
        }
    }
    assert!(looked >= 5, "{looked} estimates");
}

#[test]
fn there_is_no_estimate_where_nothing_is_known() {
    // A search over states, a reduction, and a search whose observer wants no estimates.
    let reduced = Plan::new().order(Order::Executions).reduction(preempt_explore::Reduction::Sleep);
    for (plan, toy) in [(Plan::new(), threads(&[40, 40, 40])), (reduced, threads(&[7, 7]))] {
        let notes = Reports::default();
        plan.build().expect("a plan").run(toy, &notes);
        let notes = notes.0.into_inner().expect("mutex poisoned");
        assert!(!notes.is_empty() && notes.iter().all(|note| note.estimate.is_none()));
    }
    // A limit cuts the estimate short.
    let limits = Limits { executions: Some(5_000), ..Limits::default() };
    let (notes, _) = watch(all().limits(limits), threads(&[9, 9]));
    assert!(
        notes.iter().filter_map(|note| note.estimate).all(|estimate| estimate.remaining <= 5_000)
    );
}

#[test]
fn several_workers_estimate_the_same_tree() {
    let (notes, all) = watch(all().jobs(3), threads(&[9, 9]));
    assert_eq!(all, 48_620);
    let last = notes.iter().max_by_key(|note| note.executions).expect("the search makes reports");
    let estimate = last.estimate.expect("a tree has an estimate");
    // However the workers shared the tree, nearly the whole weight is explored at the end.
    assert!(error(estimate, all) < 1.05, "{estimate:?}");
}

/// At the end of a search, the explored, cut and already covered parts together have the weight of
/// the whole tree.
#[test]
fn the_weights_add_up_to_the_whole_tree() {
    let icb = |cache| Plan::new().order(Order::Icb { cache });
    // Two threads whose steps depend on each other, and one whose steps do not.
    let mixed = Toy::new(2, [0, 0, 1].map(|cell| vec![Op::Set { cell, value: 0 }; 4]).to_vec());
    for (plan, toy) in [
        (all(), threads(&[3, 3, 3])),
        (within(2), threads(&[4, 4, 4])),
        (Plan::new().order(Order::DfsHb), mixed.clone()),
        (Plan::new().order(Order::Depth { steps: 6 }), threads(&[4, 4, 4])),
        (icb(Cache::None), threads(&[3, 3, 3])),
        (icb(Cache::Hb), mixed),
    ] {
        let (notes, outcome) = watch_every_step(plan, toy);
        let bounds: Vec<_> = match plan.order {
            Order::Icb { .. } => (0..)
                .zip(&outcome.bounds)
                .map(|(bound, seen)| (Some(bound), seen.new.taken()))
                .collect(),
            _ => vec![(None, outcome.tally.expect("a search over executions").taken())],
        };
        let mut looked = 0;
        for (bound, all) in bounds {
            let last = notes.iter().rfind(|note| bound.is_none() || note.bound == bound);
            let Some(estimate) = last.and_then(|note| note.estimate) else { continue };
            looked += 1;
            assert!(error(estimate, all) < 1.5, "{plan:?}, {bound:?}: {estimate:?} of {all}");
        }
        assert!(looked > 0, "{plan:?}");
    }
}
