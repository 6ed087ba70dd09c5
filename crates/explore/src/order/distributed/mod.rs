//! Breadth first in several processes, each of which stores a part of the states.
//!
//! A state belongs to the process that its hash names. The [workers](super::bfs) are those of a
//! search in one process, except that successors of other processes go into parcels. Received
//! states are looked up like own successors. With a sorted store the phases of a level are those of
//! [`sorted`](super::sorted): see [`runs`]. Between two levels, every process
//! [gathers](Exchange::gather) the counts, failures and stop reasons of all of them.
//!
//! **Guarantees.** Those of [`bfs`](super::bfs), with the same counts in every level and the same
//! schedules for any number of processes and workers:
//!
//! - Level k + 1 is the set of successors of level k that are in no earlier level. A state is
//!   looked up by its owner alone, so it is new exactly once. It is looked up before its owner
//!   begins with level k + 1, because [`Exchange::end_round`] returns after the last round only
//!   when everything has arrived, and no process sends states of the next level before all have
//!   gathered.
//! - Whether to stop, and why, is computed from the gathered data, so all processes do the same.
//! - Schedules do not depend on the order in which states were found: see [`marking`].
//!
//! What depends on speed is what depends on it with several workers, too: how much of a level was
//! expanded when a limit or an interrupt ended the search.
//!
//! **Pauses.** A process that wants to pause asks all of them to end the level early. When all have
//! received everything that was sent, nothing is in flight, and the remaining work is what the
//! stores and frontiers contain: see [`shards`]. The level is then expanded to its end.
//!
//! **Cost.** Per successor of another process: its hash twice, a copy into a parcel, the network,
//! and a copy out of the parcel. Per level: two round trips.

mod marking;
mod parcel;
mod report;
mod runs;
mod shards;

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::{mem, thread};

use preempt_system::{Batch, Choice, Failure, Model, Stepper};

use self::report::{LevelReport, LevelSum, number_of};
use self::runs::SortedPart;
use super::bfs::{Outbox, SHARED, Trail, Worker};
use super::frontier::Frontier;
use super::sorted::{Phases, Runs, budget};
use crate::codec::{Damaged, Writer};
use crate::engine::checkpoint::ShardKeeper;
use crate::engine::control::SearchControl;
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::exchange::{Exchange, Inbox, Lost, Place, Round, owner_of};
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::lock;
use crate::engine::store::hash::hash;
use crate::engine::store::{self, Visited};
use crate::plan::coverage::Limit;
use crate::plan::{ResolvedPlan, StoreKind};

/// Chunks that the first worker expands in a round.
const ROUND: usize = 16;

/// Words of a parcel. Smaller parcels cost more per state, larger ones gain nothing.
const PARCEL: usize = 1 << 14;

/// A search in several processes: what its attempts and its second search have in common.
struct Cluster<'a, M> {
    plan: &'a ResolvedPlan,
    model: &'a M,
    exchange: &'a dyn Exchange,
    /// The memory of a sorted store in this process.
    budget: usize,
}

/// Failures with the number of steps to them; fewer are better.
type Failures = DistinctFailures<u32>;

/// The data that the workers of this process share.
struct Shared<'a> {
    control: &'a SearchControl<'a>,
    /// The failures since the last gathering.
    failures: Mutex<Failures>,
    /// The level that is being expanded.
    depth: AtomicU32,
}

impl Shared<'_> {
    #[cold]
    fn record(&self, failure: Failure, steps: u32) {
        lock(&self.failures).record(failure, steps, |new, old| new < old);
    }
}

impl Trail for &Shared<'_> {
    fn failed(&mut self, choice: Option<Choice>, failure: Failure) {
        self.record(failure, self.depth.load(Relaxed) + u32::from(choice.is_some()));
    }
    fn fresh_failed(&mut self, failure: Failure) {
        // The initial state is found before any level is expanded.
        let depth = self.depth.load(Relaxed);
        self.record(failure, if depth == BEFORE { 0 } else { depth + 1 });
    }
}

/// The depth before the first level.
const BEFORE: u32 = u32::MAX;

/// Parcels for the other processes.
struct Parcels<'a> {
    exchange: &'a dyn Exchange,
    place: Place,
    words: usize,
    /// The states for each process, one after the other.
    states: Vec<Vec<u64>>,
}

impl<'a> Parcels<'a> {
    fn new(exchange: &'a dyn Exchange, words: usize) -> Parcels<'a> {
        let place = exchange.place();
        Parcels { exchange, place, words, states: vec![Vec::new(); place.processes] }
    }

    /// Sends all parcels, full or not.
    fn send_all<const W: usize>(&mut self) {
        for to in 0..self.states.len() {
            if !self.states[to].is_empty() {
                self.send::<W>(to);
            }
        }
    }

    fn send<const W: usize>(&mut self, to: usize) {
        let parcel = parcel::pack::<W>(self.place.form, self.words, &self.states[to]);
        self.exchange.send(to, parcel);
        self.states[to].clear();
    }
}

impl Outbox for Parcels<'_> {
    #[inline(always)]
    fn divert<const W: usize>(&mut self, batch: &mut Batch<W>) {
        let Place { process, processes, .. } = self.place;
        if processes == 1 {
            return;
        }
        batch.retain(|state| {
            let owner = owner_of(hash::<W>(state), processes);
            if owner != process {
                self.states[owner].extend_from_slice(state);
                if self.states[owner].len() >= PARCEL {
                    self.send::<W>(owner);
                }
            }
            owner == process
        });
    }

    fn is_mine<const W: usize>(&self, state: &[u64]) -> bool {
        owner_of(hash::<W>(state), self.place.processes) == self.place.process
    }
}

/// Searches with the other processes. The result has the counts of all of them, and is the same in
/// each of them.
pub(crate) fn search<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    exchange: &dyn Exchange,
) -> Explored {
    let cluster = Cluster { plan, model, exchange, budget: budget(&control.limits) };
    let (mut explored, mut failures) = (Explored::default(), Failures::default());
    let searched = cluster.levels::<W>(control, &mut explored, &mut failures, Goal::Everything);
    let has_schedules = !failures.is_empty() && !matches!(control.reason(), Some(Stop::Restart(_)));
    let schedules = searched.and_then(|()| match has_schedules {
        true => marking::schedules::<M, W>(&cluster, control, &failures),
        false => Ok(Vec::new()),
    });
    match schedules {
        Ok(schedules) => explored.failures = schedules,
        // A file of this process is damaged, or its disk is full.
        Err(Lost) if matches!(control.reason(), Some(Stop::Limit(Limit::Disk | Limit::Damage))) => {
        }
        // Failures may be known, but without their schedules none of them can be reported.
        Err(Lost) => control.agree(Stop::Limit(Limit::Process)),
    }
    explored
}

/// What a search is for.
enum Goal<'g> {
    /// All states, or the first failures if the plan stops there.
    Everything,
    /// The levels up to `last`, which is not expanded.
    Levels { last: u32, kept: &'g mut Vec<Runs> },
}

/// The states that one process stores, level by level.
trait Part {
    /// Starts or resumes the search. Returns the hash of the initial state, 0 if it needs more
    /// room, and the level that was being expanded, if any. `None` if the search ends at once.
    fn begin(
        &mut self,
        explored: &mut Explored,
        failures: &mut Failures,
    ) -> Result<Option<(u64, Option<u32>)>, Lost>;

    /// The counts since the last call, and sizes.
    fn report(&mut self) -> LevelReport;

    /// Writes a checkpoint. If that fails, the search continues, and the keeper knows why.
    fn checkpoint(
        &mut self,
        epoch: u64,
        initial: u64,
        level: Option<u32>,
        explored: &Explored,
        failures: &Failures,
    ) -> Result<(), Lost>;

    /// Moves to level `depth`, and keeps it if that is the goal.
    fn advance(&mut self, depth: u32, goal: &mut Goal<'_>);

    /// Expands the level, or a part of it if the search pauses, and receives the states of the next
    /// one.
    fn expand_level(&mut self) -> Result<(), Lost>;
}

impl<M: Model> Cluster<'_, M> {
    /// Searches level by level. Fails if another process is lost; `explored` then has the counts up
    /// to the last level that all processes have expanded.
    fn levels<const W: usize>(
        &self,
        control: &SearchControl,
        explored: &mut Explored,
        failures: &mut Failures,
        goal: Goal<'_>,
    ) -> Result<(), Lost> {
        let words = self.model.shape().words;
        let shared = Shared { control, failures: Mutex::default(), depth: AtomicU32::new(BEFORE) };
        if self.plan.strategy.store() == StoreKind::Sorted {
            let phases = Phases::new(self.plan, self.model, control, self.budget).among();
            let part = SortedPart::<M, W>::new(self, &shared, &phases);
            return Levels { cluster: self, shared: &shared, part }.run(explored, failures, goal);
        }
        let Ok(store) = store::build(self.plan.strategy.store(), words, self.plan.jobs) else {
            // The other processes wait for a report.
            let limit = number_of(Limit::Memory);
            let report = LevelReport { words: words as u64, limit, ..LevelReport::default() };
            let reports = self.exchange.gather(Writer::collect(|to| to.put(&report)))?;
            let sum = LevelSum::of(&reports).map_err(|Damaged| Lost)?;
            control.agree(sum.stop.expect("this process has stopped"));
            return Ok(());
        };
        let frontier = Frontier::new(words, control);
        let worker = Worker::<_, _, W, _>::among(
            (self.plan, self.model),
            &*store,
            control,
            &frontier,
            &shared,
            Parcels::new(self.exchange, words),
        );
        let part = TablePart {
            cluster: self,
            store: &*store,
            frontier: &frontier,
            shared: &shared,
            worker,
        };
        let end = Levels { cluster: self, shared: &shared, part }.run(explored, failures, goal);
        explored.omission = store.omission(explored.seen.states);
        end
    }
}

/// A search level by level, in step with the other processes.
struct Levels<'a, M, P> {
    cluster: &'a Cluster<'a, M>,
    shared: &'a Shared<'a>,
    part: P,
}

impl<M: Model, P: Part> Levels<'_, M, P> {
    fn run(
        mut self,
        explored: &mut Explored,
        failures: &mut Failures,
        mut goal: Goal<'_>,
    ) -> Result<(), Lost> {
        let control = self.shared.control;
        let Some((initial, mut level)) = self.part.begin(explored, failures)? else {
            return Ok(());
        };
        loop {
            let sum = self.gather(initial)?;
            control.end_pause();
            explored.seen.add(&sum.seen);
            // What the others have found counts in this process's limits and progress, too.
            control.set_totals(explored.seen.states, explored.seen.transitions);
            explored.seen.frontier = explored.seen.frontier.max(sum.frontier);
            explored.store_bytes = sum.store_bytes as usize;
            explored.frontier_bytes = sum.frontier_bytes as usize;
            explored.spilled_bytes = explored.spilled_bytes.max(sum.disk_bytes);
            for (failure, steps) in sum.failures {
                if failures.record(failure, steps, |new, old| new < old) {
                    control.count_failure();
                }
            }
            if let Some(stop) = sum.stop {
                control.agree(stop);
                return Ok(());
            }
            if let Some(epoch) = sum.checkpoint {
                self.part.checkpoint(epoch, initial, level, explored, failures)?;
            }
            if let Some(limit) = sum.ends_at {
                control.agree(Stop::Limit(limit));
                return Ok(());
            }
            if sum.rest == 0 {
                // All processes have expanded the level.
                explored.seen.settled = level;
                let next = level.map_or(0, |level| level + 1);
                if !self.enters(next, sum.waiting, explored, failures, &mut goal) {
                    return Ok(());
                }
                level = Some(next);
                self.shared.depth.store(next, Relaxed);
            }
            self.part.expand_level()?;
        }
    }

    /// Moves to level `depth`, which has `waiting` states in all processes. Returns whether it is
    /// to be expanded.
    fn enters(
        &mut self,
        depth: u32,
        waiting: u64,
        explored: &mut Explored,
        failures: &Failures,
        goal: &mut Goal<'_>,
    ) -> bool {
        let (plan, control) = (self.cluster.plan, self.shared.control);
        let limits = &control.limits;
        self.part.advance(depth, goal);
        if waiting > 0 {
            explored.seen.depth = depth;
            control.reach_depth(depth);
        }
        let stops_at_finding = matches!(goal, Goal::Everything) && !plan.keep_going;
        if stops_at_finding && !failures.is_empty() {
            control.agree(Stop::Finding);
        } else if limits.states.is_some_and(|limit| explored.seen.states > limit) {
            control.agree(Stop::Limit(Limit::States));
        } else if waiting > 0 && limits.depth.is_some_and(|limit| depth >= limit) {
            control.agree(Stop::Limit(Limit::Depth));
        } else {
            let enters = match goal {
                Goal::Everything => true,
                Goal::Levels { last, .. } => depth < *last,
            };
            return enters && waiting > 0;
        }
        false
    }

    /// Gathers the reports of all processes.
    fn gather(&mut self, initial: u64) -> Result<LevelSum, Lost> {
        let control = self.shared.control;
        let (capacity, limit) = match control.reason() {
            Some(Stop::Restart(need)) => (Some(need), None),
            Some(Stop::Limit(limit)) => (None, number_of(limit)),
            _ => (None, None),
        };
        let keeper = control.pauses().and_then(|pauses| pauses.shards().keeper);
        let keeper = keeper.filter(|_| self.cluster.exchange.place().process == 0);
        let report = LevelReport {
            capacity,
            limit,
            pauses: control.is_pausing(),
            ends_at: control.pending_limit().and_then(number_of),
            epoch: keeper.map(ShardKeeper::next_epoch),
            words: self.cluster.model.shape().words as u64,
            initial,
            ..self.part.report()
        };
        let reports = self.cluster.exchange.gather(Writer::collect(|to| to.put(&report)))?;
        LevelSum::of(&reports).map_err(|Damaged| Lost)
    }
}

/// The part of the states that a process keeps in a table, and the worker that expands them.
struct TablePart<'a, M: Model, const W: usize> {
    cluster: &'a Cluster<'a, M>,
    store: &'a dyn Visited,
    frontier: &'a Frontier<'a>,
    shared: &'a Shared<'a>,
    worker: Worker<'a, M::Stepper<'a>, &'a Shared<'a>, W, Parcels<'a>>,
}

impl<M: Model, const W: usize> Part for TablePart<'_, M, W> {
    fn begin(
        &mut self,
        explored: &mut Explored,
        failures: &mut Failures,
    ) -> Result<Option<(u64, Option<u32>)>, Lost> {
        if self.shared.control.is_resuming() {
            return self.resume(explored, failures);
        }
        let initial = self.worker.begin(self.cluster.plan.keep_going);
        Ok(Some((initial.map_or(0, |state| hash::<W>(&state)), None)))
    }

    fn report(&mut self) -> LevelReport {
        let (frontier, frontier_bytes) = self.shared.control.most_waiting();
        LevelReport {
            seen: self.worker.take_counts(),
            rest: self.frontier.left(),
            waiting: self.frontier.waiting(),
            failures: mem::take(&mut *lock(&self.shared.failures)).into_vec(),
            store_bytes: self.store.bytes() as u64,
            frontier_bytes: frontier_bytes as u64,
            frontier,
            ..LevelReport::default()
        }
    }

    fn checkpoint(
        &mut self,
        epoch: u64,
        initial: u64,
        level: Option<u32>,
        explored: &Explored,
        failures: &Failures,
    ) -> Result<(), Lost> {
        self.write_checkpoint(epoch, initial, level, explored, failures)
    }

    fn advance(&mut self, _: u32, goal: &mut Goal<'_>) {
        self.frontier.advance();
        if let Goal::Levels { kept, .. } = goal {
            kept.push(marking::level_of::<W>(self.frontier, self.cluster.model.shape().words));
        }
    }

    fn expand_level(&mut self) -> Result<(), Lost> {
        let TablePart { cluster, store, frontier, shared, .. } = *self;
        let &Cluster { plan, model, exchange, .. } = cluster;
        let helpers = if frontier.left() < SHARED { 0 } else { plan.jobs - 1 };
        let help = || {
            let mut worker = Worker::<_, _, W, _>::among(
                (plan, model),
                store,
                shared.control,
                frontier,
                shared,
                Parcels::new(exchange, model.shape().words),
            );
            worker.expand_level();
            if !shared.control.stopped() {
                // If the search pauses, the worker still holds successors.
                worker.hand_over_all();
            }
            worker.outbox.send_all::<W>();
            worker.take_counts()
        };
        thread::scope(|scope| {
            let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(help)).collect();
            let expanded = self.expand_own();
            if expanded.is_err() {
                // The helpers end at once.
                shared.control.stop(Stop::Limit(Limit::Process));
            }
            for helper in helpers {
                let seen = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                self.worker.add_counts(&seen);
            }
            expanded
        })?;
        self.end_round(Round::Last)?;
        if !shared.control.stopped() {
            self.worker.hand_over_all();
        }
        Ok(())
    }
}

impl<M: Model, const W: usize> TablePart<'_, M, W> {
    /// Expands what the helpers leave, or a part of it if the search pauses.
    fn expand_own(&mut self) -> Result<(), Lost> {
        let (control, mut chunks) = (self.shared.control, 0);
        while !control.stopped()
            && !control.is_pausing()
            && let Some(chunk) = self.frontier.take()
            && self.worker.expand_chunk(chunk)
        {
            chunks += 1;
            if chunks % ROUND == 0 {
                self.end_round(Round::More)?;
            }
        }
        if !control.stopped() {
            self.worker.hand_over_all();
        }
        Ok(())
    }

    fn end_round(&mut self, round: Round) -> Result<(), Lost> {
        if !self.shared.control.stopped() {
            self.worker.flush();
            self.worker.outbox.send_all::<W>();
        }
        let (exchange, control) = (self.cluster.exchange, self.shared.control);
        let words = self.cluster.model.shape().words;
        Arrivals::<_, W>::end_round((exchange, control, words), round, &mut self.worker)
    }
}

/// Takes the states that arrive.
trait Receiver {
    /// Adds states of this process that another one has found.
    fn add(&mut self, states: &[u64]);

    /// Checks the limits.
    fn poll(&mut self);
}

impl<S: Stepper, T: Trail, const W: usize> Receiver for Worker<'_, S, T, W, Parcels<'_>> {
    fn add(&mut self, states: &[u64]) {
        self.add_received(states);
    }

    fn poll(&mut self) {
        Worker::poll(self);
    }
}

/// Looks up the states that arrive at the end of a round.
struct Arrivals<'l, R, const W: usize> {
    exchange: &'l dyn Exchange,
    control: &'l SearchControl<'l>,
    words: usize,
    to: &'l mut R,
    states: Vec<u64>,
    /// Whether a state arrived that is not one of this process.
    foreign: bool,
}

impl<'l, R: Receiver, const W: usize> Arrivals<'l, R, W> {
    /// Ends a round. The states of this process that arrive go to `to`.
    fn end_round(
        (exchange, control, words): (&'l dyn Exchange, &'l SearchControl<'l>, usize),
        round: Round,
        to: &'l mut R,
    ) -> Result<(), Lost> {
        if exchange.place().processes == 1 {
            return Ok(());
        }
        if control.stopped() || control.is_pausing() {
            exchange.stop();
        }
        let mut inbox =
            Arrivals::<R, W> { exchange, control, words, to, states: Vec::new(), foreign: false };
        exchange.end_round(round, &mut inbox)?;
        // Nothing is sent to a process that does not own it, unless the network or the other
        // process is broken.
        if inbox.foreign { Err(Lost) } else { Ok(()) }
    }
}

impl<R: Receiver, const W: usize> Inbox for Arrivals<'_, R, W> {
    fn receive(&mut self, parcel: &[u8]) {
        let Place { process, processes, .. } = self.exchange.place();
        let unpacked = parcel::unpack::<W>(self.words, parcel, &mut self.states);
        let is_mine =
            |state: &[u64]| state[0] & 1 == 1 && owner_of(hash::<W>(state), processes) == process;
        if unpacked.is_some() && self.states.chunks_exact(self.words).all(is_mine) {
            self.to.add(&self.states);
        } else {
            self.foreign = true;
        }
    }

    fn stop(&mut self) {
        // The process that asked for it reports why.
        self.control.request_pause();
    }

    fn idle(&mut self) {
        let control = self.control;
        let is_ending = || control.stopped() || control.is_pausing();
        let was_ending = is_ending();
        self.to.poll();
        if is_ending() && !was_ending {
            self.exchange.stop();
        }
    }
}
