//! Preempt's search strategies: a search is an order × a reduction × a store.
//!
//! ```text
//! Plan ──build──▶ Search ──run(model)──▶ Outcome
//! ```
//!
//! The crate has layers. A module uses its own layer and those above it in this table; `order` and
//! `reduce` do not use each other. A test reads the sources and checks this.
//!
//! | layer | contents |
//! | --- | --- |
//! | [`codec`] | values as bytes, for checkpoints |
//! | [`plan`] | what users request and what a search counts: data without behaviour |
//! | `engine` | cursors over executions, stores, workers' counts, limits, checkpoints |
//! | `order`, [`reduce`] | the strategies: the order of exploration, and the skipped steps |
//! | `driver` | from a plan to an outcome: validation, replay, shrinking, guarantees |
//!
//! This crate knows no front end: all it sees is a [`Model`](preempt_system::Model) or a
//! [`Program`](preempt_system::Program). It prints nothing, reads the files in which the operating
//! system reports [memory], and writes states to files only where it is
//! [asked to](Search::spill_to). Every [finding](preempt_system::Finding) is
//! [replayed](mod@replay) before it is reported; every [`Outcome`] says what it
//! [guarantees](Outcome::guarantee). The unsafe code is in `engine/store/slots.rs`, the memory of
//! the stores, and in [`memory`], calls of the allocator.
#![deny(unsafe_code)]

// Unit tests share the programs of the integration tests, which name this crate from outside.
#[cfg(test)]
extern crate self as preempt_explore;
#[cfg(test)]
#[path = "../tests/suite/toy/mod.rs"]
mod toy;

pub mod codec;
mod driver;
mod engine;
mod order;
pub mod plan;
pub mod reduce;

pub use driver::outcome::Outcome;
pub use driver::search::Search;
pub use driver::{graph, oracle, outcome, portfolio, replay, shrink};
pub use engine::checkpoint::{
    Checkpoints, Keeper, Resumable, Saved, ShardBytes, ShardKeeper, ShardSource,
    ShardedCheckpoints, WriteBytes, described, program_hash,
};
pub use engine::estimate::Estimate;
#[cfg(feature = "mutants")]
#[doc(hidden)]
pub use engine::mutants;
pub use engine::observer::{Follower, Observer, Progress, Silent};
pub use engine::{
    cursor, estimate, exchange, execution, memory, model, observer, pcg, points, race, waits,
};
pub use plan::coverage::{Coverage, Limit, Omission};
pub use plan::growth::{Growth, Sampling};
pub use plan::tally::{BoundCoverage, Tally};
pub use plan::{
    Cache, Cost, Count, Limits, Order, Plan, Points, Reduction, Refusal, Requirement, Setting,
    Shrink, StoreKind, Strategy, Subject, Term, Terms,
};
