//! Statistics that the workers of a search over executions share: sets of everything that is
//! counted once, and the findings.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard};

use preempt_system::{Failure, Schedule};

use crate::codec::save_in_place;
use crate::engine::distinct_failures::RankedFailures;
use crate::engine::lock;
use crate::engine::sharded::SharedNames;

/// The shared statistics of all workers.
pub(crate) struct SharedStats {
    pub(super) traces: SharedNames,
    pub(super) ends: SharedNames,
    pub(super) states: SharedNames,
    pub(super) graphs: SharedNames,
    pub(super) findings: Mutex<RankedFailures>,
    /// The bytes of the strategy's tables, as the workers have reported them.
    pub(super) held: AtomicUsize,
}

save_in_place!(SharedStats { traces, ends, states, graphs, findings, held });

impl SharedStats {
    pub(crate) fn new(workers: usize) -> SharedStats {
        let [traces, ends, states, graphs] = [(); 4].map(|()| SharedNames::new(workers));
        SharedStats {
            traces,
            ends,
            states,
            graphs,
            findings: Mutex::default(),
            held: AtomicUsize::new(0),
        }
    }

    pub(super) fn findings(&self) -> MutexGuard<'_, RankedFailures> {
        lock(&self.findings)
    }

    /// The memory of the sets.
    pub(super) fn bytes(&self) -> usize {
        [&self.traces, &self.ends, &self.states, &self.graphs].iter().map(|set| set.bytes()).sum()
    }

    /// The failures, the best first, and the greatest cost of their schedules.
    pub(crate) fn into_failures(self) -> (Vec<(Failure, Schedule)>, Option<u32>) {
        let findings = self.findings.into_inner().expect("mutex poisoned");
        let most = findings.greatest_cost();
        (findings.ranked(), most)
    }
}
