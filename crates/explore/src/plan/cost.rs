//! The cost of a schedule: what a search by levels counts and bounds.

/// The unit in which schedules are counted and bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cost {
    /// [Preemptions](preempt_system::Preemptions).
    #[default]
    Preemptions,
    /// [Delays](preempt_system::delay).
    Delays,
}

impl Cost {
    /// One of them, in reports.
    pub fn noun(self) -> &'static str {
        match self {
            Cost::Preemptions => "preemption",
            Cost::Delays => "delay",
        }
    }
}
