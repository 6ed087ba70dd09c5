//! A search by transactions observes limits, its findings replay, it checks protection, and it says
//! what it proves.

use preempt_bench::agree::transactions::{compare, misses};
use preempt_bench::corpus;
use preempt_explore::cursor::Cursor;
use preempt_explore::mutants::{self, Mutant};
use preempt_explore::reduce::cpc::{self, Config, Variant};
use preempt_explore::replay::end;
use preempt_explore::{Limit, Limits, Observer, Order, Outcome, Plan, Progress, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::Verdict;

fn model(text: &str) -> Machine {
    preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a model")
}

fn file(name: &str, settings: &[(&str, &str)]) -> Machine {
    let settings: Vec<_> =
        settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    corpus::machine(&corpus::root().join(name), &settings).expect("a program of the corpus")
}

fn plan(reduction: Reduction) -> Plan {
    Plan::new().order(Order::DepthFirst).reduction(reduction).ignore_deadlocks()
}

fn run(plan: Plan, machine: Machine) -> Outcome {
    plan.build().expect("the plan is valid").run(machine, &Silent).0
}

/// The steps of a program by full search and by transactions.
fn steps(text: &str) -> (u64, u64) {
    let full = run(Plan::new().ignore_deadlocks().keep_going(), model(text));
    (full.coverage.transitions, cpc::run(model(text), Config::default()).transitions)
}

#[test]
fn protected_accesses_move() {
    // A transaction may have one access that does not move, so each thread makes two. Other threads
    // show where it is interrupted.
    let program = |declared: &str, first: &str, second: &str| {
        format!(
            "steps statement; {declared} thread t {{ {first} }} thread u {{ {second} }} thread v {{ y = 1; }} thread z {{ y = 2; }}"
        )
    };
    let writes = "m.lock(); x = 1; x = 2; m.unlock();";
    let locks = "var x = 0; atomic var y = 0; mutex m, n; mutex l[3]; rwlock w;";
    let counts = [
        ("one lock", writes.into(), writes.into()),
        ("one of an array of locks", writes.replace('m', "l[2]"), writes.replace('m', "l[2]")),
        ("two locks", writes.into(), writes.replace('m', "n")),
        ("no lock", "x = 1; x = 2;".into(), "x = 1; x = 2;".into()),
        ("no writer", "var q = x; q = x;".into(), "var q = x; q = x;".into()),
        (
            "readers and a writer",
            "w.read(); var q = x; q = x; w.unlock_read();".into(),
            "w.write(); x = 1; x = 2; w.unlock_write();".into(),
        ),
        (
            "a reader that writes",
            "w.read(); x = 3; x = 4; w.unlock_read();".into(),
            "w.read(); x = 1; x = 2; w.unlock_read();".into(),
        ),
        (
            "one that reads what only it writes",
            "m.lock(); x = 1; m.unlock(); var q = x; q = x;".into(),
            "m.lock(); var q = x; q = x; m.unlock();".into(),
        ),
        ("a lock that is tried", writes.into(), "if m.try_lock() { x = 2; m.unlock(); }".into()),
    ]
    .map(|(what, first, second): (&str, String, String)| {
        (what, steps(&program(locks, &first, &second)))
    });
    let expected = [
        ("one lock", (144, 96)),
        ("one of an array of locks", (144, 96)),
        ("two locks", (346, 174)),
        ("no lock", (114, 114)),
        ("no writer", (96, 56)),
        ("readers and a writer", (148, 100)),
        ("a reader that writes", (396, 192)),
        ("one that reads what only it writes", (278, 110)),
        ("a lock that is tried", (150, 107)),
    ];
    assert_eq!(counts, expected, "steps by full search, and by transactions; measured");
}

#[test]
fn an_assumption_that_proves_wrong_late_is_given_up() {
    // The random walks before the search do not reach the accesses under the lock, which come after
    // many rounds.
    let compared = compare(LATE).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.failing, compared.breaches > 0), (1, true), "{compared:?}");
    assert!(
        mutants::with(Some(Mutant::BreachGoesOn), || misses(LATE, Variant::Repaired))
            .expect("a small program"),
        "continuing loses nothing"
    );
}

/// The first thread reads `x` without the lock that the second one takes, 400 steps later. By then
/// the transaction of the first, with `x` assumed to be protected, is done: the search would not
/// return to run the second one in the middle of it.
const LATE: &str = "
    steps statement;
    var x: 0..3 = 0;
    mutex m;
    atomic var g = false;
    thread u {
        g = true;
        assert x != 1;
    }
    thread t {
        await g;
        var i: 0..=200 = 0;
        while i < 200 { i += 1; }
        m.lock();
        x = 1;
        x = 2;
        m.unlock();
    }
";

#[test]
fn an_atomic_block_moves_like_its_statements_together() {
    let text = "
        atomic var g = 0;
        var own = 0;
        thread t { atomic { g = 1; own = 1; } atomic { g = 2; own = 2; } }
        thread u { assert g != 1; }
    ";
    let compared = compare(text).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.programs, compared.failing), (1, 1));
}

#[test]
fn the_first_finding_replays_and_ends_the_search() {
    for reduction in [Reduction::Transactions, Reduction::TransactionsCycle] {
        let search = plan(reduction).build().expect("the plan is valid");
        let (outcome, machine) = search.run(file("bluetooth/model.pre", &[]), &Silent);
        assert_eq!(
            (outcome.verdict, outcome.at_finding, outcome.findings.len()),
            (Verdict::Violation, true, 1)
        );
        let finding = &outcome.findings[0];
        let cursor = Cursor::new(&machine).expect("the search has grown the model");
        let ended = end(cursor, &finding.schedule).expect("a schedule of the program");
        assert!(ended.failures.contains(&finding.failure));
        assert!(
            outcome.guarantee().starts_with("stopped at the first error"),
            "{}",
            outcome.guarantee()
        );
    }
}

#[test]
fn every_outcome_says_what_it_proves() {
    let outcome = run(plan(Reduction::Transactions), file("bluetooth/fixed.pre", &[]));
    assert_eq!((outcome.verdict, outcome.complete), (Verdict::Ok, true));
    let text = outcome.guarantee();
    assert!(
        text.starts_with("complete: by transactions")
            && text.contains("deadlocks were not looked for"),
        "{text}"
    );
    let outcome = run(plan(Reduction::TransactionsUnsound), file("cpc/fig1.pre", &[]));
    assert_eq!(
        (outcome.verdict, outcome.complete, outcome.findings.len()),
        (Verdict::Incomplete, false, 0)
    );
    assert!(outcome.guarantee().contains("errors may be missed"), "{}", outcome.guarantee());
    let outcome = run(plan(Reduction::TransactionsUnsound).keep_going(), file("cpc/fig2.pre", &[]));
    assert_eq!(
        (outcome.verdict, outcome.complete, outcome.findings.len()),
        (Verdict::Violation, false, 1)
    );
}

/// Interrupts at once.
struct Impatient;

impl Observer for Impatient {
    fn progress(&self, _: &Progress) {}

    fn interrupted(&self) -> bool {
        true
    }
}

#[test]
fn limits_are_observed() {
    let machine = || file("bluetooth/fixed.pre", &[("ADDERS", "5")]);
    let whole = run(plan(Reduction::Transactions), machine());
    assert!(whole.complete && whole.coverage.states > 20_000, "{:?}", whole.coverage);
    let limited = |limits| run(plan(Reduction::Transactions).limits(limits), machine());
    let few = limited(Limits { states: Some(5_000), ..Limits::default() });
    assert_eq!((few.stopped, few.complete), (Some(Limit::States), false));
    assert!(few.coverage.states < 10_000, "{:?}", few.coverage);
    let small = limited(Limits { memory: Some(100_000), ..Limits::default() });
    assert_eq!((small.stopped, small.verdict), (Some(Limit::Memory), Verdict::Incomplete));
    let search = plan(Reduction::Transactions).build().expect("the plan is valid");
    let (outcome, _) = search.run(machine(), &Impatient);
    assert_eq!(outcome.stopped, Some(Limit::Interrupt));
    assert!(
        outcome.guarantee().starts_with("INCOMPLETE: stopped by an interrupt"),
        "{}",
        outcome.guarantee()
    );
}
