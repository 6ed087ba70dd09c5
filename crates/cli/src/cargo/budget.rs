//! The budget of each test, so that one test cannot use up the time of all.
//!
//! `--executions` and `--test-time` limit each test. `--time` limits all of them together: a test
//! may use an equal share of what is left for it and the tests after it, so tests that end early
//! leave their time to the others.

use std::time::{Duration, Instant};

use preempt_explore::Limits;

/// The most executions of one test if no limit is given. A number of executions and not a time, so
/// that the outcome is the same everywhere.
const EXECUTIONS: u64 = 10_000;

/// The budget of all tests.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// The limits of one test, without a time for all.
    each: Limits,
    /// The deadline for all tests.
    end: Option<Instant>,
}

impl Budget {
    /// A budget that begins now: the limits of the search, of which the time is for all tests, and
    /// the time for each.
    pub(super) fn new(limits: Limits, test_time: Option<Duration>) -> Budget {
        let end = limits.time.and_then(|time| Instant::now().checked_add(time));
        let is_limited = limits.time.is_some() || test_time.is_some();
        let executions = limits.executions.or((!is_limited).then_some(EXECUTIONS));
        Budget { each: Limits { executions, time: test_time, ..limits }, end }
    }

    /// The limits of the next test, if `left` tests are left with it; `None` if no time is left.
    pub(super) fn next(&self, left: usize) -> Option<Limits> {
        self.limits_at(Instant::now(), left)
    }

    fn limits_at(&self, now: Instant, left: usize) -> Option<Limits> {
        let Some(end) = self.end else { return Some(self.each) };
        let remaining = end.checked_duration_since(now).filter(|time| !time.is_zero())?;
        let share = remaining / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
        let time = self.each.time.map_or(share, |most| most.min(share));
        Some(Limits { time: Some(time), ..self.each })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn executions_are_limited_unless_a_limit_is_given() {
        let executions = |limits, time| Budget::new(limits, time).each.executions;
        assert_eq!(executions(Limits::default(), None), Some(EXECUTIONS));
        assert_eq!(executions(Limits::default(), Some(SECOND)), None);
        let given = |time| Limits { executions: Some(7), time, ..Limits::default() };
        assert_eq!(executions(given(None), None), Some(7));
        assert_eq!(executions(given(Some(SECOND)), None), Some(7));
        assert_eq!(executions(Limits { time: Some(SECOND), ..Limits::default() }, None), None);
    }

    #[test]
    fn tests_share_the_time_that_is_left() {
        let limits = Limits { time: Some(SECOND * 60), ..Limits::default() };
        let time = |budget: &Budget, after: u32, left| {
            let start = budget.end.expect("there is a time") - SECOND * 60;
            budget.limits_at(start + SECOND * after, left).map(|limits| limits.time)
        };
        let budget = Budget::new(limits, None);
        assert_eq!(time(&budget, 0, 6), Some(Some(SECOND * 10)));
        // Five tests have taken two seconds each.
        assert_eq!(time(&budget, 10, 1), Some(Some(SECOND * 50)));
        assert_eq!(time(&budget, 60, 1), None);
        let capped = Budget::new(limits, Some(SECOND * 20));
        assert_eq!(time(&capped, 0, 6), Some(Some(SECOND * 10)));
        assert_eq!(time(&capped, 10, 1), Some(Some(SECOND * 20)));
    }
}
