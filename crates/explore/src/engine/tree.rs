//! The tree of executions, depth first: for the searches that take every step of a state, unless a
//! bound or a table excludes it.
//!
//! At every state the running thread goes first, if it can, then the others from the lowest up; of
//! a thread's alternatives the lowest first. The stack is explicit, since it is as deep as an
//! execution. A step is taken unless it goes beyond the bound on preemptions, or the [`Table`]
//! covers it; an execution is cut when it has as many steps as allowed. An [`OverBound`] decides
//! what happens to the steps beyond the bound: that is where depth-first search and icb differ.
//!
//! While other workers are idle, a worker gives them the open [steps](Work::Given) nearest to the
//! root, whose subtrees are likely to be the largest.
//!
//! A worker pauses between two steps. Its remaining work is then its [execution](PausedWorker) and
//! the open steps.
//!
//! **Cost.** 12 bytes for every open step.

use std::ops::Range;

use preempt_system::{Choice, System, ThreadId};

use crate::codec::{Save, save_fields, save_variants};
use crate::engine::cache::Table;
use crate::engine::cursor::Cursor;
use crate::engine::depth_first::{self, DepthFirst, Next};
use crate::engine::execution::{Cut, Stop, Visitor as _, take_again};
use crate::engine::names::Name;
use crate::engine::queue::Queue;
use crate::engine::stats::ExecutionStats;
use crate::engine::weights::WeightTracker;

/// Handles the steps that the bound forbids. Depth-first search discards them; iterative context
/// bounding keeps them for the next bound.
pub(crate) trait OverBound<S: System> {
    /// The part that a checkpoint keeps.
    type Kept: Save + Send + Default;

    /// `choice`, whose name is `step`, would have a `cost` above the bound at the cursor.
    fn defer(&mut self, cursor: &Cursor<S>, choice: Choice, step: Option<Name>, cost: u32);

    /// The cursor has gone back to where the execution had `len` steps.
    fn rewound(&mut self, len: usize);

    /// The number of waiting steps, and their bytes.
    fn holds(&self) -> (usize, usize);

    /// The number of these steps that wait for the next bound.
    fn deferred(&self) -> usize {
        0
    }

    fn into_kept(self) -> Self::Kept;
}

/// Discards the steps that the bound forbids, and remembers whether there were any.
#[derive(Default)]
pub(crate) struct Discard {
    pub(crate) any: bool,
}

save_fields!(Discard { any });

impl<S: System> OverBound<S> for Discard {
    type Kept = Discard;

    fn defer(&mut self, _: &Cursor<S>, _: Choice, _: Option<Name>, _: u32) {
        self.any = true;
    }

    fn rewound(&mut self, _: usize) {}

    fn holds(&self) -> (usize, usize) {
        (0, 0)
    }

    fn into_kept(self) -> Discard {
        self
    }
}

/// The limits within which the tree is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The most preemptions, or delays: the bound on the [cost](Cursor::cost_with).
    pub(crate) cost: Option<u32>,
    /// The most steps.
    pub(crate) steps: Option<u32>,
}

impl Extent {
    /// The remaining cost after `cost`; `None` if that exceeds the bound, `Some(0)` if there is
    /// none.
    fn left(self, cost: u32) -> Option<u32> {
        self.cost.map_or(Some(0), |most| most.checked_sub(cost))
    }
}

/// A step that is still to be taken, after `len` steps of the execution.
#[derive(Clone, Copy)]
struct Open {
    len: u32,
    choice: Choice,
}

save_fields!(Open { len, choice });

/// A worker between two steps, and when it is done.
#[derive(Default)]
pub(crate) struct PausedWorker<T> {
    /// The steps of its current execution.
    steps: Vec<Choice>,
    open: Vec<Open>,
    /// Items that it has taken but not started.
    pub(crate) items: Range<usize>,
    /// The data that it keeps of the steps beyond the bound.
    pub(crate) over_bound: T,
    /// Whether an execution was cut at the greatest number of steps.
    pub(crate) cut: bool,
    /// The weights of the steps of the execution, if progress estimates are on.
    weights: Option<WeightTracker>,
}

save_fields!([T: Save] PausedWorker<T> { steps, open, items, over_bound, cut, weights });

impl<T> PausedWorker<T> {
    /// Whether the worker has nothing left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty() && self.items.is_empty()
    }

    /// Whether every open step belongs to the execution. Checked for what a checkpoint contains.
    pub(crate) fn is_whole(&self) -> bool {
        self.open.iter().all(|open| open.len as usize <= self.steps.len())
    }
}

/// A part of the tree.
pub(crate) enum Work {
    /// The subtrees of some of the items with which the round has started.
    Items(Range<usize>),
    /// The subtree of a step that another worker has given away: the steps before it, the step,
    /// and its weight.
    Given(Vec<Choice>, Choice, f64),
}

save_variants!(Work { 0 => Items(items), 1 => Given(steps, choice, weight) });

/// A depth-first search of the tree of executions.
pub(crate) struct Tree<'t, B> {
    extent: Extent,
    pub(crate) table: &'t Table,
    queue: &'t Queue<Vec<Work>>,
    pub(crate) over_bound: B,
    /// Whether an execution was cut at the greatest number of steps.
    pub(crate) cut: bool,
    open: Vec<Open>,
    weights: WeightTracker,
    /// This many open steps, from the bottom, are beyond the bound: giving them away helps no
    /// worker.
    unshareable: usize,
}

impl<'t, B> Tree<'t, B> {
    /// Continues where a worker has paused, or starts. Moves the cursor there.
    pub(crate) fn resume<S: System>(
        (extent, table, queue): (Extent, &'t Table, &'t Queue<Vec<Work>>),
        (paused, attach): (PausedWorker<B::Kept>, impl FnOnce(B::Kept) -> B),
        cursor: &mut Cursor<S>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<Tree<'t, B>, Stop<S::Need>>
    where
        B: OverBound<S>,
    {
        go(cursor, &paused.steps, stats)?;
        let PausedWorker { open, over_bound, cut, weights, .. } = paused;
        let over_bound = attach(over_bound);
        let weights = match weights {
            // Weights are shares of the whole: they cannot be computed from the middle of a search.
            // A worker may pause at the root when it has opened its steps already.
            Some(weights) if stats.wants_weights() => weights,
            None if stats.wants_weights() && paused.steps.is_empty() && open.is_empty() => {
                WeightTracker::on(cursor.threads())
            }
            _ => WeightTracker::off(),
        };
        Ok(Tree { extent, table, queue, over_bound, cut, open, weights, unshareable: 0 })
    }

    /// The worker's state, with the items that it has not started.
    pub(crate) fn pause<S: System>(
        self,
        cursor: &Cursor<S>,
        items: Range<usize>,
    ) -> PausedWorker<B::Kept>
    where
        B: OverBound<S>,
    {
        PausedWorker {
            steps: cursor.schedule().steps().to_vec(),
            open: self.open,
            items,
            over_bound: self.over_bound.into_kept(),
            cut: self.cut,
            weights: self.weights.on.then_some(self.weights),
        }
    }

    /// Moves the cursor to the end of these steps.
    pub(crate) fn go<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        steps: &[Choice],
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>>
    where
        B: OverBound<S>,
    {
        let common = go(cursor, steps, stats)?;
        self.over_bound.rewound(common);
        Ok(())
    }

    /// Moves the cursor back to where its execution had `len` steps.
    pub(crate) fn go_back<S: System>(&mut self, cursor: &mut Cursor<S>, len: usize)
    where
        B: OverBound<S>,
    {
        if cursor.len() > len {
            cursor.rewind(len);
            self.over_bound.rewound(len);
        }
    }

    /// Opens all steps at the cursor, which is at the root of the tree.
    pub(crate) fn open_all<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>> {
        self.weights.start(cursor.len());
        self.enter(cursor, 1.0, stats)
    }

    /// Pushes `choice` at the cursor, carrying `weight` of the tree.
    pub(crate) fn open_step<S: System>(&mut self, cursor: &Cursor<S>, choice: Choice, weight: f64) {
        self.weights.start(cursor.len());
        self.weights.enter(
            cursor.len(),
            weight,
            self.extent.left(cursor.cost_with(choice)).into_iter(),
        );
        self.open.push(Open { len: cursor.len() as u32, choice });
    }

    /// Explores the subtrees of the open steps, unless the search pauses.
    pub(crate) fn run<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>>
    where
        B: OverBound<S>,
    {
        while !stats.is_pausing() && depth_first::advance(self, cursor, stats)? {}
        Ok(())
    }

    /// Reports the waiting steps and the memory of the tables.
    #[inline]
    fn report<S: System>(&self, stats: &mut ExecutionStats<'_, S::Need>)
    where
        B: OverBound<S>,
    {
        let (waiting, bytes) = self.over_bound.holds();
        stats.set_held(self.open.len() + waiting, self.table.bytes() + bytes);
        if self.weights.on {
            stats.defers(self.over_bound.deferred());
        }
    }

    /// The weight of a step after `len` steps with which the execution has this `cost`.
    #[inline]
    fn weight(&self, len: u32, cost: u32) -> f64 {
        self.extent.left(cost).map_or(0.0, |left| self.weights.weigh(len as usize, left))
    }

    /// Gives away the first open step that is within the bound, unless it is the next one to take.
    /// All open steps are steps from states of the current execution.
    #[cold]
    fn give<S: System>(&mut self, cursor: &Cursor<S>) {
        // The open steps are a stack: the lowest ones stay beyond the bound until they are popped.
        self.unshareable = self.unshareable.min(self.open.len());
        while self.unshareable + 1 < self.open.len() {
            let Open { len, choice } = self.open[self.unshareable];
            let cost = cursor.cost_with_at(len as usize, choice);
            if self.extent.cost.is_none_or(|bound| cost <= bound) {
                self.open.remove(self.unshareable);
                let weight = self.weight(len, cost);
                let steps = (0..len as usize).map(|at| cursor.choice(at)).collect();
                return self.queue.give(Work::Given(steps, choice, weight));
            }
            self.unshareable += 1;
        }
    }

    /// Opens the steps at the cursor, if there are any.
    fn enter<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        weight: f64,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>> {
        let enabled = cursor.enabled();
        if enabled.is_empty() {
            self.leave(cursor, weight, stats);
            return stats.end(cursor);
        }
        let len = cursor.len() as u32;
        if self.extent.steps.is_some_and(|most| len >= most) {
            self.cut = true;
            self.leave(cursor, weight, stats);
            return stats.cut(cursor, Cut::Steps);
        }
        // The last that is opened is the first that is taken.
        let running = cursor.running().filter(|&running| enabled.contains(running));
        let others = running.map_or(enabled, |running| enabled.without(running));
        let from = self.open.len();
        if let Some(running) = running {
            self.open_thread(cursor, len, running);
        }
        for thread in others.iter() {
            self.open_thread(cursor, len, thread);
        }
        self.open[from..].reverse();
        if self.weights.on {
            let left = |open: &Open| self.extent.left(cursor.cost_with(open.choice));
            self.weights.enter(len as usize, weight, self.open[from..].iter().filter_map(left));
        }
        Ok(())
    }

    /// Opens the steps of a thread, its first alternative first. Most threads have one: pushing is
    /// faster than extending.
    #[inline]
    fn open_thread<S: System>(&mut self, cursor: &Cursor<S>, len: u32, thread: ThreadId) {
        for choice in cursor.choices(thread) {
            self.open.push(Open { len, choice });
        }
    }

    /// Reports the weight of an execution that has ended or was cut.
    fn leave<S: System>(
        &mut self,
        cursor: &Cursor<S>,
        mut weight: f64,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) {
        if self.weights.is_first(cursor.len()) && self.extent.cost.is_some() {
            let left = |at: usize, choice| self.extent.left(cursor.cost_with_at(at, choice));
            let others = |at: usize| {
                let open = self.open.iter().filter(|open| open.len as usize == at);
                open.filter_map(|open| left(at, open.choice)).collect()
            };
            weight = self.weights.weigh_again(
                cursor.len(),
                |at| left(at, cursor.choice(at)).unwrap_or(0),
                others,
            );
        }
        stats.add_weight(weight);
    }
}

/// A step is known by its weight.
impl<S: System, B: OverBound<S>> DepthFirst<S, Cursor<S>, ExecutionStats<'_, S::Need>>
    for Tree<'_, B>
{
    type Step = f64;

    #[inline]
    fn next(
        &mut self,
        cursor: &mut Cursor<S>,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Next<f64, S::Need> {
        while let Some(Open { len, choice }) = self.open.pop() {
            self.go_back(cursor, len as usize);
            // Without a bound nothing has a cost.
            let cost = self.extent.cost.map_or(0, |_| cursor.cost_with(choice));
            let step = self.table.name(cursor, choice);
            let weight = self.weight(len, cost);
            if self.extent.cost.is_some_and(|bound| cost > bound) {
                if self.table.covers(step, cost) {
                    stats.cut(cursor, Cut::Covered)?;
                } else {
                    self.over_bound.defer(cursor, choice, step, cost);
                }
            } else if self.table.take(step, cost) {
                return Ok(Some((choice, weight)));
            } else {
                stats.add_weight(weight);
                stats.cut(cursor, Cut::Covered)?;
            }
        }
        Ok(None)
    }

    #[inline]
    fn taken(&mut self, _: &Cursor<S>, stats: &mut ExecutionStats<'_, S::Need>) {
        self.report::<S>(stats);
    }

    #[inline]
    fn arrive(
        &mut self,
        cursor: &mut Cursor<S>,
        weight: f64,
        stats: &mut ExecutionStats<'_, S::Need>,
    ) -> Result<(), Stop<S::Need>> {
        self.enter(cursor, weight, stats)?;
        if self.queue.has_idle_worker() {
            self.give(cursor);
        }
        Ok(())
    }
}

/// Moves the cursor to the end of `steps`. Returns how many of them it did not have to take.
fn go<S: System>(
    cursor: &mut Cursor<S>,
    steps: &[Choice],
    stats: &mut ExecutionStats<'_, S::Need>,
) -> Result<usize, Stop<S::Need>> {
    let common =
        (0..cursor.len()).zip(steps).take_while(|&(at, &step)| cursor.choice(at) == step).count();
    cursor.rewind(common);
    take_again(cursor, &steps[common..], stats)?;
    Ok(common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_steps_belong_to_the_execution() {
        let choice = Choice::of(ThreadId::new(0));
        let paused = |len| {
            let open = vec![Open { len: 0, choice }, Open { len, choice }];
            PausedWorker::<Discard> { steps: vec![choice; 2], open, ..PausedWorker::default() }
        };
        assert!(paused(2).is_whole() && !paused(3).is_whole());
        assert!(!paused(2).is_done() && PausedWorker::<Discard>::default().is_done());
    }
}
