//! Dynamic partial-order reduction: which threads have to be tried at a node follows from the
//! races of the executions that were explored from it.

mod cut;
pub(crate) mod flanagan_godefroid;
pub(crate) mod optimal;
mod races;
mod reversal;
pub(crate) mod source;
mod wakeup;

pub use flanagan_godefroid::{Sleep, flanagan_godefroid};
pub use optimal::optimal;
pub use source::source;
