//! Iterative context bounding: all executions without preemptions, then all with one, and so on.
//!
//! **Paper.** icb, Algorithm 1, with the work-item cache of lines 28 to 35 (ZING's, of states) or
//! one of happens-before graphs (CHESS's).
//!
//! **Guarantees.** When a level is done, all executions with at most so many preemptions are
//! covered, and so any failure that is not known yet needs more. The first finding therefore has
//! the least number of preemptions of all. Without a cache the executions of level c are exactly
//! those with c preemptions; with [`Cache::Hb`] every happens-before graph is reached first at its
//! least number, with [`Cache::State`] every state. Assertions, invariants and deadlocks survive
//! all three. The search is complete when nothing is left for the next level.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | workItem (state, tid) | [`Item`]: prefix, choice |
//! | workQueue, nextWorkQueue | [`Queue`] of the level and of the next one |
//! | currBound | `bound` |
//! | Search(w) | [`Tree::run`](super::tree::Tree::run) |
//! | table (line 29) | [`Table`] |
//!
//! **Deviations.**
//!
//! 1. An initial state in which no thread can move is an execution with no preemption; the paper
//!    never reports it.
//! 2. A thread that may choose has one item for each of its alternatives. None of them is a
//!    preemption for being another.
//! 3. Items hold the way to a state instead of the state: so a program that can only be started
//!    again is explored in the same way. Items of one execution follow each other in the queue, and
//!    getting from one to the next is one step.
//! 4. An item that the cache covers by the time its level ends is dropped there, so that the search
//!    may end levels earlier than the paper's, whose queue is not empty then.
//! 5. A search may continue past its bound, within a [budget](crate::Plan::past_bound) of
//!    executions. Whether there is a next level is decided between levels, from the executions so
//!    far, and a level that the budget ends is left out of the outcome: so what is covered does not
//!    depend on the number of workers.
//! 6. Several workers share a level: [`workers`](super::workers) says why that changes nothing. The next
//!    level begins when all are done.
//!
//! **Cost.** 32 bytes for an item, 12 for a step of a prefix that items share, 27 for a step in the
//! cache. At most C(nk, c)·(nb + c)! executions in level c of n threads of k steps, of which b may
//! block, ending included (Theorem 1).

use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use preempt_system::{Choice, Program, System};

use super::cache::Table;
use super::tree::{Extent, OverBound};
use super::workers::{PausedSearch, Workers};
use crate::codec::{Damaged, Reader, Writer, save_fields};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::engine::names::Name;
use crate::plan::Cache;

/// A beginning of an execution, as a number. 0 is the empty one.
type Prefix = u32;

/// A prefix that is one step longer than another one.
type Longer = (Prefix, Choice);

/// All prefixes that items need. Every worker adds to a list of its own; the numbers of its
/// prefixes are those that leave its own number when they are divided by the number of workers.
struct Prefixes(Vec<RwLock<Vec<Longer>>>);

impl Prefixes {
    fn new(workers: usize) -> Prefixes {
        Prefixes((0..workers).map(|_| RwLock::default()).collect())
    }

    /// Numbers the steps after a prefix, one after the other. Says how many bytes the worker's
    /// prefixes need.
    fn add(
        &self,
        worker: usize,
        steps: impl Iterator<Item = Choice>,
        path: &mut Vec<Prefix>,
    ) -> usize {
        let mut list = self.0[worker].write().expect("lock poisoned");
        for choice in steps {
            let number = list.len() * self.0.len() + worker + 1;
            list.push((path.last().copied().unwrap_or(0), choice));
            path.push(Prefix::try_from(number).expect("fewer than 2³² prefixes fit into memory"));
        }
        bytes(&list)
    }

    fn get(&self, prefix: Prefix) -> Longer {
        let number = prefix as usize - 1;
        let list = self.0[number % self.0.len()].read().expect("lock poisoned");
        list[number / self.0.len()]
    }

    /// The numbers of the beginnings of a prefix by their number of steps, from 1, and the steps.
    fn way(&self, mut prefix: Prefix, numbers: &mut Vec<Prefix>, steps: &mut Vec<Choice>) {
        numbers.clear();
        steps.clear();
        while prefix > 0 {
            let (before, choice) = self.get(prefix);
            numbers.push(prefix);
            steps.push(choice);
            prefix = before;
        }
        numbers.reverse();
        steps.reverse();
    }

    fn save(&self, to: &mut Writer<'_>) {
        self.0.iter().for_each(|list| to.put(&*list.read().expect("lock poisoned")));
    }

    fn load(workers: usize, from: &mut Reader) -> Result<Prefixes, Damaged> {
        // One after the other, so that the lists grow as they did.
        let list = |from: &mut Reader| {
            let mut list = Vec::new();
            for _ in 0..from.count()? {
                list.push(from.get()?);
            }
            Ok(RwLock::new(list))
        };
        Ok(Prefixes((0..workers).map(|_| list(from)).collect::<Result<_, Damaged>>()?))
    }

    /// The memory of a worker's prefixes.
    fn bytes(&self, worker: usize) -> usize {
        bytes(&self.0[worker].read().expect("lock poisoned"))
    }
}

fn bytes(list: &Vec<Longer>) -> usize {
    list.capacity() * size_of::<Longer>()
}

/// A step that waits for the next level.
struct Item {
    prefix: Prefix,
    choice: Choice,
    step: Option<Name>,
}

save_fields!(Item { prefix, choice, step });

/// What the workers share of a level.
struct Level {
    /// Its items, and how many of them were not taken yet.
    items: Vec<Item>,
    rest: AtomicUsize,
    prefixes: Prefixes,
    /// There will be no next level: all that matters is whether there could be one.
    last: bool,
}

impl Level {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.items);
        to.put(&(self.rest.load(Relaxed), self.last));
        self.prefixes.save(to);
    }

    fn load(workers: usize, from: &mut Reader) -> Result<Level, Damaged> {
        let items = from.get()?;
        let (rest, last) = from.get()?;
        Ok(Level {
            items,
            rest: AtomicUsize::new(rest),
            last,
            prefixes: Prefixes::load(workers, from)?,
        })
    }
}

/// The items of the next level that one worker has found, and the way to where its cursor stands.
struct Queue<'l> {
    level: &'l Level,
    worker: usize,
    next: Vec<Item>,
    /// The prefixes of the present execution by their number of steps, from 1, as far as they have
    /// a number.
    path: Vec<Prefix>,
    prefix_bytes: usize,
}

impl<'l> Queue<'l> {
    fn new(level: &'l Level, worker: usize) -> Queue<'l> {
        let prefix_bytes = level.prefixes.bytes(worker);
        Queue { level, worker, next: Vec::new(), path: Vec::new(), prefix_bytes }
    }

    /// How many steps a prefix has with which the present execution begins, and has done so since
    /// the prefix got its number.
    fn len_of(&self, prefix: Prefix) -> Option<usize> {
        match prefix {
            0 => Some(0),
            _ => self.path.iter().rposition(|&number| number == prefix).map(|at| at + 1),
        }
    }

    fn load(level: &'l Level, worker: usize, from: &mut Reader) -> Result<Queue<'l>, Damaged> {
        let mut queue = Queue::new(level, worker);
        // One after the other, so that it grows as it did.
        for _ in 0..from.count()? {
            queue.next.push(from.get()?);
        }
        queue.path = from.get()?;
        Ok(queue)
    }
}

impl<S: System> OverBound<S> for Queue<'_> {
    fn over_bound(&mut self, cursor: &Cursor<S>, choice: Choice, step: Option<Name>) {
        if self.level.last {
            // Without names nothing can be covered later, and one item says as much as many.
            if step.is_some() || self.next.is_empty() {
                self.next.push(Item { prefix: 0, choice, step });
            }
            return;
        }
        if self.path.len() < cursor.len() {
            let steps = (self.path.len()..cursor.len()).map(|at| cursor.choice(at));
            self.prefix_bytes = self.level.prefixes.add(self.worker, steps, &mut self.path);
        }
        self.next.push(Item { prefix: self.path.last().copied().unwrap_or(0), choice, step });
    }

    fn rewound(&mut self, len: usize) {
        self.path.truncate(len);
    }

    fn queued(&self) -> usize {
        if self.level.last { 0 } else { self.next.len() }
    }

    fn holds(&self) -> (usize, usize) {
        // A share of the items that nobody has taken yet.
        let rest = self.level.rest.load(Relaxed) / self.level.prefixes.0.len();
        (
            rest + self.next.len(),
            (rest + self.next.capacity()) * size_of::<Item>() + self.prefix_bytes,
        )
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.next);
        to.put(&self.path);
    }
}

/// Explores level by level, up to `extent.preemptions` if that is given.
pub(crate) fn explore<'p, P: Program>(
    workers: &mut Workers<'p, P>,
    extent: Extent,
    cache: Cache,
) -> Result<(), Stop<P::Need>> {
    let jobs = workers.count();
    let table = Table::new(cache, jobs);
    let past = workers.past_bound();
    let is_past = |bound: u32| extent.preemptions.is_some_and(|most| bound > most);
    // Whether a level is the last one, after this many executions: past the bound there is another
    // as long as the budget lasts.
    let is_last =
        |bound: u32, taken: u64| is_past(bound + 1) && past.is_none_or(|budget| taken >= budget);
    let saved = workers.stats.resume_part(|from| {
        table.load(from)?;
        Ok((from.get()?, Level::load(jobs, from)?))
    });
    let mut resuming = saved.is_some();
    let (first, mut level) = saved.unwrap_or_else(|| {
        let (rest, prefixes) = (AtomicUsize::new(0), Prefixes::new(jobs));
        (0, Level { items: Vec::new(), rest, prefixes, last: is_last(0, 0) })
    });
    for bound in first.. {
        if let Some(budget) = past.filter(|_| is_past(bound)) {
            workers.stats.limit_executions(budget);
        }
        let within = (Extent { preemptions: Some(bound), ..extent }, &table);
        let queue = |worker| Queue::new(&level, worker);
        let load = |from: &mut Reader| {
            PausedSearch::load(jobs, from, |worker, from| Queue::load(&level, worker, from))
        };
        let saved = if std::mem::take(&mut resuming) {
            Visitor::<P::System<'p>>::resume(&mut workers.stats, load)
        } else {
            None
        };
        let around = |to: &mut Writer<'_>| {
            table.save(to);
            to.put(&bound);
            level.save(to);
        };
        let each = 1.0 / level.items.len() as f64;
        let done = match bound {
            0 => workers.explore_all(within, saved, queue, around)?,
            _ => {
                let left =
                    saved.unwrap_or_else(|| PausedSearch::new(jobs, level.items.len(), queue));
                workers.explore(within, left, around, |tree, cursor, stats, item| {
                    let item = &level.items[item];
                    level.rest.fetch_sub(1, Relaxed);
                    if table.covers(item.step, bound) {
                        Visitor::<P::System<'p>>::covered(stats, 1);
                        Visitor::<P::System<'p>>::weighed(stats, each);
                        return Ok(());
                    }
                    match tree.over_bound.len_of(item.prefix) {
                        Some(len) => tree.go_back(cursor, len),
                        None => {
                            let (mut numbers, mut steps) = (Vec::new(), Vec::new());
                            level.prefixes.way(item.prefix, &mut numbers, &mut steps);
                            tree.go(cursor, &steps, stats)?;
                            tree.over_bound.path = numbers;
                        }
                    }
                    tree.open_step(cursor, item.choice, each);
                    Ok(())
                })?
            }
        };
        // The items of this level make room for those of the next. Lists are added to the first
        // one, not to a new one, which would need all of them twice.
        let mut found =
            done.into_iter().map(|rest| rest.over_bound.next).collect::<Vec<_>>().into_iter();
        level.items = Vec::new();
        let mut next = found.next().unwrap_or_default();
        found.for_each(|mut more| next.append(&mut more));
        let waiting = next.len();
        next.retain(|item| !table.covers(item.step, bound + 1));
        Visitor::<P::System<'p>>::covered(&mut workers.stats, waiting - next.len());
        let done = next.is_empty();
        workers.bound(bound, !done);
        let taken = workers.stats.taken();
        if done || level.last || is_last(bound, taken) {
            break;
        }
        let last = is_last(bound + 1, taken);
        level = Level { rest: AtomicUsize::new(next.len()), items: next, last, ..level };
    }
    Ok(())
}
