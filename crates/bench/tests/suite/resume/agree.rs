//! Every strategy on the corpus and on random programs.

use preempt_bench::random::{self, Random, Shape, locked};
use preempt_bench::{corpus, straight};
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{
    Cache, Count, Limits, Order, Outcome, Plan, Points, Reduction, Sampling, Silent, StoreKind,
    oracle,
};
use preempt_lang::source::Source;
use preempt_machine::Machine;

use super::tape::{interrupted, pausing, run, run_through};

fn machine(text: &str) -> Machine {
    preempt_lang::load(&Source::new("resume.pre", text), &[]).expect("a program")
}

fn of_corpus(file: &str) -> Machine {
    corpus::machine(&corpus::root().join(file), &[]).expect("a program of the corpus")
}

/// Searches over states.
fn of_states() -> Vec<Plan> {
    let stores = [
        StoreKind::Exact,
        StoreKind::Tree,
        StoreKind::Sorted,
        StoreKind::Fingerprint,
        StoreKind::Bitstate { bytes: 1 << 16 },
    ];
    let orders = [Order::BreadthFirst, Order::DepthFirst];
    let mut plans: Vec<Plan> = orders
        .iter()
        .flat_map(|&order| stores.map(|store| Plan::new().order(order).store(store)))
        .filter(|plan| plan.store != StoreKind::Sorted || plan.order == Order::BreadthFirst)
        .collect();
    plans.extend(orders.map(|order| {
        Plan::new().order(order).limits(Limits { depth: Some(5), ..Limits::default() })
    }));
    plans.extend(orders.map(|order| {
        Plan::new().order(order).limits(Limits { states: Some(40), ..Limits::default() })
    }));
    for reading in [Reading::Late, Reading::Literal] {
        plans.extend(
            orders
                .map(|order| Plan::new().order(order).reduction(Reduction::Cartesian { reading })),
        );
    }
    for reduction in
        [Reduction::Transactions, Reduction::TransactionsCycle, Reduction::TransactionsUnsound]
    {
        plans.push(Plan::new().order(Order::DepthFirst).reduction(reduction).ignore_deadlocks());
    }
    plans
}

/// Searches over executions.
fn of_executions() -> Vec<Plan> {
    let order = |order| Plan::new().order(order);
    let icb = |cache| order(Order::Icb { cache });
    let depth = |steps| Limits { depth: Some(steps), ..Limits::default() };
    let bounded = |reduction| order(Order::ContextBounded).bound(1).reduction(reduction);
    let unbounded = |reduction| order(Order::Executions).reduction(reduction);
    vec![
        icb(Cache::None),
        icb(Cache::None).bound(1),
        icb(Cache::State),
        icb(Cache::State).bound(1),
        icb(Cache::Hb).sampling(Sampling::Every(3)),
        icb(Cache::Hb).bound(2).count(Count::Traces),
        icb(Cache::None).limits(depth(7)),
        order(Order::Delay { cache: Cache::None }).bound(2),
        order(Order::Delay { cache: Cache::Hb }),
        icb(Cache::Hb).points(Points::Sync),
        Plan { promote: true, ..icb(Cache::None).points(Points::Sync) },
        order(Order::DfsHb),
        order(Order::DfsHb).bound(1),
        order(Order::ContextBounded).bound(2),
        order(Order::Executions).count(Count::Executions),
        order(Order::Executions).limits(Limits { executions: Some(30), ..Limits::default() }),
        order(Order::Executions).points(Points::Sync).sampling(Sampling::Decades),
        order(Order::Depth { steps: 8 }),
        order(Order::IterativeDepth { by: 3 }),
        order(Order::Random).runs(60),
        order(Order::Pct { depth: 3 }).runs(60),
        order(Order::Urw).runs(60),
        unbounded(Reduction::Sleep),
        unbounded(Reduction::FlanaganGodefroid),
        unbounded(Reduction::Source),
        unbounded(Reduction::Optimal),
        unbounded(Reduction::Blocks),
        unbounded(Reduction::BlocksPaper),
        bounded(Reduction::BudgetedSleep),
        bounded(Reduction::CbPor),
        bounded(Reduction::CbPorStates),
    ]
}

/// Whether every execution of a program ends. Searches over the executions of others may not.
fn ends(machine: &Machine) -> bool {
    let full =
        Plan::new().keep_going().limits(Limits { states: Some(20_000), ..Limits::default() });
    let (outcome, grown) = full.build().expect("the plan is valid").run(machine.clone(), &Silent);
    outcome.complete && oracle::executions(&grown).is_some()
}

/// Counts of comparisons.
#[derive(Default)]
struct Compared {
    plans: usize,
    pauses: usize,
    interrupts: usize,
    restarts: usize,
}

/// Larger programs are skipped.
const MOST: u64 = 1_000;

impl Compared {
    /// Compares one plan, if it suits the model and ends soon.
    fn plan(&mut self, plan: &Plan, machine: &Machine, random: &mut Random, what: &str) {
        let capped = |plan: &Plan| {
            let (mut limits, executions) = (plan.limits, plan.order.is_of_executions());
            limits.states.get_or_insert(MOST);
            limits.executions = limits.executions.or(executions.then_some(MOST));
            plan.limits(limits)
        };
        let plan = &capped(plan);
        let Ok(search) = plan.build() else { panic!("{plan:?} is valid") };
        if search.suits(machine).is_err() {
            return;
        }
        let poll_interval = 1 + random.below(*random.clone().pick(&[3, 3, 30, 300])) as u64;
        let through = run_through(plan, machine, poll_interval);
        if through.stopped.is_none() {
            assert_eq!(through, run(plan, machine), "{plan:?}, on {what}");
        }
        let same = |other: &Outcome, how: &str| {
            assert_eq!(other.guarantee(), through.guarantee(), "{how}, {plan:?}, on {what}");
            assert_eq!(other, &through, "{how}, {plan:?}, on {what}");
        };
        let (paused, resumed, pauses) = pausing(plan, machine, poll_interval, random);
        same(&paused, "with pauses");
        resumed.iter().for_each(|resumed| same(resumed, "from one of the checkpoints"));
        let (ended, interrupts) = interrupted(plan, machine, poll_interval, random);
        same(&ended, "interrupted");
        self.plans += 1;
        self.pauses += pauses;
        self.interrupts += interrupts;
        self.restarts += through.restarts as usize;
    }

    fn all(&mut self, plans: &[Plan], machine: &Machine, random: &mut Random, what: &str) {
        for plan in plans {
            self.plan(plan, machine, random, what);
            self.plan(&plan.keep_going(), machine, random, what);
        }
    }
}

/// The programs of the corpus that are small.
const FILES: [&str; 12] = [
    "abba/model.pre",
    "bluetooth/model.pre",
    "philosophers/left-right.pre",
    "philosophers/model.pre",
    "zoo/a.pre",
    "zoo/e.pre",
    "zoo/l.pre",
    "zoo/n.pre",
    "zoo/q.pre",
    "zoo/r.pre",
    "zoo/w.pre",
    "zoo/x.pre",
];

#[test]
fn every_strategy_on_the_corpus() {
    let (mut compared, mut random) = (Compared::default(), Random::new(1));
    let plans = [of_states(), of_executions()].concat();
    for file in FILES {
        let machine = of_corpus(file);
        let plans = if ends(&machine) { &plans } else { &of_states() };
        compared.all(plans, &machine, &mut random, file);
    }
    let Compared { plans, pauses, interrupts, .. } = compared;
    assert!(
        plans > 700 && pauses > 2 * plans && interrupts > 2 * plans,
        "{plans} {pauses} {interrupts}"
    );
}

#[test]
fn every_strategy_on_random_programs() {
    let (mut compared, mut random) = (Compared::default(), Random::new(2));
    let plans = [of_states(), of_executions()].concat();
    for seed in 0..300 {
        let text = match seed % 3 {
            0 => random::program(seed, Shape { threads: (2, 3), statements: 3 }),
            1 => locked::program(seed),
            _ => straight::program(seed, Shape { threads: (2, 3), statements: 3 }),
        };
        let machine = machine(&text);
        let plans = if ends(&machine) { &plans } else { &of_states() };
        // Each program is compared with a few strategies, and each strategy with many programs.
        for _ in 0..6 {
            let plan = *random.pick(plans);
            let plan = if random.percent(50) { plan.keep_going() } else { plan };
            compared.plan(&plan, &machine, &mut random, &text);
        }
    }
    let Compared { plans, pauses, interrupts, .. } = compared;
    assert!(
        plans > 1_000 && pauses > 2 * plans && interrupts > plans,
        "{plans} {pauses} {interrupts}"
    );
}

/// Checkpoints within levels of many chunks and with stores that have grown.
#[test]
fn many_states() {
    let mut random = Random::new(5);
    let text = "atomic var x: [0..=6; 5]; atomic var turn: 0..5 = 0; var far: [0..200; 3];
        thread t(i in 0..5) { while x[i] < 6 { x[i] = x[i] + 1; turn = i; } far[i % 3] = i; assert far[0] < 4 || turn != 2; }";
    let machine = machine(text);
    for plan in of_states() {
        let plan = plan.keep_going().limits(Limits { states: Some(30_000), ..plan.limits });
        let poll_interval = 1 + random.below(2_000) as u64;
        let through = run_through(&plan, &machine, poll_interval);
        let (paused, resumed, pauses) = pausing(&plan, &machine, poll_interval, &mut random);
        assert_eq!(paused, through, "with pauses, {plan:?}");
        assert_eq!(
            resumed.filter(|_| pauses > 0).as_ref().unwrap_or(&through),
            &through,
            "resumed, {plan:?}"
        );
        assert_eq!(
            interrupted(&plan, &machine, poll_interval, &mut random).0,
            through,
            "interrupted, {plan:?}"
        );
    }
}

#[test]
fn states_that_had_to_grow_grow_again() {
    let (mut compared, mut random) = (Compared::default(), Random::new(3));
    // Random walks before a search take only the first alternatives of a choice.
    let text = "var x = 0; var hot = 0;
        thread up { for i in 0..3 { x = choose(0..8); if x == 7 { hot = hot + 1000; } } }
        thread down { x = 0; skip; x = 1; }";
    compared.all(
        &[Plan::new(), Plan::new().order(Order::DepthFirst)],
        &machine(text),
        &mut random,
        text,
    );
    let random_order = Plan::new().order(Order::Random).runs(30);
    compared.all(&[random_order], &machine(text), &mut random, text);
    assert!(compared.restarts > 0, "nothing had to grow");
}

/// Several workers report the same as one, with and without pauses.
#[test]
fn several_workers() {
    let mut random = Random::new(4);
    let icb = |cache| Plan::new().order(Order::Icb { cache });
    let plans = [
        Plan::new(),
        Plan::new().store(StoreKind::Tree),
        Plan::new().order(Order::DepthFirst),
        Plan::new().reduction(Reduction::Cartesian { reading: Reading::Late }),
        icb(Cache::None).bound(2),
        icb(Cache::State),
        icb(Cache::Hb).bound(2),
        Plan::new().order(Order::DfsHb),
        Plan::new().order(Order::Executions).limits(Limits { depth: Some(8), ..Limits::default() }),
        Plan::new()
            .order(Order::IterativeDepth { by: 4 })
            .limits(Limits { depth: Some(12), ..Limits::default() }),
        Plan::new().order(Order::Random).runs(200),
    ];
    let (mut pauses, mut interrupts) = (0, 0);
    for file in ["abba/model.pre", "bluetooth/model.pre", "zoo/e.pre", "zoo/l.pre", "zoo/q.pre"] {
        let machine = of_corpus(file);
        let plans: Vec<&Plan> =
            plans.iter().filter(|plan| ends(&machine) || !plan.order.is_of_executions()).collect();
        for (plan, going) in plans.iter().flat_map(|plan| [(plan, false), (plan, true)]) {
            let plan = if going { plan.keep_going() } else { **plan };
            let one = run(&plan, &machine);
            // In a depth-first search over states, which error is found first depends on the speed
            // of the workers.
            if !plan.order.is_of_executions() && !going && !one.findings.is_empty() {
                continue;
            }
            let plan = plan.jobs(2 + random.below(2));
            let poll_interval = 1 + random.below(10) as u64;
            let (paused, resumed, kept) = pausing(&plan, &machine, poll_interval, &mut random);
            let (ended, times) = interrupted(&plan, &machine, poll_interval, &mut random);
            pauses += kept;
            interrupts += times;
            for several in [Some(paused), resumed, Some(ended)].into_iter().flatten() {
                let what = || format!("{plan:?} on {file}");
                assert_eq!(
                    (several.verdict, several.complete),
                    (one.verdict, one.complete),
                    "{}",
                    what()
                );
                assert_eq!(
                    (several.tally, &several.bounds),
                    (one.tally, &one.bounds),
                    "{}",
                    what()
                );
                assert_eq!(several.guarantee(), one.guarantee(), "{}", what());
                assert_eq!(counts(&several), counts(&one), "{}", what());
                if plan.order != Order::DepthFirst {
                    assert_eq!(several.findings, one.findings, "{}", what());
                }
            }
        }
    }
    assert!(pauses > 200 && interrupts > 200, "{pauses} {interrupts}");
}

/// The counts that do not depend on the speed of the workers.
fn counts(outcome: &Outcome) -> [u64; 6] {
    let coverage = &outcome.coverage;
    [
        coverage.states,
        coverage.expanded,
        coverage.transitions,
        coverage.blocked,
        coverage.ended,
        outcome.findings.len() as u64,
    ]
}
