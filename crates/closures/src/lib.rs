//! Random closure programs that compare the library with a brute-force interpreter.
//!
//! A program is [data](program). [`mirror`] executes it with the library's types; [`mod@reference`]
//! explores it without using any code of the library. [`compare`] runs every strategy of the
//! library and compares what threads observe, how executions fail and with how few preemptions, and
//! how many traces there are. [`generate`] creates programs, and [`shrink`] shrinks a program on
//! which the two disagree.
#![deny(unsafe_code)]

pub mod compare;
pub mod generate;
pub mod many;
pub mod mirror;
pub mod program;
mod random;
pub mod reference;
pub mod shrink;
pub mod weak;
