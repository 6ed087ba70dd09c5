//! Several workers with varying speeds, compared with one; limits, interrupts and faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::toy::{Op, Pcg, Toy, grid, random};
use preempt_explore::{
    Cache, Limit, Limits, Observer, Order, Outcome, Plan, Progress, Silent, oracle,
};
use preempt_system::{Capacity, Choice, Failure, Footprint, Model, Shape, Step, Stepper, Verdict};

/// A program some of whose steps are slow, so that the workers share even small programs in many
/// different ways.
#[derive(Clone)]
struct SlowModel {
    toy: Toy,
    /// One in `pace` steps is slow.
    pace: u64,
    /// A fault of the model: a step panics when cell 0 has this value.
    fault: Option<u64>,
    /// Whether the states cannot grow.
    grown: bool,
}

impl SlowModel {
    fn new(toy: Toy) -> SlowModel {
        SlowModel { toy, pace: 64, fault: None, grown: false }
    }
}

struct SlowStepper<'m> {
    of: &'m SlowModel,
    toy: &'m Toy,
    random: Pcg,
}

/// Numbers the steppers, so that each is slow at other steps.
static STEPPERS: AtomicU64 = AtomicU64::new(0);

impl Model for SlowModel {
    type Stepper<'m> = SlowStepper<'m>;

    fn shape(&self) -> Shape {
        self.toy.shape()
    }

    fn stepper(&self) -> SlowStepper<'_> {
        SlowStepper { of: self, toy: &self.toy, random: Pcg::new(STEPPERS.fetch_add(1, Relaxed)) }
    }

    fn grow(&self, capacity: Capacity) -> SlowModel {
        if self.grown {
            self.clone()
        } else {
            SlowModel { toy: self.toy.grow(capacity), ..self.clone() }
        }
    }
}

impl SlowStepper<'_> {
    /// Delays some steps.
    fn delay_some_steps(&mut self) {
        match self.random.below(self.of.pace) {
            0 => thread::sleep(Duration::from_micros(20)),
            1..8 => thread::yield_now(),
            _ => {}
        }
    }
}

impl Stepper for SlowStepper<'_> {
    fn initial(&mut self, state: &mut [u64]) -> Step {
        self.toy.initial(state)
    }

    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.delay_some_steps();
        assert!(self.of.fault != Some(self.toy.cell(state, 0)), "a fault of the model");
        self.toy.step(state, choice)
    }

    fn alternatives(&self) -> u32 {
        self.toy.alternatives()
    }

    fn invariant_with_footprint(
        &mut self,
        state: &[u64],
        footprint: &mut Footprint,
    ) -> Result<(), Box<Failure>> {
        self.toy.invariant_with_footprint(state, footprint)
    }

    fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>> {
        self.delay_some_steps();
        self.toy.invariant(state)
    }

    fn step_with_footprint(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        footprint: &mut Footprint,
    ) -> Step {
        self.toy.step_with_footprint(state, choice, footprint)
    }
}

fn run(plan: Plan, model: &SlowModel, observer: &dyn Observer) -> Outcome {
    plan.build()
        .unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"))
        .run(model.clone(), observer)
        .0
}

/// Everything that must not depend on the number of workers.
fn promised(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let Outcome { verdict, complete, findings, tally, bounds, at_finding, .. } = outcome.clone();
    (
        verdict,
        complete,
        findings,
        tally,
        bounds,
        at_finding,
        outcome.coverage.failed,
        outcome.guarantee(),
    )
}

fn icb(cache: Cache) -> Plan {
    Plan::new().order(Order::Icb { cache })
}

/// Every order that several workers can share.
fn plans() -> Vec<Plan> {
    let of = |order| Plan::new().order(order);
    vec![
        icb(Cache::None),
        icb(Cache::State),
        icb(Cache::Hb),
        icb(Cache::Hb).bound(1),
        of(Order::DfsHb),
        of(Order::ContextBounded).bound(1),
        of(Order::Executions),
        of(Order::Depth { steps: 5 }),
        of(Order::IterativeDepth { by: 4 }),
        of(Order::Random).runs(60),
    ]
}

#[test]
fn speed_does_not_matter() {
    let mut programs = 0;
    for seed in 0..1_000 {
        // Cells that never outgrow their bits: the oracle does not grow.
        let toy = Toy { bits: 10, ..random(seed) };
        let executions =
            oracle::executions(&toy).map_or(0, |executions| executions.values().sum::<u128>());
        if !(20..300).contains(&executions) {
            continue;
        }
        programs += 1;
        let model = SlowModel::new(toy);
        for plan in plans().into_iter().flat_map(|plan| [plan, plan.keep_going()]) {
            let one = promised(&run(plan, &model, &Silent));
            for jobs in [2, 4] {
                let several = promised(&run(plan.jobs(jobs), &model, &Silent));
                assert_eq!(several, one, "{jobs} workers, {plan:?} on program {seed}");
            }
        }
    }
    assert!(programs > 50, "only {programs} programs");
}

#[test]
fn the_first_finding_of_several_workers_needs_no_second_search() {
    let (mut failing, mut others) = (0, 0);
    for seed in 0..300 {
        let toy = Toy { bits: 10, ..random(seed) };
        let executions =
            oracle::executions(&toy).map_or(0, |executions| executions.values().sum::<u128>());
        if !(20..300).contains(&executions) {
            continue;
        }
        let model = SlowModel::new(toy);
        for plan in plans() {
            let [one, several, first] =
                [plan, plan.jobs(3), plan.jobs(3).first()].map(|plan| run(plan, &model, &Silent));
            assert_eq!(
                first.verdict == Verdict::Ok,
                one.verdict == Verdict::Ok,
                "{plan:?} on program {seed}"
            );
            assert_eq!((one.rerun, first.rerun), (None, None), "{plan:?} on program {seed}");
            if let [finding] = &first.findings[..] {
                failing += 1;
                others += u32::from(one.findings[0] != *finding);
                assert!(first.at_finding && several.rerun.is_some(), "{plan:?} on program {seed}");
                // All bounds before it are done, whichever worker is faster.
                if matches!(plan.order, Order::Icb { .. }) {
                    assert_eq!(
                        finding.preemptions, one.findings[0].preemptions,
                        "{plan:?} on program {seed}"
                    );
                }
            } else {
                assert_eq!(promised(&first), promised(&several), "{plan:?} on program {seed}");
            }
        }
    }
    assert!(
        failing > 50 && others > 0,
        "{failing} findings, {others} of them not those of one worker"
    );
}

#[test]
fn first_is_refused_for_searches_that_are_not_repeated() {
    let executions = Plan::new().order(Order::Executions).jobs(2).first();
    assert!(executions.build().is_ok());
    for plan in [executions.jobs(1), executions.keep_going(), executions.order(Order::BreadthFirst)]
    {
        let refusal = plan.build().expect_err("nothing would be searched again").to_string();
        assert!(refusal.contains("first"), "{refusal}");
    }
}

#[test]
fn spinning_threads_do_not_change_the_result() {
    // The first thread reads cell 0, waits for the second, and has then returned to an earlier
    // state, unless the second came before. Both orders have the same happens-before graph and no
    // preemption. After one of them the first thread is held back, and the third one needs no
    // preemption.
    let waits = [
        Op::JumpIf { cell: 0, value: 1, to: 3 },
        Op::Await { cell: 1, value: 1 },
        Op::JumpIf { cell: 1, value: 1, to: 0 },
    ];
    let threads = vec![
        waits.to_vec(),
        vec![Op::Set { cell: 1, value: 1 }],
        vec![Op::Set { cell: 0, value: 1 }],
    ];
    let model = SlowModel { pace: 4, ..SlowModel::new(Toy::new(2, threads)) };
    for plan in [icb(Cache::Hb), icb(Cache::None), Plan::new().order(Order::Executions)] {
        let one = promised(&run(plan, &model, &Silent));
        for jobs in (2..5).cycle().take(150) {
            assert_eq!(
                promised(&run(plan.jobs(jobs), &model, &Silent)),
                one,
                "{jobs} workers, {plan:?}"
            );
        }
    }
}

/// An observer that interrupts after some reports.
struct InterruptingAfter(AtomicU64);

impl Observer for InterruptingAfter {
    fn progress(&self, progress: &Progress) {
        assert!(progress.transitions > 0 && progress.depth > 0);
        self.0.fetch_add(1, Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.0.load(Relaxed) >= 3
    }
}

#[test]
fn a_limit_ends_all_workers() {
    // Each worker checks the clock after some thousand steps of its own; all of them together have
    // to take many times that number.
    let grid = SlowModel::new(grid(6, 6));
    let limits = [
        (Limit::States, Limits { states: Some(100), ..Limits::default() }),
        (Limit::Executions, Limits { executions: Some(3), ..Limits::default() }),
        (Limit::Memory, Limits { memory: Some(10_000), ..Limits::default() }),
        (Limit::Time, Limits { time: Some(Duration::from_nanos(1)), ..Limits::default() }),
    ];
    for plan in plans().into_iter().filter(|plan| !matches!(plan.order, Order::Depth { .. })) {
        let plan = if plan.order == Order::Random { plan.runs(100_000) } else { plan };
        for jobs in [1, 2, 4] {
            for (limit, limits) in limits {
                // Orders without a table use hardly any memory.
                let holds = !matches!(plan.order, Order::Random | Order::IterativeDepth { .. });
                if limit != Limit::Memory || holds {
                    let outcome = run(plan.jobs(jobs).limits(limits), &grid, &Silent);
                    let what = format!("{limit:?}, {jobs} workers, {:?}", plan.order);
                    assert_eq!(
                        (outcome.stopped, outcome.verdict),
                        (Some(limit), Verdict::Incomplete),
                        "{what}"
                    );
                    assert!(outcome.guarantee().starts_with("INCOMPLETE: stopped"), "{what}");
                    let tally = outcome.tally.expect("a search over executions");
                    assert!(
                        limit != Limit::Executions || tally.executions + tally.cut == 3,
                        "{what}: {tally:?}"
                    );
                    assert!(
                        limit != Limit::States || tally.states == Some(101) || jobs > 1,
                        "{what}: {tally:?}"
                    );
                }
            }
            let impatient = InterruptingAfter(AtomicU64::new(0));
            let outcome = run(plan.jobs(jobs), &grid, &impatient);
            assert_eq!(outcome.stopped, Some(Limit::Interrupt), "{jobs} workers, {:?}", plan.order);
        }
    }
}

#[test]
fn a_limit_equal_to_all_executions_is_not_reached() {
    let grid = SlowModel { pace: 3, ..SlowModel::new(grid(2, 3)) };
    for jobs in (1..5).cycle().take(40) {
        for (executions, stopped) in [(20, None), (19, Some(Limit::Executions))] {
            let limits = Limits { executions: Some(executions), ..Limits::default() };
            for order in [Order::Executions, Order::Icb { cache: Cache::None }] {
                let outcome =
                    run(Plan::new().order(order).jobs(jobs).limits(limits), &grid, &Silent);
                assert_eq!(
                    (outcome.stopped, outcome.executions()),
                    (stopped, Some(executions)),
                    "{order:?}"
                );
                assert_eq!(outcome.complete, stopped.is_none(), "{order:?}");
            }
        }
    }
}

#[test]
fn bounds_that_were_completed_before_a_limit_count() {
    let grid = SlowModel::new(grid(3, 4));
    for cache in [Cache::None, Cache::State, Cache::Hb] {
        let all = run(icb(cache), &grid, &Silent).bounds;
        // One more is found within bound 2. With the cache of states, few executions run to their
        // end.
        let limits = match cache {
            Cache::State => Limits { states: all[1].all.states, ..Limits::default() },
            Cache::None | Cache::Hb => {
                Limits { executions: Some(all[1].all.executions), ..Limits::default() }
            }
        };
        for jobs in [1, 2, 4] {
            let outcome = run(icb(cache).jobs(jobs).limits(limits), &grid, &Silent);
            assert_eq!(outcome.bounds, all[..2], "{jobs} workers, {cache:?}");
            assert!(outcome.guarantee().contains("inside bound 2"), "{}", outcome.guarantee());
        }
    }
}

#[test]
fn states_that_are_too_small_grow() {
    let threads = vec![vec![Op::Add { cell: 0, value: 2 }; 4]; 3];
    let small = SlowModel::new(Toy { bits: 2, ..Toy::new(1, threads.clone()) });
    let large = SlowModel::new(Toy { bits: 6, ..Toy::new(1, threads) });
    for plan in plans() {
        let expected = promised(&run(plan, &large, &Silent));
        for jobs in [1, 2, 4] {
            let grown = run(plan.jobs(jobs), &small, &Silent);
            assert!(grown.restarts > 0, "{plan:?}");
            assert_eq!(promised(&grown), expected, "{jobs} workers, {plan:?}");
        }
    }
}

#[test]
fn an_error_of_one_worker_is_not_lost_when_another_cannot_grow() {
    // One thread takes some steps and fails. The first step of the other thread needs more room
    // than a state can grow to.
    let mut fails = vec![Op::Set { cell: 2, value: 0 }; 12];
    fails.push(Op::AssertNot { cell: 1, value: 0 });
    let needs_more = vec![Op::Add { cell: 0, value: 3 }; 2];
    let model = |threads| {
        let toy = Toy { bits: 2, ..Toy::new(3, threads) };
        SlowModel { grown: true, pace: 3, ..SlowModel::new(toy) }
    };
    // One worker begins with the first thread.
    let first_fails = model(vec![fails.clone(), needs_more.clone()]);
    let first_needs_more = model(vec![needs_more, fails]);
    for jobs in (1..5).cycle().take(60) {
        let outcome = run(icb(Cache::State).jobs(jobs), &first_fails, &Silent);
        assert_eq!(
            (outcome.verdict, outcome.at_finding),
            (Verdict::Violation, true),
            "{jobs} workers"
        );
        let outcome = run(icb(Cache::State).jobs(jobs), &first_needs_more, &Silent);
        assert_eq!(
            (outcome.verdict, outcome.stopped),
            (Verdict::Incomplete, Some(Limit::Size)),
            "{jobs} workers"
        );
    }
}

#[test]
fn a_fault_of_one_worker_ends_all() {
    let threads = vec![vec![Op::Add { cell: 0, value: 1 }; 4]; 3];
    let model =
        SlowModel { fault: Some(9), ..SlowModel::new(Toy { bits: 6, ..Toy::new(1, threads) }) };
    for plan in plans().into_iter().filter(|plan| !matches!(plan.order, Order::Depth { .. })) {
        for jobs in [1, 2, 4] {
            let fault = catch_unwind(AssertUnwindSafe(|| run(plan.jobs(jobs), &model, &Silent)));
            let fault =
                fault.err().unwrap_or_else(|| panic!("{jobs} workers, {plan:?} see the fault"));
            let message = fault.downcast_ref::<&str>().copied();
            assert_eq!(message, Some("a fault of the model"), "{jobs} workers, {plan:?}");
        }
    }
}
