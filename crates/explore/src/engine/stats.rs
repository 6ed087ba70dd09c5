//! The visitor of every search over executions: counts, keeps the findings, and watches the limits.
//!
//! Every worker has a stats of its own. What can be met twice, by one worker or by two, lies in
//! sets that they share; what is counted is counted apart and [added](ExecutionStats::absorb) when they
//! meet.

mod checkpoint;
mod shared;

use std::sync::atomic::Ordering::Relaxed;

use preempt_system::{Failure, Preemptions, Schedule, System};

pub(crate) use self::shared::SharedStats;

use crate::codec::{Damaged, Reader, Writer, save_fields};
use crate::engine::control::SearchControl;
use crate::engine::cursor::Cursor;
use crate::engine::cycle_detection::CycleDetector;
use crate::engine::estimate::Round;
use crate::engine::execution::{Cut, Stop, Visitor};
use crate::engine::expand::{deadlock, livelock};
use crate::engine::explored::Explored;
use crate::engine::names::Name;
use crate::engine::observer::Follower;
use crate::engine::race;
use crate::engine::sampler::Sampler;
use crate::engine::sharded::SharedNames;
use crate::plan::coverage::{Coverage, Limit, Omission};
use crate::plan::tally::{BoundCoverage, Tally};
use crate::plan::{Cache, Count, Order, Plan, Points};

/// Steps between two looks at the limits.
const POLL_INTERVAL: u64 = 1 << 10;

/// Counts, keeps the findings, and watches the limits: what one worker sees.
pub(crate) struct ExecutionStats<'a, N> {
    plan: &'a Plan,
    control: &'a SearchControl<'a, N>,
    shared: &'a SharedStats,
    /// What needs no set is counted here; [`ExecutionStats::tally`] adds the rest.
    tally: Tally,
    failed: u64,
    depth: u32,
    bounds: Vec<BoundCoverage>,
    /// Steps that wait and bytes of the strategy's tables: now, and at most.
    held: (usize, usize),
    most_held: (usize, usize),
    /// What the other workers held at most, all together.
    others_held: (usize, usize),
    /// The bytes of these that the other workers know of.
    told: usize,
    /// The steps that were taken when the limits were looked at last, and after how many they are
    /// looked at again.
    polled: u64,
    poll_interval: u64,
    /// Whether happens-before graphs are known.
    recorded: bool,
    cycles: CycleDetector,
    sampler: Sampler,
    /// What the control was not told yet.
    untold: Untold,
    /// The steps that wait for the next bound, and those of all that wait that the control knows of.
    queued: usize,
    told_waiting: usize,
    follower: Option<&'a dyn Follower>,
    /// Whether several workers name states by graphs: then what they see may depend on who is
    /// faster.
    races_for_graphs: bool,
    /// Whether there is nothing to do at most steps but to count them.
    only_counts: bool,
    /// Whether the present execution was counted: its end is being looked at.
    at_end: bool,
    /// Whether a finding has ended the search in an execution that was not counted.
    unfinished: bool,
}

/// What happened since the control was told last.
#[derive(Clone, Copy, Default)]
struct Untold {
    executions: u64,
    /// The weight of what is done.
    weight: f64,
    /// Steps that wait for the next bound.
    queued: u64,
}

save_fields!(Untold { executions, weight, queued });

impl<'a, N: Copy> ExecutionStats<'a, N> {
    pub(crate) fn new(
        plan: &'a Plan,
        control: &'a SearchControl<'a, N>,
        shared: &'a SharedStats,
    ) -> ExecutionStats<'a, N> {
        let named_by_graphs = matches!(plan.order, Order::Icb { cache: Cache::Hb } | Order::DfsHb);
        let (cycles, follower) = (CycleDetector::new(plan), control.follower());
        let races_for_graphs = plan.jobs > 1 && named_by_graphs;
        let unlimited = control.limits.executions.is_none();
        let watched = races_for_graphs
            || cycles.are_watched()
            || follower.is_some()
            || plan.count == Count::States;
        ExecutionStats {
            plan,
            control,
            shared,
            tally: Tally::default(),
            failed: 0,
            depth: 0,
            bounds: Vec::new(),
            held: (0, 0),
            most_held: (0, 0),
            others_held: (0, 0),
            told: 0,
            polled: 0,
            poll_interval: control.poll_interval(POLL_INTERVAL),
            recorded: false,
            cycles,
            sampler: Sampler::new(plan.sampling),
            untold: Untold::default(),
            queued: 0,
            told_waiting: 0,
            follower,
            races_for_graphs,
            only_counts: unlimited && !watched,
            at_end: false,
            unfinished: false,
        }
    }

    /// So many steps wait for the next bound of which the control knows, since a worker has found
    /// them before it paused.
    pub(crate) fn resume_queue(&mut self, queued: usize) {
        self.queued = queued;
    }

    /// A part of the search begins.
    pub(crate) fn begin_round(&mut self, round: Round) {
        self.tell();
        self.queued = 0;
        self.control.begin(round);
    }

    /// Tells the control what it does not know yet.
    fn tell(&mut self) {
        let Untold { executions, weight, queued } = std::mem::take(&mut self.untold);
        self.control.weighed(executions, weight, queued);
        self.tell_waiting(self.held.0);
    }

    fn tell_waiting(&mut self, waiting: usize) {
        let told = std::mem::replace(&mut self.told_waiting, waiting);
        self.control.wait(waiting.saturating_sub(told) as u64, 0);
        self.control.taken(told.saturating_sub(waiting) as u64, 0);
    }

    /// An execution has ended.
    fn ended(&mut self) {
        self.untold.executions += 1;
        if self.sampler.looks() && self.sampler.ended(self.tally.taken(), self.failed) {
            self.sampler.look(self.tally());
        }
    }

    /// What another worker counts, from now on.
    pub(crate) fn part(&self) -> ExecutionStats<'a, N> {
        ExecutionStats {
            recorded: self.recorded,
            ..ExecutionStats::new(self.plan, self.control, self.shared)
        }
    }

    /// Adds what the other workers have counted meanwhile.
    pub(crate) fn absorb(&mut self, parts: Vec<ExecutionStats<'a, N>>) {
        let mut held = (0, 0);
        for mut part in parts {
            part.tell_waiting(0);
            self.tally.add(&part.tally);
            // What the part has not told the control yet, this one will.
            self.polled += part.polled;
            self.failed += part.failed;
            self.depth = self.depth.max(part.depth);
            held = (held.0 + part.most_held.0, held.1 + part.most_held.1);
            self.shared.held.fetch_sub(part.told, Relaxed);
            self.untold.executions += part.untold.executions;
            self.untold.weight += part.untold.weight;
            self.untold.queued += part.untold.queued;
        }
        self.others_held = (self.others_held.0.max(held.0), self.others_held.1.max(held.1));
    }

    /// The program has a need: the search has to begin anew.
    pub(crate) fn restart(&self, need: N) {
        self.control.stop(Stop::Restart(need));
    }

    /// The executions so far. All workers have been [absorbed](ExecutionStats::absorb).
    pub(crate) fn taken(&self) -> u64 {
        self.tally.taken()
    }

    /// Allows no more than `most` executions in all. All workers have been
    /// [absorbed](ExecutionStats::absorb).
    pub(crate) fn limit_executions(&self, most: u64) {
        self.control.limit_executions(self.taken(), most);
    }

    /// Looks at the initial state.
    pub(crate) fn begin<S: System<Need = N>>(
        &mut self,
        cursor: &mut Cursor<S>,
    ) -> Result<(), Stop<N>> {
        self.recorded = cursor.graph().is_some();
        if let Some(failure) = cursor.system().failure() {
            self.note(failure.clone(), 0, Schedule::default())?;
        }
        self.arrive(cursor)
    }

    /// Counts the present state and checks it.
    fn arrive<S: System<Need = N>>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<N>> {
        if self.plan.count == Count::States {
            let graph = cursor.graph().map(|graph| Name::from(graph.fingerprint()));
            // Where states are not known, happens-before graphs stand for them.
            let state = cursor.system().words().map(Name::of_state).or(graph);
            if state.is_some_and(|state| self.shared.states.lower(state, ())) {
                self.control.found(1);
            }
            graph.map(|graph| self.shared.graphs.lower(graph, ()));
        }
        self.check_invariant(cursor)
    }

    /// Checks the present state.
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

    /// Looks at a step that was taken for the first time.
    fn look_at_step<S: System<Need = N>>(
        &mut self,
        cursor: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<N>> {
        if self.control.has_all_executions() {
            return self.stop(Stop::Limit(Limit::Executions));
        }
        if self.depends_on_the_way(cursor) {
            return self.stop(Stop::Rerun);
        }
        self.tally.steps += 1;
        if let Some(follower) = self.follower {
            follower.run(None, cursor.schedule().steps());
        }
        if cursor.len() as u32 > self.depth {
            self.depth = cursor.len() as u32;
            self.control.deepen(self.depth);
        }
        if let Some(failure) = failure {
            self.fail(cursor, *failure)?;
        }
        self.arrive(cursor)?;
        if self.cycles.closes(cursor) {
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
        self.note(failure, cursor.preemptions().count(), cursor.schedule())
    }

    /// An execution shows all races of its beginnings, so it is enough to look at its end.
    fn look_for_races<S: System<Need = N>>(&mut self, cursor: &Cursor<S>) -> Result<(), Stop<N>> {
        if self.plan.points == Points::All {
            return Ok(());
        }
        let Some(race) = race::at(cursor, |location| cursor.system().location_kind(location))
        else {
            return Ok(());
        };
        let mut preemptions = Preemptions::starting_with(cursor.system().initially_running());
        for at in 0..=race.later {
            preemptions.step(cursor.choice(at).thread, cursor.enabled_before(at));
        }
        let steps = (0..=race.later).map(|at| cursor.choice(at)).collect();
        self.note(race::failure(cursor, race), preemptions.count(), Schedule::new(steps))
    }

    /// Looks at the end of an execution.
    fn look_at_end<S: System<Need = N>>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<N>> {
        if self.plan.count >= Count::Traces {
            cursor.system().words().map(|state| self.shared.ends.lower(Name::of_state(state), ()));
            cursor.graph().map(|graph| self.shared.traces.lower(graph.fingerprint().into(), ()));
        }
        if self.plan.deadlock && cursor.is_deadlock() {
            self.fail(cursor, deadlock())?;
        }
        if cursor.is_livelock() {
            self.fail(cursor, livelock())?;
        }
        self.look_for_races(cursor)
    }

    fn note(
        &mut self,
        failure: Failure,
        preemptions: u32,
        schedule: Schedule,
    ) -> Result<(), Stop<N>> {
        if !self.control.is_sought(&failure) {
            return Ok(());
        }
        self.failed += 1;
        if self.shared.findings().record_ranked(failure, (preemptions, schedule)) {
            self.control.failed();
        }
        match (self.plan.keep_going, self.plan.jobs) {
            (true, _) => Ok(()),
            (false, 1) => {
                self.unfinished = !self.at_end;
                self.stop(Stop::Finding)
            }
            // Which one comes first depends on who was faster.
            (false, _) => self.stop(Stop::Rerun),
        }
    }

    fn stop(&self, why: Stop<N>) -> Result<(), Stop<N>> {
        self.control.stop(why);
        Err(why)
    }

    /// Takes note of an execution that has come to its end or was cut, unless it is one too many.
    fn count_execution(&self) -> Result<(), Stop<N>> {
        if self.control.ended() { Ok(()) } else { self.stop(Stop::Limit(Limit::Executions)) }
    }

    /// Whether what follows from here depends on how the cursor came here, though only the first
    /// who comes is to go on. Whether a thread spins does not follow from the happens-before graph
    /// alone.
    fn depends_on_the_way<S: System<Need = N>>(&self, cursor: &Cursor<S>) -> bool {
        self.races_for_graphs && cursor.has_held()
    }

    /// Looks at the limits now and then.
    #[inline]
    fn poll(&mut self) -> Result<(), Stop<N>> {
        if self.tally.steps - self.polled >= self.poll_interval {
            self.look_at_limits();
        }
        if self.control.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    #[cold]
    fn look_at_limits(&mut self) {
        self.tell();
        // Of all workers.
        let before = self.shared.held.fetch_add(self.held.1.wrapping_sub(self.told), Relaxed);
        let held = before.wrapping_add(self.held.1).wrapping_sub(self.told);
        self.told = self.held.1;
        self.control.poll_bytes(self.tally.steps - self.polled, self.shared.bytes() + held);
        self.polled = self.tally.steps;
    }

    /// Whether a strategy may go on to prepare its search, for which it needs `bytes` so far. There
    /// is nothing yet from which a checkpoint could go on, so that a limit ends the search at once.
    #[cold]
    pub(crate) fn goes_on(&self, bytes: usize) -> bool {
        self.control.poll_bytes(0, bytes);
        self.control.end_now();
        !self.control.stopped()
    }

    /// Ends the search for want of memory, unless it has ended for another reason.
    #[cold]
    pub(crate) fn out_of_memory(&self) -> Stop<N> {
        self.control.stop(Stop::Limit(Limit::Memory));
        Stop::Enough
    }

    fn tally(&self) -> Tally {
        let counted =
            |what: Count, set: &SharedNames| (self.plan.count >= what).then(|| set.len() as u64);
        Tally {
            traces: counted(Count::Traces, &self.shared.traces).filter(|_| self.recorded),
            ends: counted(Count::Traces, &self.shared.ends),
            states: counted(Count::States, &self.shared.states),
            graphs: counted(Count::States, &self.shared.graphs).filter(|_| self.recorded),
            ..self.tally
        }
    }

    /// What was seen. The failures are with the [others](SharedStats::into_failures).
    pub(crate) fn explored(self) -> Explored {
        let cut = match self.plan.order {
            // Of iterative deepening the last round counts: those before cut what it has followed
            // further.
            Order::Depth { .. } | Order::IterativeDepth { .. } => {
                self.bounds.last().is_some_and(|bound| bound.cut)
            }
            _ => self.tally.cut > 0,
        };
        if cut {
            self.control.stop(Stop::Limit(Limit::Depth));
        }
        let (tally, store_bytes) =
            (self.tally(), self.shared.bytes() + self.most_held.1 + self.others_held.1);
        let growth = self.sampler.finish(tally);
        Explored {
            seen: Coverage {
                states: tally.states.unwrap_or(0),
                expanded: tally.states.unwrap_or(0),
                transitions: tally.steps,
                failed: self.failed,
                depth: self.depth,
                frontier: (self.most_held.0 + self.others_held.0) as u64,
                ..Coverage::default()
            },
            failures: Vec::new(),
            omission: Omission::Never,
            store_bytes,
            frontier_bytes: 0,
            tally: Some(tally),
            bounds: self.bounds,
            growth,
            unfinished: self.unfinished,
            rerun: None,
        }
    }
}

impl<S: System> Visitor<S> for ExecutionStats<'_, S::Need> {
    #[inline]
    fn step(
        &mut self,
        cursor: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<S::Need>> {
        if self.only_counts && failure.is_none() && cursor.len() as u32 <= self.depth {
            self.tally.steps += 1;
            self.check_invariant(cursor)?;
        } else {
            self.look_at_step(cursor, failure)?;
        }
        self.poll()
    }

    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>> {
        self.count_execution()?;
        self.tally.executions += 1;
        self.at_end = true;
        let looked = self.look_at_end(cursor);
        self.at_end = false;
        self.ended();
        looked
    }

    fn cut(&mut self, cursor: &mut Cursor<S>, why: Cut) -> Result<(), Stop<S::Need>> {
        match why {
            Cut::Covered => self.tally.pruned += 1,
            Cut::Steps => {
                self.count_execution()?;
                self.tally.cut += 1;
                self.at_end = true;
                let looked = self.look_for_races(cursor);
                self.at_end = false;
                self.ended();
                looked?;
            }
            Cut::Bound => {}
        }
        Ok(())
    }

    fn bound(&mut self, bound: u32, cut: bool) {
        let all = self.tally();
        let before = self.bounds.last().map_or_else(Tally::default, |bound| bound.all);
        self.bounds.push(BoundCoverage { bound, all, new: all.since(&before), cut });
    }

    fn covered(&mut self, steps: usize) {
        self.tally.pruned += steps as u64;
    }

    #[inline(always)]
    fn is_pausing(&self) -> bool {
        self.control.is_pausing()
    }

    fn pause(&mut self, rest: impl Fn(&mut Writer<'_>)) -> Result<(), Stop<S::Need>> {
        self.control.pause(|to| {
            self.save(to);
            rest(to);
        });
        if self.control.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    fn resume<T>(&mut self, read: impl FnOnce(&mut Reader) -> Result<T, Damaged>) -> Option<T> {
        let rest = self.control.resume_part(read)?;
        self.control.is_resumed().then_some(rest)
    }

    fn weighed(&mut self, weight: f64) {
        self.untold.weight += weight;
    }

    fn wants_weights(&self) -> bool {
        self.control.wants_estimates()
    }

    fn queued(&mut self, next: usize) {
        self.untold.queued += (next - self.queued) as u64;
        self.queued = next;
    }

    fn holds(&mut self, waiting: usize, bytes: usize) {
        self.held = (waiting, bytes);
        self.most_held = (self.most_held.0.max(waiting), self.most_held.1.max(bytes));
    }
}
