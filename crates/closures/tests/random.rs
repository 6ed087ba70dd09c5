//! Random closure programs in CI: a few hundred programs, and every construct.

use preempt_closures::generate::{self, AWAITED, CONSTRUCTS};
use preempt_closures::many;
use preempt_closures::reference::Kind;

/// The number of programs to compare.
const PROGRAMS: u64 = 400;

/// The number of programs with assumptions.
const ASSUMING: u64 = 150;

/// The number of programs about a pointer to a node that is freed.
const FREEING: u64 = 150;

/// A broken build disagrees on many programs, each of which is shrunk: this many are enough.
const DISAGREEMENTS: usize = 3;

#[test]
fn the_library_agrees_with_brute_force() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
    };
    let (from, many) = (number("CLOSURES_FROM", 0), number("CLOSURES_PROGRAMS", PROGRAMS));
    let mut printed = 0;
    let report = many::run(from..from + many, |seed, report| {
        if std::env::var_os("CLOSURES_LOUD").is_some() {
            report.disagreements[printed..]
                .iter()
                .for_each(|disagreement| eprintln!("{disagreement}"));
            eprintln!("{seed}");
        }
        printed = report.disagreements.len();
        assert!(printed < DISAGREEMENTS, "{report}");
    });
    assert!(report.disagreements.is_empty(), "{report}");
    // A comparison that skips its programs, or whose programs cannot fail, compares nothing.
    assert!(report.programs * 10 > many * 8, "{report}");
    assert!(report.verdicts > report.programs * 15, "{report}");
    assert!(report.traces > report.programs * 8, "{report}");
    assert!(report.unfinished * 20 < report.verdicts, "{report}");
    if many >= PROGRAMS {
        assert_eq!(report.failures.len(), Kind::ALL.len(), "{report}");
    }
    println!("{report}");
}

/// Executions in which an assumption fails are not executions, for every strategy.
#[test]
fn assumptions_agree_with_brute_force() {
    let report = many::run_generated(generate::assuming, 0..ASSUMING, |_, report| {
        assert!(report.disagreements.len() < DISAGREEMENTS, "{report}");
    });
    assert!(report.disagreements.is_empty(), "{report}");
    assert!(report.discarded > 500 && report.executions > 500, "{report:?}");
}

/// A node that a thread has found is freed by another thread before its use.
#[test]
fn uses_of_freed_memory_agree_with_brute_force() {
    let report = many::run_generated(generate::of_pointers, 0..FREEING, |_, report| {
        assert!(report.disagreements.len() < DISAGREEMENTS, "{report}");
    });
    assert!(report.disagreements.is_empty(), "{report}");
    let wrong = report.failures.get("UseAfterFree").copied().unwrap_or_default();
    assert!(wrong > 10 && report.programs > wrong + 50, "{report}");
}

/// A construct that is never generated is never compared.
#[test]
fn every_construct_is_generated() {
    let mut missing: Vec<&str> = CONSTRUCTS.to_vec();
    for seed in 0..PROGRAMS {
        let coverage = generate::coverage(&generate::program(seed));
        assert!(coverage.keys().all(|construct| CONSTRUCTS.contains(construct)), "{coverage:?}");
        missing.retain(|construct| !coverage.contains_key(construct));
    }
    assert_eq!(missing, [""; 0]);
    assert!(AWAITED.iter().all(|construct| CONSTRUCTS.contains(construct)));
}
