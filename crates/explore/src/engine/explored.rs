//! The result that a strategy passes to the driver.

use std::time::Duration;

use preempt_system::{Failure, Schedule};

use crate::codec::save_fields;
use crate::plan::coverage::{Coverage, Omission};
use crate::plan::growth::Growth;
use crate::plan::tally::{BoundCoverage, Tally};

/// The result of a search.
#[derive(Default)]
pub(crate) struct Explored {
    pub(crate) seen: Coverage,
    /// Every distinct failure, with a schedule that shows it.
    pub(crate) failures: Vec<(Failure, Schedule)>,
    pub(crate) omission: Omission,
    pub(crate) store_bytes: usize,
    pub(crate) frontier_bytes: usize,
    /// The most bytes that were in files at one time.
    pub(crate) spilled_bytes: u64,
    /// Counts of a search over executions.
    pub(crate) tally: Option<Tally>,
    pub(crate) bounds: Vec<BoundCoverage>,
    pub(crate) growth: Option<Growth>,
    /// Whether the search ended at a finding in the middle of an execution.
    pub(crate) unfinished: bool,
    /// The time of the second search by one worker after several. Known only at the very end, so no
    /// checkpoint contains it.
    pub(crate) rerun: Option<Duration>,
}

save_fields!(Explored {
    seen, failures, store_bytes, frontier_bytes, spilled_bytes, tally, bounds, growth, unfinished; omission, rerun
});
