//! The failures that a search over executions has met, each with the best schedule that shows it.
//!
//! The best one has the fewest preemptions, then the fewest steps; of these it is the first in the
//! order of threads and alternatives. So which one is reported depends on which executions were
//! taken, and not on when, or by whom.

use std::collections::HashMap;

use preempt_system::{Failure, Schedule};

use crate::codec::{Damaged, Reader, Writer, save_fields};

/// A failure and the best schedule so far that shows it.
struct Found {
    failure: Failure,
    preemptions: u32,
    schedule: Schedule,
}

save_fields!(Found { failure, preemptions, schedule });

impl Found {
    /// The less the better. The failure itself decides only where one schedule shows several.
    fn rank(&self) -> (u32, usize, &Schedule, &Failure) {
        (self.preemptions, self.schedule.steps().len(), &self.schedule, &self.failure)
    }
}

/// The distinct failures.
#[derive(Default)]
pub(crate) struct Findings {
    found: Vec<Found>,
    classes: HashMap<Failure, usize>,
}

impl Findings {
    /// Takes note of a failure. Whether it was not known before.
    pub(crate) fn note(&mut self, failure: Failure, preemptions: u32, schedule: Schedule) -> bool {
        let found = Found { failure, preemptions, schedule };
        match self.classes.get(&found.failure) {
            Some(&at) if found.rank() < self.found[at].rank() => self.found[at] = found,
            Some(_) => {}
            None => {
                self.classes.insert(found.failure.clone(), self.found.len());
                self.found.push(found);
                return true;
            }
        }
        false
    }

    /// Writes all of them.
    pub(crate) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.found);
    }

    /// Reads what [`Findings::save`] has written.
    pub(crate) fn load(from: &mut Reader) -> Result<Findings, Damaged> {
        let found: Vec<Found> = from.get()?;
        let classes =
            found.iter().enumerate().map(|(at, found)| (found.failure.clone(), at)).collect();
        Ok(Findings { found, classes })
    }

    /// The most preemptions that a schedule has, if there is one.
    pub(crate) fn most_preemptions(&self) -> Option<u32> {
        self.found.iter().map(|found| found.preemptions).max()
    }

    /// All of them, the best first.
    pub(crate) fn ranked(mut self) -> Vec<(Failure, Schedule)> {
        self.found.sort_by(|left, right| left.rank().cmp(&right.rank()));
        self.found.into_iter().map(|found| (found.failure, found.schedule)).collect()
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
            Schedule(threads.iter().map(|&t| Choice::of(ThreadId::new(t))).collect())
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
            let mut findings = Findings::default();
            for (failure, preemptions, schedule) in
                met.iter().cycle().skip(first).take(met.len()).cloned()
            {
                findings.note(failure, preemptions, schedule);
            }
            assert_eq!(findings.most_preemptions(), Some(0));
            assert_eq!(findings.ranked(), expected, "from {first}");
        }
    }
}
