//! Mistakes that are easy to make, each with the smallest program that shows it: the algorithm is
//! right there, and with the mistake it is not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use preempt_bench::agree::cartesian::compare;
use preempt_explore::mutants::{self, Mutant};

const PITFALLS: [(Mutant, &str); 11] = [
    // The braces of Figure 6.
    (
        Mutant::AddsWhatDepends,
        "steps statement; var g = 0; thread t1 { g = 1; } thread t2 { var r = 0; skip; r = g; assert r != 1; }",
    ),
    // A thread that waits has read something.
    (
        Mutant::WaitsBlindly,
        "var g = 0; thread t1 { await g == 1; assert false; } thread t2 { g = 1; }",
    ),
    // A cycle of local states is not a cycle of states.
    (
        Mutant::LocalCycles,
        "steps statement; var g: 0..3 = 0;
         thread t1 { var r: 0..3 = 0; loop { r = g; g = (g + 1) % 3; } } thread t2 { }",
    ),
    // The smallest vector may be in conflict with itself.
    (Mutant::WithoutFirstCheck, "var g = 0; thread t1 { g = 1; } thread t2 { assert g != 1; }"),
    // If two last transitions depend on each other, both prefixes end.
    (
        Mutant::OnlyExtendingEnds,
        "steps statement; var g = 0; thread t1 { skip; assert g != 1; } thread t2 { g = g + 1; }",
    ),
    // Without one more check, only local properties would be preserved.
    (
        Mutant::DeadlocksWhereMet,
        "steps statement; var g = 0; var h = 0; thread t1 { skip; await g == 1; } thread t2 { skip; await h == 1; }",
    ),
    // One thread has ended, the other waits.
    (
        Mutant::DeadlocksWhereMet,
        "steps statement; var g = 0; thread t1 { skip; } thread t2 { skip; await g == 1; }",
    ),
    // All alternatives of nondeterministic threads must be followed.
    (
        Mutant::AcrossChoices,
        "var g = 0; thread t1 { var r = choose(0..2); assert r != 1; } thread t2 { g = 1; }",
    ),
    (
        Mutant::AcrossChoices,
        "var g = 0; thread t1 { g = 1; var r = choose(0..2); g = 2; assert r != 1; } thread t2 { skip; }",
    ),
    // A spawn ends its prefix: the new thread continues from there.
    (
        Mutant::VacantBlindly,
        "var g = 0; fn child() { assert g == 0; } thread t1 { var h = spawn child(); g = 1; skip; }",
    ),
    // Accesses to variables of the invariant end prefixes.
    (
        Mutant::ObservesBlindly,
        "var x = 0; invariant never_one: x != 1; thread t1 { x = 1; x = 2; }",
    ),
];

#[test]
fn every_mistake_is_detected_on_its_program() {
    for (mutant, text) in PITFALLS {
        match compare(text) {
            Ok(small) => assert!(small),
            Err(error) => panic!("{error:#} on\n{text}"),
        }
        // A violated invariant panics, which counts too.
        let seeded = || mutants::with(Some(mutant), || compare(text));
        let passed = catch_unwind(AssertUnwindSafe(seeded)).is_ok_and(|compared| compared.is_ok());
        assert!(!passed, "{mutant:?} is not noticed on\n{text}");
    }
    assert!(Mutant::CARTESIAN.iter().all(|mutant| PITFALLS.iter().any(|(of, _)| of == mutant)));
}

/// Programs that are hard in other ways.
const HARD: [(&str, &str); 8] = [
    (
        "a prefix that was marked infinite becomes dependent in its last transition",
        "steps statement; var g = 0; thread t1 { skip; await g == 1; skip; } thread t2 { skip; skip; g = 1; }",
    ),
    (
        "a cycle of moves becomes dependent in its last transition",
        "steps statement; var g = 0; var h = 0;
         thread t1 { loop { h = 1; h = 0; } } thread t2 { skip; skip; skip; skip; g = h; assert g != 1; }",
    ),
    (
        "two spawns, a child that spawns, and a join",
        "var x = 0; fn leaf() { x += 1; } fn inner() { var h = spawn leaf(); x += 1; join h; assert x != 3; }
         thread t1 { var h = spawn inner(); x += 1; join h; } thread t2 { var h = spawn leaf(); assert x != 2; }",
    ),
    (
        "a deadlock after a choice, and a rest that is not a deadlock",
        "var x = 0; mutex m;
         thread t1 { choose { m.lock(); } or { x = 1; } } thread t2 { x = 2; m.lock(); m.unlock(); }",
    ),
    (
        "atomic blocks over several locations",
        "var x = 0; var y = 0;
         thread t1 { atomic { x = 1; y = 1; } atomic { x = 0; y = 2; } }
         thread t2 { var r = x; assert y != 2 || r != 1; } thread t3 { atomic { await x == 1; y = 5; } assert y == 5; }",
    ),
    (
        "an invariant that reads less or more as it goes",
        "var x = 0; var y = 0; invariant one: x == 0 || y != 1; thread t1 { y = 1; y = 2; } thread t2 { x = 1; x = 0; }",
    ),
    (
        "records on the heap",
        "record Node { value: int, next: *Node } atomic var top: *Node;
         thread t1 { top = new Node { value: 1, next: top }; } thread t2 { top = new Node { value: 2, next: top }; }
         thread t3 { var n = top; if n != null { assert n.value != 2; } }",
    ),
    ("a program that is wrong before it begins", "var x = 0; invariant never: x != 0; thread t1 { x = 1; x = 0; }"),
];

#[test]
fn hard_programs_agree_with_the_oracle() {
    for (what, text) in HARD {
        match compare(text) {
            Ok(small) => assert!(small, "{what}"),
            Err(error) => panic!("{what}: {error:#}"),
        }
    }
}
