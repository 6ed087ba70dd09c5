//! loom's names for the same things, so that `use preempt as loom` is a port.
//!
//! What differs: the bound on preemptions is that of CHESS, a switch away from a thread that cannot run is free; executions are
//! sequentially consistent; a child's panic is the result of `join`; reaching a limit fails the test.

use std::time::Duration;

use crate::check::Check;

/// Checks a closure as [`check`](crate::check()) does, but without a bound on preemptions: as loom does.
#[track_caller]
pub fn model<F: Fn() + Sync + Send + 'static>(f: F) {
    Builder::new().check(f);
}

/// loom's configuration. Fields that are `None` leave the default of [`Check`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Builder {
    /// The most steps of an execution.
    pub max_branches: Option<usize>,
    /// The most executions.
    pub max_permutations: Option<usize>,
    /// The most time.
    pub max_duration: Option<Duration>,
    /// The most preemptions. As in loom, without one all schedules are explored.
    pub preemption_bound: Option<usize>,
}

impl Builder {
    /// No limits, and no bound.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Checks a closure.
    #[track_caller]
    pub fn check<F: Fn() + Sync + Send + 'static>(&self, f: F) {
        self.to_check().check(f);
    }

    fn to_check(&self) -> Check {
        let mut check = match self.preemption_bound {
            Some(bound) => Check::new().bound(u32::try_from(bound).unwrap_or(u32::MAX)),
            // An optimal reduction follows every execution to its end; a limit of steps is for searches without one.
            None if self.max_branches.is_some() => Check::new().order(preempt_explore::Order::DfsHb).unbounded(),
            None => Check::new().unbounded(),
        };
        if let Some(steps) = self.max_branches {
            check = check.steps(u32::try_from(steps).unwrap_or(u32::MAX));
        }
        if let Some(executions) = self.max_permutations {
            check = check.executions(executions as u64);
        }
        match self.max_duration {
            Some(time) => check.time(time),
            None => check,
        }
    }
}
