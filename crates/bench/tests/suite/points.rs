//! Every search over executions compared with brute force, with all scheduling points and with
//! those at synchronisation only: traces within each bound, failures, data races. The programs are
//! random ones whose steps have several outcomes, wait on plain variables or fail, and regression
//! tests.

use preempt_bench::agree::points::{Compared, compare_text, one};
use preempt_bench::random::outcomes::Kind;
use preempt_explore::points::SyncPoints;
use preempt_explore::{
    Cache, Limit, Limits, Observer, Order, Plan, Points, Progress, Reduction, Silent, oracle,
};
use preempt_lang::source::Source;
use preempt_system::{Choice, FailureKind, Footprint, Model, Step, Stepper, ThreadId};

fn agree(kind: Option<Kind>, seeds: u64) {
    let mut all = Compared::default();
    for seed in 0..seeds {
        all.add(one(kind, seed).unwrap_or_else(|error| panic!("{error:#}")));
    }
    println!("{kind:?}: {all:?}");
    assert!(
        all.programs > seeds / 3 && all.failing > seeds / 5,
        "too few programs were compared: {all:?}"
    );
    assert!(
        all.racy > seeds / 10 && all.racy < all.programs,
        "some have races and some have none: {all:?}"
    );
}

#[test]
fn searches_agree_on_choices_with_different_accesses() {
    agree(Some(Kind::Choices), 120);
}

#[test]
fn searches_agree_on_waits_for_plain_variables() {
    agree(Some(Kind::Waits), 120);
}

#[test]
fn searches_agree_on_atomic_blocks_in_a_row() {
    agree(Some(Kind::Atomics), 120);
}

#[test]
fn searches_agree_on_threads_that_fail() {
    agree(Some(Kind::Failures), 120);
}

#[test]
fn searches_agree_on_programs_of_all_kinds() {
    agree(None, 120);
}

/// Programs on which a search was wrong, and what was wrong.
const ONCE_WRONG: [(&str, &str); 14] = [
    (
        "dpor-optimal took a step for covered by the other alternative of a choice",
        "var y = 0;
         thread t0 { atomic { choose { skip; } or { y += 1; } } assert y != 3, \"three\"; } thread t1 { y = 2; }",
    ),
    (
        "at points of synchronisation, a wait that fails was merged where it holds",
        "var x = 1; var y = true;
         thread t0 { y = false; } thread t1 { var k = x; assume y; assert false, \"reached\"; }",
    ),
    (
        "reductions saw no race, cb-por asked for a step that did not exist",
        "var y = 1; var z = 1; thread t0 { y = 2; } thread t1 { z = 2; await y > 1; }",
    ),
    (
        "dynamic reduction took a step that had to wait",
        "var x: bool; event e; rwlock rw;
         fn f0() -> int { return (if x { (if x { 2 } else { 1 }) } else { 1 }); }
         thread t0 { { e.set(); } x = true; }
         thread t1 { rw.write(); { await x; } rw.unlock_write(); e.set(); }",
    ),
    ("cb-por saw no race", "var x = 1; var y = 0; thread t0 { var l = y; await x == 0; } thread t2 { x = 0; }"),
    (
        "happens-before graphs hid a race",
        "atomic var x = 0; var y = 1; atomic var z = 1;
         thread t0 { var l = 0; y = 2; z = 0; y = 1; atomic { assert !(z == 1 && z == 0 && l == 1), \"A0\"; } }
         thread t1 { var l = 0; if x < 0 { z = 2; } end: await y > 1;
                     atomic { assert !(x == 0 && z == 1 && l == 2), \"A1\"; } }",
    ),
    (
        "whether a step synchronises depends on a plain variable",
        "atomic var x = 1; var y = 0;
         thread t0 { y = 2; } thread t1 { atomic { } atomic { assert(y == 0 && x == 1); } }",
    ),
    (
        "a wait ends for a moment inside of a merged step, and brute force did not see it either",
        "var y = 0; thread t0 { y = 1; y = 0; } thread t1 { await y == 1; assert false, \"seen\"; }",
    ),
    (
        "the same with a condition that synchronises, so that the wait does not race when it ends",
        "var y = 0; atomic var x = 0;
         thread t0 { x = 1; y = 1; y = 0; x = 0; } thread t1 { await x == 1 && y == 1; assert false, \"seen\"; }",
    ),
    (
        "a plain variable says which object is waited for",
        "var i = 0; mutex m[2];
         thread t0 { m[0].lock(); i = 1; i = 0; m[0].unlock(); } thread t1 { atomic { m[i].lock(); } m[1].unlock(); }",
    ),
    (
        "dpor began with a thread of which an alternative slept",
        "steps statement;
         var x = 0; var y = 1; atomic var z: 0..=2 = 0; var a: [int; 2];
         thread t0 { var l = 0; l = x;
             atomic { choose { l = y; } or { y += 1; } or { assert a[z % 2] != 1 || l == 2; } x = 0; } }
         thread t1 { y = 0; }
         thread t2 { var l = 0;
             atomic { choose { a[z % 2] = l; } or { choose { y += 1; } or { l = x; } or { skip; } } } }",
    ),
    (
        "dpor-fg considered only the last race of a step whose accesses depend on earlier steps",
        "var x = 0; var y = 1; atomic var z: 0..=2 = 0; var a: [int; 2];
         thread t0 { var l = a[x]; } thread t1 { var l = 0; y = 0; l = x % z; } thread t2 { a[y] = 1; }",
    ),
    (
        "dpor-optimal prescribed one of several alternatives that touch the same, and took that for all of them",
        "var x = 0; var y = 1; atomic var z: 0..=2 = 0;
         thread t0 { var l = 0; atomic { choose { l = x; } or { z = 2; } } await z == 1; } thread t1 { var l = y; }
         thread t2 { var l = 0; atomic { choose { y += 1; } or { x += 1; } z = 2; }
             choose { l = y; } or { x += 1; } or { y += 1; } }",
    ),
    (
        "an alternative that is there only after another step, beside one that touches nothing",
        "var y = 0;
         thread t0 { var l = 0; atomic { choose { skip; } or { if y == 1 { l = choose(0..2); } } } assert l == 0; }
         thread t1 { y = 1; }",
    ),
];

#[test]
fn programs_on_which_a_search_was_wrong() {
    for (what, text) in ONCE_WRONG {
        let compared = compare_text(text).unwrap_or_else(|error| panic!("{what}: {error:#}"));
        assert_eq!(compared.programs, 1, "{what}: nothing was compared");
    }
}

#[test]
fn a_wait_for_a_plain_variable_races_in_every_search() {
    let text = "var y = 1; var z = 1; thread t0 { y = 2; } thread t1 { z = 2; await y > 1; }";
    let machine = preempt_lang::load(&Source::new("wait.pre", text), &[]).expect("a model");
    let executions = Plan::new().order(Order::Executions);
    let bounded = Plan::new().order(Order::ContextBounded).bound(2);
    let plans = [
        executions,
        executions.reduction(Reduction::Sleep),
        executions.reduction(Reduction::Source),
        executions.reduction(Reduction::Optimal),
        executions.reduction(Reduction::FlanaganGodefroid),
        bounded.reduction(Reduction::BudgetedSleep),
        bounded.reduction(Reduction::CbPor),
        bounded.reduction(Reduction::CbPorStates),
        Plan::new().order(Order::DfsHb),
        Plan::new().order(Order::Icb { cache: Cache::Hb }),
        Plan::new().order(Order::Icb { cache: Cache::None }).jobs(2),
    ];
    for plan in plans {
        let search = plan.points(Points::Sync).build().expect("the plan is valid");
        let (outcome, _) = search.run(machine.clone(), &Silent);
        let kinds: Vec<FailureKind> =
            outcome.findings.iter().map(|finding| finding.failure.kind).collect();
        assert_eq!(kinds, [FailureKind::Race], "{:?} {:?}", plan.order, plan.reduction);
    }
}

/// The numbers of accesses of the coarse steps that a thread takes when it runs alone.
fn steps(text: &str, thread: usize) -> Vec<usize> {
    let machine = preempt_lang::load(&Source::new("steps.pre", text), &[]).expect("a model");
    let coarse = SyncPoints::of(machine);
    let (mut stepper, mut state) = (coarse.stepper(), vec![0; coarse.shape().words]);
    stepper.initial(&mut state);
    let mut steps = Vec::new();
    loop {
        let mut footprint = Footprint::new();
        match stepper.step_with_footprint(
            &mut state,
            Choice::of(ThreadId::new(thread)),
            &mut footprint,
        ) {
            Step::Moved { .. } => steps.push(footprint.accesses().len()),
            Step::Failed(_) => {
                steps.push(footprint.accesses().len());
                return steps;
            }
            _ => return steps,
        }
    }
}

#[test]
fn a_step_ends_where_the_code_says_and_not_where_the_state_does() {
    let declared = "var x = 0; var y = 0; var w = 0; atomic var s = 0; var a: [int; 2]; mutex m; record R { v: int }";
    let cases: [(&str, &[usize]); 11] = [
        // The end of the thread is an access of its last step.
        ("x = 1; y = 1; s = 1; x = 2; y = 2;", &[2, 4]),
        ("x = 1; await w == 0; y = 1;", &[1, 3]),
        ("x = 1; w = 0; y = 1; await w == 0;", &[1, 2, 2]),
        ("x = 1; assume y == 0; x = 2;", &[1, 3]),
        ("x = 1; atomic { if y == 0 { x = 2; } else { s = 1; } }", &[1, 3]),
        ("x = 1; atomic { choose { skip; } or { y = 1; } } x = 1;", &[1, 2]),
        ("x = 1; a[x] = 2; y = a[x - 1];", &[5]),
        ("x = 1; atomic { } x = 2;", &[1, 2]),
        ("x = 1; m.lock(); x = 2; m.unlock();", &[1, 2, 2]),
        ("x = 1; if y == 0 { x = 2; } else { s = 1; } y = 2;", &[3]),
        ("x = 1; assert y == 1; x = 2;", &[2]),
    ];
    for (body, expected) in cases {
        let awaits = if body.contains('w') { "thread other { await w == 5; }" } else { "" };
        assert_eq!(
            steps(&format!("{declared} thread t {{ {body} }} {awaits}"), 0),
            expected,
            "{body}"
        );
    }
}

#[test]
fn promoted_variables_are_points_where_they_may_be_accessed() {
    // The error needs a switch between the two accesses to `d`, after a wait for another plain
    // variable.
    let text = "var d = 0; var go = false;
        thread t0 { d = 1; d = 0; go = true; } thread t1 { var l = d; await go; assert l == 0, \"between\"; }";
    let machine = preempt_lang::load(&Source::new("promote.pre", text), &[]).expect("a model");
    let fine = oracle::least_preemptions(&machine);
    for reduction in [Reduction::None, Reduction::Sleep, Reduction::Source, Reduction::Optimal] {
        let plan = Plan::new()
            .order(Order::Executions)
            .reduction(reduction)
            .points(Points::Sync)
            .promote()
            .keep_going();
        let limits = Limits { executions: Some(10_000), ..Limits::default() };
        let (outcome, _) =
            plan.limits(limits).build().expect("the plan is valid").run(machine.clone(), &Silent);
        let others =
            outcome.findings.iter().filter(|finding| finding.failure.kind != FailureKind::Race);
        assert!(
            others.map(|finding| oracle::name(&finding.failure)).eq(fine.keys().cloned()),
            "{reduction:?}"
        );
        assert!(
            outcome.complete && outcome.promoted.contains(&"d".into()),
            "{reduction:?}: {}",
            outcome.guarantee()
        );
    }
}

/// Ends the search at its first poll.
struct Interrupting;

impl Observer for Interrupting {
    fn progress(&self, _: &Progress) {}

    fn interrupted(&self) -> bool {
        true
    }
}

/// A step between two points of synchronisation can be a loop of thousands of steps. The limits are
/// polled by the work that was done, not by the number of such steps, of which there are few here.
#[test]
fn limits_are_polled_within_long_steps() {
    let text = "atomic var f = 0; \
        thread t { for j in 0..6 { var k = 0; while k < 9000 { k += 1; x = k; } f = j; } } \
        var x = 0;";
    for (name, plan) in [
        ("executions", Plan::new().order(Order::Executions)),
        ("dpor", Plan::new().order(Order::Executions).reduction(Reduction::Source)),
    ] {
        let machine = preempt_lang::load(&Source::new("long.pre", text), &[]).expect("a model");
        let plan = plan.points(Points::Sync).build().expect("the plan is valid");
        let (outcome, _) = plan.run(machine, &Interrupting);
        assert_eq!(outcome.stopped, Some(Limit::Interrupt), "{name}: {}", outcome.guarantee());
    }
}
