//! Depth first: the newest state first.
//!
//! **Guarantees.** Complete, for all properties. The numbers of a search that comes to its end are the same for any number of
//! workers, except for the depth. Schedules are not the shortest.
//!
//! All successors of a state are looked up together, and the new ones wait on the stack; a state is taken for visited from
//! then on, not only when its turn comes. Every waiting state is a successor of a state on the current path, so that one
//! path serves them all.
//!
//! **Cost.** A waiting state needs 12 bytes beside its words, the path 8 bytes for every step.

use std::mem;
use std::sync::Mutex;
use std::thread;

use preempt_system::{Choice, Failure, Model, Schedule, Stepper};

use super::pool::{self, Pool};
use super::{BATCH, Explored, checks};
use crate::expand::{Batch, Expander};
use crate::failures::Failures;
use crate::outcome::Limit;
use crate::plan::Plan;
use crate::store::{Lookup, Visited};
use crate::watch::{Reminder, Stop, Watch};

/// A state to search from.
struct Item {
    state: Vec<u64>,
    /// The steps that led to it.
    path: Vec<Choice>,
}

/// What the workers share.
struct Shared<'a> {
    plan: &'a Plan,
    store: &'a dyn Visited,
    watch: &'a Watch<'a>,
    pool: Pool<Item>,
    failures: Mutex<Failures>,
}

impl Shared<'_> {
    #[cold]
    fn fail(&self, failure: Failure, path: &[Choice], last: Option<Choice>) {
        let mut failures = self.failures.lock().expect("nobody panics while it notes a failure");
        if !self.plan.keep_going && !failures.found.is_empty() {
            return;
        }
        if failures.note(failure, Schedule(path.iter().copied().chain(last).collect())) {
            self.watch.failed();
        }
        if !self.plan.keep_going {
            self.watch.stop(Stop::Finding);
        }
    }
}

/// A waiting state: the step that leads to it and the number of steps in all.
#[derive(Clone, Copy)]
struct Waiting {
    choice: Choice,
    depth: u32,
}

/// The states that wait, newest last. Those below `bottom` were given away.
struct Stack {
    words: usize,
    states: Vec<u64>,
    waiting: Vec<Waiting>,
    bottom: usize,
}

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

    /// Takes the oldest state, from which most is likely to follow. `path` is that of any state that waits or whose
    /// successors do.
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

/// One of those who search.
struct Worker<'a, S, const W: usize> {
    shared: &'a Shared<'a>,
    expander: Expander<S>,
    batch: Batch<W>,
    lookup: Lookup,
    stack: Stack,
    /// The steps that led to the state that is being expanded.
    path: Vec<Choice>,
    reminder: Reminder,
    /// What the watch believes to wait here.
    waiting: (u64, usize),
    /// The most bytes that waited.
    most_bytes: usize,
    /// Whether states were left out because they are too deep.
    cut: bool,
    /// New states that the watch does not know of yet.
    unreported: u64,
}

impl<'a, S: Stepper, const W: usize> Worker<'a, S, W> {
    fn new(shared: &'a Shared<'a>, expander: Expander<S>, words: usize) -> Self {
        Worker {
            shared,
            expander,
            batch: Batch::new(words),
            lookup: Lookup::default(),
            stack: Stack { words, states: Vec::new(), waiting: Vec::new(), bottom: 0 },
            path: Vec::new(),
            reminder: Reminder::default(),
            waiting: (0, 0),
            most_bytes: 0,
            cut: false,
            unreported: 0,
        }
    }

    /// Searches until no worker has work left, or the search is stopped.
    fn work(&mut self) {
        let Shared { pool, watch, .. } = self.shared;
        let _guard = pool::Worker(pool);
        while let Some(item) = pool.take() {
            let mut state = item.state;
            self.path = item.path;
            loop {
                self.visit(&state);
                if watch.stopped() {
                    return pool.close();
                }
                if pool.hungry() && self.stack.len() > 1 {
                    pool.give(self.stack.give(&self.path));
                }
                let Some(Waiting { choice, depth }) = self.stack.pop(&mut state) else { break };
                self.path.truncate(depth as usize - 1);
                self.path.push(choice);
            }
        }
    }

    /// Expands the state to which the path leads, and lets its new successors wait.
    #[inline(always)]
    fn visit(&mut self, state: &[u64]) {
        let Shared { store, watch, .. } = *self.shared;
        let depth = self.path.len() as u32;
        self.expander.seen.depth = self.expander.seen.depth.max(depth);
        if watch.limits.depth.is_some_and(|limit| depth >= limit) {
            self.cut = true;
            return;
        }
        if let Err(capacity) = self.expander.expand(state, &mut self.batch) {
            return watch.stop(Stop::Full(capacity));
        }
        if !self.expander.failures.is_empty() {
            self.pass_failures();
        }
        if store.insert(self.batch.states(), &mut self.lookup).is_err() {
            return watch.stop(Stop::Limit(Limit::Memory));
        }
        let fresh = self.lookup.fresh.len() as u64;
        self.expander.seen.states += fresh;
        self.unreported += fresh;
        if self.unreported >= BATCH as u64 {
            watch.found(mem::take(&mut self.unreported));
        }
        // The last is pushed first, so that the first is searched first.
        for &number in self.lookup.fresh.iter().rev() {
            let number = number as usize;
            let (state, choice) = (self.batch.state(number), self.batch.choice(number));
            if let Err(failure) = self.expander.invariant(state) {
                self.expander.seen.failed += 1;
                self.shared.fail(*failure, &self.path, Some(choice));
            }
            self.stack.push(state, Waiting { choice, depth: depth + 1 });
        }
        self.batch.clear();
        self.take_stock();
    }

    #[cold]
    fn pass_failures(&mut self) {
        self.expander.seen.failed += self.expander.failures.len() as u64;
        for (choice, failure) in self.expander.failures.drain(..) {
            self.shared.fail(failure, &self.path, choice);
        }
    }

    /// Keeps the greatest numbers, and tells the watch now and then.
    #[inline(always)]
    fn take_stock(&mut self) {
        let Shared { store, watch, .. } = *self.shared;
        let seen = &mut self.expander.seen;
        seen.frontier = seen.frontier.max(self.stack.len() as u64);
        self.most_bytes = self.most_bytes.max(self.stack.bytes());
        let (expanded, transitions) = (seen.expanded, seen.transitions);
        if self.reminder.is_due(expanded) {
            let now = (self.stack.len() as u64, self.stack.bytes());
            watch.wait(now.0, now.1);
            watch.taken(self.waiting.0, self.waiting.1);
            self.waiting = now;
            watch.deepen(seen.depth);
            self.reminder.remind(expanded, transitions, watch, store);
        }
    }
}

/// Searches, and adds what was seen and found to `explored`.
pub(super) fn search<M: Model, const W: usize>(
    plan: &Plan,
    model: &M,
    watch: &Watch,
    store: &dyn Visited,
    explored: &mut Explored,
) {
    let shape = model.shape();
    let mut first = Expander::new(model.stepper(), shape, checks(plan));
    let initial = match first.initial() {
        Ok(initial) => initial,
        Err(capacity) => return watch.stop(Stop::Full(capacity)),
    };
    explored.seen.states = 1;
    explored.seen.failed = initial.failures.len() as u64;
    watch.found(1);
    if store.insert(&initial.state, &mut Lookup::default()).is_err() {
        return watch.stop(Stop::Limit(Limit::Memory));
    }
    let pool = Pool::new(plan.jobs, vec![Item { state: initial.state, path: Vec::new() }]);
    let shared = Shared { plan, store, watch, pool, failures: Mutex::default() };
    for failure in initial.failures {
        shared.fail(failure, &[], None);
    }
    if !watch.stopped() {
        let work = |expander| {
            let mut worker = Worker::<_, W>::new(&shared, expander, shape.words);
            worker.work();
            (worker.expander.seen, worker.most_bytes, worker.cut)
        };
        let reports = thread::scope(|scope| {
            let more = || work(Expander::new(model.stepper(), shape, checks(plan)));
            let helpers: Vec<_> = (1..plan.jobs).map(|_| scope.spawn(more)).collect();
            let mut reports = vec![work(first)];
            reports.extend(helpers.into_iter().map(|helper| helper.join().expect("a worker does not panic")));
            reports
        });
        for (seen, bytes, cut) in reports {
            let waited = explored.seen.frontier + seen.frontier;
            explored.seen.add(&seen);
            explored.seen.frontier = waited;
            explored.frontier_bytes += bytes;
            if cut {
                watch.stop(Stop::Limit(Limit::Depth));
            }
        }
    }
    explored.failures = shared.failures.into_inner().expect("nobody panics while it notes a failure").found;
}
