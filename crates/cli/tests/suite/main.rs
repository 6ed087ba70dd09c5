//! The tests of this crate in one program: linking many of them takes longer than running them.

mod commands;
mod corpus;
mod executables;
mod goldens;
mod memory;
mod resume;
mod schema;
mod transcripts;
