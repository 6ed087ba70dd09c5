//! Litmus tests for weak memory: small programs whose executions are all known.
//!
//! - [`program`]: the programs, and their text form
//! - [`expected`]: the tests of `corpus/litmus` with their expected numbers
//! - [`graph`]: execution graphs, in a form that can be compared
//! - [`axioms`]: all consistent graphs of a program by definition: every assignment of stores to
//!   loads and every modification order, filtered by the axioms of the model
//! - [`random`]: random programs
//!
//! The crate depends on nothing of Preempt, because Preempt's memory is compared with it.
#![forbid(unsafe_code)]

pub mod axioms;
pub mod expected;
pub mod graph;
pub mod program;
pub mod random;

pub use expected::{Expected, Outcome};
pub use graph::Graph;
pub use program::{Instruction, Operand, Order, Program};
