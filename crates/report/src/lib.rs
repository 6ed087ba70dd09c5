//! Preempt's outcomes as text, JSON and schedules.
#![forbid(unsafe_code)]

pub mod json;
pub mod record;
pub mod story;
