//! The caveat of a passing check: one line about what it did not cover.
//!
//! A pass is read as "there is no error". Where that was not shown, because a bound or a limit cut
//! the search, because schedules were drawn at random, because the program uses orderings whose
//! weaker outcomes are not explored, or because the test names types of std, the check prints one
//! line on the standard error. libtest captures what `eprintln!` prints, but not what is written to
//! the standard error itself, so that the line is visible under `cargo test`.

use std::collections::BTreeSet;
use std::panic::Location as Site;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use preempt_explore::{Limit, Outcome};
use preempt_system::Verdict;

use crate::stderr::{say, test_name};
use crate::uncontrolled::Mention;

/// The features that the executions of a check used, as far as they decide what a pass means.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Threads, the first one included.
    pub(crate) threads: usize,
    /// Atomics, locks and other objects that threads can share.
    pub(crate) objects: usize,
    /// The first operation with an ordering other than `SeqCst`.
    pub(crate) weak: Option<Weak>,
    /// Whether the executions were watched for accesses that weak memory might allow to be stale,
    /// and none was found.
    pub(crate) is_watched: bool,
    /// Whether two threads used the same object, or plain cells, which are checked for races.
    pub(crate) shares: bool,
    /// The place where a thread was started.
    pub(crate) spawned: Option<&'static Site<'static>>,
}

/// An operation with a weak ordering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weak {
    pub(crate) order: Ordering,
    pub(crate) site: &'static Site<'static>,
}

impl Used {
    /// Adds the features that another execution used.
    pub(crate) fn add(&mut self, other: Used) {
        self.threads = self.threads.max(other.threads);
        self.objects = self.objects.max(other.objects);
        self.weak = self.weak.or(other.weak);
        self.is_watched |= other.is_watched;
        self.shares |= other.shares;
        self.spawned = self.spawned.or(other.spawned);
    }

    /// The weak ordering that allows outcomes beyond sequential consistency, if there may be any.
    ///
    /// One thread sees its own operations in order. If the threads share one atomic and nothing
    /// else, coherence orders all operations on it: place every read after the write it reads from,
    /// and the writes in their modification order. Happens-before never contradicts that order, so
    /// the operations have a linear extension, which is a sequentially consistent execution. A
    /// second object, even a mutex, allows more: a thread may see it locked and not see what the
    /// owner stored before it took the lock. Plain cells do not count, since accesses to them that
    /// the orderings do not order are reported as races. If the executions were
    /// [watched](crate::runtime::stale_watch), there are no others.
    pub(crate) fn weaker(&self) -> Option<Weak> {
        let may_matter = self.threads > 1 && self.objects > 1 && !self.is_watched;
        self.weak.filter(|_| may_matter)
    }
}

/// Whether a check explored the memory that it would explore by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultMemory {
    /// It did, or the check names another model.
    Searched,
    /// The strategy of this name, which the check names, cannot explore weak memory.
    RefusedBy(&'static str),
}

/// The caveat of a pass: what it did not cover, and how to cover more; `None` if the search was
/// exhaustive, no weaker outcomes exist, and the test names no uncontrolled synchronisation.
/// `uncontrolled` is the first such name in the test.
pub(crate) fn caveat(
    outcome: &Outcome,
    used: &Used,
    memory: DefaultMemory,
    uncontrolled: Option<Mention>,
) -> Option<String> {
    let cut = (!outcome.complete)
        .then(|| format!("not exhaustive: {}; {}", outcome.guarantee(), advice(outcome)));
    // A complete search may still have assumed something of the schedules that it left out.
    let assumed = (outcome.complete && !outcome.assumptions.is_empty())
        .then(|| format!("assuming {}", outcome.assumptions.join(", and ")));
    let weak = match memory {
        DefaultMemory::RefusedBy(strategy) => used.weaker().map(|Weak { order, site }| {
            format!(
                "weak orderings were used but not explored: `{order:?}` at {site} allows more than \
                 sequentially consistent executions, and {strategy} explores only these; without \
                 an order and a reduction, weak memory is explored"
            )
        }),
        DefaultMemory::Searched => None,
    };
    let uncontrolled = uncontrolled.map(|Mention { path, file, line }| {
        format!(
            "no switch was explored at `{path}` at {file}:{line}, which preempt does not control: \
             use its equivalent in `preempt`, or accept it with `Check::allow_uncontrolled`"
        )
    });
    let parts: Vec<String> = [cut, assumed, weak, uncontrolled].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Whether the test passed under its only schedule, in which the threads share nothing that is
/// controlled.
pub(crate) fn explored_nothing(outcome: &Outcome, used: &Used) -> bool {
    let one = outcome.traces() == Some(1) || outcome.executions() == Some(1);
    outcome.verdict == Verdict::Ok && one && !used.shares
}

/// Why a test that explored nothing is refused: its source names what its threads share.
pub(crate) fn refusal(Mention { path, file, line }: &Mention) -> String {
    format!(
        "there is only one schedule, since the threads share nothing that preempt controls, and \
         the test uses `{path}` at {file}:{line}, which preempt does not control: use its \
         equivalent in `preempt`. If this is intended, `Check::allow_uncontrolled` or PREEMPT_ALLOW_UNCONTROLLED=1 accepts it"
    )
}

/// Why a test that hands work to threads of another library is refused: its source names it.
pub(crate) fn pool_refusal(Mention { path, file, line }: &Mention) -> String {
    format!(
        "the test uses `{path}` at {file}:{line}, which runs code on threads of its own: no search \
         can schedule them or see what they do. Start threads by `preempt::thread`. If these share \
         nothing with the test, `Check::allow_uncontrolled` or PREEMPT_ALLOW_UNCONTROLLED=1 \
         accepts them"
    )
}

/// The warning about a test that explored nothing, where only the package under test uses
/// uncontrolled synchronisation.
pub(crate) fn suspicion(used: &Used, Mention { path, file, line }: &Mention) -> String {
    format!(
        "there is only one schedule, since its {} threads share nothing that preempt controls; if \
         they should, note that `{path}` at {file}:{line} is not controlled",
        used.threads
    )
}

/// How to cover more.
fn advice(outcome: &Outcome) -> String {
    match (outcome.stopped, outcome.bounds.last()) {
        (Some(Limit::Executions), _) => "PREEMPT_EXECUTIONS=n allows more".into(),
        (Some(Limit::Time), _) => "PREEMPT_TIME=seconds allows more".into(),
        (Some(Limit::Depth), _) => "PREEMPT_STEPS=n allows longer executions".into(),
        (Some(_), _) => "raise the limit".into(),
        (None, bound) if !outcome.strategy.is_sample() && bound.is_none_or(|bound| !bound.cut) => {
            "a loop that yields, or that ends sooner, needs no such assumption".into()
        }
        (None, Some(completed)) if outcome.strategy.bound().is_some() => {
            format!(
                "PREEMPT_BOUND={} explores the next bound, PREEMPT_BOUND=none all schedules",
                completed.bound + 1
            )
        }
        (None, Some(_)) => "PREEMPT_BOUND=none, without an order, explores all schedules".into(),
        (None, None) => {
            "PREEMPT_RUNS=n draws more; without an order the search is systematic".into()
        }
    }
}

/// The tests that have printed their line, by name and place of the check.
static PRINTED: Mutex<BTreeSet<(String, &'static str, u32, u32)>> = Mutex::new(BTreeSet::new());

/// Prints the caveat of the check at `place`, unless it did so before in the test that runs.
pub(crate) fn print(caveat: &str, place: &'static Site<'static>) {
    let name = test_name();
    let key = (name.clone(), place.file(), place.line(), place.column());
    if PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
        say(&format!("{name} passed ({place}), {caveat}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_atomic_has_no_weak_outcomes() {
        let weak = Some(Weak { order: Ordering::Relaxed, site: Site::caller() });
        let weaker = |threads, objects| {
            Used { threads, objects, weak, ..Used::default() }.weaker().is_some()
        };
        assert_eq!([weaker(2, 1), weaker(1, 2), weaker(2, 2)], [false, false, true]);
        assert!(Used { threads: 3, objects: 3, ..Used::default() }.weaker().is_none());
    }
}
