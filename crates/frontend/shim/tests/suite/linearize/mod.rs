//! Linearizability: structures with known verdicts, exact counts, settings and reports.

mod counts;
mod examples;
mod models;
mod progress;
mod relaxed;
mod settings;
pub mod structures;
mod verdicts;
