//! Preempt for Rust.

pub mod alloc;
pub mod cell;
pub mod check;
pub mod hint;
mod loom;
mod program;
mod replaying;
mod report;
mod runtime;
mod settings;
mod shuttle;
pub mod sync;
mod system;
pub mod thread;
mod watchdog;

/// loom's names.
pub mod model {
    pub use crate::loom::Builder;
}

pub use check::{Check, check};
pub use loom::model;
pub use preempt_explore::{Cache, Count, Order, Outcome, Reduction};
pub use preempt_system::{Failure, FailureKind, Finding, Verdict};
pub use shuttle::{check_dfs, check_pct, check_random, check_random_with_seed, check_urw, replay};
