//! The tests of this crate in one program: linking many of them takes longer than running them.

mod analyses;
mod bad;
mod check;
mod constants;
mod footprints;
mod fuzz;
mod limits;
mod narrate;
mod reached;
mod syntax;
