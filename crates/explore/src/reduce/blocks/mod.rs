//! Static partial-order reduction by blocks and PO graphs, for straight-line threads.
//!
//! **Paper.** blocks: Mittermayr and Blieberger, *Static Partial-Order Reduction of Concurrent
//! Systems in Polynomial Time*, section 3, all six steps.
//!
//! **Guarantees.** One execution of every PO graph, hence at least one of every trace: all terminal
//! states, failed assertions and run-time errors survive. A thread that has failed takes no further
//! step; its remaining blocks are skipped, and then several graphs may show one trace. If no step
//! fails there are as many executions as traces ([`Dependence::ReadWrite`]), or as traces in which
//! any two accesses to a variable are ordered ([`Dependence::All`], the paper's reading). Not all
//! intermediate states are visited, so invariants are not checked. Nothing blocks in such programs,
//! so there are no deadlocks.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | statement | step |
//! | V, `FINDSHAREDVARIABLES`; `BUILDBLOCKS` | [`Blocks`], [`Variable`], [`Block`] |
//! | `GENERATEINTRATHREADORDERS` | `PoGraph::new` |
//! | a(v, t), `blocks_var` | [`Variable::accesses`] |
//! | `INTERLEAVE_REC`, `GENERATECOMBINATIONS_REC`, `CONSTRUCTPOGRAPHS` | `Combinations` |
//! | `TOPOLOGICALSORTING` | [`PoGraph::sort`] |
//! | `COMPUTESTATESPACE` | [`run_po_graphs`] |
//! | formula (12) | [`Figures::claimed`] |
//!
//! **Deviations.** 1. Reads commute unless the paper's reading is selected: our footprints
//! distinguish reads from writes, and ordering reads only multiplies graphs. 2. Orders are not
//! listed and multiplied: a combination grows access by access and no contradictory one is ever
//! formed (`combine`). 3. Contradictions do arise from statements with one variable each, through
//! the order within threads (program F of the zoo), which the paper denies; they are always
//! checked. 4. Errors of the pseudo-code are corrected; tests seed them (`mutants`). 5. The number
//! of graphs is counted beforehand (`count`), not estimated by formula (12), which is no upper
//! bound: Theorem 1 is false.
//!
//! **Cost.** Per graph: accesses × blocks × threads, and the steps that the next topological order
//! does not share with the last. The number of graphs is exponential in the number of accesses even
//! for one variable.

mod block;
mod combine;
mod count;
mod graph;

use preempt_system::{Choice, Footprint, Model, NotStraight, Status, System, ThreadId};

use self::block::BlockId;
pub use self::block::{Block, Blocks, Variable};
use self::combine::Combinations;
pub use self::count::{Figures, graphs, multinomial};
pub use self::graph::PoGraph;
use super::Dependence;
use crate::codec::{Damaged, Reader, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{self, Ignore, ResumableSearch, Stop, Visitor};
use crate::plan::Refusal;

/// Programs with more PO graphs are refused.
pub const MOST_GRAPHS: u128 = 10_000_000;

/// The configuration of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Whether reads commute, or conflict as in the paper.
    pub dependence: Dependence,
}

/// The counts of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// PO graphs, each run once.
    pub graphs: u64,
    /// Prefixes of combinations that could not be continued. Always 0 unless an error is seeded.
    pub dead_ends: u64,
}

/// Why a program cannot be reduced in this way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A thread is not a straight line.
    NotStraight(NotStraight),
    /// It has this many PO graphs, or so many threads and blocks that these could not be counted.
    TooMany(Option<u128>),
}

impl Unfit {
    /// The refusal of this program by the strategy of this name.
    pub(crate) fn refusal(self, strategy: &'static str) -> Refusal {
        match self {
            Unfit::NotStraight(why) => Refusal::NotStraight { strategy, obstacle: why.to_string() },
            Unfit::TooMany(traces) => {
                Refusal::TooManyTraces { strategy, traces, most: MOST_GRAPHS }
            }
        }
    }
}

/// Whether the program can be reduced in this way, before any of it is run: how many PO graphs it
/// has.
pub fn preflight(model: &impl Model, dependence: Dependence) -> Result<u128, Unfit> {
    let lines = model.straight_lines().map_err(Unfit::NotStraight)?;
    match graphs(&Blocks::new(&lines, dependence)) {
        Some(graphs) if graphs <= MOST_GRAPHS => Ok(graphs),
        number => Err(Unfit::TooMany(number)),
    }
}

/// Calls `visit` with every PO graph of the blocks until it says stop.
pub fn po_graphs<E>(
    blocks: &Blocks,
    mut visit: impl FnMut(&PoGraph<'_>) -> Result<(), E>,
) -> Result<Counts, E> {
    let mut combinations = Combinations::new(blocks);
    let mut graphs = 0;
    while let Some(graph) = combinations.next() {
        graphs += 1;
        visit(graph)?;
    }
    Ok(Counts { graphs, dead_ends: combinations.dead_ends })
}

/// Runs one execution of every PO graph. `lines` are the [straight lines](Model::straight_lines) of
/// the model.
pub fn run_po_graphs<S: System>(
    lines: &[Vec<Footprint>],
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
) -> Result<Counts, Stop<S::Need>> {
    let blocks = Blocks::new(lines, config.dependence);
    let mut search = Search::new(lines, &blocks, cursor);
    execution::run_to_end(&mut search, visitor)?;
    Ok(search.counts())
}

/// The exploration of all PO graphs, one after the other.
pub(crate) struct Search<'b, 'c, S> {
    cursor: &'c mut Cursor<S>,
    run: Run<'b>,
    combinations: Combinations<'b>,
    graphs: u64,
}

impl<'b, 'c, S: System> Search<'b, 'c, S> {
    pub(crate) fn new(
        lines: &'b [Vec<Footprint>],
        blocks: &'b Blocks,
        cursor: &'c mut Cursor<S>,
    ) -> Self {
        let run = Run { lines, blocks, order: Vec::new(), lengths: Vec::new() };
        let combinations = Combinations::new(blocks);
        Search { cursor, run, combinations, graphs: 0 }
    }

    fn counts(&self) -> Counts {
        Counts { graphs: self.graphs, dead_ends: self.combinations.dead_ends }
    }
}

impl<S: System> ResumableSearch<S> for Search<'_, '_, S> {
    fn start(&mut self, _: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        Ok(())
    }

    fn advance(&mut self, visitor: &mut impl Visitor<S>) -> Result<bool, Stop<S::Need>> {
        let Some(graph) = self.combinations.next() else { return Ok(false) };
        self.graphs += 1;
        let order = graph.sort().expect("a PO graph has no cycle");
        self.run.execute(order, self.cursor, visitor)?;
        Ok(true)
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(self.graphs, self.combinations.dead_ends));
        to.put(&self.combinations.chosen().to_vec());
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        let (graphs, dead_ends) = from.get()?;
        let chosen: Vec<(usize, usize)> = from.get()?;
        self.graphs = graphs;
        if graphs > 0 {
            self.combinations.resume_after(&chosen).ok_or(Damaged)?;
        }
        self.combinations.dead_ends = dead_ends;
        Ok(())
    }

    fn replay(&mut self, _: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        // The search paused before the first graph, or at the end of an execution.
        match self.graphs {
            0 => Ok(()),
            _ => self.run.execute(self.combinations.last_order(), self.cursor, &mut Ignore),
        }
    }
}

/// Executions of blocks in one order after the other.
struct Run<'b> {
    lines: &'b [Vec<Footprint>],
    blocks: &'b Blocks,
    /// The order of the execution that the cursor has made.
    order: Vec<BlockId>,
    /// The number of steps of the execution before each of these blocks; fewer than the blocks have
    /// where threads have failed.
    lengths: Vec<usize>,
}

impl Run<'_> {
    /// Runs the blocks in this order, from where it differs from the last one.
    fn execute<S: System>(
        &mut self,
        order: Vec<BlockId>,
        cursor: &mut Cursor<S>,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        let same = self.order.iter().zip(&order).take_while(|(old, new)| old == new).count();
        if let Some(&length) = self.lengths.get(same) {
            cursor.rewind(length);
        }
        self.lengths.truncate(same);
        for &id in &order[same..] {
            self.lengths.push(cursor.len());
            self.block(id, cursor, visitor)?;
        }
        self.order = order;
        assert!(cursor.enabled().is_empty(), "when all blocks were run all threads have ended");
        visitor.end(cursor)
    }

    fn block<S: System>(
        &self,
        id: BlockId,
        cursor: &mut Cursor<S>,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        let block = &self.blocks.all[id];
        let thread = ThreadId::new(block.thread);
        for step in block.steps.clone() {
            match cursor.pending(thread).status {
                Status::Enabled => {}
                // The thread has failed.
                Status::Ended => return Ok(()),
                other => {
                    panic!("a thread that takes the same steps in every execution is not {other:?}")
                }
            }
            let choice = Choice::of(thread);
            let predicted = covers(&self.lines[block.thread][step], cursor.footprint(choice));
            assert!(
                predicted,
                "a step has the predicted footprint: step {step} of thread {}",
                block.thread
            );
            let failure = cursor.step(choice)?;
            visitor.step(cursor, failure)?;
        }
        Ok(())
    }
}

/// Whether every access of `step` is in `predicted`.
fn covers(predicted: &Footprint, step: &Footprint) -> bool {
    let predicted = predicted.accesses();
    step.accesses()
        .iter()
        .all(|&(location, access)| predicted.iter().any(|&(l, a)| l == location && a >= access))
}
