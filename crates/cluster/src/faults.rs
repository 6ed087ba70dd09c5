//! The first fault of a process. Later faults are its consequences.

use std::sync::{Arc, OnceLock};

/// The reason why the connections of this process ended, shared by its threads.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<OnceLock<String>>);

impl Faults {
    /// Records a fault, as a sentence without a full stop. Only the first one counts.
    pub fn record(&self, what: String) {
        let _ = self.0.set(what);
    }

    /// The first fault.
    pub fn first(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
