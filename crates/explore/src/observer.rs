//! Who watches a search while it runs, and may end it.

use std::time::Duration;

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// States found.
    pub states: u64,
    /// Steps executed.
    pub transitions: u64,
    /// The depth that is being expanded (breadth first) or the greatest depth so far (depth first).
    pub depth: u32,
    /// States found that wait to be expanded.
    pub frontier: u64,
    /// Distinct failures so far.
    pub failures: u64,
    /// The memory of the store.
    pub store_bytes: usize,
    /// The time since the search began.
    pub elapsed: Duration,
    /// How many times the search began anew because the model's states were too small.
    pub restarts: u32,
}

/// Watches a search. Workers call it every some thousand states, several at once if there are several.
pub trait Observer: Sync {
    /// Takes note of the progress. The numbers never fall, except that a restart begins with 0 again.
    fn progress(&self, progress: &Progress);

    /// Whether the search shall end here, incomplete.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing and never interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&self, _: &Progress) {}
}

impl Observer for () {
    fn progress(&self, _: &Progress) {}
}
