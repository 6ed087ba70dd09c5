//! Preempt for Rust.

pub mod cell;
pub mod check;
pub mod hint;
mod program;
mod report;
mod runtime;
pub mod sync;
mod system;
pub mod thread;

pub use check::{Check, check};
pub use preempt_explore::Outcome;
