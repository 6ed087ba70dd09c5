//! Searches for a simpler schedule of a finding: one with fewer preemptions, then one with fewer
//! steps.
//!
//! Most orders report the schedule that they happened to find. This pass searches for another one
//! of the same [error](preempt_system::Failure::is_same_error), from two sides, first and last from
//! above:
//!
//! - *From below.* Iterative context bounding from no preemption up to one less than the schedule
//!   has. When it ends, it has either found the error with the fewest preemptions that it needs, or
//!   shown that no schedule with fewer preemptions has it. Not after a search by delays: its
//!   users have many threads, and n threads have n! schedules without a preemption.
//! - *From above.* [`contexts`] removes, joins and shortens contexts of the known schedule,
//!   executes the rest as far as possible, and keeps an execution that is simpler and ends in the
//!   same error.
//!
//! **Guarantees.** The result was executed and ends in the same error. It has no more preemptions
//! than the given schedule, and no more steps if the preemptions are equal. [`Shrunk::fewest`]
//! holds only if all schedules with fewer preemptions were covered. The steps are not claimed to be
//! minimal.
//!
//! **Cost.** At most [`Shrink::executions`] executions each time. The limit counts executions, so
//! that the result is the same on every machine. A time limit, an interrupt, or a program that
//! would have to [grow](preempt_system::Program::grow) ends the pass with the best schedule so far.

mod contexts;

use std::time::{Duration, Instant};

use preempt_system::{FailureKind, Finding, Program, Shrunk, System as _};

use self::contexts::{Budget, Contexts};
use crate::driver::executions;
use crate::driver::replay;
use crate::engine::control::{Clock, SearchControl, Sought};
use crate::engine::cursor::Cursor;
use crate::engine::execution::Stop;
use crate::engine::observer::Observer;
use crate::plan::strategy::{ExecutionSearch, Strategy};
use crate::plan::{Cache, Cost, Count, Limits, ResolvedPlan, Shrink};

/// An execution is abandoned when it has this many steps more than twice the known schedule.
const LONGER: usize = 100;

/// The states that a search from below may visit, per execution that it may make. This bounds
/// searches whose executions are long and mostly end in known states.
const STATES: u64 = 10;

/// Replaces the schedules of `findings` by simpler ones, if there are any. `plan` is the plan of
/// the search that found them.
pub(crate) fn shrink<P: Program>(
    program: &P,
    plan: &ResolvedPlan,
    findings: &mut [Finding],
    observer: &dyn Observer,
) {
    let Some(budget) = plan.shrink else { return };
    let deadline = Instant::now().checked_add(budget.time);
    for finding in findings {
        // A program that is not deterministic has no schedules.
        if finding.failure.kind != FailureKind::Nondeterminism
            && !finding.schedule.steps().is_empty()
        {
            let failure = finding.failure.clone();
            let sought =
                if plan.keep_going { Sought::Exactly(&failure) } else { Sought::Error(&failure) };
            let by_preemptions = ExecutionSearch::is_by_preemptions;
            let icb = plan.strategy.executions().is_some_and(by_preemptions)
                && plan.limits.depth.is_none();
            // The search itself went from below.
            let below = if icb { finding.preemptions } else { 0 };
            let pass =
                Pass { program, plan, sought, budget, deadline, observer, executions: 0, below };
            *finding = pass.shrink(finding.clone());
        }
    }
}

/// The search for a simpler schedule of one finding.
struct Pass<'a, P> {
    program: &'a P,
    plan: &'a ResolvedPlan,
    sought: Sought<'a>,
    budget: Shrink,
    deadline: Option<Instant>,
    observer: &'a dyn Observer,
    /// The number of executions so far.
    executions: u64,
    /// No schedule with fewer preemptions than this has the error.
    below: u32,
}

impl<P: Program> Pass<'_, P> {
    fn shrink(mut self, found: Finding) -> Finding {
        let (steps, preemptions) = (found.schedule.steps().len(), found.preemptions);
        // From above first: the search below a long schedule may take very long.
        let half = self.deadline.map(|deadline| Instant::now() + self.left(deadline) / 2);
        let mut best = self.search_from_above(found, half);
        for cache in self.caches() {
            if best.preemptions > self.below && !self.observer.interrupted() {
                best = self.search_from_below(best, cache);
            }
        }
        best = self.search_from_above(best, self.deadline);
        let (executions, fewest) = (self.executions, best.preemptions <= self.below);
        Finding { shrunk: Some(Shrunk { steps, preemptions, executions, fewest }), ..best }
    }

    fn left(&self, deadline: Instant) -> Duration {
        deadline.saturating_duration_since(Instant::now())
    }

    fn search_from_above(&mut self, found: Finding, deadline: Option<Instant>) -> Finding {
        let patient = self.program.start().is_ok_and(|system| system.livelock_rounds() > 1);
        if matches!(found.failure.kind, FailureKind::Livelock | FailureKind::StepLimit) && patient {
            // Such an execution repeats its steps, and is recognised only after many of them.
            return found;
        }
        let executions = self.budget.executions;
        let Pass { program, plan, sought, observer, .. } = *self;
        let mut above =
            Contexts::new(program, plan, sought, &found, Budget { executions, deadline, observer });
        let simpler = above.shrink();
        self.executions += above.executions();
        simpler.unwrap_or(found)
    }

    /// The caches for searches from below. States are compared if they are known: there are fewer
    /// of them, and the search of a program that runs forever ends. But a fair search counts fewer
    /// preemptions, so that only happens-before graphs can prove that there is no schedule below.
    fn caches(&self) -> Vec<Cache> {
        // Users bound delays where the schedules without preemptions are too many.
        if self.plan.strategy.cost() == Cost::Delays {
            return Vec::new();
        }
        let Ok(system) = self.program.start() else { return Vec::new() };
        match (system.words(), self.plan.strategy.is_fair()) {
            (Some(_), true) => vec![Cache::State, Cache::Hb],
            (Some(_), false) => vec![Cache::State],
            (None, _) => vec![Cache::Hb],
        }
    }

    /// The schedule that iterative context bounding meets first, if it is simpler than `found`.
    fn search_from_below(&mut self, found: Finding, cache: Cache) -> Finding {
        let length = found.schedule.steps().len();
        let bound = Some(found.preemptions - 1);
        let plan = ResolvedPlan {
            strategy: Strategy::Executions {
                search: ExecutionSearch::Icb {
                    cost: Cost::Preemptions,
                    cache,
                    bound,
                    past_bound: None,
                },
                points: self.plan.strategy.points(),
            },
            count: Count::States,
            jobs: 1,
            keep_going: false,
            limits: Limits {
                executions: Some(self.budget.executions),
                states: Some(self.budget.executions.saturating_mul(STATES)),
                depth: (cache == Cache::Hb).then(|| (2 * length + LONGER) as u32),
                memory: self.plan.limits.memory,
                resident: self.plan.limits.resident,
                time: self.deadline.map(|deadline| self.left(deadline)),
            },
            ..*self.plan
        };
        let control =
            SearchControl::new(plan.limits, self.observer, Clock::after(Duration::ZERO), 0)
                .seeking(self.sought);
        let explored = executions::explore_executions(&plan, self.program, &control);
        self.executions += explored.tally.map_or(0, |tally| tally.taken());
        if cache == Cache::Hb || !self.plan.strategy.is_fair() {
            // Levels that were completed, and in which no execution was abandoned.
            let done = explored.bounds.iter().take_while(|bound| bound.all.cut == 0).count() as u32;
            self.below = if control.reason().is_none() { found.preemptions } else { done };
        }
        let simplest = explored
            .failures
            .into_iter()
            .next()
            .filter(|_| control.reason() == Some(Stop::Finding));
        let simpler = simplest.and_then(|(failure, schedule)| {
            let cursor = begin(self.program, self.plan)?;
            let end = replay::end(cursor, &schedule).ok()?;
            let better = end.failures.contains(&failure) && end.preemptions < found.preemptions;
            better.then(|| end.finding(failure, schedule))
        });
        simpler.unwrap_or(found)
    }
}

/// A cursor at the beginning of an execution that counts preemptions as the search did.
fn begin<'p, P: Program>(program: &'p P, plan: &ResolvedPlan) -> Option<Cursor<P::System<'p>>> {
    let cursor = program.start().and_then(Cursor::over).ok()?;
    Some(if plan.strategy.is_fair() { cursor.fair() } else { cursor })
}
