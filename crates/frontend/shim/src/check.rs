//! Checks: what to search, how, and what to do with the outcome.

use std::time::Duration;

use preempt_explore::{Cache, Count, Limits, Order, Outcome, Plan, Reduction, Silent};
use preempt_system::Verdict;

use crate::program::Closure;
use crate::report;
use crate::runtime::{Options, hook, is_set};

/// Checks a closure: panics with the whole story if one of its schedules fails.
#[track_caller]
pub fn check<F: Fn() + Sync>(f: F) {
    Check::new().check(f);
}

/// How to check.
#[derive(Clone, Debug)]
pub struct Check {
    pub(crate) plan: Plan,
    pub(crate) options: Options,
    pub(crate) allow_incomplete: bool,
}

impl Default for Check {
    fn default() -> Check {
        let plan = Plan::new().order(Order::Icb { cache: Cache::Hb }).bound(2).count(Count::Traces);
        let options = Options { spurious_wakeups: false, weak_cas_failures: false, stack_size: 256 << 10 };
        Check { plan, options, allow_incomplete: false }
    }
}

impl Check {
    /// All schedules with at most 2 preemptions.
    pub fn new() -> Check {
        Check::default()
    }

    /// All schedules with at most so many preemptions.
    pub fn bound(mut self, bound: u32) -> Check {
        self.plan.bound = Some(bound);
        self
    }

    /// All schedules.
    pub fn unbounded(mut self) -> Check {
        self.plan.bound = None;
        self
    }

    /// In this order.
    pub fn order(mut self, order: Order) -> Check {
        self.plan.order = order;
        self
    }

    /// With this reduction.
    pub fn reduce(mut self, reduction: Reduction) -> Check {
        self.plan.reduction = reduction;
        self
    }

    /// Counts this.
    pub fn count(mut self, count: Count) -> Check {
        self.plan.count = count;
        self
    }

    /// For at most this time.
    pub fn time(mut self, time: Duration) -> Check {
        self.plan.limits = Limits { time: Some(time), ..self.plan.limits };
        self
    }

    /// Explores the schedules of `f`.
    #[track_caller]
    pub fn run<F: Fn() + Sync>(&self, f: F) -> Outcome {
        self.explore(&f).0
    }

    /// Explores the schedules of `f`, and panics with the whole story if one of them fails.
    #[track_caller]
    pub fn check<F: Fn() + Sync>(&self, f: F) {
        let (outcome, text) = self.explore(&f);
        let bad = match outcome.verdict {
            Verdict::Ok => false,
            Verdict::Incomplete => !self.allow_incomplete,
            _ => true,
        };
        if bad {
            panic!("{text}");
        }
    }

    #[track_caller]
    fn explore(&self, f: &(dyn Fn() + Sync)) -> (Outcome, String) {
        assert!(!is_set(), "a check cannot be part of another check: call `check` outside of the closure under test");
        hook::install();
        let search = match self.plan.build() {
            Ok(search) => search,
            Err(refusal) => panic!("this check cannot be made: {refusal}"),
        };
        let (outcome, program) = search.run_program(Closure::new(f, self.options), &Silent);
        if let Some(refusal) = &program.refusal {
            panic!("this check cannot be made: {refusal}");
        }
        let text = report::text(search.plan(), &outcome, &program);
        (outcome, text)
    }
}
