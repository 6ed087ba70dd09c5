//! The tests of this crate in one program, because linking many takes longer than running them.

mod cartesian;
mod distributed;
mod driver;
mod estimates;
mod executions;
mod full_search;
mod growth;
mod progress;
mod reductions;
mod replaying;
mod resuming;
mod shrinking;
mod toy;
mod workers;
