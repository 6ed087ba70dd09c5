//! Compiles the programs of `corpus/native` and explores them with every strategy.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod atomics;
mod compile;
mod corpus;
mod frontends;
mod jobs;
mod locked;
mod options;
mod precompiled;
mod races;
mod refusals;
mod replays;
mod resume;
mod rust;
mod safety;
mod strategies;
mod time;
mod weak;
