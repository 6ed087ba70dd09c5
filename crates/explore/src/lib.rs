//! Preempt's search strategies: a search is an order × a reduction × a store.
//!
//! ```text
//! Plan ──build──▶ Search ──run(model)──▶ Outcome
//!                   │
//!                   ├─ order/    in which order states or executions are explored, by how many workers
//!                   ├─ reduce/   which steps need not be taken
//!                   ├─ store/    which states were met before
//!                   ├─ save/     what is left of a search, as bytes from which it goes on
//!                   └─ expand    what one state leads to: the only place that calls a stepper's `step`
//! ```
//!
//! This crate knows no front end: all it sees is a [`Model`](preempt_system::Model). It prints nothing and reads no file but those in
//! which the operating system tells of [memory].
//! Every [finding](preempt_system::Finding) is [replayed](mod@replay) before it is reported; every [`Outcome`] says what it
//! [guarantees](Outcome::guarantee). The unsafe code is in `store/slots.rs`, the memory of the stores, and in
//! [`memory`], calls of the allocator.
#![deny(unsafe_code)]

mod census;
mod coarse;
pub mod cursor;
pub mod estimate;
pub mod execution;
mod expand;
mod failures;
mod found;
pub mod graph;
pub mod growth;
mod guarantee;
pub mod memory;
mod names;
pub mod observer;
pub mod oracle;
mod order;
pub mod outcome;
pub mod pcg;
pub mod plan;
pub mod points;
pub mod race;
pub mod reduce;
mod refusal;
pub mod replay;
mod rounds;
pub mod save;
mod search;
mod sharded;
pub mod shrink;
mod store;
pub mod system;
pub mod tally;
mod watch;

pub use estimate::Estimate;
pub use growth::{Growth, Sampling};
pub use observer::{Follower, Observer, Progress, Silent};
pub use outcome::{Coverage, Limit, Omission, Outcome};
pub use plan::{Cache, Count, Limits, Order, Plan, Points, StoreKind};
pub use reduce::Reduction;
pub use refusal::Refusal;
pub use replay::{Replay, ReplayError, replay};
pub use save::{Checkpoints, Keeper, Saved};
pub use search::Search;
pub use shrink::Shrink;
pub use tally::{BoundCoverage, Tally};
