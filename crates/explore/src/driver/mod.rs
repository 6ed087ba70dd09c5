//! From a plan to an outcome: builds searches, runs the strategy, and replays and shrinks findings.

mod executions;
pub mod graph;
mod guarantee;
pub mod oracle;
pub mod outcome;
pub mod portfolio;
pub mod replay;
pub(crate) mod search;
mod serial_rerun;
pub mod shrink;
mod states;
mod sync_points;
