//! The distinct failures of a search, each with the best evidence found so far.
//!
//! What counts as evidence is up to the search: a schedule with its cost, the position in a
//! level, or nothing. The search also decides which of two pieces of evidence is better. If that is
//! a total order, the result depends only on the failures that were recorded, not on their order,
//! and so not on the number of workers.

use std::collections::HashMap;

use preempt_system::{Failure, Schedule};

use crate::codec::{Damaged, Reader, Save, Writer};

/// Failures with evidence, in the order in which they were first recorded.
pub(crate) struct DistinctFailures<E = Schedule> {
    found: Vec<(Failure, E)>,
    positions: HashMap<Failure, usize>,
}

impl<E> Default for DistinctFailures<E> {
    fn default() -> Self {
        DistinctFailures { found: Vec::new(), positions: HashMap::new() }
    }
}

impl<E> FromIterator<(Failure, E)> for DistinctFailures<E> {
    /// The failures must be distinct.
    fn from_iter<I: IntoIterator<Item = (Failure, E)>>(failures: I) -> Self {
        let found: Vec<_> = failures.into_iter().collect();
        let numbered = found.iter().enumerate();
        let positions = numbered.map(|(at, (failure, _))| (failure.clone(), at)).collect();
        DistinctFailures { found, positions }
    }
}

impl<E> DistinctFailures<E> {
    /// Records a failure, and keeps `evidence` if `is_better(new, old)` or if the failure is new.
    /// Returns whether it is new.
    pub(crate) fn record(
        &mut self,
        failure: Failure,
        evidence: E,
        is_better: impl FnOnce(&E, &E) -> bool,
    ) -> bool {
        if let Some(&at) = self.positions.get(&failure) {
            if is_better(&evidence, &self.found[at].1) {
                self.found[at].1 = evidence;
            }
            return false;
        }
        self.positions.insert(failure.clone(), self.found.len());
        self.found.push((failure, evidence));
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn contains(&self, failure: &Failure) -> bool {
        self.positions.contains_key(failure)
    }

    /// Whether all `others` are among these.
    pub(crate) fn contain_all<F>(&self, others: &DistinctFailures<F>) -> bool {
        others.found.iter().all(|(failure, _)| self.contains(failure))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Failure, E)> {
        self.found.iter()
    }

    pub(crate) fn into_vec(self) -> Vec<(Failure, E)> {
        self.found
    }
}

impl DistinctFailures {
    /// Records a failure and keeps the shortest schedule. Returns whether the failure is new.
    pub(crate) fn record_shortest(&mut self, failure: Failure, schedule: Schedule) -> bool {
        self.record(failure, schedule, |new, old| new.steps().len() < old.steps().len())
    }
}

impl<E: Save> Save for DistinctFailures<E> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.found);
    }

    fn load(from: &mut Reader) -> Result<Self, Damaged> {
        Ok(from.get::<Vec<_>>()?.into_iter().collect())
    }
}

/// The failures of a search over executions: the evidence is a schedule and its cost: its
/// preemptions or delays, whichever the search counts.
///
/// The best schedule has the least cost, then the fewest steps, then comes first in the
/// order of threads and alternatives. So the schedule that is reported depends on which executions
/// were explored, not on when or by which worker.
pub(crate) type RankedFailures = DistinctFailures<(u32, Schedule)>;

/// The lower the better.
fn rank((cost, schedule): &(u32, Schedule)) -> (u32, usize, &Schedule) {
    (*cost, schedule.steps().len(), schedule)
}

impl RankedFailures {
    /// Records a failure and keeps the best schedule. Returns whether the failure is new.
    pub(crate) fn record_ranked(&mut self, failure: Failure, evidence: (u32, Schedule)) -> bool {
        self.record(failure, evidence, |new, old| rank(new) < rank(old))
    }

    /// The greatest cost of any kept schedule.
    pub(crate) fn greatest_cost(&self) -> Option<u32> {
        self.found.iter().map(|(_, (cost, _))| *cost).max()
    }

    /// All failures with their schedules, the best first. The failure itself decides only if one
    /// schedule shows several.
    pub(crate) fn ranked(mut self) -> Vec<(Failure, Schedule)> {
        self.found.sort_by(|(left, ours), (right, theirs)| {
            (rank(ours), left).cmp(&(rank(theirs), right))
        });
        self.found.into_iter().map(|(failure, (_, schedule))| (failure, schedule)).collect()
    }
}

#[cfg(test)]
mod tests {
    use preempt_system::{Choice, FailureKind, ThreadId};

    use super::*;

    #[test]
    fn the_best_schedule_does_not_depend_on_which_comes_first() {
        let failure = |message: &str| Failure {
            kind: FailureKind::Assertion,
            message: message.into(),
            site: None,
        };
        let schedule = |threads: &[usize]| {
            Schedule::new(threads.iter().map(|&t| Choice::of(ThreadId::new(t))).collect())
        };
        let met = [
            (failure("a"), 1, schedule(&[0])),
            (failure("a"), 0, schedule(&[1, 0, 0])),
            (failure("a"), 0, schedule(&[1, 0])),
            (failure("a"), 0, schedule(&[0, 1])),
            (failure("b"), 0, schedule(&[0, 1])),
            (failure("b"), 0, schedule(&[0, 2])),
            // Longer, though it would come first in the order of threads.
            (failure("c"), 0, schedule(&[0, 0, 0])),
            (failure("c"), 0, schedule(&[1, 1])),
        ];
        let expected = [
            (failure("a"), schedule(&[0, 1])),
            (failure("b"), schedule(&[0, 1])),
            (failure("c"), schedule(&[1, 1])),
        ];
        for first in 0..met.len() {
            let mut failures = RankedFailures::default();
            for (failure, preemptions, schedule) in
                met.iter().cycle().skip(first).take(met.len()).cloned()
            {
                failures.record_ranked(failure, (preemptions, schedule));
            }
            assert_eq!(failures.greatest_cost(), Some(0));
            assert_eq!(failures.ranked(), expected, "from {first}");
        }
    }

    #[test]
    fn of_two_schedules_the_shorter_one_is_kept() {
        let failure = || Failure { kind: FailureKind::Assertion, message: "a".into(), site: None };
        let steps = |length: usize| Schedule::new(vec![Choice::of(ThreadId::new(0)); length]);
        let mut failures = DistinctFailures::default();
        assert!(failures.record_shortest(failure(), steps(2)));
        assert!(!failures.record_shortest(failure(), steps(3)));
        assert!(!failures.record_shortest(failure(), steps(1)));
        assert_eq!(failures.into_vec(), [(failure(), steps(1))]);
    }
}
