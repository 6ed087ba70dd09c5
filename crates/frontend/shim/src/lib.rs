//! Preempt for Rust.

pub mod cell;
pub mod check;
pub mod hint;
mod program;
mod replay;
mod report;
mod runtime;
mod settings;
pub mod sync;
mod system;
pub mod thread;

pub use check::{Check, check};
pub use preempt_explore::{Cache, Count, Order, Outcome, Reduction};
pub use preempt_system::{Failure, FailureKind, Finding, Verdict};
