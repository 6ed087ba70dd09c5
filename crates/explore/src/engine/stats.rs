//! The visitor of every search over executions: it counts, keeps findings and checks limits.
//!
//! Every worker has its own [`ExecutionStats`]. Things that several workers, or one worker twice,
//! may find (traces, states, failures) are kept in sets that the workers [share](SharedStats).
//! Plain counters are per worker and summed by [`ExecutionStats::absorb`].

mod shared;

use std::sync::atomic::Ordering::Relaxed;

use preempt_system::{Failure, Schedule, System};

pub(crate) use self::shared::SharedStats;

use crate::codec::{Damaged, Reader, SaveInPlace, Writer, save_fields};
use crate::engine::control::SearchControl;
use crate::engine::cursor::Cursor;
use crate::engine::cycle_detection::CycleDetector;
use crate::engine::estimate::Round;
use crate::engine::execution::{Cut, ResumableSearch, Stop, Visitor};
use crate::engine::explored::Explored;
use crate::engine::long_steps;
use crate::engine::names::Name;
use crate::engine::observer::Follower;
use crate::engine::race;
use crate::engine::sampler::Sampler;
use crate::engine::sharded::SharedNames;
use crate::plan::coverage::{Coverage, Limit, Omission};
use crate::plan::strategy::ExecutionSearch;
use crate::plan::tally::{BoundCoverage, Tally};
use crate::plan::{Count, Points, ResolvedPlan};

/// Steps between two polls of the limits.
const POLL_INTERVAL: u64 = 1 << 10;

/// The counts, findings and limits of one worker.
pub(crate) struct ExecutionStats<'a, N> {
    plan: &'a ResolvedPlan,
    control: &'a SearchControl<'a, N>,
    shared: &'a SharedStats,
    counts: Counts,
    /// Steps deferred to the next bound.
    deferred: usize,
    poll_interval: u64,
    follower: Option<&'a dyn Follower>,
    /// Whether several workers identify states by happens-before graphs. Then their results may
    /// depend on which of them is faster.
    races_for_graphs: bool,
    /// Whether most steps need nothing but to be counted.
    only_counts: bool,
    /// Whether the current execution has been counted: its end is being checked.
    at_end: bool,
    /// Whether a finding ended the search in an execution that was not counted.
    unfinished: bool,
}

/// The part of a worker's statistics that a checkpoint contains.
struct Counts {
    /// Counters that need no set; [`ExecutionStats::tally`] adds the others.
    tally: Tally,
    failed: u64,
    depth: u32,
    bounds: Vec<BoundCoverage>,
    /// Waiting steps, and bytes of the strategy's tables: the current values and the maxima.
    held: (usize, usize),
    most_held: (usize, usize),
    /// The sum of the other workers' maxima.
    others_held: (usize, usize),
    /// Whether happens-before graphs are known.
    recorded: bool,
    cycles: CycleDetector,
    sampler: Sampler,
    reported: Reported,
    unreported: Unreported,
}

save_fields!(Counts {
    tally,
    failed,
    depth,
    bounds,
    held,
    most_held,
    others_held,
    recorded,
    cycles,
    sampler,
    reported,
    unreported,
});

/// The values that this worker has reported to the control and the other workers.
#[derive(Clone, Copy, Default)]
struct Reported {
    /// Bytes of the strategy's tables.
    bytes: usize,
    /// Waiting steps.
    waiting: usize,
    /// Steps taken: at the last poll.
    steps: u64,
}

save_fields!(Reported { bytes, waiting, steps });

/// Progress since the last report to the control.
#[derive(Clone, Copy, Default)]
struct Unreported {
    executions: u64,
    /// The explored weight of the tree.
    weight: f64,
    /// Steps deferred to the next bound.
    deferred: u64,
}

save_fields!(Unreported { executions, weight, deferred });

impl<'a, N: Copy> ExecutionStats<'a, N> {
    pub(crate) fn new(
        plan: &'a ResolvedPlan,
        control: &'a SearchControl<'a, N>,
        shared: &'a SharedStats,
    ) -> ExecutionStats<'a, N> {
        let named_by_graphs = plan.strategy.compares_graphs();
        let (cycles, follower) = (CycleDetector::new(plan), control.follower());
        let races_for_graphs = plan.jobs > 1 && named_by_graphs;
        let unlimited = control.limits.executions.is_none();
        let watched =
            races_for_graphs || cycles.is_on() || follower.is_some() || plan.count == Count::States;
        let counts = Counts {
            tally: Tally::default(),
            failed: 0,
            depth: 0,
            bounds: Vec::new(),
            held: (0, 0),
            most_held: (0, 0),
            others_held: (0, 0),
            recorded: false,
            cycles,
            sampler: Sampler::new(plan.sampling),
            reported: Reported::default(),
            unreported: Unreported::default(),
        };
        ExecutionStats {
            plan,
            control,
            shared,
            counts,
            deferred: 0,
            poll_interval: control.poll_interval(POLL_INTERVAL),
            follower,
            races_for_graphs,
            only_counts: unlimited && !watched,
            at_end: false,
            unfinished: false,
        }
    }

    /// Explores with `strategy`, from a checkpoint if there is one, and writes checkpoints between
    /// its steps. Returns whether the bound on preemptions has left out something.
    pub(crate) fn drive<S: System<Need = N>>(
        &mut self,
        mut strategy: impl ResumableSearch<S>,
    ) -> Result<bool, Stop<N>> {
        match self.resume(|from| strategy.load(from)) {
            Some(()) => strategy.replay(self)?,
            None => strategy.start(self)?,
        }
        loop {
            if self.is_pausing() {
                self.pause(|to| strategy.save(to))?;
            }
            if !strategy.advance(self)? {
                return Ok(strategy.is_cut_by_bound());
            }
        }
    }

    /// Whether the search is to [pause](ExecutionStats::pause).
    #[inline(always)]
    pub(crate) fn is_pausing(&self) -> bool {
        self.control.is_pausing()
    }

    /// Writes a checkpoint; `rest` writes the remaining work. The other workers must have been
    /// [absorbed](ExecutionStats::absorb).
    pub(crate) fn pause(&self, rest: impl Fn(&mut Writer<'_>)) -> Result<(), Stop<N>> {
        self.control.pause(|to| {
            to.put(&self.counts);
            self.shared.save_contents(to);
            rest(to);
        });
        if self.control.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    /// Restores the statistics from a checkpoint, if there is one. Called before everything else;
    /// [`ExecutionStats::resume`] then reads the remaining work.
    pub(crate) fn resume_counts(&mut self) -> bool {
        let (control, shared) = (self.control, self.shared);
        let counts = control.resume_part(|from| {
            control.load_contents(from)?;
            let counts: Counts = from.get()?;
            shared.load_contents(from)?;
            Ok(counts)
        });
        counts.map(|counts| self.counts = counts).is_some()
    }

    /// Reads the remaining work from a checkpoint, if there is one.
    pub(crate) fn resume<T>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, Damaged>,
    ) -> Option<T> {
        let rest = self.control.resume_part(read)?;
        self.control.is_resumed().then_some(rest)
    }

    /// `deferred` steps wait for the next bound, and were reported to the control before the worker
    /// paused.
    pub(crate) fn resume_deferred(&mut self, deferred: usize) {
        self.deferred = deferred;
    }

    /// A part of the search starts.
    pub(crate) fn begin_round(&mut self, round: Round) {
        self.report();
        self.deferred = 0;
        self.control.begin(round);
    }

    /// Reports progress to the control.
    fn report(&mut self) {
        let Unreported { executions, weight, deferred } =
            std::mem::take(&mut self.counts.unreported);
        self.control.add_progress(executions, weight, deferred);
        self.report_waiting(self.counts.held.0);
    }

    fn report_waiting(&mut self, waiting: usize) {
        let before = std::mem::replace(&mut self.counts.reported.waiting, waiting);
        self.control.add_waiting(waiting.saturating_sub(before) as u64, 0);
        self.control.remove_waiting(before.saturating_sub(waiting) as u64, 0);
    }

    /// An execution has ended or was cut.
    fn count_end(&mut self) {
        let Counts { unreported, sampler, tally, failed, .. } = &mut self.counts;
        unreported.executions += 1;
        if sampler.is_on() && sampler.ended(tally.taken(), *failed) {
            let tally = self.tally();
            self.counts.sampler.sample(tally);
        }
    }

    /// The statistics of another worker, which starts now.
    pub(crate) fn part(&self) -> ExecutionStats<'a, N> {
        let mut part = ExecutionStats::new(self.plan, self.control, self.shared);
        part.counts.recorded = self.counts.recorded;
        part
    }

    /// Adds the counts of the other workers, which have paused or are done.
    pub(crate) fn absorb(&mut self, parts: Vec<ExecutionStats<'a, N>>) {
        let mut held = (0, 0);
        for mut part in parts {
            part.report_waiting(0);
            let (all, part) = (&mut self.counts, &part.counts);
            all.tally.add(&part.tally);
            // This worker reports what the part has not reported.
            all.reported.steps += part.reported.steps;
            all.failed += part.failed;
            all.depth = all.depth.max(part.depth);
            held = (held.0 + part.most_held.0, held.1 + part.most_held.1);
            self.shared.held.fetch_sub(part.reported.bytes, Relaxed);
            all.unreported.executions += part.unreported.executions;
            all.unreported.weight += part.unreported.weight;
            all.unreported.deferred += part.unreported.deferred;
        }
        let most = &mut self.counts.others_held;
        *most = (most.0.max(held.0), most.1.max(held.1));
    }

    /// The program has a need: the search has to start again.
    pub(crate) fn restart(&self, need: N) {
        self.control.stop(Stop::Restart(need));
    }

    /// The executions so far. All workers have been [absorbed](ExecutionStats::absorb).
    pub(crate) fn taken(&self) -> u64 {
        self.counts.tally.taken()
    }

    /// Allows no more than `most` executions in all. All workers have been
    /// [absorbed](ExecutionStats::absorb).
    pub(crate) fn limit_executions(&self, most: u64) {
        self.control.limit_executions(self.taken(), most);
    }

    /// `steps` steps that waited to be taken are covered by now and will not be taken.
    pub(crate) fn skip_covered(&mut self, steps: usize) {
        self.counts.tally.pruned += steps as u64;
    }

    /// `weight` of the tree has been explored: see [`estimate`](crate::engine::estimate).
    pub(crate) fn add_weight(&mut self, weight: f64) {
        self.counts.unreported.weight += weight;
    }

    /// Whether weights are needed: progress estimates are on.
    pub(crate) fn wants_weights(&self) -> bool {
        self.control.wants_estimates()
    }

    /// `deferred` steps wait for the next bound.
    pub(crate) fn defers(&mut self, deferred: usize) {
        self.counts.unreported.deferred += (deferred - self.deferred) as u64;
        self.deferred = deferred;
    }

    /// `waiting` steps are still to be taken, and the strategy's tables need `bytes`.
    pub(crate) fn set_held(&mut self, waiting: usize, bytes: usize) {
        let Counts { held, most_held, .. } = &mut self.counts;
        *held = (waiting, bytes);
        *most_held = (most_held.0.max(waiting), most_held.1.max(bytes));
    }

    /// Everything within `bound` was explored. `cut`: there is more beyond it.
    pub(crate) fn complete_bound(&mut self, bound: u32, cut: bool) {
        let all = self.tally();
        let before = self.counts.bounds.last().map_or_else(Tally::default, |bound| bound.all);
        self.counts.bounds.push(BoundCoverage { bound, all, new: all.since(&before), cut });
    }

    /// Checks the initial state.
    pub(crate) fn begin<S: System<Need = N>>(
        &mut self,
        cursor: &mut Cursor<S>,
    ) -> Result<(), Stop<N>> {
        self.counts.recorded = cursor.graph().is_some();
        if let Some(failure) = cursor.system().failure() {
            self.record(failure.clone(), 0, Schedule::default())?;
        }
        self.arrive(cursor)
    }

    /// Counts the current state and checks it.
    fn arrive<S: System<Need = N>>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<N>> {
        if self.plan.count == Count::States {
            let graph = cursor.name().map(Name::from);
            // Where states are not known, happens-before graphs identify them.
            let state = cursor.system().words().map(Name::of_state).or(graph);
            if state.is_some_and(|state| self.shared.states.lower(state, ())) {
                self.control.add_states(1);
            }
            graph.map(|graph| self.shared.graphs.lower(graph, ()));
        }
        self.check_invariant(cursor)
    }

    /// Checks the current state.
    #[inline]
    fn check_invariant<S: System<Need = N>>(
        &mut self,
        cursor: &mut Cursor<S>,
    ) -> Result<(), Stop<N>> {
        match cursor.invariant() {
            Ok(()) => Ok(()),
            Err(failure) => self.fail(cursor, *failure),
        }
    }

    /// Counts a step and checks everything that a plan may ask for. Not inlined, so that
    /// [`step`](Visitor::step) can be: it is called for every step.
    #[inline(never)]
    fn check_step<S: System<Need = N>>(
        &mut self,
        cursor: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<N>> {
        if self.control.has_all_executions() {
            return self.stop(Stop::Limit(Limit::Executions));
        }
        if self.depends_on_the_path(cursor) {
            return self.stop(Stop::Rerun);
        }
        self.counts.tally.steps += 1;
        if let Some(follower) = self.follower {
            follower.run(None, cursor.schedule().steps());
        }
        if cursor.len() as u32 > self.counts.depth {
            self.counts.depth = cursor.len() as u32;
            self.control.reach_depth(self.counts.depth);
        }
        if let Some(failure) = failure {
            self.fail(cursor, *failure)?;
        }
        self.arrive(cursor)?;
        if self.counts.cycles.closes(cursor) {
            return self.stop(Stop::Limit(Limit::Round));
        }
        Ok(())
    }

    #[cold]
    fn fail<S: System<Need = N>>(
        &mut self,
        cursor: &Cursor<S>,
        failure: Failure,
    ) -> Result<(), Stop<N>> {
        self.record(failure, cursor.cost(), cursor.schedule())
    }

    /// Checks for data races. An execution shows all races of its prefixes, so they are checked
    /// only at its end.
    fn check_races<S: System<Need = N>>(&mut self, cursor: &Cursor<S>) -> Result<(), Stop<N>> {
        if self.plan.strategy.points() == Points::All {
            return Ok(());
        }
        let Some(race) = race::at(cursor, |location| cursor.system().location_kind(location))
        else {
            return Ok(());
        };
        let cost = cursor.cost_with_at(race.later, cursor.choice(race.later));
        let steps = (0..=race.later).map(|at| cursor.choice(at)).collect();
        self.record(race::failure(cursor, race), cost, Schedule::new(steps))
    }

    /// Checks the end of an execution.
    fn check_end<S: System<Need = N>>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<N>> {
        if self.plan.count >= Count::Traces {
            cursor.system().words().map(|state| self.shared.ends.lower(Name::of_state(state), ()));
            cursor.name().map(|name| self.shared.traces.lower(name.into(), ()));
        }
        let is_sought = self.plan.deadlock || !cursor.is_deadlock();
        if let Some(failure) = is_sought.then(|| cursor.stuck()).flatten() {
            self.fail(cursor, failure)?;
        }
        self.check_races(cursor)
    }

    fn record(&mut self, failure: Failure, cost: u32, schedule: Schedule) -> Result<(), Stop<N>> {
        if !self.control.is_sought(&failure) {
            return Ok(());
        }
        self.counts.failed += 1;
        if self.shared.findings().record_ranked(failure, (cost, schedule)) {
            self.control.count_failure();
        }
        match (self.plan.keep_going, self.plan.jobs) {
            (true, _) => Ok(()),
            (false, 1) => {
                self.unfinished = !self.at_end;
                self.stop(Stop::Finding)
            }
            // Which worker finds a failure first depends on their speed.
            (false, _) => self.stop(Stop::Rerun),
        }
    }

    fn stop(&self, why: Stop<N>) -> Result<(), Stop<N>> {
        self.control.stop(why);
        Err(why)
    }

    /// Counts an execution that has ended or was cut, unless the limit has been reached.
    fn count_execution(&self) -> Result<(), Stop<N>> {
        if self.control.count_execution() {
            Ok(())
        } else {
            self.stop(Stop::Limit(Limit::Executions))
        }
    }

    /// Whether what follows depends on the path to here, although only the first path is followed:
    /// whether a thread spins does not follow from the happens-before graph alone.
    fn depends_on_the_path<S: System<Need = N>>(&self, cursor: &Cursor<S>) -> bool {
        self.races_for_graphs && cursor.has_held()
    }

    /// Polls the limits every [`poll_interval`](ExecutionStats::poll_interval) steps.
    #[inline]
    fn poll(&mut self) -> Result<(), Stop<N>> {
        let steps = self.counts.tally.steps - self.counts.reported.steps;
        if steps >= self.poll_interval || long_steps::is_due() {
            self.poll_now();
        }
        if self.control.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    #[cold]
    fn poll_now(&mut self) {
        long_steps::polled();
        self.report();
        let Counts { reported, held, tally, .. } = &mut self.counts;
        // The bytes of all workers: this one replaces its last report by the current value. The
        // difference may be negative, so it wraps around.
        let change = held.1.wrapping_sub(reported.bytes);
        let all = self.shared.held.fetch_add(change, Relaxed).wrapping_add(change);
        let steps = tally.steps - reported.steps;
        (reported.bytes, reported.steps) = (held.1, tally.steps);
        self.control.poll_bytes(steps, self.shared.bytes() + all);
    }

    /// Whether a strategy may continue to prepare its search, for which it needs `bytes` so far.
    /// There is nothing yet from which a checkpoint could continue, so a limit ends the search at
    /// once.
    #[cold]
    pub(crate) fn may_continue(&self, bytes: usize) -> bool {
        self.control.poll_bytes(0, bytes);
        self.control.end_now();
        !self.control.stopped()
    }

    /// Ends the search for lack of memory, unless it has ended for another reason.
    #[cold]
    pub(crate) fn out_of_memory(&self) -> Stop<N> {
        self.control.stop(Stop::Limit(Limit::Memory));
        Stop::Enough
    }

    fn tally(&self) -> Tally {
        let counted =
            |what: Count, set: &SharedNames| (self.plan.count >= what).then(|| set.len() as u64);
        let recorded = self.counts.recorded;
        Tally {
            traces: counted(Count::Traces, &self.shared.traces).filter(|_| recorded),
            ends: counted(Count::Traces, &self.shared.ends),
            states: counted(Count::States, &self.shared.states),
            graphs: counted(Count::States, &self.shared.graphs).filter(|_| recorded),
            ..self.counts.tally
        }
    }

    /// The result, without the failures, which [`SharedStats`] keeps.
    pub(crate) fn explored(self) -> Explored {
        let tally = self.tally();
        let Counts { failed, depth, bounds, most_held, others_held, sampler, .. } = self.counts;
        let cut = match self.plan.strategy.executions() {
            // The last round of iterative deepening counts: it has followed further what the
            // rounds before it have cut.
            Some(ExecutionSearch::Depth { .. } | ExecutionSearch::IterativeDepth { .. }) => {
                bounds.last().is_some_and(|bound| bound.cut)
            }
            _ => tally.cut > 0,
        };
        if cut {
            self.control.stop(Stop::Limit(Limit::Depth));
        }
        Explored {
            seen: Coverage {
                states: tally.states.unwrap_or(0),
                expanded: tally.states.unwrap_or(0),
                transitions: tally.steps,
                failed,
                depth,
                frontier: (most_held.0 + others_held.0) as u64,
                ..Coverage::default()
            },
            failures: Vec::new(),
            omission: Omission::Never,
            store_bytes: self.shared.bytes() + most_held.1 + others_held.1,
            frontier_bytes: 0,
            spilled_bytes: 0,
            tally: Some(tally),
            bounds,
            growth: sampler.finish(tally),
            unfinished: self.unfinished,
            rerun: None,
        }
    }
}

impl<S: System> Visitor<S> for ExecutionStats<'_, S::Need> {
    #[inline(always)]
    fn step(
        &mut self,
        cursor: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<S::Need>> {
        // The common case is kept short: a step that does not fail, in a search that neither
        // collects states nor limits executions.
        if self.only_counts && failure.is_none() && cursor.len() as u32 <= self.counts.depth {
            self.counts.tally.steps += 1;
            self.check_invariant(cursor)?;
        } else {
            self.check_step(cursor, failure)?;
        }
        self.poll()
    }

    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>> {
        self.count_execution()?;
        if cursor.system().is_discarded() {
            self.counts.tally.discarded += 1;
            self.count_end();
            return Ok(());
        }
        self.counts.tally.executions += 1;
        self.at_end = true;
        let checked = self.check_end(cursor);
        self.at_end = false;
        self.count_end();
        checked
    }

    fn cut(&mut self, cursor: &mut Cursor<S>, why: Cut) -> Result<(), Stop<S::Need>> {
        match why {
            Cut::Covered => self.counts.tally.pruned += 1,
            Cut::Steps => {
                self.count_execution()?;
                self.counts.tally.cut += 1;
                self.at_end = true;
                let checked = self.check_races(cursor);
                self.at_end = false;
                self.count_end();
                checked?;
            }
            Cut::Bound => {}
        }
        Ok(())
    }

    fn bound(&mut self, bound: u32, cut: bool) {
        self.complete_bound(bound, cut);
    }

    fn holds(&mut self, waiting: usize, bytes: usize) {
        self.set_held(waiting, bytes);
    }
}
