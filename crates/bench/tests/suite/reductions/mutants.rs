//! Errors seeded into cb-por: each of them is detected by the figures of the zoo, or by the oracle
//! on the program below.

use std::panic::{AssertUnwindSafe, catch_unwind};

use preempt_explore::mutants::{self, Mutant};
use preempt_explore::reduce::cb_por::Config;

use super::figures::{Program, programs};
use super::oracle::{Oracle, load};

/// A thread that reads the same write twice. If the name of an action did not contain its number,
/// the two reads would cancel each other.
const TWICE: &str = "
    atomic var x = 0;
    atomic var y = 0;
    thread t1 { var r = 0; r = x; r = x; y = 1; }
    thread t2 { var r = 0; x = 1; r = y; }
";

/// Whether a figure of the program is not reproduced.
fn detects(program: &Program, mutant: Option<Mutant>) -> bool {
    (0..program.traces.len()).any(|bound| {
        let checked =
            catch_unwind(AssertUnwindSafe(|| mutants::with(mutant, || program.check_bound(bound))));
        // A violated invariant panics, which counts too.
        checked.is_err() || checked.is_ok_and(|result| result.is_err())
    })
}

/// Whether the oracle disagrees on [`TWICE`].
fn oracle_detects(mutant: Option<Mutant>) -> bool {
    let (oracle, machine) = Oracle::of(load(TWICE), None).expect("the program is small");
    let mut machine = Some(machine);
    (0..4).any(|bound| {
        let config = Config { bound, ..Config::default() };
        let same = machine.take().expect("nothing was wrong so far");
        let checked = catch_unwind(AssertUnwindSafe(|| {
            mutants::with(mutant, || oracle.check_cb_por(same, &config))
        }));
        if let Ok(Ok(same)) = checked {
            machine = Some(same);
        }
        machine.is_none()
    })
}

#[test]
fn every_mutant_is_detected() {
    let zoo: Vec<Program> =
        programs().into_iter().filter(|program| program.file.starts_with("zoo")).collect();
    let detected_by = |mutant| {
        zoo.iter().filter(|program| detects(program, mutant)).map(|p| p.file.as_str()).collect()
    };
    let all: Vec<(Mutant, Vec<&str>)> =
        Mutant::CB_POR.iter().map(|&mutant| (mutant, detected_by(Some(mutant)))).collect();
    let by_oracle: Vec<Mutant> =
        Mutant::CB_POR.into_iter().filter(|&mutant| oracle_detects(Some(mutant))).collect();
    let none = (detected_by(None), oracle_detects(None));
    println!("{all:?} {by_oracle:?}");
    assert_eq!(none, (Vec::<&str>::new(), false), "what is right is not called wrong");
    for (mutant, by) in all {
        assert!(!by.is_empty() || by_oracle.contains(&mutant), "no program shows {mutant:?}");
    }
}
