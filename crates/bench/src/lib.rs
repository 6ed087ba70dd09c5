//! Regenerates everything that Preempt claims: the corpus with its expectations, the tables of the
//! papers, comparisons with the oracle on random programs, comparisons with peers, published test
//! suites and data structures, growth of costs, counts of instructions; and records of such runs.
#![deny(unsafe_code)]

pub mod agree;
pub mod closures;
pub mod cluster;
pub mod corpus;
pub mod crates;
pub mod instructions;
pub mod kills;
pub mod measure;
pub mod native_speed;
pub mod package;
pub mod papers;
pub mod peers;
pub mod random;
pub mod real;
pub mod record;
pub mod robust;
pub mod scale;
pub mod spill;
pub mod straight;
pub mod structures;
pub mod suites;
pub mod table;
pub mod workers;
