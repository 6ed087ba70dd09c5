//! Runs a search, restarts it while its program needs more room, and makes an outcome of the
//! result.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use preempt_system::{
    Capacity, Failure, FailureKind, Finding, MemoryModel, Model, Program, Restart, Schedule,
    Verdict,
};

use crate::codec::{Damaged, Reader, Writer, save_fields};
use crate::driver::outcome::Outcome;
use crate::driver::replay::{self, End, Misfit};
use crate::driver::shrink;
use crate::driver::{executions, states};
use crate::engine::checkpoint::{Checkpoints, Layer, Pauses, Resumable, ShardedCheckpoints};
use crate::engine::control::{Clock, SearchControl};
use crate::engine::cursor::Cursor;
use crate::engine::exchange::Exchange;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::model::ModelProgram;
use crate::engine::observer::Observer;
use crate::plan::coverage::{Limit, Omission};
use crate::plan::property::Property;
use crate::plan::strategies::Value;
use crate::plan::strategy::ExecutionSearch;
use crate::plan::{
    Order, Plan, Points, Reduction, Refusal, ResolvedPlan, Setting, StoreKind, Strategy, Term,
    Unusable, strategies,
};
use crate::reduce::blocks;

/// The restarts of a search, and their reasons.
pub(crate) struct Restarts<N> {
    /// The needs of the program so far.
    needs: Vec<N>,
    count: u32,
    /// The number of workers from now on.
    jobs: usize,
}

save_fields!(Restarts<Capacity> { needs, count, jobs });

impl<N> Restarts<N> {
    pub(crate) fn none(jobs: usize) -> Restarts<N> {
        Restarts { needs: Vec::new(), count: 0, jobs }
    }

    /// Checks what a checkpoint contains: the workers are those of the plan, or one.
    fn fitting(self, jobs: usize) -> Result<Self, Damaged> {
        if self.jobs == jobs || self.jobs == 1 { Ok(self) } else { Err(Damaged) }
    }
}

impl Restarts<Capacity> {
    /// Restores the restarts of a checkpoint, if there is one, and grows the program accordingly.
    pub(crate) fn resume(
        &mut self,
        plan: &ResolvedPlan,
        pauses: Option<&Pauses<'_>>,
        program: &mut impl Program<Need = Capacity>,
    ) {
        (self.count, self.jobs) = (0, plan.jobs);
        let read = |from: &mut Reader| from.get::<Self>()?.fitting(plan.jobs);
        if let Some(saved) = pauses.and_then(|pauses| pauses.read(read)) {
            *self = saved;
            self.needs.iter().for_each(|&need| {
                program.grow(need);
            });
        }
    }

    /// The same for a search whose result does not depend on the number of workers.
    fn resume_with_any_jobs(
        &mut self,
        plan: &ResolvedPlan,
        pauses: Option<&Pauses<'_>>,
        program: &mut impl Program<Need = Capacity>,
    ) {
        self.resume(&ResolvedPlan { jobs: 1, ..*plan }, pauses, program);
        self.jobs = plan.jobs;
    }

    /// The counterpart of [`Restarts::resume_with_any_jobs`].
    fn keep_without_jobs(&self, pauses: Option<&Pauses<'_>>) {
        let Restarts { needs, count, .. } = self;
        Restarts { needs: needs.clone(), count: *count, jobs: 1 }.keep(pauses);
    }

    /// Writes them to their frame of checkpoints.
    pub(crate) fn keep(&self, pauses: Option<&Pauses<'_>>) {
        if let Some(pauses) = pauses {
            pauses.frame(Layer::Restarts, |to| to.put(self));
        }
    }
}

/// What a search depends on that is neither its plan nor its program.
pub(crate) struct Surroundings<'a, K, L> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) pauses: Option<&'a Pauses<'a>>,
    pub(crate) clock: Clock,
    /// Called with the [`Restarts`] before each attempt: sets their frame of checkpoints.
    pub(crate) keep_restarts: K,
    /// Called for every checkpoint: writes what the program has learned.
    pub(crate) save_learned: L,
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// A validated search: what [`Plan::build`] returns.
#[derive(Clone, Debug)]
pub struct Search {
    /// The plan, as requested.
    asked: Plan,
    plan: ResolvedPlan,
    /// The time of the searches before this one.
    before: Duration,
    /// The directory for states that do not fit into memory.
    spill: Option<PathBuf>,
}

impl Plan {
    /// The search, or the reason why it is refused.
    pub fn build(self) -> Result<Search, Refusal> {
        Ok(Search::new(self, self.resolve()?))
    }

    /// The search of a [`Program`], whose states can neither be copied nor compared, or the reason
    /// why it is refused.
    pub fn build_for_program(self) -> Result<Search, Refusal> {
        Ok(Search::new(self, self.resolve_for_program()?))
    }
}

impl Search {
    fn new(asked: Plan, plan: ResolvedPlan) -> Search {
        Search { asked, plan, before: Duration::ZERO, spill: None }
    }

    /// The same search without shrinking.
    pub(crate) fn without_shrinking(&self) -> Search {
        Search { plan: ResolvedPlan { shrink: None, ..self.plan }, ..self.clone() }
    }

    /// The same as a part of a longer search that has taken `before` already, which counts in the
    /// limit of time and in [`Outcome::elapsed`].
    pub fn after(self, before: Duration) -> Search {
        Search { before, ..self }
    }

    /// The same with a directory for states that do not fit into memory. A breadth-first search
    /// with a sorted store continues there when it reaches its limit of memory. One with an exact
    /// store starts again with a sorted one.
    pub fn spill_to(self, directory: PathBuf) -> Search {
        Search { spill: Some(directory), ..self }
    }

    /// Starts the clock. A checkpoint contains the time before it.
    pub(crate) fn clock(&self, pauses: Option<&Pauses<'_>>) -> Clock {
        match pauses.filter(|pauses| pauses.is_resuming()) {
            Some(pauses) => Clock::after(pauses.elapsed_before()),
            None => Clock::after(self.before),
        }
    }

    /// The plan, as requested.
    pub fn plan(&self) -> &Plan {
        &self.asked
    }

    /// The strategy of this search.
    pub fn strategy(&self) -> Strategy {
        self.plan.strategy
    }

    pub(crate) fn resolved(&self) -> &ResolvedPlan {
        &self.plan
    }

    /// The model in the form that this search needs.
    pub(crate) fn prepared<M: Model>(&self, model: M) -> M {
        let model = if self.plan.needs_stable_names() { model.with_stable_names() } else { model };
        match self.plan.strategy {
            Strategy::Transactions(_) => model.with_owners(),
            _ => model,
        }
    }

    /// Searches `model` and reports to `observer`. Also returns the model that the schedules belong
    /// to: `model`, or what it had to [grow](Model::grow) into.
    ///
    /// Panics if the search does not [suit](Search::suits) the model.
    pub fn run<M: Model>(&self, model: M, observer: &dyn Observer) -> (Outcome, M) {
        self.run_pausing(model, observer, None)
    }

    /// The same with checkpoints. A search that a limit of time or memory or an interrupt ends
    /// writes a last one. A checkpoint of another program or plan is refused.
    pub fn run_with<M: Model>(
        &self,
        model: M,
        observer: &dyn Observer,
        checkpoints: Checkpoints<'_>,
    ) -> Result<(Outcome, M), Refusal> {
        self.pausing(checkpoints, |pauses| self.run_pausing(model, observer, Some(pauses)))
    }

    /// Runs a search that pauses. What a checkpoint contains is checked where it is read, as far as
    /// that is possible without repeating the search. If the search then does something that it
    /// never does by itself, its checkpoint is refused: a panic, or an execution that cannot be
    /// repeated, would be blamed on Preempt or on the program.
    fn pausing<R>(
        &self,
        checkpoints: Checkpoints<'_>,
        run: impl FnOnce(&Pauses<'_>) -> (Outcome, R),
    ) -> Result<(Outcome, R), Refusal> {
        self.resuming(&Pauses::new(&self.asked, checkpoints)?, run)
    }

    /// The same with pauses that are prepared.
    fn resuming<R>(
        &self,
        pauses: &Pauses<'_>,
        run: impl FnOnce(&Pauses<'_>) -> (Outcome, R),
    ) -> Result<(Outcome, R), Refusal> {
        if !pauses.is_resuming() {
            return Ok(run(pauses));
        }
        let done = catch_unwind(AssertUnwindSafe(|| run(pauses)));
        let done = done.map_err(|panic| Refusal::from(Unusable::Misleads(message(&*panic))))?;
        if let Some(unusable) = pauses.unusable() {
            return Err(unusable.into());
        }
        let strange = |finding: &&Finding| finding.failure.kind == FailureKind::Nondeterminism;
        match done.0.findings.iter().find(strange) {
            Some(finding) => Err(Unusable::Misleads(finding.failure.message.clone()).into()),
            None => Ok(done),
        }
    }

    fn run_pausing<'a, M: Model>(
        &self,
        model: M,
        observer: &'a dyn Observer,
        pauses: Option<&'a Pauses<'a>>,
    ) -> (Outcome, M) {
        if let Err(refusal) = self.suits(&model) {
            panic!("Search::suits was not checked: {refusal}");
        }
        let model = self.prepared(model);
        let points = self.plan.strategy.points();
        if let (Some(pauses), Points::All) = (pauses, points) {
            // Nothing was promoted: see `sync_points`.
            pauses.frame(Layer::Promotions, |_| ());
        }
        match points {
            Points::All => {
                let (mut program, mut restarts) =
                    (ModelProgram(model), Restarts::none(self.plan.jobs));
                restarts.resume(&self.plan, pauses, &mut program);
                let (outcome, ModelProgram(model)) = self.drive(
                    program,
                    &mut restarts,
                    Surroundings {
                        observer,
                        pauses,
                        clock: self.clock(pauses),
                        keep_restarts: |restarts: &Restarts<_>| restarts.keep(pauses),
                        save_learned: |_: &_, _: &mut Writer<'_>| (),
                    },
                    |plan, program, control| match plan.strategy.is_of_executions() {
                        true => executions::explore_executions(plan, program, control),
                        false => states::explore_states(plan, &program.0, control),
                    },
                );
                (outcome, model)
            }
            Points::Sync => self.run_at_sync_points(model, (observer, pauses)),
        }
    }

    /// Searches `model` together with the other processes of `exchange`, all of which call this
    /// with the same search and the same model. All of them get the same outcome; only the first
    /// one looks for simpler schedules. Panics where [`Search::distributes`] refuses.
    pub fn run_distributed<M: Model>(
        &self,
        model: M,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> (Outcome, M) {
        self.run_distributed_pausing(model, observer, exchange, None)
    }

    /// The same with checkpoints. All processes keep checkpoints, and continue from the same one,
    /// or none of them does. A checkpoint of another program or plan is refused.
    pub fn run_distributed_with<M: Model>(
        &self,
        model: M,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
        checkpoints: ShardedCheckpoints<'_>,
    ) -> Result<(Outcome, M), Refusal> {
        let pauses = Pauses::distributed(&self.asked, checkpoints)?;
        self.resuming(&pauses, |pauses| {
            self.run_distributed_pausing(model, observer, exchange, Some(pauses))
        })
    }

    fn run_distributed_pausing<'a, M: Model>(
        &self,
        model: M,
        observer: &'a dyn Observer,
        exchange: &dyn Exchange,
        pauses: Option<&'a Pauses<'a>>,
    ) -> (Outcome, M) {
        if let Err(refusal) = self.distributes() {
            panic!("Search::distributes was not checked: {refusal}");
        }
        let search = match exchange.place().process {
            0 => self.clone(),
            _ => self.without_shrinking(),
        };
        if let Some(pauses) = pauses {
            // Nothing was promoted: see `sync_points`.
            pauses.frame(Layer::Promotions, |_| ());
        }
        let (mut program, mut restarts) =
            (ModelProgram(search.prepared(model)), Restarts::none(self.plan.jobs));
        restarts.resume_with_any_jobs(&self.plan, pauses, &mut program);
        let (outcome, ModelProgram(model)) = search.drive(
            program,
            &mut restarts,
            Surroundings {
                observer,
                pauses,
                clock: search.clock(pauses),
                keep_restarts: |restarts: &Restarts<_>| restarts.keep_without_jobs(pauses),
                save_learned: |_: &_, _: &mut Writer<'_>| (),
            },
            |plan, program, control| {
                states::explore_distributed(plan, &program.0, control, exchange)
            },
        );
        (outcome, model)
    }

    /// Whether this search can run in several processes, or why not.
    pub fn distributes(&self) -> Result<(), Refusal> {
        let plan = &self.asked;
        let term = match plan.reduction {
            Reduction::None if plan.order != Order::BreadthFirst => {
                Term::Strategy(strategies::of_order(plan.order).name)
            }
            // What it misses would depend on the number of processes.
            Reduction::None if matches!(plan.store, StoreKind::Bitstate { .. }) => Term::Bitstate,
            // A search that starts again in files would have to do so in all processes.
            Reduction::None if self.spill.is_some() && plan.store != StoreKind::Sorted => {
                Term::Setting(Setting::Spill)
            }
            Reduction::None => return Ok(()),
            _ => Term::Strategy(plan.entry().name),
        };
        Err(Refusal::NotDistributed(term))
    }

    /// Explores the executions of a program whose states cannot be copied. Also returns the
    /// program, or what it had to [grow](Program::grow) into.
    ///
    /// Panics if the search is one of states.
    pub fn run_program<P: Program>(&self, program: P, observer: &dyn Observer) -> (Outcome, P) {
        assert!(
            self.plan.strategy.is_of_executions(),
            "states that cannot be copied cannot be searched"
        );
        assert!(
            !self.plan.strategy.compares_states(),
            "states that are not known cannot be compared"
        );
        let mut restarts = Restarts::none(self.plan.jobs);
        self.drive(
            program,
            &mut restarts,
            Surroundings {
                observer,
                pauses: None,
                clock: self.clock(None),
                keep_restarts: |_: &_| (),
                save_learned: |_: &_, _: &mut Writer<'_>| (),
            },
            executions::explore_executions,
        )
    }

    /// The same with checkpoints: see [`Search::run_with`].
    pub fn run_program_with<P: Resumable>(
        &self,
        mut program: P,
        observer: &dyn Observer,
        checkpoints: Checkpoints<'_>,
    ) -> Result<(Outcome, P), Refusal> {
        self.pausing(checkpoints, |pauses| {
            let clock = self.clock(Some(pauses));
            pauses.read(|from| program.load(from));
            // There is no layer that searches again with promoted variables.
            pauses.frame(Layer::Promotions, |_| ());
            let mut restarts = Restarts::none(self.plan.jobs);
            let saved = pauses.read(|from| {
                // The needs so far are part of what the program has learned.
                let (count, jobs) = from.get()?;
                Restarts { needs: Vec::new(), count, jobs }.fitting(self.plan.jobs)
            });
            restarts = saved.unwrap_or(restarts);
            let keep = |restarts: &Restarts<P::Need>| {
                pauses.frame(Layer::Restarts, |to| to.put(&(restarts.count, restarts.jobs)));
            };
            self.drive(
                program,
                &mut restarts,
                Surroundings {
                    observer,
                    pauses: Some(pauses),
                    clock,
                    keep_restarts: keep,
                    save_learned: P::save,
                },
                executions::explore_executions,
            )
        })
    }

    /// Whether the search is sound for this model, or why not.
    pub fn suits(&self, model: &impl Model) -> Result<(), Refusal> {
        let entry = self.asked.entry();
        let memory = model.memory_model();
        if memory != self.plan.memory {
            return Err(Refusal::OtherMemory { model: memory });
        }
        if memory == MemoryModel::Weak && self.plan.strategy.points() == Points::Sync {
            return Err(Refusal::PointsUnderWeakMemory);
        }
        if entry.value == Value::Reduction(Reduction::Graphs)
            && let Some(obstacle) = model.graph_obstacle()
        {
            return Err(Refusal::NoGraphs { obstacle: obstacle.to_string() });
        }
        if model.has_invariants() {
            entry.check(Property::Invariant)?;
            if self.plan.strategy.points() == Points::Sync {
                return Err(Refusal::InvariantsBetweenPoints);
            }
        }
        match self.plan.strategy {
            Strategy::Blocks(dependence) => {
                let graphs = blocks::preflight(model, dependence);
                graphs.map(drop).map_err(|unfit| unfit.refusal(entry.name))
            }
            _ => Ok(()),
        }
    }

    /// Searches, and restarts as long as a run of the program has a new need.
    pub(crate) fn drive<'a, P, K, L>(
        &self,
        mut program: P,
        restarts: &mut Restarts<P::Need>,
        surroundings: Surroundings<'a, K, L>,
        explore: impl Fn(&ResolvedPlan, &P, &SearchControl<'_, P::Need>) -> Explored,
    ) -> (Outcome, P)
    where
        P: Program,
        K: Fn(&Restarts<P::Need>),
        L: Fn(&P, &mut Writer<'_>) + Sync,
    {
        let Surroundings { observer, pauses, clock, keep_restarts, save_learned } = surroundings;
        loop {
            keep_restarts(restarts);
            let plan = ResolvedPlan { jobs: restarts.jobs, ..self.plan };
            let learned = |to: &mut Writer<'_>| save_learned(&program, to);
            let control = SearchControl::new(plan.limits, observer, clock, restarts.count)
                .pausing(pauses, &learned)
                .spilling(self.spill.as_deref());
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
                            // The schedules of a program that is refused may not be replayable.
                            explored.failures.clear();
                            Some(Stop::Limit(Limit::Memory))
                        }
                    }
                }
                // A single worker may find something before it reaches the step with the need.
                Some(Stop::Restart(_)) if plan.jobs > 1 && plan.strategy.is_of_executions() => {
                    restarts.jobs = 1;
                    restarts.count += 1;
                    continue;
                }
                // The same need again: growing did not help.
                Some(Stop::Restart(_)) => Some(Stop::Limit(Limit::Size)),
                stop => stop,
            };
            if let Some(need) = self.need_of_replays(&program, &explored)
                && restarts.needs.last() != Some(&need)
                && program.grow(need) == Restart::Again
            {
                restarts.needs.push(need);
                restarts.count += 1;
                continue;
            }
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
            // With several workers, how much of the next level was seen depends on their speed.
            (stop, explored.tally) = (None, explored.bounds.last().map(|completed| completed.all));
        }
        let mut findings: Vec<Finding> = explored
            .failures
            .into_iter()
            .map(|(failure, schedule)| self.confirm(program, failure, schedule))
            .collect();
        shrink::shrink(program, &self.plan, &mut findings, observer);
        // `covered`: everything that the plan asks for, which a bound or a number of runs may
        // restrict.
        let exact =
            !matches!(explored.omission, Omission::Bits { .. }) && self.plan.strategy.is_sound();
        let covered = stop.is_none() && exact;
        let complete = covered
            && !self.plan.strategy.is_sample()
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
            strategy: self.plan.strategy,
            memory: self.plan.memory,
            elapsed,
            store_bytes: explored.store_bytes,
            frontier_bytes: explored.frontier_bytes,
            spilled_bytes: explored.spilled_bytes,
            restarts,
            promoted: Vec::new(),
            assumptions: Vec::new(),
        }
    }

    /// Whether everything within the bound was covered, and the search stopped past it.
    fn is_past_bound<N>(&self, stop: Stop<N>, explored: &Explored) -> bool {
        let covered = explored.bounds.last().map(|completed| completed.bound);
        let continues = match self.plan.strategy.executions() {
            Some(ExecutionSearch::Icb { bound, past_bound: Some(_), .. }) => {
                covered >= bound && covered.is_some()
            }
            _ => false,
        };
        // After an interrupt no outcome is expected, and a limit of depth cuts executions within
        // the bound.
        continues
            && matches!(
                stop,
                Stop::Limit(Limit::Executions | Limit::Time | Limit::Memory | Limit::States)
            )
    }

    /// A need that executing the schedules of the failures reports.
    ///
    /// A search over states stops at the state that violates a property and takes no step from it.
    /// A cursor also asks what the threads would do next there, and the answer may need larger
    /// states. Searches over executions use a cursor themselves, so they have met every such need.
    fn need_of_replays<P: Program>(&self, program: &P, explored: &Explored) -> Option<P::Need> {
        if self.plan.strategy.is_of_executions() {
            return None;
        }
        explored.failures.iter().find_map(|(_, schedule)| {
            let mut cursor = match program.start().and_then(Cursor::over) {
                Ok(cursor) => cursor,
                Err(need) => return Some(need),
            };
            schedule.steps().iter().find_map(|&choice| cursor.step(choice).err())
        })
    }

    fn cursor<'p, P: Program>(&self, program: &'p P) -> Cursor<P::System<'p>> {
        match program.start().and_then(Cursor::over) {
            Ok(cursor) if self.plan.strategy.is_fair() => cursor.fair(),
            Ok(cursor) => cursor,
            Err(need) => panic!("a program that was searched can start: {need:?}"),
        }
    }

    /// The same, with the cost of steps in the unit of the search.
    fn counting_cursor<'p, P: Program>(&self, program: &'p P) -> Cursor<P::System<'p>> {
        self.cursor(program).counting(self.plan.strategy.cost())
    }

    /// The schedule without the steps that fail before its last, if it ends in the same failure
    /// without them. In a search that keeps going, other threads continue after a failure. Where
    /// the failing step has changed nothing (over models it never does), they could have done the
    /// same without it: so every failure is the first of some execution, and this is its schedule,
    /// unless that costs more.
    fn without_other_failures<P: Program>(
        &self,
        program: &P,
        failure: &Failure,
        schedule: Schedule,
    ) -> Schedule {
        if !self.plan.keep_going {
            return schedule;
        }
        let (mut cursor, mut kept) = (self.counting_cursor(program), Vec::new());
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
        // A switch away from a failed thread costs nothing, a switch away from a thread that could
        // fail is a preemption or a delay. A bound decides which schedules exist, so none may cost
        // more.
        let most = cursor.cost();
        match replay::end(self.counting_cursor(program), &kept) {
            Ok(end) if end.failures.contains(failure) && end.cost <= most => kept,
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
