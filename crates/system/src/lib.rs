//! The transition system that Preempt's front ends provide and its strategies explore.
//!
//! A [program] is a set of [threads](thread) that take [steps](model) on shared
//! [locations](footprint) and [synchronisation objects](object). This crate defines these terms and
//! nothing else: it performs no I/O, knows no front end and no strategy, and contains no unsafe
//! code.
//!
//! # Example
//!
//! Objects are pure state machines over a few numbers. A front end keeps the numbers wherever it
//! likes and asks a [`Kind`] what an action does, whether it blocks, and whether it depends on
//! another action:
//!
//! ```
//! use preempt_system::{Access, Action, Kind, ThreadId};
//!
//! let (first, second) = (ThreadId::new(0), ThreadId::new(1));
//! let mut mutex = vec![0; Kind::Mutex.fields()];
//!
//! Kind::Mutex.apply(&mut mutex[..], first, Action::Lock).expect("the mutex is free");
//! assert!(!Kind::Mutex.enabled(&mutex[..], second, Action::Lock));
//!
//! Kind::Mutex.apply(&mut mutex[..], first, Action::Unlock).expect("the first thread holds it");
//! assert!(Kind::Mutex.enabled(&mutex[..], second, Action::Lock));
//!
//! // The order of two locks matters to the threads, so a reduction must try both.
//! assert_eq!(Kind::Mutex.access(Action::Lock), Access::Write);
//! ```
//!
//! A happens-before graph identifies executions that differ only in the order of independent steps:
//!
//! ```
//! use preempt_system::footprint::{Access, Footprint, Location};
//! use preempt_system::hb::HbGraph;
//! use preempt_system::{Choice, ThreadId};
//!
//! let step = |slot, location| {
//!     let footprint = Footprint::one(Location(location), Access::Write);
//!     (Choice::of(ThreadId::new(slot)), footprint)
//! };
//! let fingerprint = |steps: [(Choice, Footprint); 2]| {
//!     let mut graph = HbGraph::new();
//!     steps.iter().for_each(|(choice, footprint)| graph.push(*choice, footprint));
//!     graph.fingerprint()
//! };
//!
//! // Writes to different locations commute; writes to the same location do not.
//! assert_eq!(fingerprint([step(0, 7), step(1, 8)]), fingerprint([step(1, 8), step(0, 7)]));
//! assert_ne!(fingerprint([step(0, 7), step(1, 7)]), fingerprint([step(1, 7), step(0, 7)]));
//! ```
#![forbid(unsafe_code)]

pub mod arrows;
pub mod batch;
pub mod clock;
mod clock_table;
pub mod delay;
pub mod fingerprint;
pub mod footprint;
pub mod hb;
pub mod memory;
pub mod model;
pub mod mover;
pub mod narrate;
pub mod object;
pub mod pending;
pub mod program;
pub mod race;
pub mod schedule;
pub mod step_log;
pub mod sync_clocks;
pub mod text;
pub mod thread;
pub mod verdict;

pub use batch::Batch;
pub use clock::{Epoch, VectorClock};
pub use clock_table::ClockRow;
pub use fingerprint::Fingerprint;
pub use footprint::{Access, Footprint, Location};
pub use hb::{HbAction, HbGraph, HbKey};
pub use memory::MemoryModel;
pub use model::{
    BlockedCounts, Capacity, Describe, GraphObstacle, LocationKind, Model, NotStraight, Partial,
    Shape, Step, Stepper,
};
pub use mover::Mover;
pub use narrate::{
    Explanation, Narrate, Narration, Nesting, Stale, StepNarration, Use, VariableValue,
};
pub use object::{Action, Cells, Holds, Kind, LockMode, Misuse};
pub use pending::{Footprints, Pending, Status};
pub use program::{Program, Restart, Swap, System, Waits};
pub use schedule::{Choice, Preemptions, Schedule};
pub use step_log::{Allocation, ObjectAccess, Place, Record, StepLog};
pub use sync_clocks::SyncClocks;
pub use thread::{MAX_THREADS, ThreadId, ThreadSet};
pub use verdict::{Failure, FailureKind, Finding, Shrunk, Site, Verdict};
