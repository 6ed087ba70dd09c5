//! The distinct failures of a search over states, each with the shortest schedule that was met.

use std::collections::HashMap;

use preempt_system::{Failure, Schedule};

use crate::codec::{Damaged, Reader, Writer};

/// The failures, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Failures {
    pub(crate) found: Vec<(Failure, Schedule)>,
    classes: HashMap<Failure, usize>,
}

impl Failures {
    /// Whether the failure is a new one.
    pub(crate) fn note(&mut self, failure: Failure, schedule: Schedule) -> bool {
        if let Some(&at) = self.classes.get(&failure) {
            if schedule.0.len() < self.found[at].1.0.len() {
                self.found[at].1 = schedule;
            }
            return false;
        }
        self.classes.insert(failure.clone(), self.found.len());
        self.found.push((failure, schedule));
        true
    }

    /// Reads what [`Failures::save`] has written.
    pub(crate) fn load(from: &mut Reader) -> Result<Failures, Damaged> {
        let found: Vec<(Failure, Schedule)> = from.get()?;
        let classes =
            found.iter().enumerate().map(|(at, (failure, _))| (failure.clone(), at)).collect();
        Ok(Failures { found, classes })
    }

    pub(crate) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.found);
    }
}
