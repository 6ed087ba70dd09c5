//! The driver: runs a search over a model until its states are large enough, and turns what was seen into an outcome.

use std::time::Duration;

use preempt_system::{Capacity, Failure, FailureKind, Finding, Model, Program, Schedule, Verdict};

use crate::driver::outcome::Outcome;
use crate::driver::replay::{self, Misfit};
use crate::driver::shrink;
use crate::driver::{executions, states};
use crate::engine::checkpoint::{Checkpoints, Pauses};
use crate::engine::cursor::Cursor;
use crate::engine::explored::Explored;
use crate::engine::model::ModelProgram;
use crate::engine::observer::Observer;
use crate::engine::watch::{Clock, Stop, Watch};
use crate::plan::Refusal;
use crate::plan::coverage::{Limit, Omission};
use crate::plan::{Cache, Order, Plan, Points};
use crate::reduce::blocks;

/// The frame of a search that may have to begin anew: how the program has grown, how often it began anew, and with how many workers it
/// goes on.
type Growths = ((Vec<Capacity>, u32), usize);
/// The place of this frame.
const GROWTHS: usize = 1;

/// A search that makes sense: what [`Plan::build`] returns.
#[derive(Clone, Debug)]
pub struct Search {
    plan: Plan,
    /// The time that searches before this one took.
    before: Duration,
}

impl Search {
    pub(crate) fn new(plan: Plan) -> Search {
        Search { plan, before: Duration::ZERO }
    }

    /// The same as a part of a longer search that has taken `before` already: this counts in the limit of time, and in what the outcome says.
    pub fn after(self, before: Duration) -> Search {
        Search { before, ..self }
    }

    /// Begins to measure. A checkpoint knows of all that was before it.
    pub(crate) fn clock(&self, pauses: Option<&Pauses<'_>>) -> Clock {
        match pauses.filter(|pauses| pauses.is_resuming()) {
            Some(pauses) => Clock::after(pauses.elapsed_before()),
            None => Clock::after(self.before),
        }
    }

    /// How it searches.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A model with all in its states that this search looks at.
    pub(crate) fn prepared<M: Model>(&self, model: M) -> M {
        let model = if self.plan.needs_stable_names() { model.with_stable_names() } else { model };
        if self.plan.reduction.is_by_transactions() { model.with_owners() } else { model }
    }

    /// Searches `model` while `observer` watches. Also returns the model that the schedules' states belong to: `model`, or
    /// what it had to [grow](Model::grow) into.
    ///
    /// Panics if the search does not [suit](Search::suits) the model.
    pub fn run<M: Model>(&self, model: M, observer: &dyn Observer) -> (Outcome, M) {
        self.run_pausing(model, observer, None)
    }

    /// The same with checkpoints. Limits of time and memory, and interrupts, end the search with a checkpoint of where it ended. A
    /// checkpoint that is of another program or plan is refused.
    pub fn run_with<M: Model>(
        &self,
        model: M,
        observer: &dyn Observer,
        checkpoints: Checkpoints<'_>,
    ) -> Result<(Outcome, M), Refusal> {
        self.pausing(checkpoints, |pauses| self.run_pausing(model, observer, Some(pauses)))
    }

    fn pausing<R>(&self, checkpoints: Checkpoints<'_>, run: impl FnOnce(&Pauses<'_>) -> R) -> Result<R, Refusal> {
        let pauses = Pauses::new(&self.plan, checkpoints)?;
        let done = run(&pauses);
        if pauses.is_damaged() {
            return Err(Refusal::because(
                "the search cannot go on from the checkpoint: there is too little memory for what it holds, or another build of this version \
                 has written it; free memory, or begin anew",
            ));
        }
        Ok(done)
    }

    fn run_pausing<'a, M: Model>(
        &self,
        model: M,
        observer: &'a dyn Observer,
        pauses: Option<&'a Pauses<'a>>,
    ) -> (Outcome, M) {
        if let Err(refusal) = self.suits(&model) {
            panic!("a search is only run on models that it suits: {refusal}");
        }
        let model = self.prepared(model);
        if let (Some(pauses), Points::All) = (pauses, self.plan.points) {
            // Nothing was promoted: see `sync_points`.
            pauses.frame(0, |_| ());
        }
        match self.plan.points {
            Points::All if !self.plan.order.is_of_executions() => {
                let (outcome, ModelProgram(model)) = self.drive(
                    ModelProgram(model),
                    (observer, pauses),
                    (self.clock(pauses), &mut Vec::new()),
                    |plan, ModelProgram(model), watch| states::explore(plan, model, watch),
                );
                (outcome, model)
            }
            Points::All => {
                let (outcome, ModelProgram(model)) = self.drive(
                    ModelProgram(model),
                    (observer, pauses),
                    (self.clock(pauses), &mut Vec::new()),
                    executions::explore,
                );
                (outcome, model)
            }
            Points::Sync => self.run_at_sync_points(model, (observer, pauses)),
        }
    }

    /// Explores the executions of a program whose states cannot be copied. Also returns the program, or what it had to
    /// [grow](Program::grow) into.
    ///
    /// Panics if the search is one of states.
    pub fn run_program<P: Program>(&self, program: P, observer: &dyn Observer) -> (Outcome, P) {
        assert!(self.plan.order.is_of_executions(), "states that cannot be copied cannot be searched");
        assert!(self.plan.order != Order::Icb { cache: Cache::State }, "states that are not known cannot be compared");
        self.drive(program, (observer, None), (self.clock(None), &mut Vec::new()), executions::explore)
    }

    /// Whether the search is sound for this model, or why not.
    pub fn suits(&self, model: &impl Model) -> Result<(), Refusal> {
        let coarse = self.plan.points == Points::Sync;
        if model.has_invariants() && (coarse || !self.plan.reduction.checks_invariants()) {
            return Err(Refusal::because(
                "this model has invariants, which must hold in every state, and the search would not visit every state: \
                 use sleep, cb-por-states, cartesian, or no reduction, and points at all accesses; or say it with assertions",
            ));
        }
        match self.plan.reduction.blocks().map(|dependence| blocks::preflight(model, dependence)) {
            Some(Err(unfit)) => Err(Refusal::because(&unfit.to_string())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Searches until the program is large enough. `clock`: since when it is searched, `grown`: how it has grown, before and now.
    pub(crate) fn drive<'a, P: Program>(
        &self,
        mut program: P,
        (observer, pauses): (&'a dyn Observer, Option<&'a Pauses<'a>>),
        (clock, grown): (Clock, &mut Vec<Capacity>),
        explore: impl Fn(&Plan, &P, &Watch<'_>) -> Explored,
    ) -> (Outcome, P) {
        let (mut first, mut plan) = (0, self.plan);
        if let Some(((capacities, restarts), jobs)) =
            pauses.and_then(|pauses| pauses.read(|from| from.get::<Growths>()))
        {
            program = capacities.iter().fold(program, |program, &capacity| program.grow(capacity));
            (*grown, first, plan.jobs) = (capacities, restarts, jobs);
        }
        for restarts in first.. {
            if let Some(pauses) = pauses {
                pauses.frame(GROWTHS, |to| to.put(&((grown.clone(), restarts), plan.jobs)));
            }
            let watch = Watch::new(plan.limits, observer, clock, restarts).pausing(pauses);
            let explored = explore(&plan, &program, &watch);
            match watch.reason() {
                // One worker may find something before it comes to where the program is too small.
                Some(Stop::Full(capacity))
                    if grown.last() == Some(&capacity) && plan.jobs > 1 && plan.order.is_of_executions() =>
                {
                    plan.jobs = 1;
                }
                // The same place is too small again: it cannot become larger.
                Some(Stop::Full(capacity)) if grown.last() == Some(&capacity) => {
                    let stop = Some(Stop::Limit(Limit::Memory));
                    return (self.outcome(&program, explored, stop, clock, restarts, observer), program);
                }
                Some(Stop::Full(capacity)) => {
                    program = program.grow(capacity);
                    grown.push(capacity);
                }
                stop => return (self.outcome(&program, explored, stop, clock, restarts, observer), program),
            }
        }
        unreachable!("a program grows finitely often")
    }

    fn outcome<P: Program>(
        &self,
        program: &P,
        mut explored: Explored,
        mut stop: Option<Stop>,
        clock: Clock,
        restarts: u32,
        observer: &dyn Observer,
    ) -> Outcome {
        let elapsed = clock.elapsed();
        if stop.is_some_and(|stop| self.is_past_bound(stop, &explored)) {
            // How much of the next level was seen depends on who was faster, if there are several workers.
            (stop, explored.tally) = (None, explored.bounds.last().map(|completed| completed.all));
        }
        let mut findings: Vec<Finding> =
            explored.failures.into_iter().map(|(failure, schedule)| self.confirm(program, failure, schedule)).collect();
        shrink::shrink(program, &self.plan, &mut findings, observer);
        // What was asked for is covered; a bound or a number of runs may have asked for less than everything.
        let exact = !matches!(explored.omission, Omission::Bits { .. }) && self.plan.reduction.is_sound();
        let covered = stop.is_none() && exact;
        let complete = covered && !self.plan.order.samples() && explored.bounds.last().is_none_or(|bound| !bound.cut);
        let verdict = match findings.first() {
            Some(finding) => finding.failure.kind.into(),
            None if covered => Verdict::Ok,
            None => Verdict::Incomplete,
        };
        Outcome {
            verdict,
            complete,
            coverage: explored.seen,
            findings,
            stopped: match stop {
                Some(Stop::Limit(limit)) => Some(limit),
                _ => None,
            },
            at_finding: stop == Some(Stop::Finding),
            unfinished: stop == Some(Stop::Finding) && explored.unfinished,
            tally: explored.tally,
            bounds: explored.bounds,
            growth: explored.growth,
            omission: explored.omission,
            order: self.plan.order,
            reduction: self.plan.reduction,
            elapsed,
            store_bytes: explored.store_bytes,
            frontier_bytes: explored.frontier_bytes,
            restarts,
            promoted: Vec::new(),
            assumptions: Vec::new(),
        }
    }

    /// Whether all that was asked for was covered, and the search only ended where it had continued past that.
    fn is_past_bound(&self, stop: Stop, explored: &Explored) -> bool {
        let covered = explored.bounds.last().map(|completed| completed.bound);
        let continues = self.plan.past_bound.is_some() && covered >= self.plan.bound && covered.is_some();
        // Who interrupts a search does not want its outcome, and what a limit of depth cuts is missing within the bound.
        continues && matches!(stop, Stop::Limit(Limit::Executions | Limit::Time | Limit::Memory | Limit::States))
    }

    fn cursor<'p, P: Program>(&self, program: &'p P) -> Cursor<P::System<'p>> {
        match program.start().and_then(Cursor::over) {
            Ok(cursor) if self.plan.is_fair() => cursor.fair(),
            Ok(cursor) => cursor,
            Err(capacity) => panic!("a program that was searched can begin: {capacity:?}"),
        }
    }

    /// The schedule without the steps that fail before its last, if it ends in the same failure without them. A search that keeps going
    /// lets other threads go on after a failure. Where the failing step has changed nothing (over models it never does), they could have
    /// done the same without it: so every failure is the first of some execution, and this is its schedule, unless that has more
    /// preemptions.
    fn without_other_failures<P: Program>(&self, program: &P, failure: &Failure, schedule: Schedule) -> Schedule {
        if !self.plan.keep_going {
            return schedule;
        }
        let (mut cursor, mut kept) = (self.cursor(program), Vec::new());
        for (at, &choice) in schedule.steps().iter().enumerate() {
            if choice.thread.index() >= cursor.threads() || !cursor.can(choice) {
                return schedule;
            }
            match cursor.step(choice) {
                Ok(Some(_)) if at + 1 < schedule.steps().len() => {}
                Ok(_) => kept.push(choice),
                Err(_) => return schedule,
            }
        }
        let kept = Schedule(kept);
        if kept.steps().len() == schedule.steps().len() {
            return schedule;
        }
        // A switch away from a thread that has failed is no preemption, one away from a thread that could fail is: a bound decides
        // which schedules exist, so none gets more preemptions.
        let most = cursor.preemptions().count();
        match replay::end(self.cursor(program), &kept) {
            Ok((failures, preemptions)) if failures.contains(failure) && preemptions <= most => kept,
            _ => schedule,
        }
    }

    /// The finding, after its schedule was executed once more and ended in its failure. The schedule of a program that is not
    /// deterministic may not fit the second execution; then its preemptions are those of the part that fits.
    fn confirm<P: Program>(&self, program: &P, failure: Failure, schedule: Schedule) -> Finding {
        let schedule = self.without_other_failures(program, &failure, schedule);
        let end = replay::end(self.cursor(program), &schedule);
        let preemptions = match end {
            Ok((_, preemptions)) | Err(Misfit { preemptions, .. }) => preemptions,
        };
        match end {
            Ok((failures, _)) if failures.contains(&failure) => {
                Finding { failure, preemptions, schedule, shrunk: None }
            }
            _ if failure.kind == FailureKind::Nondeterminism => {
                Finding { failure, preemptions, schedule, shrunk: None }
            }
            _ if !program.is_deterministic() => {
                let message = format!("the test is not deterministic: it ended once with \"{}\"", failure.message);
                let message = message + ", and did not when the same schedule was executed again";
                let failure = Failure { kind: FailureKind::Nondeterminism, message, site: failure.site };
                Finding { failure, preemptions, schedule, shrunk: None }
            }
            Ok((failures, _)) => {
                panic!("the schedule of a finding ends in its failure {failure:?}, not in {failures:?}")
            }
            Err(Misfit { step, .. }) => {
                panic!("the schedule of a finding can be executed again, also its step {step}")
            }
        }
    }
}
