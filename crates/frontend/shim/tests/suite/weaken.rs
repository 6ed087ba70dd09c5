//! `Check::weaken`: exact tables of the orderings that tests need.

use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use preempt::{Check, Memory, OrderingReport, TrialResult, hint};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::weak_classics::{Plain, treiber, two};

fn weaken(f: impl Fn() + Sync) -> OrderingReport {
    Check::new().unbounded().weaken(f)
}

/// The trials, each as the operation, the change, and the first words of the verdict. Trials of one
/// operation follow each other in the order of the source.
fn table(report: &OrderingReport) -> Vec<String> {
    let lines: Vec<String> = report.to_string().lines().map(str::to_owned).collect();
    let rows = lines.iter().filter(|line| line.starts_with("  "));
    let rows = rows.filter_map(|line| line.split_once(".rs:"));
    rows.map(|(_, row)| {
        let (_, row) = row.split_once("  ").expect("a row has several columns");
        let words: Vec<&str> = row.split_whitespace().collect();
        let end =
            words.iter().position(|word| word.ends_with(':')).map_or(words.len(), |at| at + 2);
        words[..end].join(" ").trim_end_matches(':').to_owned()
    })
    .collect()
}

pub(crate) fn message(data: Ordering, store: Ordering, load: Ordering) {
    two(
        (AtomicUsize::new(0), AtomicBool::new(false)),
        move |(number, ready)| {
            number.store(7, data);
            ready.store(true, store);
        },
        move |(number, ready)| {
            if ready.load(load) {
                assert_eq!(number.load(Relaxed), 7, "stale");
            }
        },
    );
}

#[test]
fn message_passing_needs_release_and_acquire() {
    let report = weaken(|| message(Relaxed, Release, Acquire));
    assert_eq!(report.failure, None);
    let rows = ["store Release -> Relaxed needed: panic", "load Acquire -> Relaxed needed: panic"];
    assert_eq!(table(&report), rows);
    let report = weaken(|| message(SeqCst, SeqCst, SeqCst));
    let rows = [
        "store SeqCst -> Release not needed",
        "store SeqCst -> Release not needed",
        "load SeqCst -> Acquire not needed",
    ];
    assert_eq!(table(&report), rows);
}

#[test]
fn a_failing_test_is_repaired_by_one_ordering_or_none() {
    let report = weaken(|| message(Relaxed, Relaxed, Acquire));
    assert!(report.failure.as_ref().is_some_and(|failure| failure.message.contains("stale")));
    let rows = [
        "store Relaxed -> SeqCst does not help",
        "store Relaxed -> Release repairs the test",
        "load Acquire -> SeqCst does not help",
        "load Relaxed -> SeqCst does not help",
    ];
    assert_eq!(table(&report), rows);
    let report = weaken(|| message(Relaxed, Relaxed, Relaxed));
    assert_eq!(report.trials.len(), 4);
    assert!(report.trials.iter().all(|trial| trial.result.fails()), "{report}");
}

fn dekker(fences: bool, order: [Ordering; 2]) {
    let enter = move |mine: &AtomicBool, other: &AtomicBool| {
        mine.store(true, order[0]);
        if fences {
            fence(SeqCst);
        }
        other.load(order[1])
    };
    let seen = two(
        (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0)),
        move |(a, b, entered)| {
            if !enter(a, b) {
                entered.fetch_add(1, Relaxed);
            }
        },
        move |(a, b, entered)| {
            if !enter(b, a) {
                entered.fetch_add(1, Relaxed);
            }
        },
    );
    assert!(seen.2.load(Relaxed) < 2, "both entered");
}

#[test]
fn dekker_needs_sequential_consistency() {
    let report = weaken(|| dekker(false, [SeqCst, SeqCst]));
    let rows = ["store SeqCst -> Release needed: panic", "load SeqCst -> Acquire needed: panic"];
    assert_eq!(table(&report), rows);
    let report = weaken(|| dekker(true, [Release, Acquire]));
    let rows = [
        "store Release -> Relaxed not needed",
        "fence SeqCst -> AcqRel needed: panic",
        "load Acquire -> Relaxed not needed",
    ];
    assert_eq!(table(&report), rows);
}

fn spin_lock() {
    let add = |(locked, data): &(AtomicBool, Plain)| {
        while locked.swap(true, AcqRel) {
            hint::spin_loop();
        }
        data.set(data.get() + 1);
        locked.store(false, Release);
    };
    assert_eq!(two((AtomicBool::new(false), Plain::new(0)), add, add).1.get(), 2);
}

#[test]
fn a_spin_lock_acquires_and_releases() {
    let rows = [
        "swap AcqRel -> Acquire not needed",
        "swap AcqRel -> Release needed: race",
        "store Release -> Relaxed needed: race",
    ];
    assert_eq!(table(&weaken(spin_lock)), rows);
}

#[test]
fn treibers_stack_needs_release_and_acquire() {
    let report = weaken(|| treiber(AcqRel, Acquire));
    let rows = [
        "compare_exchange, success AcqRel -> Acquire needed: race",
        "compare_exchange, success AcqRel -> Release not needed",
        "load Acquire -> Relaxed needed: race",
        // The load after all threads have ended.
        "load Acquire -> Relaxed not needed",
    ];
    assert_eq!(table(&report), rows);
}

#[test]
fn a_fence_that_cannot_be_weaker_is_removed() {
    let report = weaken(|| {
        two(
            (AtomicUsize::new(0), AtomicBool::new(false)),
            |(number, ready)| {
                number.store(7, Relaxed);
                fence(Release);
                ready.store(true, Relaxed);
            },
            |(number, ready)| {
                let is_ready = ready.load(Relaxed);
                fence(AcqRel);
                if is_ready {
                    assert_eq!(number.load(Relaxed), 7, "stale");
                }
            },
        );
    });
    let rows = [
        "fence Release -> removed needed: panic",
        "fence AcqRel -> Acquire not needed",
        "fence AcqRel -> Release needed: panic",
    ];
    assert_eq!(table(&report), rows);
}

/// A bounded search does not prove any ordering unnecessary.
#[test]
fn a_bounded_search_says_how_far_it_went() {
    let report = Check::new().bound(0).weaken(|| message(Relaxed, SeqCst, SeqCst));
    let rows = [
        "store SeqCst -> Release no failure up to bound 0",
        "load SeqCst -> Acquire no failure up to bound 0",
    ];
    assert_eq!(table(&report), rows);
    // The stale load that shows the error counts one against the bound.
    let report = Check::new().bound(0).weaken(|| message(Relaxed, Release, Acquire));
    assert!(report.trials.iter().all(|trial| !trial.result.fails()), "{report}");
    let bounds = report.trials.iter().map(|trial| match trial.result {
        TrialResult::NotComplete { bound, .. } => bound,
        _ => None,
    });
    assert_eq!(bounds.collect::<Vec<_>>(), [Some(0), Some(0)]);
}

#[test]
fn a_test_without_orderings_has_an_empty_table() {
    let report = Check::new().memory(Memory::Weak).weaken(|| ());
    assert_eq!(report.to_string(), "the test passes\nit uses no ordering that could be weaker\n");
}
