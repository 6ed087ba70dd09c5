//! Random closure programs: the library against a brute-force interpreter that shares nothing with it.
//!
//! A program is [data](program). [`mirror`] executes it with the library's types, [`mod@reference`] explores it without any
//! code of the library, and [`compare`] runs every strategy of the library and compares what threads observe, how executions
//! fail, with how few preemptions, and how many traces there are. [`generate`] makes programs, and [`shrink`] makes one on
//! which the two disagree smaller.
#![deny(unsafe_code)]

pub mod compare;
pub mod generate;
pub mod many;
pub mod mirror;
pub mod program;
mod random;
pub mod reference;
pub mod shrink;
