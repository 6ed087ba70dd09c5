//! Random programs under weak memory in CI.

use preempt_closures::weak::program::FAMILIES;
use preempt_closures::weak::run;

/// The number of programs.
const PROGRAMS: u64 = 1_000;

#[test]
fn the_search_over_graphs_agrees_with_brute_force() {
    let report = run(0..PROGRAMS, |_| {});
    assert!(report.disagreements.is_empty(), "{report}");
    assert!(report.agree > PROGRAMS / 2 && report.graphs > 3 * PROGRAMS, "{report}");
    assert!(report.dead_ends * 50 <= report.graphs, "{report}");
    for (family, &count) in FAMILIES.iter().zip(&report.families) {
        assert!(count >= PROGRAMS / 60, "{family:?}: {report}");
    }
}
