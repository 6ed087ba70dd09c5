//! The same work done by peers, in the same run.

pub mod genmc;
pub mod rust;
pub mod spin;
pub mod stateright;
