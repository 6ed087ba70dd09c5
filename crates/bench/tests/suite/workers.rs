//! Several workers compared with one: the same verdict, findings with their schedules, counts,
//! bounds and guarantee.

use preempt_bench::corpus;
use preempt_bench::random::{self, Shape};
use preempt_explore::{Cache, Count, Limit, Limits, Order, Outcome, Plan, Points, Silent, oracle};
use preempt_lang::source::Source;
use preempt_machine::Machine;

const JOBS: [usize; 3] = [2, 3, 4];

fn machine(text: &str) -> Machine {
    preempt_lang::load(&Source::new("workers.pre", text), &[]).expect("a program")
}

fn of_corpus(file: &str, set: &[(&str, u32)]) -> Machine {
    let set: Vec<_> =
        set.iter().map(|&(name, value)| (name.to_owned(), value.to_string())).collect();
    corpus::machine(&corpus::root().join(file), &set).expect("a program of the corpus")
}

fn queue(locked: u32) -> Machine {
    of_corpus("work-stealing-queue/protocol.pre", &[("SIZE", 2), ("LOCKED", locked)])
}

fn run(plan: Plan, machine: &Machine) -> Outcome {
    plan.build()
        .unwrap_or_else(|refusal| panic!("{plan:?}: {refusal}"))
        .run(machine.clone(), &Silent)
        .0
}

/// Compares several workers with one. Returns whether the search ended, or stopped at a finding.
fn compare(plan: Plan, machine: &Machine, what: &str, jobs: &[usize]) -> bool {
    let one = run(plan, machine);
    if one.stopped.is_some_and(|limit| limit != Limit::Depth) {
        return false;
    }
    for &jobs in jobs {
        let several = run(plan.jobs(jobs), machine);
        let what = || format!("{jobs} workers, {plan:?}, on {what}");
        assert_eq!(several.findings, one.findings, "{}", what());
        assert_eq!(several.verdict, one.verdict, "{}", what());
        assert_eq!(several.tally, one.tally, "{}", what());
        assert_eq!(several.bounds, one.bounds, "{}", what());
        assert_eq!(several.guarantee(), one.guarantee(), "{}", what());
        assert_eq!(several.coverage.failed, one.coverage.failed, "{}", what());
        assert_eq!(
            (several.complete, several.at_finding),
            (one.complete, one.at_finding),
            "{}",
            what()
        );
    }
    true
}

/// Every search that several workers can share.
fn plans() -> Vec<Plan> {
    let icb = |cache| Plan::new().order(Order::Icb { cache });
    let depth = |steps| Limits { depth: Some(steps), ..Limits::default() };
    vec![
        icb(Cache::None),
        icb(Cache::None).bound(1),
        icb(Cache::State),
        icb(Cache::State).bound(1),
        icb(Cache::Hb),
        icb(Cache::Hb).bound(2),
        icb(Cache::None).limits(depth(7)),
        icb(Cache::None).points(Points::Sync),
        Plan::new().order(Order::Executions).points(Points::Sync),
        Plan::new().order(Order::DfsHb),
        Plan::new().order(Order::ContextBounded).bound(2),
        Plan::new().order(Order::Executions),
        Plan::new().order(Order::Executions).limits(depth(6)),
        Plan::new().order(Order::Depth { steps: 8 }),
        Plan::new().order(Order::IterativeDepth { by: 3 }),
        Plan::new().order(Order::Random).runs(300),
    ]
}

/// Searches with more executions are not compared.
const MOST_EXECUTIONS: u64 = 2_000;

/// Compares all plans, with and without `keep_going`, on a program that ends if threads that spin
/// are held back. Returns the number of compared plans.
fn compare_all(machine: &Machine, what: &str, jobs: &[usize]) -> usize {
    let limits = |limits: Limits| Limits {
        executions: Some(MOST_EXECUTIONS),
        states: Some(20_000),
        ..limits
    };
    let fits = |plan: &Plan| plan.build().expect("the plan is valid").suits(machine).is_ok();
    let plans = plans().into_iter().filter(fits).map(|plan| plan.limits(limits(plan.limits)));
    // If the whole search is within the limits, no number of workers reaches them.
    let agree = |plan: Plan| compare(plan, machine, what, jobs);
    plans.filter(|&plan| agree(plan.keep_going()) && agree(plan)).count()
}

/// Like [`compare_all`], but skips a program that may run forever.
fn compare_if_it_ends(machine: &Machine, what: &str, jobs: &[usize]) -> usize {
    let full =
        Plan::new().keep_going().limits(Limits { states: Some(20_000), ..Limits::default() });
    let (outcome, grown) = full.build().expect("the plan is valid").run(machine.clone(), &Silent);
    let ends = outcome.complete && oracle::executions(&grown).is_some();
    if ends { compare_all(machine, what, jobs) } else { 0 }
}

#[test]
fn on_random_programs() {
    let mut compared = 0;
    for seed in 0..300 {
        let text = random::program(seed, Shape { threads: (2, 3), statements: 3 });
        // One number of workers for each program: each number has a hundred programs.
        let jobs = &[JOBS[seed as usize % JOBS.len()]];
        compared += compare_if_it_ends(&machine(&text), &text, jobs);
    }
    assert!(compared > 4_000, "only {compared} comparisons");
}

#[test]
fn on_programs_that_spin() {
    let texts = [
        "atomic var flag = 0; atomic var seen = 0;
         thread waiter { while flag == 0 { yield; } seen = 1; }
         thread setter { seen = 2; flag = 1; }
         thread other { seen = 3; }",
        "atomic var a = 0; atomic var b = 0;
         thread left { while a == 0 { skip; } b = 1; }
         thread right { while b == 0 { skip; } a = 1; }",
        "atomic var x = 0; atomic var y = 0;
         thread a { while x == 0 { if y == 1 { y = 0; } } }
         thread b { y = 1; x = 1; }
         thread c { y = 1; y = 0; }",
    ];
    for text in texts {
        assert!(compare_all(&machine(text), text, &JOBS) > 9, "{text}");
    }
}

#[test]
fn on_the_corpus() {
    let mut compared = 0;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "j", "l", "n", "q", "r", "w", "x"] {
        let file = format!("zoo/{name}.pre");
        compared += compare_if_it_ends(&of_corpus(&file, &[]), &file, &JOBS);
    }
    for file in [
        "philosophers/model.pre",
        "philosophers/left-right.pre",
        "bluetooth/model.pre",
        "abba/model.pre",
    ] {
        compared += compare_if_it_ends(&of_corpus(file, &[]), file, &JOBS);
    }
    assert!(compared > 250, "only {compared} comparisons");
}

#[test]
fn on_the_work_stealing_queue() {
    for locked in [0, 1] {
        for cache in [Cache::None, Cache::State, Cache::Hb] {
            for count in [Count::Executions, Count::States] {
                let plan = Plan::new().order(Order::Icb { cache }).bound(2).count(count);
                assert!(compare(plan, &queue(locked), "the queue", &JOBS));
            }
        }
        let bounded = Plan::new().order(Order::ContextBounded).bound(2);
        let random = Plan::new().order(Order::Random).runs(2_000);
        for plan in [bounded, random] {
            assert!(compare(plan, &queue(locked), "the queue", &JOBS));
        }
    }
}
