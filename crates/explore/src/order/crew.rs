//! The workers of a search over executions.
//!
//! Every worker has its own execution in progress, on its own thread of the operating system, and its own [`Census`]; what they share is
//! the [`Table`] and the sets of the census. A worker takes a part of the tree, goes to where it begins, and explores it depth first;
//! while another one has nothing to do it gives away [steps](Work::Given) that it has not taken yet.
//!
//! **Guarantees.** What is explored, and all that is counted, is the same for any number of workers:
//!
//! - Without a table every execution of the tree is taken exactly once, whoever takes it. A step that is given away leaves the
//!   list of its worker before it enters the pool, and leaves the pool before it enters the list of another.
//! - With a table the search is one of a graph. Its nodes are the pairs of a name (of a state or a happens-before graph) and the
//!   step that was taken there; a node is what [`Table::take`] hands out once. What can be done next, and whether it costs a
//!   preemption, follows from the node alone: the state before and the step give the state after and whose the last step was.
//!   Within a level of icb all costs are equal, and so are all without a bound. So the nodes of a level are those that can be reached
//!   without a further preemption from the items at its beginning, in whatever order they are taken; and the steps that wait
//!   for the next level are those that lead from these nodes with one preemption, less those that the table covers when the level ends.
//!   Steps that were left out are counted at different times, but each once: all steps from the nodes, less those taken and those
//!   that wait. Three things break the argument and are kept out of it. A state
//!   does not tell after how many steps it was reached, so a [limit of depth](crate::Limits::depth) is refused. A graph does not tell in
//!   which order two reads came, on which [races](crate::race) depend, so [points](crate::Points::Sync) at synchronisation are
//!   refused. And it does not tell whether a thread is held back because it spins: the first one that is ends the search of several,
//!   and [one](super::alone) searches again. If none is, none would be held back on another way either: a thread that was seen to
//!   turn round on one way can turn round once more on any other, without a preemption, and is seen to then.
//! - Which of the executions with the same name is taken does depend on who comes first, and so do schedules of findings:
//!   [`alone`](super::alone) finds those that one worker reports.
//!
//! **Cost.** Beside the tables, as much as one worker needs for each. A step that is given away is reached anew by who takes it: as
//! many steps as come before it, which are not counted.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use preempt_system::Capacity;

use super::cache::Table;
use super::pool::Pool;
use super::scales::Scales;
use super::tree::{Beyond, Extent, Tree, Work};
use crate::census::Census;
use crate::cursor::Cursor;
use crate::estimate::Round;
use crate::execution::{Stop, Visitor};
use crate::plan::{Cache, Count, Order, Plan};
use crate::system::Program;

/// The workers. Between two parts of a search only the first of them is there.
pub(super) struct Crew<'p, P: Program> {
    plan: &'p Plan,
    program: &'p P,
    pub(super) cursor: Cursor<P::System<'p>>,
    pub(super) census: Census<'p>,
}

/// What every worker has when a part of a search is done: what it did with the steps beyond the bound, and whether an execution was
/// cut at the greatest number of steps.
pub(super) type Done<B> = Vec<(B, bool)>;

/// Stands at the beginning of an execution of the program.
fn begin<'p, P: Program>(plan: &Plan, program: &'p P) -> Result<Cursor<P::System<'p>>, Capacity> {
    let cursor = program.start().and_then(Cursor::over)?;
    let cursor = if plan.is_fair() { cursor.fair() } else { cursor };
    Ok(if needs_graph(plan) { cursor.recording() } else { cursor })
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

impl<'p, P: Program> Crew<'p, P> {
    pub(super) fn new(plan: &'p Plan, program: &'p P, census: Census<'p>) -> Result<Crew<'p, P>, Capacity> {
        Ok(Crew { plan, program, cursor: begin(plan, program)?, census })
    }

    /// How many there are.
    pub(super) fn workers(&self) -> usize {
        self.plan.jobs
    }

    /// All that `bound` allows was explored.
    pub(super) fn bound(&mut self, bound: u32, cut: bool) {
        Visitor::<P::System<'p>>::bound(&mut self.census, bound, cut);
    }

    /// Lets every worker do `work`, and adds up what they have counted. Whoever leaves, even by a panic, calls `leave`: the others
    /// may wait for something from it.
    pub(super) fn work<R: Send>(
        &mut self,
        leave: impl Fn() + Sync,
        work: impl Fn(usize, &mut Cursor<P::System<'p>>, &mut Census<'p>) -> Result<R, Stop> + Sync,
    ) -> Result<Vec<R>, Stop> {
        let Crew { plan, program, cursor, census } = self;
        let (plan, program): (&Plan, &'p P) = (plan, program);
        let tell = |result: Result<R, Stop>, census: &Census<'_>| {
            if let Err(Stop::Full(capacity)) = result {
                census.full(capacity);
            }
            result
        };
        let parts: Vec<_> = (1..plan.jobs).map(|_| census.part()).collect();
        let (first, others) = thread::scope(|scope| {
            let (leave, work, tell) = (&leave, &work, &tell);
            let help = |(number, mut census): (usize, Census<'p>)| {
                scope.spawn(move || {
                    let _leaving = Leaving(leave);
                    let cursor = begin(plan, program).map_err(Stop::Full);
                    let done = tell(cursor.and_then(|mut cursor| work(number, &mut cursor, &mut census)), &census);
                    (done, census)
                })
            };
            let others: Vec<_> = (1..).zip(parts).map(help).collect();
            let first = {
                let _leaving = Leaving(leave);
                tell(work(0, cursor, census), census)
            };
            let join =
                |other: thread::ScopedJoinHandle<'_, _>| other.join().unwrap_or_else(|fault| resume_unwind(fault));
            (first, others.into_iter().map(join).collect::<Vec<_>>())
        });
        let (others, parts): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        census.absorb(parts);
        [first].into_iter().chain(others).collect()
    }

    /// Explores what follows from `items` within `extent`: each worker lets `explore` take some of them after the other. With one
    /// worker that is all of them in their order.
    pub(super) fn explore<B: Beyond<P::System<'p>> + Send>(
        &mut self,
        extent: Extent,
        table: &Table,
        items: usize,
        beyond: impl Fn(usize) -> B + Sync,
        explore: impl Fn(&mut Tree<'_, B>, &mut Cursor<P::System<'p>>, &mut Census<'p>, Range<usize>) -> Result<(), Stop>
        + Sync,
    ) -> Result<Done<B>, Stop> {
        // Neighbours have most of their way in common. The last in the pool is taken first.
        let chunk = (items / (self.workers() * CHUNKS)).clamp(1, LARGEST_CHUNK);
        let chunks = (0..items).step_by(chunk).map(|from| Work::Items(from..items.min(from + chunk)));
        let pool = Pool::new(self.workers(), chunks.rev().collect());
        let bound = extent.preemptions.or(extent.steps);
        self.census.begin_round(Round::Tree { bound, items: items as u64 });
        self.work(
            || pool.close(),
            |number, cursor, census| {
                let scales = if census.wants_estimates() { Scales::on(cursor.threads()) } else { Scales::off() };
                let mut tree = Tree::new(extent, table, &pool, scales, beyond(number));
                while let Some(work) = pool.take() {
                    match work {
                        Work::Items(items) => explore(&mut tree, cursor, census, items)?,
                        Work::Given(steps, choice, weight) => {
                            tree.go(cursor, &steps, census)?;
                            tree.explore_step(cursor, choice, weight, census)?;
                        }
                    }
                }
                Ok((tree.beyond, tree.cut))
            },
        )
    }

    /// Explores all that follows from where the first worker stands, which has to be the beginning.
    pub(super) fn explore_all<B: Beyond<P::System<'p>> + Send>(
        &mut self,
        extent: Extent,
        table: &Table,
        beyond: impl Fn(usize) -> B + Sync,
    ) -> Result<Done<B>, Stop> {
        debug_assert!(self.cursor.is_empty(), "every worker begins at the beginning");
        self.explore(extent, table, 1, beyond, |tree, cursor, census, _| tree.explore(cursor, census))
    }
}

/// So many parts for each worker are made of the items that there are at the beginning, unless they get too large.
const CHUNKS: usize = 32;
const LARGEST_CHUNK: usize = 256;

/// A worker that is going to leave.
struct Leaving<'l>(&'l dyn Fn());

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}
