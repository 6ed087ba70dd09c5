//! Executions that come back to a state that they were in.
//!
//! A reduction over executions compares no states and does not hold back threads that spin, so it
//! follows such an execution for ever, and is told to stop. An execution of 1,024 steps is worth a
//! look: the state after a power of two of its steps is kept and every later one is compared with
//! it (Brent). A round is met at the latest when the execution is twice as long as the way to it,
//! or as itself.

use preempt_system::System;

use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::plan::Plan;
use crate::plan::Reduction;

/// The shortest execution that is looked at.
const LONG: usize = 1 << 10;

/// What is remembered of the present execution.
#[derive(Debug, Default)]
pub(crate) struct CycleDetector {
    /// Whether anybody wants to know.
    watched: bool,
    /// Whether a round within a bound has to be one without preemptions: others come to an end.
    bounded: bool,
    /// After so many steps there was this state; 0 if none is kept.
    len: usize,
    state: Vec<u64>,
    preemptions: u32,
}

save_fields!(CycleDetector { watched, bounded, len, state, preemptions });

impl CycleDetector {
    /// Watches for cycles if the search as planned would not end because of them.
    pub(crate) fn new(plan: &Plan) -> CycleDetector {
        let endless = plan.order.is_of_executions() && plan.reduction != Reduction::None;
        CycleDetector {
            watched: endless,
            bounded: plan.bound.is_some(),
            ..CycleDetector::default()
        }
    }

    /// Whether executions are checked at all.
    pub(crate) fn is_on(&self) -> bool {
        self.watched
    }

    /// Whether the execution came back, with its last step, to a state that it was in.
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
            // Another execution, which has less in common with the former one.
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
