//! Data that an execution records for a report.

use std::collections::BTreeMap;

use preempt_system::memory::explain::NotedAccess;
use preempt_system::{Location, Stale};

/// Data for a report. Most executions are not narrated and record none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// Descriptions of the current step, if it is narrated.
    pub(crate) step: Option<Vec<String>>,
    /// The recorded values of objects without fields, by location.
    pub(crate) values: BTreeMap<u32, String>,
    /// The recorded addresses. A report shows their indices, which are the same in every process.
    pub(crate) pointers: Vec<usize>,
    /// The accesses to atomics under weak memory.
    pub(crate) accesses: Vec<NotedAccess>,
    /// The location that the current step has read under weak memory, and the step that stored the
    /// value; see [`StepNarration::read_from`](preempt_system::StepNarration::read_from).
    pub(crate) read_from: Option<(Location, Option<usize>)>,
    /// The stores that the current step does not see, if it is stale.
    pub(crate) stale: Option<Stale>,
}
