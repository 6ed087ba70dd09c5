//! Iterative context bounding: all executions without preemptions, then all with one, and so on.
//! The same by [delays](preempt_system::delay) is iterative delay bounding.
//!
//! **Paper.** icb, Algorithm 1, with the work-item cache of lines 28 to 35 (ZING's, of states) or
//! one of happens-before graphs (CHESS's). For delays: Emmi, Qadeer, Rakamarić, Delay-bounded
//! scheduling (POPL 2011), with the scheduler that [`delay`](preempt_system::delay) describes.
//!
//! **Guarantees.** When level c is done, all executions with at most c preemptions are covered, and
//! so any failure that was not found yet needs more. The first finding therefore has the least
//! number of preemptions of all. Without a cache the executions of level c are exactly those with c
//! preemptions; with [`Cache::Hb`](crate::Cache::Hb) every happens-before graph is reached first at
//! its least number, with [`Cache::State`](crate::Cache::State) every state. Assertions, invariants
//! and deadlocks survive all three. The search is complete when nothing is left for the next level.
//!
//! The same holds with delays in place of preemptions, also for both caches. The argument for a
//! cache needs one property of the unit: what a step costs depends on the state before it and on
//! the thread of the last step, and on nothing else of the path. Then two paths to the same state
//! by the same last step have the same continuations at the same additional costs, so the one with
//! the lower cost covers the other. A preemption is counted by whether the last thread is enabled,
//! delays by the enabled threads that come between the last thread and the next one: both have the
//! property. The name that a cache keeps for a step contains the state or graph before it and its
//! thread, and with them the state after it and the last thread.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | workItem (state, tid) | [`Item`]: prefix, choice |
//! | workQueue, nextWorkQueue | [`Level::items`], [`Deferred::next`] |
//! | currBound | [`Level::bound`] |
//! | Search(w) | [`Tree::run`] |
//! | table (line 29) | [`Table`] |
//!
//! **Deviations.**
//!
//! 1. An initial state in which no thread can move is an execution with no preemption; the paper
//!    never reports it.
//! 2. A thread that may choose has one item for each of its alternatives. Another alternative of
//!    the running thread is not a preemption.
//! 3. Items hold the path to a state instead of the state, so that a program that can only be
//!    restarted is explored in the same way. Items of one execution follow each other in the queue,
//!    so getting from one to the next is one step.
//! 4. An item that the cache covers by the time its level ends is dropped there, so that the search
//!    may end levels earlier than the paper's, whose queue is not empty then.
//! 5. A search may continue past its bound, within a [budget](crate::Plan::past_bound) of
//!    executions. Whether there is a next level is decided between levels, from the executions so
//!    far, and a level that the budget ends is left out of the outcome: so what is covered does not
//!    depend on the number of workers.
//! 6. A step may cost more than 1: several delays, or a preemption and a stale access of weak
//!    memory. It waits in [`Level::later`] until the level of its cost. A level may have no items
//!    while such steps wait.
//! 7. Several workers share a level: [`workers`](crate::engine::workers) argues why that changes no
//!    result. The next level begins when all are done.
//!
//! **Cost.** 40 bytes for an item, 12 for a step of a prefix that items share, 27 for a step in the
//! cache. At most C(nk, c)·(nb + c)! executions in level c of n threads of k steps, of which b may
//! block, ending included (Theorem 1). With delays, at most C(nk + c - 1, c): round robin is
//! deterministic, so the points of the c delays determine an execution.

use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use preempt_system::{Choice, System};

use crate::codec::save_fields;
use crate::engine::cache::Table;
use crate::engine::cursor::Cursor;
use crate::engine::execution::Stop;
use crate::engine::names::Name;
use crate::engine::retrace::path;
use crate::engine::rounds::Rounds;
use crate::engine::stats::ExecutionStats;
use crate::engine::tree::{Extent, OverBound, PausedWorker, Tree};

/// A prefix of an execution, as a number. 0 is the empty one.
type Prefix = u32;

/// A prefix that is one step longer than another one.
type Longer = (Prefix, Choice);

/// All prefixes that items need. Every worker adds to a list of its own, so that workers do not
/// wait for each other; its number is the remainder of its prefixes' numbers divided by the number
/// of workers.
struct Prefixes(Vec<RwLock<Vec<Longer>>>);

save_fields!(Prefixes { 0 });

impl Prefixes {
    fn new(workers: usize) -> Prefixes {
        Prefixes((0..workers).map(|_| RwLock::default()).collect())
    }

    /// Numbers the steps after the last prefix of `numbers`, one after the other. Returns the
    /// memory of the worker's prefixes.
    fn add(
        &self,
        worker: usize,
        steps: impl Iterator<Item = Choice>,
        numbers: &mut Vec<Prefix>,
    ) -> usize {
        let mut list = self.0[worker].write().expect("lock poisoned");
        for choice in steps {
            let number = list.len() * self.0.len() + worker + 1;
            list.push((numbers.last().copied().unwrap_or(0), choice));
            let number = Prefix::try_from(number).expect("fewer than 2³² prefixes fit into memory");
            numbers.push(number);
        }
        bytes(&list)
    }

    fn get(&self, prefix: Prefix) -> Longer {
        let number = prefix as usize - 1;
        let list = self.0[number % self.0.len()].read().expect("lock poisoned");
        list[number / self.0.len()]
    }

    /// The steps of a prefix, and the numbers of its own prefixes from the shortest on.
    fn steps(&self, prefix: Prefix) -> (Vec<Prefix>, Vec<Choice>) {
        path(prefix, |&prefix| {
            let (shorter, choice) = (prefix > 0).then(|| self.get(prefix))?;
            Some((shorter, (prefix, choice)))
        })
        .into_iter()
        .unzip()
    }

    /// Whether there is a prefix with this number.
    fn has(&self, prefix: Prefix) -> bool {
        let Some(number) = (prefix as usize).checked_sub(1) else { return true };
        let list = self.0[number % self.0.len()].read().expect("lock poisoned");
        number / self.0.len() < list.len()
    }

    /// Whether these are prefixes of `workers`, and each becomes the empty one if it is shortened
    /// again and again. Checked for what a checkpoint contains.
    fn fit(&self, workers: usize) -> bool {
        if self.0.len() != workers {
            return false;
        }
        let most = self.0.iter().map(|list| list.read().expect("lock poisoned").len()).max();
        let mut ends = vec![false; most.unwrap_or(0) * workers + 1];
        ends[0] = true;
        for first in (1..ends.len() as Prefix).filter(|&prefix| self.has(prefix)) {
            let (mut path, mut prefix) = (Vec::new(), first);
            while !ends[prefix as usize] {
                path.push(prefix);
                prefix = self.get(prefix).0;
                if !self.has(prefix) || path.len() > ends.len() {
                    return false;
                }
            }
            path.into_iter().for_each(|prefix| ends[prefix as usize] = true);
        }
        true
    }

    /// The memory of a worker's prefixes.
    fn bytes(&self, worker: usize) -> usize {
        bytes(&self.0[worker].read().expect("lock poisoned"))
    }
}

fn bytes(list: &Vec<Longer>) -> usize {
    list.capacity() * size_of::<Longer>()
}

/// A step that waits for a later level.
struct Item {
    prefix: Prefix,
    choice: Choice,
    step: Option<Name>,
    /// The cost of the execution with this step: the level in which it is taken.
    cost: u32,
}

save_fields!(Item { prefix, choice, step, cost });

/// A level: what its workers share.
pub(crate) struct Level {
    /// The cost of its executions.
    bound: u32,
    items: Vec<Item>,
    /// The steps that wait for levels after the next one.
    later: Vec<Item>,
    /// The number of items that no worker has taken yet.
    rest: AtomicUsize,
    prefixes: Prefixes,
    /// Whether this is the last level. Then only the existence of deferred steps matters.
    last: bool,
}

save_fields!(Level { bound, items, later, rest, prefixes, last });

/// The steps that a worker defers to the next level.
#[derive(Default)]
pub(crate) struct Deferred {
    next: Vec<Item>,
    /// The numbers of the prefixes of the current execution, from the shortest on, as far as they
    /// have a number.
    path: Vec<Prefix>,
}

save_fields!(Deferred { next, path });

/// Defers the steps beyond the bound to the next level.
pub(crate) struct NextLevel<'l> {
    level: &'l Level,
    worker: usize,
    deferred: Deferred,
    prefix_bytes: usize,
}

impl<'l> NextLevel<'l> {
    fn new(level: &'l Level, worker: usize, deferred: Deferred) -> NextLevel<'l> {
        NextLevel { level, worker, deferred, prefix_bytes: level.prefixes.bytes(worker) }
    }

    /// The length of a prefix with which the current execution has begun ever since the prefix got
    /// its number.
    fn len_of(&self, prefix: Prefix) -> Option<usize> {
        match prefix {
            0 => Some(0),
            _ => self.deferred.path.iter().rposition(|&number| number == prefix).map(|at| at + 1),
        }
    }
}

impl<S: System> OverBound<S> for NextLevel<'_> {
    type Kept = Deferred;

    fn defer(&mut self, cursor: &Cursor<S>, choice: Choice, step: Option<Name>, cost: u32) {
        let Deferred { next, path } = &mut self.deferred;
        if self.level.last {
            // Without names no item can be covered later, so one item is enough to show that there
            // are some.
            if step.is_some() || next.is_empty() {
                next.push(Item { prefix: 0, choice, step, cost });
            }
            return;
        }
        if path.len() < cursor.len() {
            let steps = (path.len()..cursor.len()).map(|at| cursor.choice(at));
            self.prefix_bytes = self.level.prefixes.add(self.worker, steps, path);
        }
        let prefix = path.last().copied().unwrap_or(0);
        next.push(Item { prefix, choice, step, cost });
    }

    fn rewound(&mut self, len: usize) {
        self.deferred.path.truncate(len);
    }

    fn deferred(&self) -> usize {
        if self.level.last { 0 } else { self.deferred.next.len() }
    }

    fn holds(&self) -> (usize, usize) {
        // A share of the items that no worker has taken yet, and of those of later levels.
        let rest = self.level.rest.load(Relaxed) + self.level.later.len();
        let rest = rest / self.level.prefixes.0.len();
        let next = &self.deferred.next;
        (rest + next.len(), (rest + next.capacity()) * size_of::<Item>() + self.prefix_bytes)
    }

    fn into_kept(self) -> Deferred {
        self.deferred
    }
}

/// Iterative bounding of preemptions or delays: a round is a level.
pub(crate) struct Icb {
    /// The most steps of an execution.
    steps: Option<u32>,
    /// The last level, if there is one.
    bound: Option<u32>,
    /// The executions up to which the search continues past the last level.
    past: Option<u64>,
    workers: usize,
}

impl Icb {
    /// Explores level by level, up to `extent.cost` if that is given.
    pub(crate) fn new(extent: Extent, past: Option<u64>, workers: usize) -> Icb {
        Icb { steps: extent.steps, bound: extent.cost, past, workers }
    }

    fn is_past(&self, bound: u32) -> bool {
        self.bound.is_some_and(|most| bound > most)
    }

    /// Whether a level is the last one, after `taken` executions: past the bound there is another
    /// as long as the budget lasts.
    fn is_last(&self, bound: u32, taken: u64) -> bool {
        self.is_past(bound + 1) && self.past.is_none_or(|budget| taken >= budget)
    }
}

impl<S: System> Rounds<S> for Icb {
    type Round = Level;
    type Kept = Deferred;
    type OverBound<'r> = NextLevel<'r>;

    fn first(&self) -> Level {
        let (rest, prefixes) = (AtomicUsize::new(0), Prefixes::new(self.workers));
        let (items, later) = (Vec::new(), Vec::new());
        Level { bound: 0, items, later, rest, prefixes, last: self.is_last(0, 0) }
    }

    fn fits(&self, level: &Level, workers: usize) -> bool {
        level.prefixes.fit(workers)
            && level.items.iter().chain(&level.later).all(|item| level.prefixes.has(item.prefix))
            && level.rest.load(Relaxed) <= level.items.len()
    }

    fn kept_fits(&self, level: &Level, kept: &Deferred) -> bool {
        let prefixes = kept.next.iter().map(|item| &item.prefix).chain(&kept.path);
        prefixes.into_iter().all(|&prefix| level.prefixes.has(prefix))
    }

    fn extent(&self, level: &Level) -> Extent {
        Extent { cost: Some(level.bound), steps: self.steps }
    }

    fn items(&self, level: &Level) -> usize {
        if level.bound == 0 { 1 } else { level.items.len() }
    }

    fn begin(&self, level: &Level, stats: &ExecutionStats<'_, S::Need>) {
        if let Some(budget) = self.past.filter(|_| self.is_past(level.bound)) {
            stats.limit_executions(budget);
        }
    }

    fn over_bound<'r>(&self, level: &'r Level, worker: usize, kept: Deferred) -> NextLevel<'r> {
        NextLevel::new(level, worker, kept)
    }

    fn open<'r>(
        &self,
        level: &'r Level,
        item: usize,
        tree: &mut Tree<'_, NextLevel<'r>>,
        cursor: &mut Cursor<S>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>> {
        if level.bound == 0 {
            return tree.open_all(cursor, stats);
        }
        let (item, weight) = (&level.items[item], 1.0 / level.items.len() as f64);
        level.rest.fetch_sub(1, Relaxed);
        if tree.table.covers(item.step, level.bound) {
            stats.skip_covered(1);
            stats.add_weight(weight);
            return Ok(());
        }
        match tree.over_bound.len_of(item.prefix) {
            Some(len) => tree.go_back(cursor, len),
            None => {
                let (numbers, steps) = level.prefixes.steps(item.prefix);
                tree.go(cursor, &steps, stats)?;
                tree.over_bound.deferred.path = numbers;
            }
        }
        tree.open_step(cursor, item.choice, weight);
        Ok(())
    }

    fn next(
        &self,
        level: Level,
        table: &Table,
        done: Vec<PausedWorker<Deferred>>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Option<Level> {
        let Level { bound, items, later, prefixes, .. } = level;
        // The items of this level are freed before those of the next are collected. Lists are
        // appended to the first one, not to a new one, which would need all of them twice.
        drop(items);
        let mut next = later;
        for worker in done {
            if next.is_empty() {
                next = worker.over_bound.next;
            } else {
                next.extend(worker.over_bound.next);
            }
        }
        let waiting = next.len();
        next.retain(|item| !table.covers(item.step, item.cost));
        stats.skip_covered(waiting - next.len());
        stats.complete_bound(bound, !next.is_empty());
        let taken = stats.taken();
        if next.is_empty() || self.is_last(bound, taken) {
            return None;
        }
        let bound = bound + 1;
        // The steps of the next level stay in their list: a copy would need memory that no limit
        // expects.
        let later: Vec<Item> = next.extract_if(.., |item| item.cost > bound).collect();
        next.shrink_to_fit();
        let items = next;
        let (rest, last) = (AtomicUsize::new(items.len()), self.is_last(bound, taken));
        Some(Level { bound, items, later, rest, prefixes, last })
    }
}

#[cfg(test)]
mod tests {
    use preempt_system::ThreadId;

    use super::*;
    use crate::engine::model::ModelExecution;
    use crate::toy::Toy;

    type Execution = ModelExecution<'static, Toy>;

    const STEP: Choice = Choice { thread: ThreadId::new(0), alternative: 0 };

    /// Three prefixes.
    fn prefixes() -> Prefixes {
        let prefixes = Prefixes::new(1);
        prefixes.add(0, [STEP; 3].into_iter(), &mut Vec::new());
        prefixes
    }

    /// A level whose only item follows a prefix, and which has `rest` more.
    fn level(prefix: Prefix, rest: usize) -> Level {
        let items = vec![Item { prefix, choice: STEP, step: None, cost: 1 }];
        let (later, rest) = (Vec::new(), AtomicUsize::new(rest));
        Level { bound: 1, items, later, rest, prefixes: prefixes(), last: false }
    }

    #[test]
    fn prefixes_that_never_get_shorter_do_not_fit() {
        assert!(prefixes().fit(1) && !prefixes().fit(2));
        for wrong in [1, 2, 3, 4, 9] {
            let prefixes = prefixes();
            prefixes.0[0].write().expect("lock poisoned")[0].0 = wrong;
            assert!(!prefixes.fit(1), "{wrong}");
        }
    }

    #[test]
    fn items_without_a_prefix_do_not_fit() {
        let icb = Icb::new(Extent { cost: None, steps: None }, None, 1);
        let fits =
            |prefix, rest, workers| Rounds::<Execution>::fits(&icb, &level(prefix, rest), workers);
        assert!(fits(0, 0, 1) && fits(3, 1, 1));
        assert!(!fits(4, 1, 1), "there are three prefixes");
        assert!(!fits(3, 2, 1), "there is one item");
        assert!(!fits(3, 1, 2), "the prefixes are those of one worker");
        let mut waiting = level(3, 1);
        waiting.later.push(Item { prefix: 4, choice: STEP, step: None, cost: 3 });
        assert!(!Rounds::<Execution>::fits(&icb, &waiting, 1), "an item of a later level");
        let kept_fits = |prefix, path| {
            let next = vec![Item { prefix, choice: STEP, step: None, cost: 2 }];
            Rounds::<Execution>::kept_fits(&icb, &level(3, 1), &Deferred { next, path })
        };
        assert!(kept_fits(3, vec![1, 2, 3]));
        assert!(!kept_fits(4, vec![]) && !kept_fits(3, vec![1, 2, 4]));
    }
}
