//! What a strategy hands to the driver when it ends.

use std::time::Duration;

use preempt_system::{Failure, Schedule};

use crate::codec::{Damaged, Reader, Save, Writer};
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

/// What a search over executions has seen: its tables omit nothing.
impl Save for Explored {
    fn save(&self, to: &mut Writer<'_>) {
        debug_assert_eq!(self.omission, Omission::Never, "it is a search over executions");
        to.put(&self.seen);
        to.put(&self.failures);
        to.put(&(self.store_bytes, self.frontier_bytes));
        to.put(&(self.tally, self.bounds.clone()));
        to.put(&self.growth);
        to.put(&self.unfinished);
    }

    fn load(from: &mut Reader) -> Result<Explored, Damaged> {
        let (seen, failures) = (from.get()?, from.get()?);
        let (store_bytes, frontier_bytes) = from.get()?;
        let ((tally, bounds), growth, unfinished) = (from.get()?, from.get()?, from.get()?);
        Ok(Explored {
            seen,
            failures,
            omission: Omission::Never,
            store_bytes,
            frontier_bytes,
            tally,
            bounds,
            growth,
            unfinished,
            rerun: None,
        })
    }
}
