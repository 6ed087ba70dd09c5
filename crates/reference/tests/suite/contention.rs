//! Small programs in which threads compete for one object, for every kind of object, compared with
//! all plans. Random programs rarely have three threads that compete for a lock, and each of them
//! is compared with few plans.

use preempt_explore::{Order, Plan, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_reference::compare::{Compared, Selection, Verdict, compare};

/// A description of each program, and its text.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "threads take turns under a mutex",
        "mutex m; var x = 0;
        thread t(i in 0..3) { m.lock(); x = i; m.unlock(); }",
    ),
    (
        "readers and a writer",
        "rwlock l; var x = 0;
        thread r(i in 0..2) { l.read(); assert x != 3; l.unlock_read(); }
        thread w { l.write(); x = 1; l.unlock_write(); }",
    ),
    (
        "one of two threads that wait is notified",
        "mutex m; condvar c; var ready = false;
        thread waiter(i in 0..2) { m.lock(); while !ready { c.wait(m); } m.unlock(); }
        thread setter { m.lock(); ready = true; c.notify_one(); m.unlock(); }",
    ),
    (
        "two senders share a channel with one place",
        "channel(1, 0..=3) c; var last = 0;
        thread s(i in 1..3) { c.send(i); }
        thread r { last = c.recv(); last = c.recv(); }",
    ),
    (
        "two senders meet one receiver",
        "channel(0, 0..=3) c; var last = 0;
        thread s(i in 1..3) { c.send(i); }
        thread r { last = c.recv(); assert last != 2, \"two\"; }",
    ),
    (
        "steps with several accesses that race in a circle",
        "var x = 0; var y = 0; var z = 0;
        thread t { atomic { x = 1; y = 1; } }
        thread u { atomic { y = 2; z = 2; } }
        thread v { atomic { z = 3; x = 3; } assert y != 7; }",
    ),
    (
        "threads take turns under a semaphore",
        "semaphore(1) s; var x = 0;
        thread t(i in 0..3) { s.acquire(); x += i; s.release(); }",
    ),
    (
        "a thread is started and joined",
        "var x = 0;
        fn child(i: 0..=3) { x = i; }
        thread t { var h = spawn child(1); x = 2; join h; assert x != 5; }
        thread u { x = 3; }",
    ),
    (
        "alternatives of a step access different variables",
        "var x = 0; var y = 0;
        thread t { atomic { choose { x = 1; } or { y = 1; } or { skip; } } }
        thread u { atomic { choose { y = 2; } or { x = 2; } } }
        thread v { x = 3; y = 3; }",
    ),
    (
        "conditions are made true and false again",
        "var x = 0; var y = 0;
        thread t { await x == 1; y = 1; }
        thread u { x = 1; x = 2; x = 1; }
        thread v { await y == 0; x = 3; }",
    ),
    (
        "a race whose reversal takes several steps of another thread",
        "var x = 0; var y = 0; var z = 0;
        thread t { x = 1; }
        thread u { if y == 0 { z = 1; } assert x != 9; }
        thread v { y = 1; if z == 0 { x = 2; } }",
    ),
    (
        "two locks are taken in two orders",
        "mutex a; mutex b; var x = 0;
        thread t { a.lock(); b.lock(); x = 1; b.unlock(); a.unlock(); }
        thread u { b.lock(); a.lock(); x = 2; a.unlock(); b.unlock(); }
        thread v { x = 3; }",
    ),
    (
        "a barrier with a bystander",
        "barrier(2) b; var x = 0;
        thread t(i in 0..2) { x = i; b.wait(); x = i + 2; }
        thread u { x = 7; }",
    ),
    (
        "an event lets one thread go on at a time",
        "event(auto) e; var x = 0;
        thread t(i in 0..2) { e.wait(); x = i; }
        thread s { x = 2; e.set(); x = 3; e.set(); }",
    ),
    (
        "plain writes and reads that race",
        "var x = 0; var y = 0;
        thread t { x = 1; y = 1; x = 2; }
        thread u { y = 2; x = 3; assert y != 1; }",
    ),
    (
        "a release that lets a thread go on must not sleep under a bound",
        "mutex m; atomic var x = 0;
        thread t { x = 1; m.lock(); x = 2; m.unlock(); }
        thread u { var r = 0; m.lock(); r = x; m.unlock(); r = x; }",
    ),
];

#[test]
fn all_plans_agree_with_the_reference() {
    for (what, text) in PROGRAMS {
        match compare(text, Selection::All) {
            Verdict::Agree(Compared { plans, .. }) => {
                assert!(plans.len() > 100, "{what}: only {} searches", plans.len())
            }
            other => panic!("{what}: {other:?}\n{text}"),
        }
    }
}

/// Programs with few races, so that reductions leave out most of their executions.
const FEW_RACES: [&str; 4] = [
    "var x = 0; var y = 0; var z = 0;
     thread t { x = 1; y = 1; } thread u { y = 2; z = 2; } thread v { z = 3; x = 3; }",
    "var x = 0; var y = 0; mutex m;
     thread t { x = 1; m.lock(); y = 1; m.unlock(); }
     thread u { m.lock(); y = 2; m.unlock(); x = 2; } thread v { y = 3; }",
    "var a: [int; 3]; thread t(i in 0..3) { a[i] = 1; a[(i + 1) % 3] = 2; a[i] = 3; }",
    "var x = 0; var y = 0; fn f(i: int) { x = i; y = i; }
     thread t { var h = spawn f(1); y = 2; spawn f(3); join h; x = 4; }",
];

/// Complete and abandoned executions.
fn taken(text: &str, plan: Plan) -> (u64, u64) {
    let source = Source::new("model.pre", text);
    let machine = preempt_lang::load(&source, &[]).expect("a good model");
    let search = plan.keep_going().build().expect("a plan that makes sense");
    let tally = search.run(machine, &Silent).0.tally.expect("a search over executions");
    (tally.executions, tally.pruned)
}

/// Sleep sets under a bound promise to lose no trace, but not how many executions they save, so the
/// comparison with the reference does not notice if they save none.
#[test]
fn budgeted_sleep_sets_save_executions() {
    let counts = FEW_RACES.map(|text| {
        [0, 1, 2].map(|bound| {
            let plan = Plan::new().order(Order::ContextBounded).bound(bound);
            (taken(text, plan).0, taken(text, plan.reduction(Reduction::BudgetedSleep)).0)
        })
    });
    let expected = [
        [(6, 6), (24, 17), (60, 22)],
        [(6, 6), (36, 28), (86, 43)],
        [(6, 6), (42, 28), (192, 71)],
        [(3, 3), (10, 8), (26, 11)],
    ];
    assert_eq!(counts, expected, "executions without and with sleep sets; measured");
}

/// The same for abandoned executions, which other reductions may have.
#[test]
fn reductions_abandon_few_executions() {
    let reductions =
        [Reduction::Sleep, Reduction::FlanaganGodefroid, Reduction::Source, Reduction::Optimal];
    let counts = FEW_RACES.map(|text| {
        let plan = Plan::new().order(Order::Executions);
        reductions.map(|reduction| taken(text, plan.reduction(reduction)))
    });
    // All reductions but the second take one execution for each trace. The first
    // program has a circle of three races, of which seven of the eight outcomes are possible.
    let expected = [
        [(7, 10), (13, 0), (7, 0), (7, 0)],
        [(9, 19), (19, 0), (9, 0), (9, 0)],
        [(25, 51), (111, 0), (25, 0), (25, 0)],
        [(7, 7), (13, 0), (7, 0), (7, 0)],
    ];
    assert_eq!(counts, expected, "complete and abandoned executions; measured");
}
