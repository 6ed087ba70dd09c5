//! An independent semantics of models, as a test oracle.
//!
//! [`Model`](model::Model) and [`Run`](run::Run) are an interpreter of the syntax tree, written
//! from docs/language.md and kept as simple as possible: states are plain data that is cloned;
//! nothing is packed, compiled or cached. It shares the parser with the product and nothing else.
//! It assumes that the product has accepted the model.
//!
//! ```text
//! text ──parser──▶ syntax tree ──model──▶ declarations ──run──▶ steps ──graph──▶ all states
//! ```
#![forbid(unsafe_code)]

pub mod compare;
pub mod coverage;
pub mod eval;
pub mod exec;
pub mod executions;
pub mod generate;
pub mod graph;
pub mod litmus_models;
pub mod model;
pub mod objects;
pub mod operands;
pub mod race;
pub mod run;
pub mod shrink;
pub mod static_type;
pub mod types;
pub mod value;
