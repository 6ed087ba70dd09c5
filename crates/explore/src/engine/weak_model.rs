//! The weak memory of a model in the middle of an execution.
//!
//! A model with `memory weak;` is executed step by step like any other. Its packed states hold, for
//! each atomic variable, the last store in modification order. Before a step that reads an atomic
//! variable, the value of the store that the alternative selects is written into the state, and
//! after the step the last one again. The [`Weak`] memory decides which alternatives exist, and is
//! copied before every step, so that going back is cheap. Such models are small.
//!
//! # Steps
//!
//! A step is one event of the memory: an access to one atomic variable, a fence, or an operation on
//! objects and plain variables. Plain variables have one value: two accesses that nothing orders
//! are a data race, with which the execution ends, and if all accesses are ordered, a read sees the
//! last write.
//!
//! A failing step is undone except for its access to the memory, which other threads may have to
//! come after. If it failed before it could write, the execution ends.
//!
//! # Loops
//!
//! A thread spins if it can take its last steps once more, reading the same stores, and be where it
//! is now, and no step of another thread since then depends on them. Steps that are repeated in
//! this way change nothing that the thread could notice: it has already acquired what it reads, and
//! what it writes is the value that it has written before, next to it in modification order. So
//! what follows a repeated round also follows the round before. If the round reads the newest
//! stores, the thread is held back until another thread does something that depends on the round,
//! as under sequential consistency. If it reads an older one, it is not waiting: stores become
//! visible in finite time. Then it continues with the newest stores for a round; continuing with
//! others is what it could do before the repeated round.

use std::collections::BTreeMap;

use preempt_system::memory::explain::{MissedOrder, NotedAccess, missed_order};
use preempt_system::memory::{
    EventId, GraphStep, Memory as _, MemoryAccess, MemoryEvent, MemoryLog, Stored, Weak,
};
use preempt_system::pending::NEVER_STALE;
use preempt_system::race::RaceDetector;
use preempt_system::{
    Access, Capacity, Choice, Failure, FailureKind, Fingerprint, Footprint, Footprints, Location,
    Model, Pending, Site, Stale, Status, Step, Stepper, ThreadId, VectorClock,
};
use smallvec::smallvec;

use crate::engine::spin_cycle::{FARTHEST_START, LONGEST_CYCLE};

/// The memory of an execution.
#[derive(Debug)]
pub(super) struct WeakModel {
    /// The memory before the first step, and after each.
    points: Vec<Point>,
    taken: Vec<Taken>,
    /// Scratch space.
    log: MemoryLog,
}

/// The memory between two steps.
#[derive(Clone, Debug, Default)]
struct Point {
    memory: Weak,
    races: RaceDetector<usize>,
    /// The numbers of plain variables in `races`.
    variables: BTreeMap<Location, u32>,
    spins: Vec<Spin>,
    /// Whether the execution ends here although threads could step.
    is_cut: bool,
}

/// Whether a thread spins.
#[derive(Clone, Debug, Default)]
enum Spin {
    #[default]
    No,
    /// Its last round has read old stores: it reads the newest ones for this many steps.
    ReadsNewest(usize),
    /// It is held back until a step depends on its round.
    Held(Footprint),
}

/// A step that was taken.
#[derive(Clone, Debug)]
struct Taken {
    choice: Choice,
    /// The position of the thread in its code before the step.
    rest_point: Option<usize>,
    event: Option<MemoryEvent>,
    /// The store that it has read.
    source: Option<Stored>,
    /// The newest store before the step, if the step is stale.
    unseen: Option<Stored>,
    /// The same for the picture of the execution.
    stale: Option<Stale>,
    /// Everything that it has accessed.
    footprint: Footprint,
}

/// A step that reads an older store than the newest one, or stores before it.
pub(super) struct StaleStep {
    pub(super) location: Location,
    /// The value that it has read, or stored.
    pub(super) value: i64,
    pub(super) reads: bool,
    /// The newest store before the step.
    pub(super) newest: Stored,
    /// The nearest miss of a load.
    pub(super) missed: Option<MissedOrder>,
}

/// A data race.
pub(super) struct Race {
    pub(super) location: Location,
    /// The step of the earlier access, from 0.
    earlier: usize,
}

impl WeakModel {
    pub(super) fn new() -> WeakModel {
        let log = MemoryLog::default();
        WeakModel { points: vec![Point::default()], taken: Vec::new(), log }
    }

    pub(super) fn rewind(&mut self, len: usize) {
        self.points.truncate(len + 1);
        self.taken.truncate(len);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.point().is_cut
    }

    pub(super) fn name(&self) -> Fingerprint {
        self.point().memory.name()
    }

    fn point(&self) -> &Point {
        self.points.last().expect("there is one before the first step")
    }

    fn point_mut(&mut self) -> &mut Point {
        self.points.last_mut().expect("there is one before the first step")
    }

    /// What a thread would do next in `state`, the current one; `scratch` has room for a state.
    pub(super) fn ask<S: Stepper>(
        &mut self,
        stepper: &mut S,
        state: &[u64],
        thread: ThreadId,
        scratch: &mut [u64],
    ) -> Result<Pending, Capacity> {
        let step = self.try_step(stepper, state, Choice { thread, alternative: 0 }, scratch);
        let footprint = &self.log.footprint;
        match step {
            Step::Full(capacity) => return Err(capacity),
            Step::Ended => return Ok(Pending::new(Status::Ended, Footprints::new())),
            Step::Vacant => return Ok(Pending::new(Status::Vacant, Footprints::new())),
            Step::Blocked { resting } => {
                let status = if resting { Status::Resting } else { Status::Blocked };
                return Ok(Pending::new(status, smallvec![(0, footprint.clone())]));
            }
            Step::Moved { .. } | Step::Failed(_) | Step::Absent => {}
        }
        let spin = self.point().spins.get(thread.index()).cloned().unwrap_or_default();
        let status = match spin {
            Spin::Held(_) => Status::Spinning,
            Spin::No | Spin::ReadsNewest(_) => Status::Enabled,
        };
        match self.log.event {
            Some(MemoryEvent::Access { location, access, written }) => {
                let (point, own) = (self.point(), footprint_of(location, access));
                let mut all =
                    point.memory.alternatives(&point.races.clocks, thread, location.0, access);
                let fails = matches!(access, MemoryAccess::Store(_)) && written.is_none();
                if fails || matches!(spin, Spin::ReadsNewest(_)) {
                    all.truncate(1);
                }
                let footprints = all.into_iter().map(|nth| (nth, own.clone())).collect();
                Ok(Pending { status, footprints, stale_from: 1 })
            }
            Some(MemoryEvent::Fence(_)) => {
                Ok(Pending::new(status, smallvec![(0, Footprint::new())]))
            }
            None => self.ask_others(stepper, state, thread, scratch, status),
        }
    }

    /// The same for a step that is not an access to the memory.
    fn ask_others<S: Stepper>(
        &mut self,
        stepper: &mut S,
        state: &[u64],
        thread: ThreadId,
        scratch: &mut [u64],
        status: Status,
    ) -> Result<Pending, Capacity> {
        let mut footprints = Footprints::new();
        let (mut alternative, mut alternatives) = (0, 1);
        while alternative < alternatives {
            match self.try_step(stepper, state, Choice { thread, alternative }, scratch) {
                Step::Moved { alternatives: known } => alternatives = alternatives.max(known),
                Step::Failed(_) => alternatives = alternatives.max(stepper.alternatives()),
                Step::Full(capacity) => return Err(capacity),
                Step::Absent => {
                    alternative += 1;
                    continue;
                }
                Step::Blocked { .. } | Step::Ended | Step::Vacant => break,
            }
            footprints.push((alternative, self.log.footprint.clone()));
            alternative += 1;
        }
        Ok(Pending { status, footprints, stale_from: NEVER_STALE })
    }

    /// Takes a step in a copy of `state`, reading the newest store, and logs it.
    fn try_step<S: Stepper>(
        &mut self,
        stepper: &mut S,
        state: &[u64],
        choice: Choice,
        scratch: &mut [u64],
    ) -> Step {
        scratch.copy_from_slice(state);
        let step = stepper.step_with_memory(scratch, choice, &mut self.log);
        if let Some(MemoryEvent::Access { location, .. }) = self.log.event {
            let value = stepper.atomic(state, location);
            let memory = &mut self.point_mut().memory;
            // Nothing was stored to a location that is not known yet.
            if memory.latest(location.0).is_none() {
                memory.initialise(location.0, value as u64);
            }
            debug_assert_eq!(memory.latest(location.0), Some(value as u64), "the state has it");
        }
        step
    }

    /// The next step of a thread as a part of the execution graph.
    pub(super) fn graph_step<S: Stepper>(
        &mut self,
        stepper: &mut S,
        state: &[u64],
        thread: ThreadId,
        scratch: &mut [u64],
    ) -> Result<GraphStep, Capacity> {
        let choice = Choice { thread, alternative: 0 };
        if let Step::Full(capacity) = self.try_step(stepper, state, choice, scratch) {
            return Err(capacity);
        }
        let Some(MemoryEvent::Access { location, access, .. }) = self.log.event else {
            return Ok(GraphStep::Other(self.log.footprint.clone()));
        };
        let Point { memory, races, .. } = self.point();
        let reads = |order| {
            let read = MemoryAccess::Load(order);
            memory.alternatives(&races.clocks, thread, location.0, read).into_iter()
        };
        Ok(match access {
            MemoryAccess::Load(_) => GraphStep::Load,
            MemoryAccess::Store(_) => GraphStep::Store,
            MemoryAccess::Update(order) => {
                GraphStep::Update(reads(order).map(|back| (back, true)).collect())
            }
            MemoryAccess::Exchange { expected, success, failure } => {
                let writes = |back: u32| memory.stored(location.0, back).value == expected;
                let succeeds = reads(success).filter(|&back| writes(back)).map(|back| (back, true));
                let fails = reads(failure).filter(|&back| !writes(back)).map(|back| (back, false));
                GraphStep::Update(succeeds.chain(fails).collect())
            }
        })
    }

    /// Takes a step of `state`, the current one, which becomes the next. Also returns the data race
    /// that the step completes.
    pub(super) fn step<M: Model>(
        &mut self,
        (model, stepper): (&M, &mut M::Stepper<'_>),
        state: &mut [u64],
        choice: Choice,
        scratch: &mut [u64],
    ) -> Result<(Option<Box<Failure>>, Option<Race>), Capacity> {
        let thread = choice.thread;
        let rest_point = model.rest_point(state, thread);
        let mut point = self.point().clone();
        let performed = self.perform(stepper, &mut point, state, choice, scratch)?;
        let race = point.plain_accesses(thread, &self.log, self.taken.len());
        point.is_cut |= performed.is_cut || race.is_some();
        let mut footprint = self.log.footprint.clone();
        if let Some(MemoryEvent::Access { location, access, .. }) = self.log.event {
            footprint.extend(&footprint_of(location, access));
        }
        for spin in &mut point.spins {
            if matches!(spin, Spin::Held(round) if round.depends(&footprint)) {
                *spin = Spin::No;
            }
        }
        let (event, source, unseen) = (self.log.event, performed.source, performed.unseen);
        let stale = performed.stale;
        self.points.push(point);
        self.taken.push(Taken { choice, rest_point, event, source, unseen, stale, footprint });
        let spin = self.spin_after(model.rest_point(state, thread), stepper, state, scratch);
        let spins = &mut self.point_mut().spins;
        if spins.len() <= thread.index() {
            spins.resize(thread.index() + 1, Spin::No);
        }
        let left = match (&spins[thread.index()], spin) {
            (Spin::ReadsNewest(left), Spin::No) if *left > 1 => Spin::ReadsNewest(left - 1),
            (_, spin) => spin,
        };
        spins[thread.index()] = left;
        Ok((performed.failure, race))
    }

    /// Takes a step of the model and performs its event on the memory of `point`.
    fn perform<S: Stepper>(
        &mut self,
        stepper: &mut S,
        point: &mut Point,
        state: &mut [u64],
        choice: Choice,
        scratch: &mut [u64],
    ) -> Result<Performed, Capacity> {
        let Choice { thread, alternative } = choice;
        if let Step::Full(capacity) =
            self.try_step(stepper, state, Choice { thread, alternative: 0 }, scratch)
        {
            return Err(capacity);
        }
        let Some(MemoryEvent::Access { location, access, .. }) = self.log.event else {
            let step = stepper.step_with_memory(state, choice, &mut self.log);
            let failure = outcome(step)?;
            point.act(thread, alternative, &self.log);
            return Ok(Performed { failure, ..Performed::default() });
        };
        if point.memory.latest(location.0).is_none() {
            let value = stepper.atomic(state, location);
            point.memory.initialise(location.0, value as u64);
        }
        let reads = !matches!(access, MemoryAccess::Store(_));
        let source = reads.then(|| point.memory.stored(location.0, alternative));
        let unseen = (alternative > 0).then(|| point.memory.stored(location.0, 0));
        let stale = match reads {
            true => point.memory.stale_read(location.0, alternative),
            false => point.memory.stale_write(location.0, alternative),
        };
        if let Some(source) = &source {
            stepper.set_atomic(state, location, source.value as i64);
        }
        let step =
            stepper.step_with_memory(state, Choice { thread, alternative: 0 }, &mut self.log);
        let failure = outcome(step)?;
        let Some(MemoryEvent::Access { written, .. }) = self.log.event else {
            unreachable!("the value that an access reads does not decide what it accesses");
        };
        point.memory.set_step(self.taken.len() as u32 + 1);
        let is_cut = !point.access(thread, (location, access), written, (alternative, source));
        let latest = point.memory.latest(location.0).expect("the location is known");
        stepper.set_atomic(state, location, latest as i64);
        Ok(Performed { failure, source, unseen, stale, is_cut })
    }

    /// Whether the thread of the last step spins after it. `rest_point` is where it is now.
    fn spin_after<S: Stepper>(
        &mut self,
        rest_point: Option<usize>,
        stepper: &mut S,
        state: &[u64],
        scratch: &mut [u64],
    ) -> Spin {
        let Some(last) = self.taken.last() else { return Spin::No };
        let thread = last.choice.thread;
        let (mut own, mut round, mut others) = (Vec::new(), Footprint::new(), Footprint::new());
        for at in (0..self.taken.len()).rev().take(FARTHEST_START) {
            let step = &self.taken[at];
            if step.choice.thread != thread {
                others.extend(&step.footprint);
                continue;
            }
            own.push(at);
            round.extend(&step.footprint);
            if own.len() > LONGEST_CYCLE || round.depends(&others) {
                return Spin::No;
            }
            if step.rest_point == rest_point
                && rest_point.is_some()
                && self.repeats(stepper, state, own.iter().rev().copied(), scratch)
            {
                let is_stale = own.iter().any(|&at| self.taken[at].unseen.is_some());
                return if is_stale { Spin::ReadsNewest(own.len()) } else { Spin::Held(round) };
            }
        }
        Spin::No
    }

    /// Whether a thread can take its last steps, `round`, once more from here, and be where it is
    /// now.
    fn repeats<S: Stepper>(
        &mut self,
        stepper: &mut S,
        state: &[u64],
        round: impl Iterator<Item = usize>,
        scratch: &mut [u64],
    ) -> bool {
        let mut now = state.to_vec();
        let mut is_possible = true;
        for at in round {
            let step = self.taken[at].clone();
            is_possible = is_possible && self.repeat(stepper, &mut now, &step, scratch);
        }
        self.points.truncate(self.taken.len() + 1);
        is_possible && now == state
    }

    /// Takes a step again, reading the same store; `false` if that is not possible.
    fn repeat<S: Stepper>(
        &mut self,
        stepper: &mut S,
        now: &mut [u64],
        step: &Taken,
        scratch: &mut [u64],
    ) -> bool {
        let thread = step.choice.thread;
        let Ok(pending) = self.ask(stepper, now, thread, scratch) else { return false };
        if !same_access(self.log.event, step.event) {
            return false;
        }
        let alternative = match step.event {
            Some(MemoryEvent::Access { location, written: None, .. }) => {
                let memory = &self.point().memory;
                let is_source = |&&(nth, _): &&(u32, Footprint)| {
                    Some(memory.stored(location.0, nth).event) == source_of(step)
                };
                match pending.footprints.iter().find(is_source) {
                    Some(&(nth, _)) => nth,
                    None => return false,
                }
            }
            // It writes at the same distance from the last store, right behind what it has written
            // there before; a read-modify-write reads that.
            _ => step.choice.alternative,
        };
        if !pending.footprints.iter().any(|&(nth, _)| nth == alternative) {
            return false;
        }
        let mut point = self.point().clone();
        let choice = Choice { thread, alternative };
        match self.perform(stepper, &mut point, now, choice, scratch) {
            Ok(Performed { failure: None, is_cut: false, .. }) => {}
            _ => return false,
        }
        self.points.push(point);
        true
    }

    /// The state before the step `at` as the step has seen it, and the choice that it was for the
    /// model.
    pub(super) fn seen_by<S: Stepper>(&self, stepper: &S, at: usize, before: &mut [u64]) -> Choice {
        let Taken { choice, event, source, .. } = &self.taken[at];
        let Some(MemoryEvent::Access { location, .. }) = event else { return *choice };
        if let Some(source) = source {
            stepper.set_atomic(before, *location, source.value as i64);
        }
        Choice { alternative: 0, ..*choice }
    }

    /// The location that the step `at` has read, and the step that stored the value.
    pub(super) fn read_from(&self, at: usize) -> Option<(Location, Option<usize>)> {
        let Taken { event, source, .. } = &self.taken[at];
        let (Some(MemoryEvent::Access { location, .. }), Some(source)) = (event, source) else {
            return None;
        };
        Some((*location, source.number()))
    }

    /// The stores that the step `at` does not see, if it is stale.
    pub(super) fn stale(&self, at: usize) -> Option<Stale> {
        self.taken[at].stale
    }

    /// What the step `at` does not see, if it is stale.
    pub(super) fn stale_step(&self, at: usize) -> Option<StaleStep> {
        let Taken { choice, event, source, unseen, .. } = &self.taken[at];
        let (&Some(MemoryEvent::Access { location, written, .. }), &Some(newest)) = (event, unseen)
        else {
            return None;
        };
        let accesses: Vec<NotedAccess> = (0..at).filter_map(|at| self.noted(at)).collect();
        let missed = source.and_then(|_| missed_order(&accesses, choice.thread, &newest));
        let value = source.map(|source| source.value as i64).or(written)?;
        Some(StaleStep { location, value, reads: source.is_some(), newest, missed })
    }

    fn noted(&self, at: usize) -> Option<NotedAccess> {
        let Taken { choice, event, source, .. } = &self.taken[at];
        let Some(MemoryEvent::Access { location, access, written }) = *event else { return None };
        let order = match access {
            MemoryAccess::Load(order)
            | MemoryAccess::Store(order)
            | MemoryAccess::Update(order)
            | MemoryAccess::Exchange { success: order, .. } => order,
        };
        let (step, writes) = (at as u32 + 1, written.is_some());
        let thread = choice.thread;
        Some(NotedAccess { thread, step, location: location.0, order, read: *source, writes })
    }

    /// The failure of a data race that the last step completes. `site` is that of a step.
    pub(super) fn race_failure(
        &self,
        race: &Race,
        name: &str,
        site: impl Fn(usize, Choice) -> Option<Site>,
    ) -> Box<Failure> {
        let later = self.taken.len() - 1;
        let site = |at: usize| site(at, self.taken[at].choice);
        let verb = |at: usize| {
            let accesses = self.taken[at].footprint.accesses();
            let writes = accesses.contains(&(race.location, Access::Write));
            if writes { "writes" } else { "reads" }
        };
        let message = match (site(race.earlier), site(later)) {
            (Some(first), Some(second)) => format!(
                "one thread {} `{name}` ({first}), another {} it ({second}), and no \
                 synchronisation orders them",
                verb(race.earlier),
                verb(later)
            ),
            _ => format!(
                "two threads access `{name}`, one of them writes, and no synchronisation orders \
                 them"
            ),
        };
        Box::new(Failure { kind: FailureKind::Race, message, site: site(later) })
    }
}

/// The result of a step.
#[derive(Default)]
struct Performed {
    failure: Option<Box<Failure>>,
    /// The store that it has read.
    source: Option<Stored>,
    /// The newest store before it, if it is stale.
    unseen: Option<Stored>,
    /// The same for the picture of the execution.
    stale: Option<Stale>,
    /// Whether it failed before it could write.
    is_cut: bool,
}

impl Point {
    /// Performs an access; `false` if it should have written, but has failed before.
    fn access(
        &mut self,
        thread: ThreadId,
        (Location(location), access): (Location, MemoryAccess),
        written: Option<i64>,
        (alternative, source): (u32, Option<Stored>),
    ) -> bool {
        let (clocks, memory) = (&mut self.races.clocks, &mut self.memory);
        let written = written.map(|value| value as u64);
        let orders = match access {
            MemoryAccess::Load(order) => {
                memory.load(clocks, thread, location, order, alternative);
                return true;
            }
            MemoryAccess::Store(order) => {
                let Some(value) = written else { return false };
                memory.store(clocks, thread, location, value, order, alternative);
                return true;
            }
            MemoryAccess::Update(order) => (order, order),
            MemoryAccess::Exchange { expected, success, failure } => {
                let fails = source.is_some_and(|source| source.value != expected);
                if fails {
                    memory.load(clocks, thread, location, failure, alternative);
                    return true;
                }
                (success, failure)
            }
        };
        if written.is_some() {
            memory.update(clocks, thread, location, orders, alternative, |_| written);
        }
        written.is_some()
    }

    /// Performs a step that is not an access to the memory.
    fn act(&mut self, thread: ThreadId, alternative: u32, log: &MemoryLog) {
        let (clocks, memory) = (&mut self.races.clocks, &mut self.memory);
        if let Some(MemoryEvent::Fence(order)) = log.event {
            return memory.fence(clocks, thread, order);
        }
        clocks.epoch(thread);
        let before = clocks.now(thread).map_or_else(VectorClock::new, VectorClock::clone);
        for &child in &log.started {
            clocks.fork(thread, child);
        }
        for &(Location(object), action, reply) in &log.actions {
            clocks.act(thread, object, action, reply);
        }
        let after = clocks.now(thread).expect("a running thread has an epoch");
        let used = log.footprint.accesses().iter().map(|&(location, access)| (location.0, access));
        memory.act(thread, used, alternative, (&before, after));
    }

    /// Records the accesses of a step to plain variables. Returns the first data race that they
    /// complete, with the last access that is not ordered.
    fn plain_accesses(&mut self, thread: ThreadId, log: &MemoryLog, step: usize) -> Option<Race> {
        let mut race = None;
        for &(location, access) in &log.data {
            let races = &mut self.races;
            let variable = *self.variables.entry(location).or_insert_with(|| races.variable());
            let earlier = races.conflicts(thread, variable, access).map(|other| other.about).max();
            race = race.or(earlier.map(|earlier| Race { location, earlier }));
            races.record(thread, variable, access, step);
        }
        race
    }
}

fn footprint_of(location: Location, access: MemoryAccess) -> Footprint {
    let access = match access {
        MemoryAccess::Load(_) => Access::Read,
        _ => Access::Write,
    };
    Footprint::one(location, access)
}

fn outcome(step: Step) -> Result<Option<Box<Failure>>, Capacity> {
    match step {
        Step::Moved { .. } => Ok(None),
        Step::Failed(failure) => Ok(Some(failure)),
        Step::Full(capacity) => Err(capacity),
        other => unreachable!("a pending step can be taken, and is not {other:?}"),
    }
}

fn source_of(step: &Taken) -> Option<EventId> {
    step.source.map(|source| source.event)
}

/// Whether two steps do the same to the memory, up to the values.
fn same_access(now: Option<MemoryEvent>, before: Option<MemoryEvent>) -> bool {
    match (now, before) {
        (
            Some(MemoryEvent::Access { location, access, .. }),
            Some(MemoryEvent::Access { location: other, access: earlier, .. }),
        ) => location == other && access == earlier,
        (now, before) => now == before,
    }
}
