//! Searches in rounds: each round explores a part of the tree of executions, and its result decides
//! on the next one.
//!
//! A strategy says what a round is ([`Rounds`]). This module runs the rounds, writes checkpoints
//! when the workers pause, and resumes from them.

use std::mem;

use preempt_system::{Program, System};

use crate::codec::{Damaged, Save, SaveInPlace as _};
use crate::engine::cache::Table;
use crate::engine::cursor::Cursor;
use crate::engine::estimate::Round as EstimatedRound;
use crate::engine::execution::Stop;
use crate::engine::queue::Queue;
use crate::engine::stats::ExecutionStats;
use crate::engine::tree::{Extent, OverBound, PausedWorker, Tree, Work};
use crate::engine::workers::{PausedSearch, Workers};
use crate::plan::Cache;

/// A strategy that explores the tree of executions in rounds.
pub(crate) trait Rounds<S: System>: Sync + 'static {
    /// A round. A checkpoint contains the current one.
    type Round: Save + Sync;

    /// The data that a worker keeps of the steps beyond the bound of a round.
    type Kept: Save + Send + Default;

    /// The handler of these steps.
    type OverBound<'r>: OverBound<S, Kept = Self::Kept>;

    /// The first round.
    fn first(&self) -> Self::Round;

    /// Whether a round that a checkpoint contains belongs to a search by `workers` workers.
    fn fits(&self, round: &Self::Round, workers: usize) -> bool {
        let _ = (round, workers);
        true
    }

    /// Whether what a worker keeps belongs to a round that [fits](Rounds::fits).
    fn kept_fits(&self, round: &Self::Round, kept: &Self::Kept) -> bool {
        let _ = (round, kept);
        true
    }

    /// The limits of a round.
    fn extent(&self, round: &Self::Round) -> Extent;

    /// The number of subtrees that a round consists of.
    fn items(&self, round: &Self::Round) -> usize {
        let _ = round;
        1
    }

    /// A round starts, or is resumed.
    fn begin(&self, round: &Self::Round, stats: &ExecutionStats<'_, S::Need>) {
        let _ = (round, stats);
    }

    /// Completes what a worker keeps of the steps beyond the bound.
    fn over_bound<'r>(
        &self,
        round: &'r Self::Round,
        worker: usize,
        kept: Self::Kept,
    ) -> Self::OverBound<'r>;

    /// Moves to the root of a subtree and opens its first steps. Each worker does that for some
    /// items, one after the other; a single worker for all of them in order.
    fn open<'r>(
        &self,
        round: &'r Self::Round,
        item: usize,
        tree: &mut Tree<'_, Self::OverBound<'r>>,
        cursor: &mut Cursor<S>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>> {
        let _ = (round, item);
        tree.open_all(cursor, stats)
    }

    /// The next round, if there is one, after all workers have completed `round`.
    fn next(
        &self,
        round: Self::Round,
        table: &Table,
        done: Vec<PausedWorker<Self::Kept>>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Option<Self::Round>;
}

impl<'p, P: Program> Workers<'p, P> {
    /// Explores all rounds, from a checkpoint if there is one. The rounds share a table of the
    /// steps that `cache` does not repeat.
    pub(crate) fn explore_rounds<R: Rounds<P::System<'p>>>(
        &mut self,
        rounds: &R,
        cache: Cache,
    ) -> Result<(), Stop<P::Need>> {
        let workers = self.count();
        let table = Table::new(cache, workers);
        let resumed = self.stats.resume(|from| {
            table.load_contents(from)?;
            let (round, paused): (R::Round, PausedSearch<R::Kept>) = from.get()?;
            let fits = rounds.fits(&round, workers)
                && paused.fits(workers, rounds.items(&round))
                && paused.workers.iter().all(|worker| rounds.kept_fits(&round, &worker.over_bound));
            if fits { Ok((round, Some(paused))) } else { Err(Damaged) }
        });
        let (mut round, mut paused) = resumed.unwrap_or_else(|| (rounds.first(), None));
        loop {
            rounds.begin(&round, &self.stats);
            let start = || PausedSearch::new(workers, rounds.items(&round));
            let from = paused.take().unwrap_or_else(start);
            let done = self.explore_round(rounds, &round, &table, from)?;
            match rounds.next(round, &table, done, &mut self.stats) {
                Some(next) => round = next,
                None => return Ok(()),
            }
        }
    }

    /// Explores the remaining part of a round.
    fn explore_round<R: Rounds<P::System<'p>>>(
        &mut self,
        rounds: &R,
        round: &R::Round,
        table: &Table,
        paused: PausedSearch<R::Kept>,
    ) -> Result<Vec<PausedWorker<R::Kept>>, Stop<P::Need>> {
        let extent = rounds.extent(round);
        let PausedSearch { works, mut workers, starts } = paused;
        if let Some(items) = starts {
            let bound = extent.cost.or(extent.steps);
            self.stats.begin_round(EstimatedRound::Tree { bound, items: items as u64 });
        }
        let queue = Queue::new(self.count(), works);
        loop {
            queue.open();
            workers = self.work(
                workers,
                || queue.close(),
                |number, mut paused, cursor, stats| {
                    let mut items = mem::take(&mut paused.items);
                    let attach = |kept| rounds.over_bound(round, number, kept);
                    let mut tree =
                        Tree::resume((extent, table, &queue), (paused, attach), cursor, stats)?;
                    stats.resume_deferred(tree.over_bound.deferred());
                    loop {
                        tree.run(cursor, stats)?;
                        if stats.is_pausing() {
                            break;
                        }
                        if let Some(item) = items.next() {
                            rounds.open(round, item, &mut tree, cursor, stats)?;
                            continue;
                        }
                        match queue.take() {
                            Some(Work::Items(more)) => items = more,
                            Some(Work::Given(steps, choice, weight)) => {
                                tree.go(cursor, &steps, stats)?;
                                tree.open_step(cursor, choice, weight);
                            }
                            None => break,
                        }
                    }
                    Ok(tree.pause(cursor, items))
                },
            )?;
            if queue.is_empty() && workers.iter().all(PausedWorker::is_done) {
                return Ok(workers);
            }
            self.stats.pause(|to| {
                table.save_contents(to);
                to.put(round);
                queue.save_contents(to);
                to.put(&workers);
            })?;
        }
    }
}
