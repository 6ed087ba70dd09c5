//! All integration tests of this crate in one binary: linking many binaries takes longer than
//! running the tests.

mod checkpoints;
mod constructs;
mod contention;
mod examples;
mod found;
mod kinds;
mod random;
mod weak_models;
