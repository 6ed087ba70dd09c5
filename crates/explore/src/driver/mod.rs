//! From a plan to an outcome: which plans can be searched, which strategy searches, and what is
//! made of the findings.

mod executions;
pub mod graph;
mod guarantee;
pub mod oracle;
pub mod outcome;
pub mod replay;
pub(crate) mod search;
mod serial_rerun;
pub mod shrink;
mod states;
mod sync_points;
mod validate;
