//! The first thing that went wrong. Everything after it is a consequence.

use std::sync::{Arc, OnceLock};

/// A record of what ended the connections of this process, shared by its threads.
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
