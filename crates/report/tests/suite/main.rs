//! The tests of this crate in one program: linking many of them takes longer than running them.

mod plots;
mod schedules;
mod traces;
