//! Records on the heap, and data that is handed over by `spawn` and `join`.

use preempt_bench::agree::transactions::{compare, misses};
use preempt_explore::mutants::{self, Mutant};
use preempt_explore::reduce::cpc::{self, Config, Variant};
use preempt_explore::{Plan, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;

fn model(text: &str) -> Machine {
    preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a model")
}

/// The steps of a program by full search and by transactions.
fn steps(text: &str) -> (u64, u64) {
    let full = Plan::new().ignore_deadlocks().keep_going().build().expect("the plan is valid");
    let (full, _) = full.run(model(text), &Silent);
    (full.coverage.transitions, cpc::run(model(text), Config::default()).transitions)
}

/// All searches find the failures of the full search, and there is at least one.
fn fails(text: &str) {
    let compared = compare(text).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.programs, compared.failing), (1, 1), "{compared:?}\n{text}");
}

/// Two threads that use a record, and two other threads that show where they are interrupted.
fn program(first: &str, second: &str) -> String {
    format!(
        "steps statement;
         record Node {{ lock: mutex, value: 0..9, next: *Node }}
         var h: *Node; mutex m; atomic var y = 0;
         init {{ h = new Node {{ value: 0 }}; }}
         thread t {{ {first} }} thread u {{ {second} }} thread v {{ y = 1; }} thread z {{ y = 2; }}"
    )
}

#[test]
fn records_move_as_they_are_protected() {
    let locked = |lock: &str| format!("{lock}.lock(); h.value = 1; h.value = 2; {lock}.unlock();");
    let private = "var p = new Node { value: 1 }; p.value = 2; p.value = 3; y = 3;";
    let counts = [
        ("the record's own lock", locked("h.lock"), locked("h.lock")),
        ("a lock with a name", locked("m"), locked("m")),
        ("one lock each", locked("m"), locked("h.lock")),
        ("no lock", "h.value = 1; h.value = 2;".into(), "h.value = 1; h.value = 2;".into()),
        (
            "no writer",
            "var q = h.value; q = h.value;".into(),
            "var q = h.value; q = h.value;".into(),
        ),
        ("records of their own", private.into(), private.into()),
        (
            "a lock that is tried",
            locked("h.lock"),
            "if h.lock.try_lock() { h.value = 2; h.lock.unlock(); }".into(),
        ),
    ]
    .map(|(what, first, second): (&str, String, String)| (what, steps(&program(&first, &second))));
    let expected = [
        ("the record's own lock", (144, 96)),
        ("a lock with a name", (144, 96)),
        ("one lock each", (346, 174)),
        ("no lock", (114, 114)),
        ("no writer", (96, 56)),
        ("records of their own", (342, 190)),
        ("a lock that is tried", (150, 107)),
    ];
    assert_eq!(counts, expected, "steps by full search, and by transactions; measured");
}

#[test]
fn a_record_that_others_see_is_not_private() {
    let text = program("h.value = 1; h.value = 2;", "assert h.value != 1;");
    fails(&text);
    assert!(
        mutants::with(Some(Mutant::HeapIsPrivate), || misses(&text, Variant::Repaired))
            .expect("a small program")
    );
}

#[test]
fn the_lock_of_another_record_does_not_protect() {
    let text = "
        steps statement;
        record Node { lock: mutex, value: 0..9, next: *Node }
        var h: *Node; atomic var ready = false;
        init { h = new Node { value: 0, next: new Node { value: 0 } }; }
        thread u {
            ready = true;
            h.next.lock.lock();
            assert h.next.value != 1;
            h.next.lock.unlock();
        }
        thread t {
            await ready;
            var i: 0..=200 = 0;
            while i < 200 { i += 1; }
            h.lock.lock();
            h.next.value = 1;
            h.next.value = 2;
            h.lock.unlock();
        }";
    fails(text);
    fails(
        &text
            .replace("h.lock.lock()", "h.next.lock.lock()")
            .replace("h.lock.unlock()", "h.next.lock.unlock()")
            .replace("assert h.next.value != 1", "assert h.next.value != 2"),
    );
}

#[test]
fn a_record_is_published_by_pointers_to_it() {
    // By a field of a shared record, at the end of a list, by a channel, by a new thread, within
    // one step.
    for first in [
        "var p = new Node { value: 1 }; h.next = p; p.value = 2; p.value = 3;",
        "var p = new Node { value: 0 }; p.next = new Node { value: 1 }; h.next = p.next; p.next.value = 2; p.next.value = 3;",
        "var p = new Node { value: 1 }; atomic { h.next = p; p.value = 2; } p.value = 3;",
    ] {
        fails(&program(first, "if h.next != null { assert h.next.value != 2; }"));
    }
    fails(
        "record Node { value: 0..9 } channel(1, *Node) ch;
         thread t { var p = new Node { value: 1 }; ch.send(p); p.value = 2; p.value = 3; }
         thread u { var q = ch.recv(); assert q.value != 2; }",
    );
    fails(
        "record Node { value: 0..9 }
         fn child(p: *Node) { assert p.value != 2; }
         thread t { var p = new Node { value: 1 }; var k = spawn child(p); p.value = 2; p.value = 3; }",
    );
}

/// The child sets `ready` and then does its last step: `last`. The parent waits for a long time
/// before it reads what the child has done there, longer than a rehearsal. If the parent's read did
/// not count after the child's last step, the child would seem to be alone; then no thread would
/// run between its two steps, and the parent would always come too late to see the difference.
fn too_early(last: &str, look: &str) -> String {
    format!(
        "steps statement;
         record Node {{ value: 0..9 }} var x: 0..9 = 0; atomic var ready = false;
         fn child(n: *Node) {{ ready = true; {last} }}
         thread main {{
             var p = new Node {{ value: 0 }};
             spawn child(p);
             await ready;
             var i: 0..=200 = 0;
             while i < 200 {{ i += 1; }}
             {look}
         }}"
    )
}

#[test]
fn a_record_that_others_no_longer_reference_is_not_private() {
    fails(&too_early("atomic { n.value = 1; n = null; }", "assert p.value == 1;"));
}

#[test]
fn a_thread_is_not_alone_because_the_others_have_ended() {
    fails(&too_early("x = 1;", "assert x == 1;"));
}

/// The second thread accesses the record without its lock, long after the first thread has relied
/// on it.
const LATE: &str = "
    steps statement;
    record Node { lock: mutex, value: 0..3 }
    var h: *Node;
    atomic var g = false;
    init { h = new Node { value: 0 }; }
    thread u {
        g = true;
        assert h.value != 1;
    }
    thread t {
        await g;
        var i: 0..=200 = 0;
        while i < 200 { i += 1; }
        h.lock.lock();
        h.value = 1;
        h.value = 2;
        h.lock.unlock();
    }
";

#[test]
fn a_field_that_proves_unprotected_late_is_given_up() {
    let compared = compare(LATE).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((compared.failing, compared.breaches > 0), (1, true), "{compared:?}");
    assert!(
        mutants::with(Some(Mutant::BreachGoesOn), || misses(LATE, Variant::Repaired))
            .expect("a small program"),
        "continuing loses nothing"
    );
}

#[test]
fn every_thread_that_exhausts_the_records_is_found() {
    // Each of them may be the one that allocates one record too many.
    fails(
        "record Node { next: *Node } atomic var y = 0;
         thread t { var p: *Node = null; loop { p = new Node { next: p }; } }
         thread u { var p = new Node { next: null }; y = 1; }",
    );
}

/// What the parent does before it starts its children and after it has joined them, in between, and
/// what they do.
fn family(before: &str, between: &str, joins: &str, after: &str) -> String {
    format!(
        "steps statement; var x: 0..9 = 0; atomic var y = 0;
         fn child(i: 0..2) {{ y = 1; y = 2; }} fn heir() {{ x = x + 1; x = x + 1; y = 3; }}
         thread main {{ {before} var k = spawn child(0); var l = spawn heir(); {between} {joins} {after} }}"
    )
}

#[test]
fn data_handed_over_by_spawn_and_join_moves() {
    let handed = family("x = 1; x = 2;", "", "join k; join l;", "x = 5; x = 6;");
    let kept = family("x = 1; x = 2;", "", "join k;", "x = 5; x = 6;");
    assert_eq!([steps(&handed), steps(&kept)], [(40, 30), (61, 54)], "measured");
    // A thread that was not joined may still be running.
    fails(&family("", "", "join k;", "x = 5; assert x == 5;"));
    let text = family("x = 1;", "x = 5; assert x == 5;", "join k; join l;", "");
    fails(&text);
    assert!(
        mutants::with(Some(Mutant::AlwaysAlone), || misses(&text, Variant::Repaired))
            .expect("a small program")
    );
}
