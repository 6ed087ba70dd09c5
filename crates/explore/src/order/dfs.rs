//! Depth first: the newest state first.
//!
//! **Guarantees.** Complete, for all properties. The numbers of a complete search are the same for
//! any number of workers, except for the depth. Schedules are not the shortest.
//!
//! All successors of a state are looked up together, and the new ones wait on the stack; a state
//! counts as visited from then on, not only when it is expanded. Every waiting state is a successor
//! of a state on the current path, so one path serves them all.
//!
//! **Pauses** between two states. The remaining work is the store, the waiting states and the path
//! of each worker, and the states in the queue.
//!
//! **Cost.** A waiting state needs 12 bytes in addition to its words, the path 8 bytes for every
//! step.

use std::mem;
use std::sync::Mutex;

use preempt_system::{Batch, Choice, Failure, Model, Schedule, Stepper};

use super::{BATCH, checks};
use crate::codec::{save_fields, save_in_place};
use crate::engine::control::{PollTimer, SearchControl};
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;
use crate::engine::expand::Expander;
use crate::engine::explored::Explored;
use crate::engine::lock;
use crate::engine::parallel::{self, Paused};
use crate::engine::queue::Queue;
use crate::engine::store::{Lookup, Visited};
use crate::plan::ResolvedPlan;
use crate::plan::coverage::{Coverage, Limit};

/// A state to search from.
struct Item {
    state: Vec<u64>,
    /// The steps that led to it.
    path: Vec<Choice>,
}

save_fields!(Item { state, path });

/// The data that the workers share.
struct Shared<'a> {
    plan: &'a ResolvedPlan,
    store: &'a dyn Visited,
    control: &'a SearchControl<'a>,
    queue: Queue<Vec<Item>>,
    failures: Mutex<DistinctFailures>,
}

save_in_place!(['a] Shared<'a> { queue, failures, store });

impl Shared<'_> {
    #[cold]
    fn fail(&self, failure: Failure, path: &[Choice], last: Option<Choice>) {
        let mut failures = lock(&self.failures);
        if !self.plan.keep_going && !failures.is_empty() {
            return;
        }
        let schedule = Schedule::new(path.iter().copied().chain(last).collect());
        if failures.record_shortest(failure, schedule) {
            self.control.count_failure();
        }
        if !self.plan.keep_going {
            self.control.stop(Stop::Finding);
        }
    }
}

/// A waiting state: the step that leads to it and the number of steps in all.
#[derive(Clone, Copy)]
struct Waiting {
    choice: Choice,
    depth: u32,
}

save_fields!(Waiting { choice, depth });

/// The waiting states, newest last. Those below `bottom` were given away.
struct Stack {
    words: usize,
    states: Vec<u64>,
    waiting: Vec<Waiting>,
    bottom: usize,
}

save_fields!(Stack { words, states, waiting, bottom });

impl Stack {
    fn push(&mut self, state: &[u64], waiting: Waiting) {
        self.states.extend_from_slice(state);
        self.waiting.push(waiting);
    }

    fn len(&self) -> usize {
        self.waiting.len() - self.bottom
    }

    /// Takes the newest state into `state`.
    fn pop(&mut self, state: &mut [u64]) -> Option<Waiting> {
        if self.len() == 0 {
            self.states.clear();
            self.waiting.clear();
            self.bottom = 0;
            return None;
        }
        let waiting = self.waiting.pop()?;
        let at = self.waiting.len() * self.words;
        state.copy_from_slice(&self.states[at..]);
        self.states.truncate(at);
        Some(waiting)
    }

    /// Takes the oldest state, which is likely to lead to most others. `path` is the path of any
    /// state that waits or whose successors do.
    fn give(&mut self, path: &[Choice]) -> Item {
        let Waiting { choice, depth } = self.waiting[self.bottom];
        let state = self.states[self.bottom * self.words..][..self.words].to_vec();
        self.bottom += 1;
        let path = path[..depth as usize - 1].iter().copied().chain([choice]).collect();
        Item { state, path }
    }

    fn bytes(&self) -> usize {
        self.waiting.len() * (size_of::<u64>() * self.words + size_of::<Waiting>())
    }
}

/// A worker between two states.
struct PausedWorker {
    stack: Stack,
    /// The steps that led to the state that was expanded last.
    path: Vec<Choice>,
    seen: Coverage,
    /// The waiting states, and their bytes, that were reported to the control.
    reported: (u64, usize),
    /// The most bytes that waited.
    most_bytes: usize,
    /// Whether states were left out because they are too deep.
    cut: bool,
    /// New states that were not reported to the control.
    unreported: u64,
}

save_fields!(PausedWorker { stack, path, seen, reported, most_bytes, cut, unreported });

impl PausedWorker {
    /// A worker that has done nothing yet.
    fn new(words: usize) -> PausedWorker {
        PausedWorker {
            stack: Stack { words, states: Vec::new(), waiting: Vec::new(), bottom: 0 },
            path: Vec::new(),
            seen: Coverage::default(),
            reported: (0, 0),
            most_bytes: 0,
            cut: false,
            unreported: 0,
        }
    }
}

impl Paused<Vec<Item>> for PausedWorker {
    fn is_done(&self) -> bool {
        self.stack.len() == 0
    }

    fn fits(&self, words: usize) -> bool {
        let Stack { states, waiting, bottom, .. } = &self.stack;
        self.stack.words == words
            && waiting.len().checked_mul(words) == Some(states.len())
            && *bottom <= waiting.len()
            && waiting.iter().all(|waiting| waiting.depth > 0)
            // They wait in the order of their depths, each after a state of the path.
            && waiting.is_sorted_by_key(|waiting| waiting.depth)
            && waiting.last().is_none_or(|last| last.depth as usize <= self.path.len() + 1)
    }

    fn fit(items: &Vec<Item>, words: usize) -> bool {
        items.iter().all(|item| item.state.len() == words)
    }
}

/// A depth-first worker.
struct Worker<'a, S, const W: usize> {
    shared: &'a Shared<'a>,
    expander: Expander<S>,
    batch: Batch<W>,
    lookup: Lookup,
    poll_timer: PollTimer,
    paused: PausedWorker,
}

impl<'a, S: Stepper, const W: usize> Worker<'a, S, W> {
    fn new(
        shared: &'a Shared<'a>,
        mut expander: Expander<S>,
        words: usize,
        paused: PausedWorker,
    ) -> Self {
        expander.seen = paused.seen;
        Worker {
            shared,
            poll_timer: PollTimer::new(
                shared.control,
                paused.seen.expanded,
                paused.seen.transitions,
            ),
            expander,
            batch: Batch::new(words),
            lookup: Lookup::default(),
            paused,
        }
    }

    /// Searches until no worker has work left, or the search is stopped or pauses.
    fn work(mut self) -> PausedWorker {
        let Shared { queue, control, .. } = self.shared;
        let mut state = vec![0; self.paused.stack.words];
        loop {
            if let Some(Waiting { choice, depth }) = self.paused.stack.pop(&mut state) {
                self.paused.path.truncate(depth as usize - 1);
                self.paused.path.push(choice);
            } else if let Some(item) = queue.take() {
                (state, self.paused.path) = (item.state, item.path);
            } else {
                break;
            }
            self.visit(&state);
            if control.stopped() || control.is_pausing() {
                break;
            }
            if queue.has_idle_worker() && self.paused.stack.len() > 1 {
                queue.give(self.paused.stack.give(&self.paused.path));
            }
        }
        PausedWorker { seen: self.expander.seen, ..self.paused }
    }

    /// Expands the state to which the path leads, and lets its new successors wait.
    #[inline(always)]
    fn visit(&mut self, state: &[u64]) {
        let Shared { store, control, .. } = *self.shared;
        let depth = self.paused.path.len() as u32;
        self.expander.seen.depth = self.expander.seen.depth.max(depth);
        if control.limits.depth.is_some_and(|limit| depth >= limit) {
            self.paused.cut = true;
            return;
        }
        if let Err(capacity) = self.expander.expand(state, &mut self.batch) {
            return control.stop(Stop::Restart(capacity));
        }
        if !self.expander.failures.is_empty() {
            self.pass_failures();
        }
        if store.insert(self.batch.states(), &mut self.lookup).is_err() {
            return control.stop(Stop::Limit(Limit::Memory));
        }
        let fresh = self.lookup.fresh.len() as u64;
        self.expander.seen.states += fresh;
        self.paused.unreported += fresh;
        if self.paused.unreported >= BATCH as u64 {
            control.add_states(mem::take(&mut self.paused.unreported));
        }
        // The last is pushed first, so that the first is searched first.
        for &number in self.lookup.fresh.iter().rev() {
            let number = number as usize;
            let (state, choice) = (self.batch.state(number), self.batch.choice(number));
            if let Err(failure) = self.expander.invariant(state) {
                self.expander.seen.failed += 1;
                self.shared.fail(*failure, &self.paused.path, Some(choice));
            }
            self.paused.stack.push(state, Waiting { choice, depth: depth + 1 });
        }
        self.batch.clear();
        self.update_maxima();
    }

    #[cold]
    fn pass_failures(&mut self) {
        self.expander.seen.failed += self.expander.failures.len() as u64;
        for (choice, failure) in self.expander.failures.drain(..) {
            self.shared.fail(failure, &self.paused.path, choice);
        }
    }

    /// Updates the maxima, and reports to the control from time to time.
    #[inline(always)]
    fn update_maxima(&mut self) {
        let Shared { store, control, .. } = *self.shared;
        let seen = &mut self.expander.seen;
        seen.frontier = seen.frontier.max(self.paused.stack.len() as u64);
        self.paused.most_bytes = self.paused.most_bytes.max(self.paused.stack.bytes());
        let (expanded, transitions) = (seen.expanded, seen.transitions);
        if self.poll_timer.is_due(expanded) || self.lookup.take_growth() {
            let now = (self.paused.stack.len() as u64, self.paused.stack.bytes());
            control.add_waiting(now.0, now.1);
            control.remove_waiting(self.paused.reported.0, self.paused.reported.1);
            self.paused.reported = now;
            control.reach_depth(seen.depth);
            self.poll_timer.poll(expanded, transitions, control, store);
        }
    }
}

/// Searches, and adds what was seen and found to `explored`.
pub(crate) fn search<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    store: &dyn Visited,
    explored: &mut Explored,
) {
    let shape = model.shape();
    let (queue, failures) = (Queue::new(plan.jobs, Vec::new()), Mutex::default());
    let shared = Shared { plan, store, control, queue, failures };
    let work = |paused| {
        let expander = Expander::new(model.stepper(), shape, checks(plan));
        Worker::<_, W>::new(&shared, expander, shape.words, paused).work()
    };
    let (all, begin) = ((&shared, &shared.queue), || begin(&shared, model));
    let workers = parallel::run_workers(control, all, shape.words, begin, work);
    for worker in workers.into_iter().flatten() {
        let waited = explored.seen.frontier + worker.seen.frontier;
        explored.seen.add(&worker.seen);
        explored.seen.frontier = waited;
        explored.frontier_bytes += worker.most_bytes;
        if worker.cut {
            control.stop(Stop::Limit(Limit::Depth));
        }
    }
    explored.failures = shared.failures.into_inner().expect("mutex poisoned").into_vec();
}

/// Puts the initial state into the queue. `None` if the search is over before it has started.
fn begin<M: Model>(shared: &Shared<'_>, model: &M) -> Option<Vec<PausedWorker>> {
    let Shared { plan, store, control, ref queue, .. } = *shared;
    let initial = Expander::new(model.stepper(), model.shape(), checks(plan)).begin(control)?;
    let mut workers: Vec<_> =
        (0..plan.jobs).map(|_| PausedWorker::new(model.shape().words)).collect();
    let seen = &mut workers.first_mut().expect("a search has a worker").seen;
    (seen.states, seen.failed) = (1, initial.failures.len() as u64);
    control.add_states(1);
    if store.insert(&initial.state, &mut Lookup::default()).is_err() {
        control.stop(Stop::Limit(Limit::Memory));
    }
    for failure in initial.failures {
        shared.fail(failure, &[], None);
    }
    queue.give(Item { state: initial.state, path: Vec::new() });
    Some(workers)
}

#[cfg(test)]
mod tests {
    use preempt_system::ThreadId;

    use super::*;

    /// A worker with two waiting states of two words, after one step.
    fn paused() -> PausedWorker {
        let mut worker = PausedWorker::new(2);
        let choice = Choice::of(ThreadId::new(0));
        worker.path.push(choice);
        worker.stack.push(&[1, 2], Waiting { choice, depth: 1 });
        worker.stack.push(&[3, 4], Waiting { choice, depth: 2 });
        worker
    }

    #[test]
    fn a_damaged_stack_does_not_fit() {
        assert!(paused().fits(2) && PausedWorker::new(2).fits(2));
        assert!(!paused().fits(1), "states have two words");
        let damages: [fn(&mut PausedWorker); 6] = [
            |worker| worker.stack.states.truncate(2),
            |worker| worker.stack.bottom = 3,
            |worker| worker.stack.waiting[0].depth = 0,
            |worker| worker.stack.waiting[0].depth = 3,
            |worker| worker.stack.waiting[1].depth = 3,
            |worker| worker.path.clear(),
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            let mut worker = paused();
            damage(&mut worker);
            assert!(!worker.fits(2), "damage {number}");
        }
        let item = || Item { state: vec![1, 2], path: Vec::new() };
        assert!(PausedWorker::fit(&vec![item(), item()], 2));
        assert!(!PausedWorker::fit(&vec![item(), item()], 3));
    }

    #[test]
    fn a_worker_is_done_when_nothing_waits() {
        let mut worker = paused();
        let mut state = [0; 2];
        assert!(!worker.is_done());
        assert_eq!(worker.stack.give(&worker.path).state, [1, 2], "the oldest is given away");
        assert!(!worker.is_done());
        assert_eq!(worker.stack.pop(&mut state).map(|waiting| waiting.depth), Some(2));
        assert_eq!(state, [3, 4], "the newest is taken");
        assert!(worker.is_done() && worker.stack.pop(&mut state).is_none());
        assert_eq!((worker.stack.bottom, worker.stack.bytes()), (0, 0), "nothing is kept");
    }
}
