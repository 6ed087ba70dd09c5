//! The driver: runs a search over a model until its states are large enough, and turns what was
//! seen into an outcome.

use std::time::Duration;

use preempt_system::{
    Capacity, Failure, FailureKind, Finding, Model, Program, Restart, Schedule, Verdict,
};

use crate::codec::save_fields;
use crate::driver::outcome::Outcome;
use crate::driver::replay::{self, End, Misfit};
use crate::driver::shrink;
use crate::driver::{executions, states};
use crate::engine::checkpoint::{Checkpoints, Pauses};
use crate::engine::control::{Clock, SearchControl};
use crate::engine::cursor::Cursor;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::model::ModelProgram;
use crate::engine::observer::Observer;
use crate::plan::Refusal;
use crate::plan::coverage::{Limit, Omission};
use crate::plan::{Cache, Order, Plan, Points};
use crate::reduce::blocks;

/// How often a search has begun anew, and why.
pub(crate) struct Restarts<N> {
    /// What its program has needed so far.
    needs: Vec<N>,
    count: u32,
    /// The workers with which the search goes on.
    jobs: usize,
}

save_fields!(Restarts<Capacity> { needs, count, jobs });

impl<N> Restarts<N> {
    pub(crate) fn none(jobs: usize) -> Restarts<N> {
        Restarts { needs: Vec::new(), count: 0, jobs }
    }
}

impl Restarts<Capacity> {
    /// Goes on with those of a checkpoint, if there is one, and provides for their needs.
    pub(crate) fn resume(
        &mut self,
        plan: &Plan,
        pauses: Option<&Pauses<'_>>,
        program: &mut impl Program<Need = Capacity>,
    ) {
        (self.count, self.jobs) = (0, plan.jobs);
        if let Some(saved) = pauses.and_then(|pauses| pauses.read(|from| from.get::<Self>())) {
            *self = saved;
            self.needs.iter().for_each(|&need| {
                program.grow(need);
            });
        }
    }

    /// Writes them to the frame that they have in checkpoints.
    pub(crate) fn keep(&self, pauses: Option<&Pauses<'_>>) {
        if let Some(pauses) = pauses {
            pauses.frame(1, |to| to.put(self));
        }
    }
}

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

    /// The same as a part of a longer search that has taken `before` already: this counts in the
    /// limit of time, and in what the outcome says.
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

    /// Searches `model` while `observer` watches. Also returns the model that the schedules' states
    /// belong to: `model`, or what it had to [grow](Model::grow) into.
    ///
    /// Panics if the search does not [suit](Search::suits) the model.
    pub fn run<M: Model>(&self, model: M, observer: &dyn Observer) -> (Outcome, M) {
        self.run_pausing(model, observer, None)
    }

    /// The same with checkpoints. Limits of time and memory, and interrupts, end the search with a
    /// checkpoint of where it ended. A checkpoint that is of another program or plan is refused.
    pub fn run_with<M: Model>(
        &self,
        model: M,
        observer: &dyn Observer,
        checkpoints: Checkpoints<'_>,
    ) -> Result<(Outcome, M), Refusal> {
        self.pausing(checkpoints, |pauses| self.run_pausing(model, observer, Some(pauses)))
    }

    fn pausing<R>(
        &self,
        checkpoints: Checkpoints<'_>,
        run: impl FnOnce(&Pauses<'_>) -> R,
    ) -> Result<R, Refusal> {
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
            Points::All => {
                let (mut program, mut restarts) =
                    (ModelProgram(model), Restarts::none(self.plan.jobs));
                restarts.resume(&self.plan, pauses, &mut program);
                let (outcome, ModelProgram(model)) = self.drive(
                    program,
                    (observer, pauses),
                    (self.clock(pauses), &mut restarts),
                    |restarts| restarts.keep(pauses),
                    |plan, program, control| match plan.order.is_of_executions() {
                        true => executions::explore(plan, program, control),
                        false => states::explore(plan, &program.0, control),
                    },
                );
                (outcome, model)
            }
            Points::Sync => self.run_at_sync_points(model, (observer, pauses)),
        }
    }

    /// Explores the executions of a program whose states cannot be copied. Also returns the
    /// program, or what it had to [grow](Program::grow) into.
    ///
    /// Panics if the search is one of states.
    pub fn run_program<P: Program>(&self, program: P, observer: &dyn Observer) -> (Outcome, P) {
        assert!(
            self.plan.order.is_of_executions(),
            "states that cannot be copied cannot be searched"
        );
        assert!(
            self.plan.order != Order::Icb { cache: Cache::State },
            "states that are not known cannot be compared"
        );
        let mut restarts = Restarts::none(self.plan.jobs);
        self.drive(
            program,
            (observer, None),
            (self.clock(None), &mut restarts),
            |_| {},
            executions::explore,
        )
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

    /// Searches until the program has all that its runs need. `keep` is called before each attempt.
    pub(crate) fn drive<'a, P: Program>(
        &self,
        mut program: P,
        (observer, pauses): (&'a dyn Observer, Option<&'a Pauses<'a>>),
        (clock, restarts): (Clock, &mut Restarts<P::Need>),
        keep: impl Fn(&Restarts<P::Need>),
        explore: impl Fn(&Plan, &P, &SearchControl<'_, P::Need>) -> Explored,
    ) -> (Outcome, P) {
        loop {
            keep(restarts);
            let plan = Plan { jobs: restarts.jobs, ..self.plan };
            let control =
                SearchControl::new(plan.limits, observer, clock, restarts.count).pausing(pauses);
            let mut explored = explore(&plan, &program, &control);
            let stop = match control.reason() {
                Some(Stop::Restart(need)) if restarts.needs.last() != Some(&need) => {
                    match program.grow(need) {
                        Restart::Again => {
                            restarts.needs.push(need);
                            restarts.count += 1;
                            continue;
                        }
                        Restart::Refused => {
                            // A schedule of a program that cannot be searched may not be executable
                            // again.
                            explored.failures.clear();
                            Some(Stop::Limit(Limit::Memory))
                        }
                    }
                }
                // One worker may find something before it comes to where the program has the need.
                Some(Stop::Restart(_)) if plan.jobs > 1 && plan.order.is_of_executions() => {
                    restarts.jobs = 1;
                    restarts.count += 1;
                    continue;
                }
                // The same need again: it cannot be provided for.
                Some(Stop::Restart(_)) => Some(Stop::Limit(Limit::Memory)),
                stop => stop,
            };
            return (
                self.outcome(&program, explored, stop, clock, restarts.count, observer),
                program,
            );
        }
    }

    fn outcome<P: Program>(
        &self,
        program: &P,
        mut explored: Explored,
        mut stop: Option<Stop<P::Need>>,
        clock: Clock,
        restarts: u32,
        observer: &dyn Observer,
    ) -> Outcome {
        let elapsed = clock.elapsed();
        if stop.is_some_and(|stop| self.is_past_bound(stop, &explored)) {
            // How much of the next level was seen depends on who was faster, if there are several
            // workers.
            (stop, explored.tally) = (None, explored.bounds.last().map(|completed| completed.all));
        }
        let mut findings: Vec<Finding> = explored
            .failures
            .into_iter()
            .map(|(failure, schedule)| self.confirm(program, failure, schedule))
            .collect();
        shrink::shrink(program, &self.plan, &mut findings, observer);
        // What was asked for is covered; a bound or a number of runs may have asked for less than
        // everything.
        let exact =
            !matches!(explored.omission, Omission::Bits { .. }) && self.plan.reduction.is_sound();
        let covered = stop.is_none() && exact;
        let complete = covered
            && !self.plan.order.samples()
            && explored.bounds.last().is_none_or(|bound| !bound.cut);
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
            rerun: explored.rerun,
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

    /// Whether all that was asked for was covered, and the search only ended where it had continued
    /// past that.
    fn is_past_bound<N>(&self, stop: Stop<N>, explored: &Explored) -> bool {
        let covered = explored.bounds.last().map(|completed| completed.bound);
        let continues =
            self.plan.past_bound.is_some() && covered >= self.plan.bound && covered.is_some();
        // Who interrupts a search does not want its outcome, and what a limit of depth cuts is
        // missing within the bound.
        continues
            && matches!(
                stop,
                Stop::Limit(Limit::Executions | Limit::Time | Limit::Memory | Limit::States)
            )
    }

    fn cursor<'p, P: Program>(&self, program: &'p P) -> Cursor<P::System<'p>> {
        match program.start().and_then(Cursor::over) {
            Ok(cursor) if self.plan.is_fair() => cursor.fair(),
            Ok(cursor) => cursor,
            Err(need) => panic!("a program that was searched can begin: {need:?}"),
        }
    }

    /// The schedule without the steps that fail before its last, if it ends in the same failure
    /// without them. A search that keeps going lets other threads go on after a failure. Where the
    /// failing step has changed nothing (over models it never does), they could have done the same
    /// without it: so every failure is the first of some execution, and this is its schedule,
    /// unless that has more preemptions.
    fn without_other_failures<P: Program>(
        &self,
        program: &P,
        failure: &Failure,
        schedule: Schedule,
    ) -> Schedule {
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
        let kept = Schedule::new(kept);
        if kept.steps().len() == schedule.steps().len() {
            return schedule;
        }
        // A switch away from a thread that has failed is no preemption, one away from a thread that
        // could fail is: a bound decides which schedules exist, so none gets more preemptions.
        let most = cursor.preemptions().count();
        match replay::end(self.cursor(program), &kept) {
            Ok(end) if end.failures.contains(failure) && end.preemptions <= most => kept,
            _ => schedule,
        }
    }

    /// The finding, after its schedule was executed once more and ended in its failure. The
    /// schedule of a program that is not deterministic may not fit the second execution; then its
    /// preemptions are those of the part that fits.
    fn confirm<P: Program>(&self, program: &P, failure: Failure, schedule: Schedule) -> Finding {
        let schedule = self.without_other_failures(program, &failure, schedule);
        let end = replay::end(self.cursor(program), &schedule);
        let preemptions = match end {
            Ok(End { preemptions, .. }) | Err(Misfit { preemptions, .. }) => preemptions,
        };
        match end {
            Ok(end) if end.failures.contains(&failure) => end.finding(failure, schedule),
            _ if failure.kind == FailureKind::Nondeterminism => {
                Finding { failure, preemptions, schedule, shrunk: None }
            }
            _ if !program.is_deterministic() => {
                let message = format!(
                    "the test is not deterministic: it ended once with \"{}\"",
                    failure.message
                );
                let message = message + ", and did not when the same schedule was executed again";
                let failure =
                    Failure { kind: FailureKind::Nondeterminism, message, site: failure.site };
                Finding { failure, preemptions, schedule, shrunk: None }
            }
            Ok(End { failures, .. }) => {
                panic!(
                    "the schedule of a finding ends in its failure {failure:?}, not in {failures:?}"
                )
            }
            Err(Misfit { step, .. }) => {
                panic!("the schedule of a finding can be executed again, also its step {step}")
            }
        }
    }
}
