//! The workers of a search over executions.
//!
//! Every worker has its own execution in progress, on its own thread of the operating system, and
//! its own [`ExecutionStats`]; the workers share the [`Table`](crate::engine::cache::Table) and the
//! sets of the statistics. A worker takes a part of the tree, moves to where it starts, and
//! explores it depth first; while another worker is idle, it gives away [steps](Work::Given) that
//! it has not taken yet.
//!
//! **Guarantees.** The explored part and all counts are the same for any number of workers:
//!
//! - Without a table every execution of the tree is taken exactly once, by one of the workers. A
//!   step that is given away leaves the list of its worker before it enters the queue, and leaves
//!   the queue before it enters the list of another worker.
//! - With a table the search is one of a graph. Its nodes are the pairs of a name (of a state or a
//!   happens-before graph) and the step that was taken there;
//!   [`Table::take`](crate::engine::cache::Table::take) hands out each node once. The next steps,
//!   and whether they cost a preemption, follow from the node alone: the state before and the step
//!   determine the state after and the thread of the last step. Within a level of icb all costs are
//!   equal, and so are all costs without a bound. So the nodes of a level are those that can be
//!   reached without a further preemption from the items at its start, in whatever order they are
//!   taken; and the steps that wait for the next level are those that lead from these nodes with
//!   one preemption, except for those that the table covers when the level ends. Skipped steps are
//!   counted at different times, but each once: all steps from the nodes, minus those taken and
//!   those that wait. Three things would break the argument and are excluded. A state does not
//!   determine after how many steps it was reached, so a [limit of depth](crate::Limits::depth) is
//!   refused. A graph does not determine in which order two reads came, on which
//!   [races](crate::engine::race) depend, so [points](crate::Points::Sync) at synchronisation are
//!   refused. And it does not determine whether a thread is held back because it spins: the first
//!   thread that is held back ends the search of several workers, and one worker searches again. If
//!   none is, none would be held back on another path either: a thread that was seen to spin on one
//!   path can spin once more on any other, without a preemption, and is then seen.
//! - Which of the executions with the same name is taken does depend on which worker comes first,
//!   and so do schedules of findings: the driver searches again with one worker for the schedules
//!   that one worker reports.
//!
//! **Cost.** Beside the tables, as much as one worker needs for each. The worker that takes a step
//! from the queue repeats the steps before it; these are not counted.

use preempt_system::Program;
use std::ops::Range;

use crate::codec::{Save, save_fields};
use crate::engine::cursor::Cursor;
use crate::engine::execution::Stop;
use crate::engine::parallel;
use crate::engine::stats::ExecutionStats;
use crate::engine::tree::{PausedWorker, Work};
use crate::plan::strategy::ExecutionSearch;
use crate::plan::{Cache, Count, Points, ResolvedPlan};

/// The workers. Between two parts of a search only the first one exists.
pub(crate) struct Workers<'p, P: Program> {
    plan: &'p ResolvedPlan,
    program: &'p P,
    pub(crate) cursor: Cursor<P::System<'p>>,
    pub(crate) stats: ExecutionStats<'p, P::Need>,
}

/// Starts an execution of the program.
fn begin<'p, P: Program>(
    plan: &ResolvedPlan,
    program: &'p P,
) -> Result<Cursor<P::System<'p>>, P::Need> {
    let cursor = program.start().and_then(Cursor::over)?.counting(plan.strategy.cost());
    let cursor = if plan.strategy.is_fair() { cursor.fair() } else { cursor };
    let cursor = if needs_graph(plan) { cursor.recording() } else { cursor };
    // A random walk starts at the beginning each time. Races between plain accesses are found at
    // the end of an execution, from all its steps.
    Ok(if plan.strategy.is_sample() && plan.strategy.points() == Points::All {
        cursor.forward_only()
    } else {
        cursor
    })
}

/// Whether the search needs happens-before graphs.
fn needs_graph(plan: &ResolvedPlan) -> bool {
    match plan.strategy.executions() {
        _ if plan.strategy.compares_graphs() => true,
        // It covers states; the number of traces that it happens to explore is meaningless.
        Some(ExecutionSearch::Icb { cache: Cache::State, .. }) => false,
        _ => plan.count >= Count::Traces,
    }
}

impl<'p, P: Program> Workers<'p, P> {
    pub(crate) fn new(
        plan: &'p ResolvedPlan,
        program: &'p P,
        stats: ExecutionStats<'p, P::Need>,
    ) -> Result<Workers<'p, P>, P::Need> {
        Ok(Workers { plan, program, cursor: begin(plan, program)?, stats })
    }

    /// The number of workers.
    pub(crate) fn count(&self) -> usize {
        self.plan.jobs
    }

    /// Lets every worker do `work` on its input, and adds up their counts. A worker that leaves,
    /// even by a panic, calls `leave`.
    pub(crate) fn work<I: Send, R: Send>(
        &mut self,
        inputs: Vec<I>,
        leave: impl Fn() + Sync,
        work: impl Fn(
            usize,
            I,
            &mut Cursor<P::System<'p>>,
            &mut ExecutionStats<'p, P::Need>,
        ) -> Result<R, Stop<P::Need>>
        + Sync,
    ) -> Result<Vec<R>, Stop<P::Need>> {
        let Workers { plan, program, cursor, stats } = self;
        let (plan, program): (&ResolvedPlan, &'p P) = (plan, program);
        let stop_others = |result: Result<R, Stop<P::Need>>,
                           stats: &ExecutionStats<'_, P::Need>| {
            if let Err(Stop::Restart(need)) = result {
                stats.restart(need);
            }
            result
        };
        let parts = (0..plan.jobs).map(|number| (number > 0).then(|| stats.part()));
        let inputs: Vec<_> = inputs.into_iter().zip(parts).collect();
        let first = |(input, _)| {
            let result = work(0, input, cursor, stats);
            (stop_others(result, stats), None)
        };
        // An execution stays on its thread, so every other worker starts its own there.
        let other = |number: usize, (input, part): (I, Option<ExecutionStats<'p, P::Need>>)| {
            let mut part = part.expect("only the first worker has no part");
            let cursor = begin(plan, program).map_err(Stop::Restart);
            let result = cursor.and_then(|mut cursor| work(number, input, &mut cursor, &mut part));
            (stop_others(result, &part), Some(part))
        };
        let (results, parts): (Vec<_>, Vec<_>) =
            parallel::run(inputs, leave, first, other).into_iter().unzip();
        self.stats.absorb(parts.into_iter().flatten().collect());
        results.into_iter().collect()
    }
}

/// The remaining work of a [round](crate::engine::rounds).
pub(crate) struct PausedSearch<T> {
    /// Work that no worker has taken.
    pub(crate) works: Vec<Work>,
    pub(crate) workers: Vec<PausedWorker<T>>,
    /// The number of items, if nothing was explored yet.
    pub(crate) starts: Option<usize>,
}

save_fields!([T: Save] PausedSearch<T> { works, workers; starts });

/// Each worker gets this many parts of the items at the start, unless the parts get too large.
const CHUNKS: usize = 32;
const LARGEST_CHUNK: usize = 256;

impl<T: Default> PausedSearch<T> {
    /// `items` items, of which nothing was explored yet.
    pub(crate) fn new(workers: usize, items: usize) -> PausedSearch<T> {
        // Neighbours share most of their path. The last element of the queue is taken first.
        let chunk = (items / (workers * CHUNKS)).clamp(1, LARGEST_CHUNK);
        let chunks =
            (0..items).step_by(chunk).map(|from| Work::Items(from..items.min(from + chunk)));
        let workers = (0..workers).map(|_| PausedWorker::default()).collect();
        PausedSearch { works: chunks.rev().collect(), workers, starts: Some(items) }
    }

    /// Whether it is of a search of `items` by `workers` workers. Checked for what a checkpoint
    /// contains.
    pub(crate) fn fits(&self, workers: usize, items: usize) -> bool {
        let within = |range: &Range<usize>| range.start <= range.end && range.end <= items;
        self.workers.len() == workers
            && self.workers.iter().all(|worker| worker.is_whole() && within(&worker.items))
            && self.works.iter().all(|work| match work {
                Work::Items(range) => within(range),
                Work::Given(..) => true,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tree::Discard;

    #[test]
    fn work_of_another_search_does_not_fit() {
        let new = || PausedSearch::<Discard>::new(2, 1000);
        assert!(new().fits(2, 1000));
        assert!(!new().fits(3, 1000), "two workers have paused");
        assert!(!new().fits(2, 999), "there are 1000 items");
        let mut search = new();
        search.workers[1].items = 999..1001;
        assert!(!search.fits(2, 1000), "a worker has taken an item that does not exist");
        search.workers[1].items = Range { start: 9, end: 8 };
        assert!(!search.fits(2, 1000), "a range ends before it starts");
    }
}
