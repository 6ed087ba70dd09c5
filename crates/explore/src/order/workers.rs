//! The workers of a search over executions.
//!
//! Every worker has its own execution in progress, on its own thread of the operating system, and
//! its own [`ExecutionStats`]; what they share is the [`Table`] and the sets of the stats. A worker takes
//! a part of the tree, goes to where it begins, and explores it depth first; while another one has
//! nothing to do it gives away [steps](Work::Given) that it has not taken yet.
//!
//! **Guarantees.** What is explored, and all that is counted, is the same for any number of
//! workers:
//!
//! - Without a table every execution of the tree is taken exactly once, whoever takes it. A step
//!   that is given away leaves the list of its worker before it enters the pool, and leaves the
//!   pool before it enters the list of another.
//! - With a table the search is one of a graph. Its nodes are the pairs of a name (of a state or a
//!   happens-before graph) and the step that was taken there; a node is what [`Table::take`] hands
//!   out once. What can be done next, and whether it costs a preemption, follows from the node
//!   alone: the state before and the step give the state after and whose the last step was. Within
//!   a level of icb all costs are equal, and so are all without a bound. So the nodes of a level
//!   are those that can be reached without a further preemption from the items at its beginning, in
//!   whatever order they are taken; and the steps that wait for the next level are those that lead
//!   from these nodes with one preemption, less those that the table covers when the level ends.
//!   Steps that were left out are counted at different times, but each once: all steps from the
//!   nodes, less those taken and those that wait. Three things break the argument and are kept out
//!   of it. A state does not tell after how many steps it was reached, so a [limit of
//!   depth](crate::Limits::depth) is refused. A graph does not tell in which order two reads came,
//!   on which [races](crate::engine::race) depend, so [points](crate::Points::Sync) at
//!   synchronisation are refused. And it does not tell whether a thread is held back because it
//!   spins: the first one that is ends the search of several, and [one](super::alone) searches
//!   again. If none is, none would be held back on another way either: a thread that was seen to
//!   turn round on one way can turn round once more on any other, without a preemption, and is seen
//!   to then.
//! - Which of the executions with the same name is taken does depend on who comes first, and so do
//!   schedules of findings: [`alone`](super::alone) finds those that one worker reports.
//!
//! **Cost.** Beside the tables, as much as one worker needs for each. A step that is given away is
//! reached anew by who takes it: as many steps as come before it, which are not counted.

use std::mem;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use preempt_system::Program;

use super::cache::Table;
use super::pool::Pool;
use super::tree::{Extent, OverBound, PausedWorker, Tree, Work};
use crate::codec::{Damaged, Reader, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::estimate::Round;
use crate::engine::execution::{Stop, Visitor};
use crate::engine::lock;
use crate::engine::stats::ExecutionStats;
use crate::plan::{Cache, Count, Order, Plan, Points};

/// The workers. Between two parts of a search only the first of them is there.
pub(crate) struct Workers<'p, P: Program> {
    plan: &'p Plan,
    program: &'p P,
    pub(crate) cursor: Cursor<P::System<'p>>,
    pub(crate) stats: ExecutionStats<'p, P::Need>,
}

/// Stands at the beginning of an execution of the program.
fn begin<'p, P: Program>(plan: &Plan, program: &'p P) -> Result<Cursor<P::System<'p>>, P::Need> {
    let cursor = program.start().and_then(Cursor::over)?;
    let cursor = if plan.is_fair() { cursor.fair() } else { cursor };
    let cursor = if needs_graph(plan) { cursor.recording() } else { cursor };
    // A walk starts anew each time. Races between plain accesses are seen at the end of an
    // execution, from all its steps.
    Ok(if plan.order.samples() && plan.points == Points::All {
        cursor.forgetting()
    } else {
        cursor
    })
}

/// Whether somebody will ask for happens-before graphs.
fn needs_graph(plan: &Plan) -> bool {
    match plan.order {
        Order::Icb { cache: Cache::Hb } | Order::DfsHb => true,
        // It covers states; the traces it happens to meet mean nothing.
        Order::Icb { cache: Cache::State } => false,
        _ => plan.count >= Count::Traces,
    }
}

impl<'p, P: Program> Workers<'p, P> {
    pub(crate) fn new(
        plan: &'p Plan,
        program: &'p P,
        stats: ExecutionStats<'p, P::Need>,
    ) -> Result<Workers<'p, P>, P::Need> {
        Ok(Workers { plan, program, cursor: begin(plan, program)?, stats })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.plan.jobs
    }

    /// See [`Plan::past_bound`].
    pub(crate) fn past_bound(&self) -> Option<u64> {
        self.plan.past_bound
    }

    /// All that `bound` allows was explored.
    pub(crate) fn bound(&mut self, bound: u32, cut: bool) {
        Visitor::<P::System<'p>>::bound(&mut self.stats, bound, cut);
    }

    /// Lets every worker do `work`, and adds up what they have counted. Whoever leaves, even by a
    /// panic, calls `leave`: the others may wait for something from it.
    pub(crate) fn work<R: Send>(
        &mut self,
        leave: impl Fn() + Sync,
        work: impl Fn(
            usize,
            &mut Cursor<P::System<'p>>,
            &mut ExecutionStats<'p, P::Need>,
        ) -> Result<R, Stop<P::Need>>
        + Sync,
    ) -> Result<Vec<R>, Stop<P::Need>> {
        let Workers { plan, program, cursor, stats } = self;
        let (plan, program): (&Plan, &'p P) = (plan, program);
        let tell = |result: Result<R, Stop<P::Need>>, stats: &ExecutionStats<'_, P::Need>| {
            if let Err(Stop::Restart(need)) = result {
                stats.restart(need);
            }
            result
        };
        let parts: Vec<_> = (1..plan.jobs).map(|_| stats.part()).collect();
        let (first, others) = thread::scope(|scope| {
            let (leave, work, tell) = (&leave, &work, &tell);
            let help = |(number, mut stats): (usize, ExecutionStats<'p, P::Need>)| {
                scope.spawn(move || {
                    let _leaving = Leaving(leave);
                    let cursor = begin(plan, program).map_err(Stop::Restart);
                    let done = tell(
                        cursor.and_then(|mut cursor| work(number, &mut cursor, &mut stats)),
                        &stats,
                    );
                    (done, stats)
                })
            };
            let others: Vec<_> = (1..).zip(parts).map(help).collect();
            let first = {
                let _leaving = Leaving(leave);
                tell(work(0, cursor, stats), stats)
            };
            let join = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or_else(|fault| resume_unwind(fault))
            };
            (first, others.into_iter().map(join).collect::<Vec<_>>())
        });
        let (others, parts): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        stats.absorb(parts);
        [first].into_iter().chain(others).collect()
    }

    /// Explores what is [left](PausedSearch) of a part of a search within `extent`. `open` opens what an
    /// item stands for: each worker does that for some of them after the other. With one worker
    /// that is all of them in their order. `around` writes what else has to be known to go on.
    pub(crate) fn explore<B: OverBound<P::System<'p>> + Send>(
        &mut self,
        (extent, table): (Extent, &Table),
        mut left: PausedSearch<B>,
        around: impl Fn(&mut Writer<'_>),
        open: impl Fn(
            &mut Tree<'_, B>,
            &mut Cursor<P::System<'p>>,
            &mut ExecutionStats<'p, P::Need>,
            usize,
        ) -> Result<(), Stop<P::Need>>
        + Sync,
    ) -> Result<Vec<PausedWorker<B>>, Stop<P::Need>> {
        if let Some(items) = left.begins.take() {
            let bound = extent.preemptions.or(extent.steps);
            self.stats.begin_round(Round::Tree { bound, items: items as u64 });
        }
        loop {
            let pool = Pool::new(self.count(), left.works);
            let rests: Vec<_> = left.rests.into_iter().map(|rest| Mutex::new(Some(rest))).collect();
            let work = |number: usize,
                        cursor: &mut Cursor<P::System<'p>>,
                        stats: &mut ExecutionStats<'p, P::Need>| {
                let rest = lock(&rests[number]).take();
                let mut rest = rest.expect("every worker has its own");
                let mut items = mem::take(&mut rest.items);
                let mut tree = Tree::resume((extent, table, &pool), rest, cursor, stats)?;
                stats.resume_queue(tree.over_bound.queued());
                loop {
                    tree.run(cursor, stats)?;
                    if Visitor::<P::System<'p>>::is_pausing(stats) {
                        break;
                    }
                    if let Some(item) = items.next() {
                        open(&mut tree, cursor, stats, item)?;
                        continue;
                    }
                    match pool.take() {
                        Some(Work::Items(more)) => items = more,
                        Some(Work::Given(steps, choice, weight)) => {
                            tree.go(cursor, &steps, stats)?;
                            tree.open_step(cursor, choice, weight);
                        }
                        None => break,
                    }
                }
                Ok(tree.rest(cursor, items))
            };
            let rests = self.work(|| pool.close(), work)?;
            left = PausedSearch { works: pool.into_items(), rests, begins: None };
            if left.is_done() {
                return Ok(left.rests);
            }
            Visitor::<P::System<'p>>::pause(&mut self.stats, |to| {
                around(to);
                to.put(&left.works);
                left.rests.iter().for_each(|rest| rest.save(to));
            })?;
        }
    }

    /// Explores all that follows from the beginning. `saved`: what is left of that, if some was
    /// done before.
    pub(crate) fn explore_all<B: OverBound<P::System<'p>> + Send>(
        &mut self,
        within: (Extent, &Table),
        saved: Option<PausedSearch<B>>,
        over_bound: impl Fn(usize) -> B,
        around: impl Fn(&mut Writer<'_>),
    ) -> Result<Vec<PausedWorker<B>>, Stop<P::Need>> {
        debug_assert!(
            self.cursor.is_empty() || saved.is_some(),
            "every worker begins at the beginning"
        );
        let left = saved.unwrap_or_else(|| PausedSearch::new(self.count(), 1, over_bound));
        self.explore(within, left, around, |tree, cursor, stats, _| tree.open_all(cursor, stats))
    }
}

/// What is left of a part of a search.
pub(crate) struct PausedSearch<B> {
    /// What nobody has taken.
    works: Vec<Work>,
    /// What each worker has.
    rests: Vec<PausedWorker<B>>,
    /// How many items there are, if nothing was explored yet.
    begins: Option<usize>,
}

impl<B> PausedSearch<B> {
    /// So many items, of which nothing was explored yet.
    pub(crate) fn new(
        workers: usize,
        items: usize,
        over_bound: impl Fn(usize) -> B,
    ) -> PausedSearch<B> {
        // Neighbours have most of their way in common. The last in the pool is taken first.
        let chunk = (items / (workers * CHUNKS)).clamp(1, LARGEST_CHUNK);
        let chunks =
            (0..items).step_by(chunk).map(|from| Work::Items(from..items.min(from + chunk)));
        let rests = (0..workers).map(|worker| PausedWorker::new(over_bound(worker))).collect();
        PausedSearch { works: chunks.rev().collect(), rests, begins: Some(items) }
    }

    /// Reads what [`Workers::explore`] has written after what is around it.
    pub(crate) fn load(
        workers: usize,
        from: &mut Reader,
        over_bound: impl Fn(usize, &mut Reader) -> Result<B, Damaged>,
    ) -> Result<PausedSearch<B>, Damaged> {
        let works = from.get()?;
        let rests =
            (0..workers).map(|worker| PausedWorker::load(from, |from| over_bound(worker, from)));
        Ok(PausedSearch { works, rests: rests.collect::<Result<_, _>>()?, begins: None })
    }

    fn is_done(&self) -> bool {
        self.works.is_empty() && self.rests.iter().all(PausedWorker::is_done)
    }
}

/// So many parts for each worker are made of the items that there are at the beginning, unless they
/// get too large.
const CHUNKS: usize = 32;
const LARGEST_CHUNK: usize = 256;

/// A worker that is going to leave.
struct Leaving<'l>(&'l dyn Fn());

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}
