//! Executions that return to an earlier state.
//!
//! A reduction over executions compares no states and does not hold back threads that spin, so it
//! would follow such an execution forever; the search stops instead. From 1,024 steps on, the state
//! after each power of two steps is kept and every later state is compared with it (Brent's
//! algorithm). A cycle is found at the latest when the execution is twice as long as the path to
//! it, or as the cycle itself.

use preempt_system::System;

use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::plan::ResolvedPlan;

/// The number of steps from which on an execution is checked.
const LONG: usize = 1 << 10;

/// The kept state of the current execution.
#[derive(Debug, Default)]
pub(crate) struct CycleDetector {
    /// Whether executions are checked at all.
    watched: bool,
    /// Whether a bound on preemptions is set: then only a cycle without preemptions can repeat
    /// forever.
    bounded: bool,
    /// The number of steps after which the execution was in `state`; 0 if no state is kept.
    len: usize,
    state: Vec<u64>,
    preemptions: u32,
}

save_fields!(CycleDetector { watched, bounded, len, state, preemptions });

impl CycleDetector {
    /// Checks executions if a cycle would keep the planned search from ending.
    pub(crate) fn new(plan: &ResolvedPlan) -> CycleDetector {
        CycleDetector {
            watched: plan.strategy.is_reduced(),
            bounded: plan.strategy.bound().is_some(),
            ..CycleDetector::default()
        }
    }

    /// Whether executions are checked at all.
    pub(crate) fn is_on(&self) -> bool {
        self.watched
    }

    /// Whether the last step of the execution closed a cycle.
    #[inline]
    pub(crate) fn closes<S: System>(&mut self, cursor: &Cursor<S>) -> bool {
        let len = cursor.len();
        if !self.watched {
            return false;
        }
        if len < LONG {
            self.len = 0;
            return false;
        }
        if len <= self.len {
            // Another execution, which shares fewer steps with the previous one.
            self.len = 0;
        }
        let Some(state) = cursor.system().words() else { return false };
        let count = if self.bounded { cursor.preemptions().count() } else { 0 };
        if self.len > 0 && self.state == state && self.preemptions == count {
            return true;
        }
        if len.is_power_of_two() {
            (self.len, self.preemptions) = (len, count);
            self.state.clear();
            self.state.extend_from_slice(state);
        }
        false
    }
}
