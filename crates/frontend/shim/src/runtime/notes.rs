//! What an execution notes for a report.

use std::collections::BTreeMap;

/// Notes for a report. Most executions are not reported and take none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// What the current step did, in words, if a report wants to know.
    pub(crate) step: Option<Vec<String>>,
    /// The values of objects without fields, by location, as far as they were noted.
    pub(crate) values: BTreeMap<u32, String>,
    /// The addresses that were noted. A report shows their positions here, which are the same in
    /// every process.
    pub(crate) pointers: Vec<usize>,
}
