//! Linearizability: structures with known verdicts, exact counts, settings and reports.

mod counts;
mod settings;
mod structures;
mod verdicts;
