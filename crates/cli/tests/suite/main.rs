//! The tests of this crate in one program: linking many of them takes longer than running them.

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod cargo;
#[cfg(feature = "cluster")]
mod cluster;
mod commands;
mod corpus;
mod executables;
mod goldens;
mod memory;
mod resume;
mod schema;
mod transcripts;
