//! Breadth first: all states that need k steps are expanded before any that needs k + 1.
//!
//! **Guarantees.** Complete, for all properties; the failures that it finds need the fewest steps.
//! All numbers are the same for any number of workers, also those of a search that ends at a
//! finding: the level of the finding is expanded to its end.
//!
//! **Cost.** Beside the store only the states of two levels are kept, and no paths: for a finding,
//! [`retrace`](super::retrace) searches again for the path.
//!
//! **Pauses** between two chunks of a level. The remaining work is the store, both levels, and what
//! the first worker holds; the others pass on what they hold.

use std::mem;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use preempt_system::{Batch, Choice, Failure, Model, Stepper, ThreadId};

use super::frontier::{CHUNK, Chunk, Frontier};
use super::{BATCH, checks};
use crate::codec::{Damaged, Reserved, SaveInPlace as _, save_fields, save_in_place};
use crate::engine::control::{PollTimer, SearchControl};
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;
use crate::engine::expand::Expander;
use crate::engine::explored::Explored;
use crate::engine::lock;
use crate::engine::parallel;
use crate::engine::store::{Lookup, Visited};
use crate::plan::ResolvedPlan;
use crate::plan::coverage::{Coverage, Limit};

/// Levels with fewer states are not worth waking the helpers.
pub(crate) const SHARED: u64 = 4 * CHUNK as u64;

/// States of another process that are looked up together.
const RECEIVED: usize = 512;

/// Records the path of a search. States of a level are numbered in the order in which they were
/// found.
pub(crate) trait Trail {
    /// One more state of the level was expanded; the batch now has `successors`.
    #[inline(always)]
    fn expanded(&mut self, successors: usize) {
        let _ = successors;
    }

    /// Successor `number` of the batch, to which `choice` led, is a new state of the next level.
    #[inline(always)]
    fn fresh(&mut self, number: usize, choice: Choice) {
        let _ = (number, choice);
    }

    /// The batch was looked up and is empty.
    #[inline(always)]
    fn flushed(&mut self) {}

    /// The state that is being expanded fails, or its step `choice` fails.
    fn failed(&mut self, choice: Option<Choice>, failure: Failure);

    /// The latest state of the next level fails.
    fn fresh_failed(&mut self, failure: Failure);
}

/// Where the successors go that this process does not store.
pub(crate) trait Outbox {
    /// Takes the successors of other processes out of `batch`.
    fn divert<const W: usize>(&mut self, batch: &mut Batch<W>);

    /// Whether this process stores `state`.
    fn is_mine<const W: usize>(&self, state: &[u64]) -> bool;
}

/// The outbox of a search in one process, which stores all states.
pub(crate) struct SingleProcess;

impl Outbox for SingleProcess {
    #[inline(always)]
    fn divert<const W: usize>(&mut self, _: &mut Batch<W>) {}

    fn is_mine<const W: usize>(&self, _: &[u64]) -> bool {
        true
    }
}

/// The data that the workers share.
struct Shared<'a> {
    plan: &'a ResolvedPlan,
    store: &'a dyn Visited,
    control: &'a SearchControl<'a>,
    frontier: Frontier<'a>,
    failures: Mutex<DistinctFailures<()>>,
}

save_in_place!(['a] Shared<'a> { failures, frontier, store });

impl Shared<'_> {
    #[cold]
    fn record(&self, failure: Failure) {
        if lock(&self.failures).record(failure, (), |_, _| false) {
            self.control.count_failure();
        }
    }
}

/// Records the distinct failures and nothing else.
impl Trail for &Shared<'_> {
    fn failed(&mut self, _: Option<Choice>, failure: Failure) {
        self.record(failure);
    }
    fn fresh_failed(&mut self, failure: Failure) {
        self.record(failure);
    }
}

/// The data of a worker between two chunks. The capacity of a chunk decides when it is passed on,
/// and so how many states wait at most.
struct PausedWorker {
    successors: Vec<u64>,
    next: Chunk,
    spare: Vec<Chunk>,
}

save_fields!(PausedWorker { successors, next, spare });

/// A breadth-first worker.
pub(crate) struct Worker<'a, S, T, const W: usize, O = SingleProcess> {
    expander: Expander<S>,
    pub(crate) trail: T,
    pub(crate) outbox: O,
    store: &'a dyn Visited,
    control: &'a SearchControl<'a>,
    frontier: &'a Frontier<'a>,
    batch: Batch<W>,
    lookup: Lookup,
    /// New states on their way to the frontier.
    next: Chunk,
    spare: Vec<Chunk>,
    poll_timer: PollTimer,
}

impl<'a, S: Stepper, T: Trail, const W: usize> Worker<'a, S, T, W> {
    pub(crate) fn new<M: Model<Stepper<'a> = S>>(
        planned: (&ResolvedPlan, &'a M),
        store: &'a dyn Visited,
        control: &'a SearchControl<'a>,
        frontier: &'a Frontier<'a>,
        trail: T,
    ) -> Self {
        Worker::among(planned, store, control, frontier, trail, SingleProcess)
    }
}

impl<'a, S: Stepper, T: Trail, const W: usize, O: Outbox> Worker<'a, S, T, W, O> {
    /// A worker of a search in several processes.
    pub(crate) fn among<M: Model<Stepper<'a> = S>>(
        (plan, model): (&ResolvedPlan, &'a M),
        store: &'a dyn Visited,
        control: &'a SearchControl<'a>,
        frontier: &'a Frontier<'a>,
        trail: T,
        outbox: O,
    ) -> Self {
        let shape = model.shape();
        Worker {
            expander: Expander::new(model.stepper(), shape, checks(plan)),
            trail,
            outbox,
            store,
            control,
            frontier,
            batch: Batch::new(shape.words),
            lookup: Lookup::default(),
            next: Chunk::default(),
            spare: Vec::new(),
            poll_timer: PollTimer::new(control, 0, 0),
        }
    }

    /// The initial state. `None` if states need more room.
    pub(crate) fn initial(&mut self) -> Option<Vec<u64>> {
        self.expander.begin(self.control).map(|initial| initial.state)
    }

    /// Puts the initial state into the frontier, if this process stores it. Returns it.
    pub(crate) fn begin(&mut self, keep_going: bool) -> Option<Vec<u64>> {
        let initial = self.expander.begin(self.control)?;
        if !self.outbox.is_mine::<W>(&initial.state) {
            return Some(initial.state);
        }
        let continues = initial.failures.is_empty() || keep_going;
        self.expander.seen.failed += initial.failures.len() as u64;
        self.expander.seen.states = 1;
        self.trail.fresh(0, Choice::of(ThreadId::new(0)));
        for failure in initial.failures {
            self.trail.fresh_failed(failure);
        }
        if continues && self.look_up(&initial.state) {
            self.frontier.add(Reserved(initial.state.clone()));
        }
        Some(initial.state)
    }

    /// Whether the store could take the states.
    fn look_up(&mut self, states: &[u64]) -> bool {
        let done = self.store.insert(states, &mut self.lookup);
        if done.is_err() {
            self.control.stop(Stop::Limit(Limit::Memory));
        }
        done.is_ok()
    }

    /// Expands states of the level until none is left.
    pub(crate) fn expand_level(&mut self) {
        while let Some(chunk) = self.frontier.take() {
            if !self.expand_chunk(chunk) {
                return;
            }
        }
        self.hand_over_all();
    }

    /// Expands the states of a chunk. Returns whether to continue with the next one.
    #[inline(always)]
    pub(crate) fn expand_chunk(&mut self, mut chunk: Chunk) -> bool {
        let words = self.batch.words();
        for state in chunk.chunks_exact(words) {
            if let Err(capacity) = self.expander.expand(state, &mut self.batch) {
                self.control.stop(Stop::Restart(capacity));
                return false;
            }
            if !self.expander.failures.is_empty() {
                self.pass_failures();
            }
            self.trail.expanded(self.batch.len());
            if self.batch.len() >= BATCH {
                self.flush();
                if self.control.stopped() {
                    return false;
                }
            }
        }
        chunk.clear();
        self.spare.push(chunk);
        let seen = &self.expander.seen;
        self.poll_timer.poll_if_due(seen.expanded, seen.transitions, self.control, self.store);
        !self.control.is_pausing()
    }

    /// Looks up states that another process found.
    pub(crate) fn add_received(&mut self, states: &[u64]) {
        let words = self.batch.words();
        for part in states.chunks(RECEIVED * words) {
            for state in part.chunks_exact(words) {
                self.batch.draft().copy_from_slice(state);
                self.batch.keep(Choice::of(ThreadId::new(0)));
            }
            if self.control.stopped() {
                // The result is incomplete with or without them.
                return self.batch.clear();
            }
            self.look_up_batch();
        }
    }

    /// Passes on everything that the worker holds.
    pub(crate) fn hand_over_all(&mut self) {
        self.flush();
        if !self.next.is_empty() {
            self.frontier.add(mem::take(&mut self.next));
        }
    }

    /// The data that the worker holds.
    fn pause(&mut self) -> PausedWorker {
        let successors = self.batch.states().to_vec();
        PausedWorker {
            successors,
            next: mem::take(&mut self.next),
            spare: mem::take(&mut self.spare),
        }
    }

    /// Continues with what a worker held. `None` if it is not of this model.
    fn resume(&mut self, paused: PausedWorker) -> Option<()> {
        let words = self.batch.words();
        if paused.successors.len() % words + paused.next.len() % words != 0 {
            return None;
        }
        self.batch.clear();
        for state in paused.successors.chunks_exact(words) {
            self.batch.draft().copy_from_slice(state);
            // The steps that led to the successors matter only to a search that keeps paths.
            self.batch.keep(Choice::of(ThreadId::new(0)));
        }
        (self.next, self.spare) = (paused.next, paused.spare);
        Some(())
    }

    #[cold]
    fn pass_failures(&mut self) {
        self.expander.seen.failed += self.expander.failures.len() as u64;
        for (choice, failure) in self.expander.failures.drain(..) {
            self.trail.failed(choice, failure);
        }
    }

    /// Looks the batch up and passes on the new states.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.outbox.divert(&mut self.batch);
        self.look_up_batch();
    }

    #[inline(always)]
    fn look_up_batch(&mut self) {
        if self.store.insert(self.batch.states(), &mut self.lookup).is_err() {
            return self.control.stop(Stop::Limit(Limit::Memory));
        }
        if self.lookup.take_growth() {
            let seen = &self.expander.seen;
            self.poll_timer.poll(seen.expanded, seen.transitions, self.control, self.store);
        }
        let fresh = self.lookup.fresh.len() as u64;
        self.expander.seen.states += fresh;
        self.control.add_states(fresh);
        for &number in &self.lookup.fresh {
            let number = number as usize;
            let state = self.batch.state(number);
            self.trail.fresh(number, self.batch.choice(number));
            if let Err(failure) = self.expander.invariant(state) {
                self.expander.seen.failed += 1;
                self.trail.fresh_failed(*failure);
            }
            if self.next.capacity() == self.next.len() {
                let full = CHUNK * self.batch.words();
                let empty = self.spare.pop().unwrap_or_else(|| Reserved(Vec::with_capacity(full)));
                let filled = mem::replace(&mut self.next, empty);
                if !filled.is_empty() {
                    self.frontier.add(filled);
                }
            }
            self.next.extend_from_slice(state);
        }
        self.batch.clear();
        self.trail.flushed();
    }

    /// Checks the limits now.
    pub(crate) fn poll(&mut self) {
        let seen = &self.expander.seen;
        self.poll_timer.poll(seen.expanded, seen.transitions, self.control, self.store);
    }

    /// Adds the counts of another worker of this process.
    pub(crate) fn add_counts(&mut self, seen: &Coverage) {
        self.expander.seen.add(seen);
    }

    /// The worker's counts since the last call.
    pub(crate) fn take_counts(&mut self) -> Coverage {
        self.poll_timer = PollTimer::new(self.control, 0, 0);
        mem::take(&mut self.expander.seen)
    }
}

/// Searches, adds its counts to `explored` and returns the distinct failures.
pub(crate) fn search<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    store: &dyn Visited,
    explored: &mut Explored,
) -> DistinctFailures<()> {
    let frontier = Frontier::new(model.shape().words, control);
    let shared = &Shared { plan, store, control, frontier, failures: Mutex::default() };
    let worker = || Worker::<_, _, W>::new((plan, model), store, control, &shared.frontier, shared);
    let (helpers, ends): (Vec<_>, Vec<_>) = (1..plan.jobs).map(|_| Helper::new()).unzip();
    let lead =
        |_| Leader { shared, worker: worker(), helpers, seen: explored.seen, depth: 0 }.run();
    let help = |_, ends: Option<_>| {
        let (start, finish): (Receiver<()>, Sender<Coverage>) =
            ends.expect("a helper has both ends");
        let mut worker = worker();
        while start.recv().is_ok() {
            worker.expand_level();
            if control.is_pausing() && !control.stopped() {
                worker.hand_over_all();
            }
            if finish.send(worker.take_counts()).is_err() {
                break;
            }
        }
        Coverage::default()
    };
    let inputs = [None].into_iter().chain(ends.into_iter().map(Some)).collect();
    // The leader has collected the counts of its helpers.
    explored.seen = parallel::run(inputs, || {}, lead, help)[0];
    (explored.seen.frontier, explored.frontier_bytes) = control.most_waiting();
    mem::take(&mut *lock(&shared.failures))
}

/// The worker that expands level after level, with the others' help.
struct Leader<'a, S, const W: usize> {
    shared: &'a Shared<'a>,
    worker: Worker<'a, S, &'a Shared<'a>, W>,
    helpers: Vec<Helper>,
    seen: Coverage,
    depth: u32,
}

/// A search in the middle of a level.
struct PausedSearch {
    seen: Coverage,
    depth: u32,
    worker: PausedWorker,
}

save_fields!(PausedSearch { seen, depth, worker });

impl<S: Stepper, const W: usize> Leader<'_, S, W> {
    fn run(mut self) -> Coverage {
        let Shared { plan, control, .. } = *self.shared;
        let mut is_in_level = self.resume();
        if control.stopped() {
            return self.seen;
        }
        if !is_in_level {
            self.worker.begin(plan.keep_going);
            control.add_states(self.worker.expander.seen.states);
        }
        while is_in_level || self.begin_level() {
            self.expand_level();
            is_in_level = control.is_pausing() && !control.stopped();
            if is_in_level {
                self.pause();
            }
            if control.stopped() {
                break;
            }
            if !is_in_level {
                self.seen.settled = Some(self.depth);
                self.depth += 1;
            }
        }
        self.seen.add(&self.worker.take_counts());
        self.seen
    }

    /// Moves to the next level. Returns whether it is to be expanded.
    fn begin_level(&mut self) -> bool {
        let Shared { plan, control, ref frontier, ref failures, .. } = *self.shared;
        let states = frontier.advance();
        if !plan.keep_going && !lock(failures).is_empty() {
            control.stop(Stop::Finding);
        }
        if states > 0 {
            self.seen.depth = self.depth;
            control.reach_depth(self.depth);
            if control.limits.depth.is_some_and(|limit| self.depth >= limit) {
                control.stop(Stop::Limit(Limit::Depth));
            }
        }
        states > 0 && !control.stopped()
    }

    /// Expands the level, or the rest of it, until it is done or the search pauses.
    fn expand_level(&mut self) {
        let is_small = self.shared.frontier.left() < SHARED;
        let helpers = if is_small { &[] } else { &self.helpers[..] };
        helpers.iter().for_each(Helper::go);
        self.worker.expand_level();
        helpers.iter().for_each(|helper| self.seen.add(&helper.wait()));
    }

    fn pause(&mut self) {
        let mut seen = self.seen;
        seen.add(&self.worker.expander.seen);
        let paused = PausedSearch { seen, depth: self.depth, worker: self.worker.pause() };
        self.shared.control.pause(|to| {
            self.shared.save_contents(to);
            to.put(&paused);
        });
        self.worker.resume(paused.worker).expect("the worker held this before it paused");
    }

    /// Continues from a checkpoint, in the middle of a level. Returns whether there is one.
    fn resume(&mut self) -> bool {
        let shared = self.shared;
        let resumed = shared.control.resume(|from| {
            shared.load_contents(from)?;
            let PausedSearch { seen, depth, worker } = from.get()?;
            (self.seen, self.depth) = (seen, depth);
            self.worker.resume(worker).filter(|()| shared.frontier.is_whole()).ok_or(Damaged)
        });
        resumed.is_some()
    }
}

/// The leader's end of the channels to another worker. If either panics, its ends close and the
/// other one ends too.
struct Helper {
    go: Sender<()>,
    done: Receiver<Coverage>,
}

impl Helper {
    fn new() -> (Helper, (Receiver<()>, Sender<Coverage>)) {
        let ((go, start), (finish, done)) = (channel(), channel());
        (Helper { go, done }, (start, finish))
    }

    fn go(&self) {
        self.go.send(()).expect("a worker ends after its leader");
    }

    fn wait(&self) -> Coverage {
        self.done.recv().expect("a worker ends after its leader")
    }
}
