//! The search: Figure 7 with one worker, Figure 8 with several.
//!
//! A state is looked up when a prefix has led to it, not when it is taken from the WorkSet:
//! CoveredSet is the same, and no state waits twice. CalcCV is a function of the state, so that all
//! numbers are the same for any number of workers and for both orders.
//!
//! No parent links are kept. After a finding, one worker searches again, in the same order for any
//! number of workers, and keeps for every state the prefix that led to it: 16 bytes.
//!
//! It pauses between two vectors. The remaining work is the store, the WorkSet, and what each
//! worker holds.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Mutex;

use preempt_system::{Choice, Failure, Model, Schedule, Step, Stepper};

use super::vector::{CartesianVector, POLL_INTERVAL, Place};
use super::work::{Levels, Taken, WorkSet};
use super::{Config, Covered};
use crate::codec::{save_fields, save_in_place};
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;

use crate::engine::control::SearchControl;
use crate::engine::explored::Explored;
use crate::engine::lock;
use crate::engine::observer::Follower;
use crate::engine::parallel::{self, Paused};
use crate::engine::retrace::{path, retrace, store};
use crate::engine::store::{Lookup, Visited};
use crate::plan::ResolvedPlan;
use crate::plan::coverage::{Coverage, Limit};
use crate::plan::strategy::{StateOrder, Strategy};

/// The prefix that led to a covered state.
#[derive(Clone, Copy)]
struct Link {
    /// The number of the state whose vector has the prefix.
    parent: u32,
    first: Choice,
    moves: u32,
}

/// The data that the workers share.
struct Shared<'a> {
    plan: &'a ResolvedPlan,
    store: &'a dyn Visited,
    control: &'a SearchControl<'a>,
    work: WorkSet,
    failures: Mutex<DistinctFailures>,
    /// The failures of the first search, if this is the second.
    wanted: Option<&'a DistinctFailures>,
}

save_in_place!(['a] Shared<'a> { work, failures, store });

impl Shared<'_> {
    #[cold]
    fn record(&self, failure: Failure, schedule: Schedule) {
        let mut failures = lock(&self.failures);
        if failures.record_shortest(failure, schedule) {
            self.control.count_failure();
        }
        let enough = match self.wanted {
            Some(wanted) if self.plan.keep_going => failures.contain_all(wanted),
            Some(_) => true,
            None => !self.plan.keep_going,
        };
        drop(failures);
        if enough {
            // Breadth first, the level is finished, so that the numbers do not depend on the
            // workers.
            match is_depth_first(self.plan) {
                true => self.control.stop(Stop::Finding),
                false => self.work.with(|levels| levels.is_last = true),
            }
        }
    }
}

/// A worker of the search.
struct Worker<'a, S, const W: usize> {
    shared: &'a Shared<'a>,
    vector: CartesianVector<'a, S, W>,
    lookup: Lookup,
    /// The states that the prefixes of the last vector end in, and these prefixes.
    ends: Vec<u64>,
    prefixes: Vec<(Choice, u32)>,
    paused: PausedWorker,
    /// The link of every state, in the second search.
    links: Option<Vec<Link>>,
    /// Transitions that were reported to the control.
    reported: u64,
    follower: Option<&'a dyn Follower>,
}

/// A worker between two vectors.
#[derive(Default)]
struct PausedWorker {
    /// The items that it has taken with their level, and how many of their words are done.
    items: Taken,
    done: usize,
    /// New states on their way to the WorkSet.
    fresh: Vec<u64>,
    seen: Coverage,
    /// For tests: the local states of every thread that were reached.
    reached: Vec<BTreeSet<Vec<u64>>>,
}

save_fields!(PausedWorker { items, done, fresh, seen; reached });

impl Paused<Levels> for PausedWorker {
    fn is_done(&self) -> bool {
        self.done == self.items.0.len() && self.fresh.is_empty()
    }

    fn fits(&self, words: usize) -> bool {
        [self.items.0.len(), self.done, self.fresh.len()].iter().all(|len| len % (words + 1) == 0)
            && self.done <= self.items.0.len()
    }

    fn fit(levels: &Levels, words: usize) -> bool {
        levels.fit(words + 1)
    }
}

impl<S: Stepper, const W: usize> Worker<'_, S, W> {
    /// Searches until no work is left, or the search pauses or is stopped.
    fn work(&mut self, words: usize) {
        let Shared { control, ref work, .. } = *self.shared;
        loop {
            let (items, level) = mem::take(&mut self.paused.items);
            if !items.is_empty() {
                self.vector.seen.depth = self.vector.seen.depth.max(level);
                control.reach_depth(level);
            }
            let may_continue = || !control.stopped() && !control.is_pausing();
            while self.paused.done < items.len() && may_continue() {
                let item = &items[self.paused.done..][..=words];
                if self.cover(&item[..words], item[words] as u32) {
                    self.paused.done += words + 1;
                }
            }
            self.paused.items = (items, level);
            if !may_continue() {
                return;
            }
            let PausedWorker { items, done, fresh, .. } = &mut self.paused;
            control.add_waiting((fresh.len() / (words + 1)) as u64, size_of_val(&**fresh));
            *done = 0;
            if !work.exchange(|levels| levels.give(fresh), items) {
                items.0.clear();
                return;
            }
            let taken = &items.0;
            control.remove_waiting((taken.len() / (words + 1)) as u64, size_of_val(&**taken));
        }
    }

    /// Computes the vector of a state, and passes on the states that it leads to. `false` if the
    /// search has to end before the vector is known; then the state counts as not taken.
    fn cover(&mut self, state: &[u64], number: u32) -> bool {
        let Shared { store, control, .. } = *self.shared;
        let reported = &mut self.reported;
        let mut may_continue = |seen: &Coverage, bytes: usize| {
            control.poll_bytes(
                seen.transitions - mem::replace(reported, seen.transitions),
                store.bytes() + bytes,
            );
            // An unfinished vector cannot be written to a checkpoint, and finishing it may take
            // long.
            !control.stopped() && !control.is_ending()
        };
        let before = self.vector.seen;
        match self.vector.calculate(state, &mut may_continue) {
            Err(Stop::Enough) if !control.stopped() => {
                self.vector.seen = before;
                return false;
            }
            Err(stop) => control.stop(stop),
            Ok(()) => self.pass_on(state, number),
        }
        true
    }

    /// Passes on the failures of a state's vector, and the states that it leads to.
    fn pass_on(&mut self, state: &[u64], number: u32) {
        let Shared { store, control, .. } = *self.shared;
        if !self.vector.failures.is_empty() {
            self.pass_failures(number);
        }
        self.ends.clear();
        self.prefixes.clear();
        for (prefix, end) in self.vector.ends() {
            self.ends.extend_from_slice(end);
            self.prefixes.push((prefix.first, prefix.moves));
            if let Some(follower) = self.follower {
                let mut steps = Vec::new();
                run(prefix.first, prefix.moves, &mut steps);
                follower.run(Some(state), &steps);
            }
        }
        if store.insert(&self.ends, &mut self.lookup).is_err() {
            return control.stop(Stop::Limit(Limit::Memory));
        }
        if self.lookup.take_growth() {
            control.poll_bytes(0, store.bytes() + self.vector.bytes());
        }
        let fresh = self.lookup.fresh.len() as u64;
        self.vector.seen.states += fresh;
        control.add_states(fresh);
        for &at in &self.lookup.fresh {
            let at = at as usize;
            self.paused.fresh.extend_from_slice(&self.ends[at * state.len()..][..state.len()]);
            let (first, moves) = self.prefixes[at];
            self.paused.fresh.push(self.links.as_mut().map_or(0, |links| {
                links.push(Link { parent: number, first, moves });
                links.len() as u64
            }));
        }
    }

    #[cold]
    fn pass_failures(&mut self, number: u32) {
        for (place, failure) in mem::take(&mut self.vector.failures) {
            let mut steps = Vec::new();
            if let Some(links) = &self.links {
                steps_to(links, number, &mut steps);
                match place {
                    Place::Here => {}
                    Place::Within(first, moves) => run(first, moves, &mut steps),
                    Place::Ends => self
                        .vector
                        .all_moves()
                        .for_each(|(first, moves)| run(first, moves, &mut steps)),
                }
            }
            self.shared.record(failure, Schedule::new(steps));
        }
    }
}

/// Appends the steps to a covered state. The initial state has number 0.
fn steps_to(links: &[Link], number: u32, steps: &mut Vec<Choice>) {
    let way = path(number, |&number| {
        let link = links[number.checked_sub(1)? as usize];
        Some((link.parent, link))
    });
    way.iter().for_each(|link| run(link.first, link.moves, steps));
}

/// Appends the moves of a prefix.
fn run(first: Choice, moves: u32, steps: &mut Vec<Choice>) {
    if moves > 0 {
        steps.push(first);
        steps.extend((1..moves).map(|_| Choice::of(first.thread)));
    }
}

/// Whether the newest state is expanded first.
fn is_depth_first(plan: &ResolvedPlan) -> bool {
    matches!(plan.strategy, Strategy::Cartesian { order: StateOrder::DepthFirst, .. })
}

/// Searches once. Returns the results of the workers.
fn once<M: Model, const W: usize>(
    (plan, config, model): (&ResolvedPlan, &Config, &M),
    control: &SearchControl,
    store: &dyn Visited,
    wanted: Option<&DistinctFailures>,
) -> (DistinctFailures, PausedWorker) {
    let shape = model.shape();
    let levels = Levels::new(shape.words + 1, plan.jobs, is_depth_first(plan));
    let (work, failures) = (WorkSet::new(plan.jobs, levels), Mutex::default());
    let shared = Shared { plan, store, control, work, failures, wanted };
    let run = |mut paused: PausedWorker| {
        let vector = CartesianVector::new(
            model.stepper(),
            shape,
            config,
            plan.deadlock,
            model.has_invariants(),
        );
        let mut worker = Worker::<_, W> {
            shared: &shared,
            vector: vector.resuming(mem::take(&mut paused.reached), paused.seen),
            lookup: Lookup::default(),
            ends: Vec::new(),
            prefixes: Vec::new(),
            links: wanted.map(|_| Vec::new()),
            reported: paused.seen.transitions,
            follower: control.follower(),
            paused,
        };
        worker.vector.poll_every(control.poll_interval(POLL_INTERVAL));
        worker.work(shape.words);
        let CartesianVector { seen, reached, .. } = worker.vector;
        PausedWorker { seen, reached, ..worker.paused }
    };
    let (all, begin) = ((&shared, &shared.work), || begin(&shared, model));
    let workers = parallel::run_workers(control, all, shape.words, begin, run);
    if shared.work.with(|levels| levels.is_last) {
        control.stop(Stop::Finding);
    }
    let mut all = PausedWorker::default();
    for PausedWorker { seen, reached, .. } in workers.into_iter().flatten() {
        all.seen.add(&seen);
        all.reached.resize(reached.len(), BTreeSet::new());
        all.reached.iter_mut().zip(reached).for_each(|(all, some)| all.extend(some));
    }
    (shared.failures.into_inner().expect("mutex poisoned"), all)
}

/// Puts the initial state into the WorkSet. `None` if the search is over before it has started.
fn begin<M: Model>(shared: &Shared<'_>, model: &M) -> Option<Vec<PausedWorker>> {
    let mut item = vec![0; model.shape().words + 1];
    let words = item.len() - 1;
    let state = &mut item[..words];
    let failure = match model.stepper().initial(state) {
        Step::Moved { .. } => None,
        Step::Failed(failure) => Some(*failure),
        Step::Full(capacity) => {
            shared.control.stop(Stop::Restart(capacity));
            return None;
        }
        other => unreachable!("the initial state cannot be {other:?}"),
    };
    let mut workers: Vec<_> = (0..shared.plan.jobs).map(|_| PausedWorker::default()).collect();
    let seen = &mut workers.first_mut().expect("a search has a worker").seen;
    (seen.states, seen.failed) = (1, u64::from(failure.is_some()));
    shared.control.add_states(1);
    if let Some(failure) = failure {
        shared.record(failure, Schedule::default());
        if !shared.plan.keep_going {
            shared.control.stop(Stop::Finding);
            return Some(workers);
        }
    }
    assert_eq!(state[0] & 1, 1, "the lowest bit of the first word of a state is set");
    if shared.store.insert(state, &mut Lookup::default()).is_err() {
        shared.control.stop(Stop::Limit(Limit::Memory));
    }
    shared.work.with(|levels| levels.begin(&item));
    shared.control.add_waiting(1, size_of_val(&*item));
    Some(workers)
}

/// Searches `model` as `plan` says, and stores coverage and failures in `explored`.
pub(super) fn search<M: Model, const W: usize>(
    of: (&ResolvedPlan, &Config, &M),
    control: &SearchControl,
    store: Box<dyn Visited>,
    explored: &mut Explored,
) -> Covered {
    let (wanted, PausedWorker { seen, reached, .. }) = once::<M, W>(of, control, &*store, None);
    explored.seen = seen;
    (explored.seen.frontier, explored.frontier_bytes) = control.most_waiting();
    (explored.store_bytes, explored.omission) =
        (store.bytes(), store.omission(explored.seen.states));
    // The schedules are searched for with a new store, so the memory of this one is freed first.
    drop(store);
    if !wanted.is_empty() && !matches!(control.reason(), Some(Stop::Restart(_))) {
        explored.failures = schedules::<M, W>(of, &wanted, control);
    }
    Covered { locals: reached }
}

/// A schedule for each of the failures in `wanted`: the shortest of them only, unless the plan
/// keeps going.
fn schedules<M: Model, const W: usize>(
    (plan, config, model): (&ResolvedPlan, &Config, &M),
    wanted: &DistinctFailures,
    control: &SearchControl,
) -> Vec<(Failure, Schedule)> {
    retrace(plan, wanted, control, |plan, control| {
        let store = store(plan, model.shape().words);
        let (failures, _) = once::<M, W>((plan, config, model), control, &*store, Some(wanted));
        let mut found = failures.into_vec();
        found.sort_by_key(|(_, schedule)| schedule.steps().len());
        found
    })
}
