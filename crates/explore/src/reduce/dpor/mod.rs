//! Dynamic partial-order reduction: which threads have to be tried at a place is found out by looking at the races of the
//! executions that were explored from it.

mod races;
mod source;

pub use source::source;
