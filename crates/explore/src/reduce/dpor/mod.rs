//! Dynamic partial-order reduction: which threads have to be tried at a place is found out by looking at the races of the
//! executions that were explored from it.

mod flanagan_godefroid;
mod races;
mod source;

pub use flanagan_godefroid::{Sleep, flanagan_godefroid};
pub use source::source;
