//! Misreadings of the paper: each of them is detected on a small program.

use std::panic::{AssertUnwindSafe, catch_unwind};

use preempt_bench::agree::blocks::compare_text;
use preempt_explore::mutants::{self, Mutant};

/// Program F of the zoo; three threads on two variables; a program without shared variables; a
/// thread without shared variables; readers and a writer.
const PROGRAMS: [&str; 5] = [
    "atomic var x = 0; atomic var y = 0; thread t1 { x = 1; y = 1; } thread t2 { y = 2; x = 2; }",
    "atomic var e = 0; atomic var f = 0; thread t1 { e = 1; } thread t2 { f = 1; } thread t3 { e = 2; f = 2; e = 3; }",
    "atomic var x = 0; atomic var y = 0; thread t1 { x = 1; x = 2; } thread t2 { y = 1; }",
    "atomic var x = 0; atomic var y = 0; thread t1 { x = 1; } thread t2 { y = 1; } thread t3 { x = 2; }",
    "atomic var x = 0; thread t1 { x = 1; x = 2; } thread t2 { var r = x; r = x; } thread t3 { var r = x; }",
];

/// Whether the comparison fails. A violated invariant panics, which counts too.
fn detects(text: &str, mutant: Option<Mutant>) -> bool {
    let checked = catch_unwind(AssertUnwindSafe(|| mutants::with(mutant, || compare_text(text))));
    checked.is_err() || checked.is_ok_and(|result| result.is_err())
}

#[test]
fn every_mutant_is_detected() {
    let detected_on = |mutant| PROGRAMS.iter().filter(|text| detects(text, mutant)).count();
    assert_eq!(detected_on(None), 0, "what is right is not called wrong");
    for mutant in Mutant::BLOCKS {
        let by = detected_on(Some(mutant));
        println!("{mutant:?}: detected_on on {by} of {}", PROGRAMS.len());
        assert!(by > 0, "no program shows {mutant:?}");
    }
}
