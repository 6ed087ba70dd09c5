//! The transition system that all of Preempt's front ends speak and all of its strategies explore.
//!
//! A [program] is a set of [threads](thread) that take [steps](model) on shared [locations](footprint) and
//! [synchronisation objects](object). This crate defines what these words mean, and nothing else: it does no I/O, knows
//! no front end and no strategy, and contains no unsafe code.
#![forbid(unsafe_code)]

pub mod arrows;
pub mod batch;
pub mod clock;
pub mod deed;
pub mod fingerprint;
pub mod footprint;
pub mod hb;
pub mod model;
pub mod mover;
pub mod object;
pub mod pending;
pub mod program;
mod rows;
pub mod schedule;
pub mod text;
pub mod thread;
pub mod verdict;

pub use batch::Batch;
pub use clock::{Epoch, VectorClock};
pub use deed::{Deed, Deeds, Hold, Place, Record, Supply};
pub use fingerprint::Fingerprint;
pub use footprint::{Access, Footprint, Location};
pub use hb::{HbAction, HbGraph, HbKey};
pub use model::{Capacity, Idle, Lead, Model, Narrate, Narration, NotStraight, Shape, Sort, Step, Stepper};
pub use mover::Mover;
pub use object::{Action, Cells, Holds, Kind, Misuse};
pub use pending::{Footprints, Pending, Status};
pub use program::{Program, Restart, Swap, System, Waits};
pub use rows::Times;
pub use schedule::{Choice, Preemptions, Schedule};
pub use thread::{MAX_THREADS, ThreadId, ThreadSet};
pub use verdict::{Failure, FailureKind, Finding, Shrunk, Site, Verdict};
