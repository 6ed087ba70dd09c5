//! Everything that Preempt claims, regenerated: the corpus with its expectations, the tables of the
//! papers, random programs against the oracle, comparisons with peers, other people's suites, how
//! cost grows, counts of instructions; and records of such runs.
#![deny(unsafe_code)]

pub mod agree;
pub mod closures;
pub mod corpus;
pub mod instructions;
pub mod measure;
pub mod papers;
pub mod peers;
pub mod random;
pub mod record;
pub mod scale;
pub mod straight;
pub mod suites;
pub mod table;
pub mod workers;
