//! What a strategy hands to the driver when it ends.

use std::time::Duration;

use preempt_system::{Failure, Schedule};

use crate::codec::save_fields;
use crate::plan::coverage::{Coverage, Omission};
use crate::plan::growth::Growth;
use crate::plan::tally::{BoundCoverage, Tally};

/// What a search has seen.
#[derive(Default)]
pub(crate) struct Explored {
    pub(crate) seen: Coverage,
    /// Every distinct failure, with a schedule that shows it.
    pub(crate) failures: Vec<(Failure, Schedule)>,
    pub(crate) omission: Omission,
    pub(crate) store_bytes: usize,
    pub(crate) frontier_bytes: usize,
    /// What only searches over executions count.
    pub(crate) tally: Option<Tally>,
    pub(crate) bounds: Vec<BoundCoverage>,
    pub(crate) growth: Option<Growth>,
    /// Whether it ended at a finding in the middle of an execution.
    pub(crate) unfinished: bool,
    /// How long one worker searched again after several. Known at the very end only, so that no
    /// checkpoint has it.
    pub(crate) rerun: Option<Duration>,
}

save_fields!(Explored {
    seen, failures, store_bytes, frontier_bytes, tally, bounds, growth, unfinished; omission, rerun
});
