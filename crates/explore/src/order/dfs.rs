//! Depth first: the newest state first.
//!
//! **Guarantees.** Complete, for all properties. The numbers of a search that comes to its end are
//! the same for any number of workers, except for the depth. Schedules are not the shortest.
//!
//! All successors of a state are looked up together, and the new ones wait on the stack; a state is
//! taken for visited from then on, not only when its turn comes. Every waiting state is a successor
//! of a state on the current path, so that one path serves them all.
//!
//! **Pauses** between two states. What is left: the store, the states that wait with the path of
//! each worker, and those in the pool.
//!
//! **Cost.** A waiting state needs 12 bytes beside its words, the path 8 bytes for every step.

use std::mem;
use std::sync::Mutex;
use std::thread;

use preempt_system::{Batch, Choice, Failure, Model, Schedule, Stepper};

use super::pool::{self, Pool};
use super::{BATCH, checks};
use crate::codec::{Damaged, Reader, Save, Writer, save_fields};
use crate::engine::control::{PollTimer, SearchControl};
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;
use crate::engine::expand::Expander;
use crate::engine::explored::Explored;
use crate::engine::lock;
use crate::engine::store::{Lookup, Visited};
use crate::plan::Plan;
use crate::plan::coverage::{Coverage, Limit};

/// A state to search from.
struct Item {
    state: Vec<u64>,
    /// The steps that led to it.
    path: Vec<Choice>,
}

impl Save for Item {
    fn save(&self, to: &mut Writer<'_>) {
        to.words(&self.state);
        to.put(&self.path);
    }

    fn load(from: &mut Reader) -> Result<Item, Damaged> {
        Ok(Item { state: from.words()?, path: from.get()? })
    }
}

/// What the workers share.
struct Shared<'a> {
    plan: &'a Plan,
    store: &'a dyn Visited,
    control: &'a SearchControl<'a>,
    pool: Pool<Item>,
    failures: &'a Mutex<DistinctFailures>,
}

impl Shared<'_> {
    #[cold]
    fn fail(&self, failure: Failure, path: &[Choice], last: Option<Choice>) {
        let schedule = Schedule::new(path.iter().copied().chain(last).collect());
        note(self.plan, self.control, self.failures, failure, schedule);
    }
}

#[cold]
fn note(
    plan: &Plan,
    control: &SearchControl,
    failures: &Mutex<DistinctFailures>,
    failure: Failure,
    schedule: Schedule,
) {
    let mut failures = lock(failures);
    if !plan.keep_going && !failures.is_empty() {
        return;
    }
    if failures.record_shortest(failure, schedule) {
        control.failed();
    }
    if !plan.keep_going {
        control.stop(Stop::Finding);
    }
}

/// A waiting state: the step that leads to it and the number of steps in all.
#[derive(Clone, Copy)]
struct Waiting {
    choice: Choice,
    depth: u32,
}

save_fields!(Waiting { choice, depth });

/// The states that wait, newest last. Those below `bottom` were given away.
struct Stack {
    words: usize,
    states: Vec<u64>,
    waiting: Vec<Waiting>,
    bottom: usize,
}

impl Save for Stack {
    fn save(&self, to: &mut Writer<'_>) {
        to.words(&self.states);
        to.put(&self.waiting);
        to.put(&(self.words, self.bottom));
    }

    fn load(from: &mut Reader) -> Result<Stack, Damaged> {
        let (states, waiting) = (from.words()?, from.get::<Vec<Waiting>>()?);
        let (words, bottom): (usize, usize) = from.get()?;
        let fits =
            waiting.len().checked_mul(words) == Some(states.len()) && bottom <= waiting.len();
        let deep = waiting.iter().all(|waiting| waiting.depth > 0);
        if fits && deep { Ok(Stack { words, states, waiting, bottom }) } else { Err(Damaged) }
    }
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

    /// Takes the oldest state, from which most is likely to follow. `path` is that of any state
    /// that waits or whose successors do.
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

/// What a worker has when it pauses or is done.
struct PausedWorker {
    stack: Stack,
    /// The steps that led to the state that was expanded last.
    path: Vec<Choice>,
    seen: Coverage,
    /// What the control believes to wait here.
    waiting: (u64, usize),
    /// The most bytes that waited.
    most_bytes: usize,
    /// Whether states were left out because they are too deep.
    cut: bool,
    /// New states that the control does not know of yet.
    unreported: u64,
}

save_fields!(PausedWorker { stack, path, seen, waiting, most_bytes, cut, unreported });

impl PausedWorker {
    /// That of a worker which has done nothing yet.
    fn new(words: usize) -> PausedWorker {
        PausedWorker {
            stack: Stack { words, states: Vec::new(), waiting: Vec::new(), bottom: 0 },
            path: Vec::new(),
            seen: Coverage::default(),
            waiting: (0, 0),
            most_bytes: 0,
            cut: false,
            unreported: 0,
        }
    }
}

/// One of those who search.
struct Worker<'a, S, const W: usize> {
    shared: &'a Shared<'a>,
    expander: Expander<S>,
    batch: Batch<W>,
    lookup: Lookup,
    poll_timer: PollTimer,
    rest: PausedWorker,
}

impl<'a, S: Stepper, const W: usize> Worker<'a, S, W> {
    fn new(
        shared: &'a Shared<'a>,
        mut expander: Expander<S>,
        words: usize,
        rest: PausedWorker,
    ) -> Self {
        expander.seen = rest.seen;
        Worker {
            shared,
            poll_timer: PollTimer::new(shared.control, rest.seen.expanded, rest.seen.transitions),
            expander,
            batch: Batch::new(words),
            lookup: Lookup::default(),
            rest,
        }
    }

    /// Searches until no worker has work left, or the search is stopped or pauses.
    fn work(mut self) -> PausedWorker {
        let Shared { pool, control, .. } = self.shared;
        let _guard = pool::Worker(pool);
        let mut state = vec![0; self.rest.stack.words];
        loop {
            if let Some(Waiting { choice, depth }) = self.rest.stack.pop(&mut state) {
                self.rest.path.truncate(depth as usize - 1);
                self.rest.path.push(choice);
            } else if let Some(item) = pool.take() {
                (state, self.rest.path) = (item.state, item.path);
            } else {
                break;
            }
            self.visit(&state);
            if control.stopped() || control.is_pausing() {
                pool.close();
                break;
            }
            if pool.has_idle_worker() && self.rest.stack.len() > 1 {
                pool.give(self.rest.stack.give(&self.rest.path));
            }
        }
        PausedWorker { seen: self.expander.seen, ..self.rest }
    }

    /// Expands the state to which the path leads, and lets its new successors wait.
    #[inline(always)]
    fn visit(&mut self, state: &[u64]) {
        let Shared { store, control, .. } = *self.shared;
        let depth = self.rest.path.len() as u32;
        self.expander.seen.depth = self.expander.seen.depth.max(depth);
        if control.limits.depth.is_some_and(|limit| depth >= limit) {
            self.rest.cut = true;
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
        self.rest.unreported += fresh;
        if self.rest.unreported >= BATCH as u64 {
            control.found(mem::take(&mut self.rest.unreported));
        }
        // The last is pushed first, so that the first is searched first.
        for &number in self.lookup.fresh.iter().rev() {
            let number = number as usize;
            let (state, choice) = (self.batch.state(number), self.batch.choice(number));
            if let Err(failure) = self.expander.invariant(state) {
                self.expander.seen.failed += 1;
                self.shared.fail(*failure, &self.rest.path, Some(choice));
            }
            self.rest.stack.push(state, Waiting { choice, depth: depth + 1 });
        }
        self.batch.clear();
        self.take_stock();
    }

    #[cold]
    fn pass_failures(&mut self) {
        self.expander.seen.failed += self.expander.failures.len() as u64;
        for (choice, failure) in self.expander.failures.drain(..) {
            self.shared.fail(failure, &self.rest.path, choice);
        }
    }

    /// Keeps the greatest numbers, and tells the control now and then.
    #[inline(always)]
    fn take_stock(&mut self) {
        let Shared { store, control, .. } = *self.shared;
        let seen = &mut self.expander.seen;
        seen.frontier = seen.frontier.max(self.rest.stack.len() as u64);
        self.rest.most_bytes = self.rest.most_bytes.max(self.rest.stack.bytes());
        let (expanded, transitions) = (seen.expanded, seen.transitions);
        if self.poll_timer.is_due(expanded) || self.lookup.take_growth() {
            let now = (self.rest.stack.len() as u64, self.rest.stack.bytes());
            control.wait(now.0, now.1);
            control.taken(self.rest.waiting.0, self.rest.waiting.1);
            self.rest.waiting = now;
            control.deepen(seen.depth);
            self.poll_timer.poll(expanded, transitions, control, store);
        }
    }
}

/// Searches, and adds what was seen and found to `explored`.
pub(crate) fn search<M: Model, const W: usize>(
    plan: &Plan,
    model: &M,
    control: &SearchControl,
    store: &dyn Visited,
    explored: &mut Explored,
) {
    let shape = model.shape();
    let mut rests: Vec<PausedWorker> =
        (0..plan.jobs).map(|_| PausedWorker::new(shape.words)).collect();
    let resumed = control.resume(|from| {
        let (failures, items, seen) =
            (from.get::<DistinctFailures>()?, from.get::<Vec<Item>>()?, from.get()?);
        rests = from.get()?;
        explored.seen = seen;
        store.load(from)?;
        let fits = items.iter().all(|item| item.state.len() == shape.words)
            && rests.iter().all(|rest| rest.stack.words == shape.words)
            && rests.len() == plan.jobs;
        if fits { Ok((failures, items)) } else { Err(Damaged) }
    });
    let (failures, mut items) = match resumed {
        Some(rest) => rest,
        None if control.stopped() => return,
        None => match begin(plan, model, control, store, &mut explored.seen) {
            Some(begun) => begun,
            None => return,
        },
    };
    let failures = Mutex::new(failures);
    while !control.stopped() {
        let shared =
            Shared { plan, store, control, pool: Pool::new(plan.jobs, items), failures: &failures };
        let work = |rest| {
            let expander = Expander::new(model.stepper(), shape, checks(plan));
            Worker::<_, W>::new(&shared, expander, shape.words, rest).work()
        };
        rests = thread::scope(|scope| {
            let mut rests = rests.into_iter();
            let first = rests.next().expect("there is a worker");
            let helpers: Vec<_> = rests.map(|rest| scope.spawn(move || work(rest))).collect();
            let mut rests = vec![work(first)];
            rests.extend(
                helpers.into_iter().map(|helper| helper.join().expect("a worker does not panic")),
            );
            rests
        });
        items = shared.pool.into_items();
        if control.stopped()
            || !control.is_pausing()
            || items.is_empty() && rests.iter().all(|rest| rest.stack.len() == 0)
        {
            break;
        }
        control.pause(|to| {
            to.put(&*lock(&failures));
            to.put(&items);
            to.put(&explored.seen);
            to.put(&rests);
            store.save(to);
        });
    }
    for rest in rests {
        let waited = explored.seen.frontier + rest.seen.frontier;
        explored.seen.add(&rest.seen);
        explored.seen.frontier = waited;
        explored.frontier_bytes += rest.most_bytes;
        if rest.cut {
            control.stop(Stop::Limit(Limit::Depth));
        }
    }
    explored.failures = failures.into_inner().expect("mutex poisoned").into_vec();
}

/// The failures of the initial state, and the initial state. `None` if the search is over before it
/// began.
fn begin<M: Model>(
    plan: &Plan,
    model: &M,
    control: &SearchControl,
    store: &dyn Visited,
    seen: &mut Coverage,
) -> Option<(DistinctFailures, Vec<Item>)> {
    let initial = match Expander::new(model.stepper(), model.shape(), checks(plan)).initial() {
        Ok(initial) => initial,
        Err(capacity) => {
            control.stop(Stop::Restart(capacity));
            return None;
        }
    };
    seen.states = 1;
    seen.failed = initial.failures.len() as u64;
    control.found(1);
    if store.insert(&initial.state, &mut Lookup::default()).is_err() {
        control.stop(Stop::Limit(Limit::Memory));
        return None;
    }
    let failures = Mutex::default();
    for failure in initial.failures {
        note(plan, control, &failures, failure, Schedule::default());
    }
    let failures = failures.into_inner().expect("mutex poisoned");
    Some((failures, vec![Item { state: initial.state, path: Vec::new() }]))
}
