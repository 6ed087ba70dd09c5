//! The tests of this crate in one program: linking many of them takes longer than running them.

#[cfg(feature = "charts")]
mod plots;
mod recorder;
mod schedules;
mod traces;
