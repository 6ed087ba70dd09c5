//! The tests of this crate in one program: linking many of them takes longer than running them.

mod contention;
mod examples;
mod found;
mod random;
