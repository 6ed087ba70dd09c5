//! The transition system that all of Preempt's front ends speak and all of its strategies explore.
//!
//! A program is a set of [threads](thread) that take [steps](model) on shared [locations](footprint) and
//! [synchronisation objects](object). This crate defines what these words mean, and nothing else: it does no I/O, knows
//! no front end and no strategy, and contains no unsafe code.
#![forbid(unsafe_code)]

pub mod footprint;
pub mod model;
pub mod schedule;
pub mod thread;
pub mod verdict;

pub use footprint::{Access, Footprint, Location};
pub use model::{Capacity, Model, Narrate, Narration, Shape, Step, Stepper};
pub use schedule::{Choice, Preemptions, Schedule};
pub use thread::{MAX_THREADS, ThreadId, ThreadSet};
pub use verdict::{Failure, FailureKind, Finding, Site, Verdict};
