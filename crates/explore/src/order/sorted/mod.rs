//! Breadth first, with all visited states in sorted runs: for searches larger than memory.
//!
//! A hash table answers at once whether a state is new, but it needs a random access to memory for
//! every step, so it has to fit into memory, with all bits of every state. This search asks later,
//! for all successors of a level together (*delayed duplicate detection*). The successors are
//! sorted, and one pass over the sorted visited states removes those that are not new. So visited
//! states are read and written in order, which disks do well, and are stored as
//! [differences](crate::engine::runs), which need one to two bytes per state instead of ten to
//! twenty.
//!
//! A level is explored in three phases, each by all workers:
//!
//! 1. *Expand.* Workers take blocks of the level and collect the successors in
//!    [tables](candidates) of a limited size. A full table becomes a sorted run.
//! 2. *Subtract.* The union of these runs without the visited states is the next level. It is cut
//!    into ranges of states, one for each worker.
//! 3. *Merge.* Visited states are a list of generations of falling size; the next level becomes the
//!    youngest. As long as the youngest is more than half as large as the one before, both are
//!    merged. So there are at most logarithmically many generations, and a state is copied
//!    logarithmically often.
//!
//! **Guarantees.** Those of [`bfs`](super::bfs), with the same counts: a level is a set of states,
//! however it was computed. The reported schedules are the same too: see [`marking`].
//!
//! **Cost.** States per level decide: a level has a fixed cost of some passes over short runs, so
//! deep graphs with small levels are slower than with a table.
//!
//! **Memory.** Half of the limit is for the tables, the rest for runs. Runs beyond that go to files
//! if a directory was given. A search without a limit keeps everything in memory.
//!
//! **Pauses** between blocks of the first phase, when the remaining work is a list of runs and a
//! position in the level. The other phases are not interrupted: they take less time than the first.

mod candidates;
pub(in crate::order) mod marking;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use preempt_system::{Batch, Failure, Model};

use self::candidates::Candidates;
use super::bfs::{Outbox, SingleProcess};
use super::{BATCH, checks};
use crate::codec::{Damaged, Reader, SaveInPlace as _, Writer};
use crate::engine::control::{PollTimer, SearchControl};
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;
use crate::engine::expand::Expander;
use crate::engine::explored::Explored;
use crate::engine::runs::{Run, RunError, RunReader, RunSpace, RunWriter, Union, remove_visited};
use crate::engine::{lock, memory, parallel};
use crate::plan::coverage::{Coverage, Limit};
use crate::plan::{Limits, ResolvedPlan};

/// States of a level for which a second worker is worth its start.
const SHARED: u64 = 1 << 14;

/// States that are compared with the visited ones together.
const PART: usize = 1 << 15;

/// The memory of a search that has no limit: tables grow as they need.
const UNLIMITED: usize = usize::MAX / 4;

/// A set of states in ascending runs.
pub(in crate::order) type Runs = Vec<Run>;

pub(in crate::order) fn states(runs: &[Run]) -> u64 {
    runs.iter().map(Run::states).sum()
}

/// All blocks of `runs`, each with its run.
pub(in crate::order) fn blocks(runs: &[Run]) -> Vec<(&Run, usize)> {
    runs.iter().flat_map(|run| (0..run.blocks()).map(move |block| (run, block))).collect()
}

/// The number of steps to a failure; fewer are better.
type Failures = DistinctFailures<u32>;

/// The phases of a level, and the data that the workers share.
pub(in crate::order) struct Phases<'a, M> {
    plan: &'a ResolvedPlan,
    model: &'a M,
    control: &'a SearchControl<'a>,
    space: RunSpace<'a>,
    /// The most bytes of all tables together.
    table_bytes: usize,
    /// The bytes of the tables now.
    tables: AtomicUsize,
    failures: Mutex<Failures>,
    /// Whether this process counts the failures that it finds. In several processes they are
    /// counted when they are gathered.
    counts_failures: bool,
    /// The counts of workers that are not part of [`Progress::seen`] yet.
    seen: Mutex<Coverage>,
}

/// A search between two phases.
#[derive(Default)]
pub(in crate::order) struct Progress {
    pub(in crate::order) seen: Coverage,
    pub(in crate::order) depth: u32,
    /// Generations of visited states, the oldest and largest first.
    pub(in crate::order) visited: Vec<Runs>,
    /// The level that is being expanded. Its states are visited.
    pub(in crate::order) level: Runs,
    /// The number of its blocks that were expanded.
    pub(in crate::order) expanded: usize,
    /// The successors so far.
    pub(in crate::order) candidates: Runs,
}

impl<'a, M: Model> Phases<'a, M> {
    pub(in crate::order) fn new(
        plan: &'a ResolvedPlan,
        model: &'a M,
        control: &'a SearchControl<'a>,
        budget: usize,
    ) -> Phases<'a, M> {
        let words = model.shape().words;
        Phases {
            plan,
            model,
            control,
            space: RunSpace::new(words, budget / 2, control.spill),
            table_bytes: budget / 2,
            tables: AtomicUsize::new(0),
            failures: Mutex::default(),
            counts_failures: true,
            seen: Mutex::default(),
        }
    }

    /// The same for one of several processes.
    pub(in crate::order) fn among(self) -> Phases<'a, M> {
        Phases { counts_failures: false, ..self }
    }

    /// The room for runs.
    pub(in crate::order) fn space(&self) -> &RunSpace<'a> {
        &self.space
    }

    /// The failures since the last call.
    pub(in crate::order) fn take_failures(&self) -> Failures {
        std::mem::take(&mut *lock(&self.failures))
    }

    /// Adds what workers have counted.
    pub(in crate::order) fn collect_counts(&self, seen: &mut Coverage) {
        seen.add(&std::mem::take(&mut *lock(&self.seen)));
    }

    pub(in crate::order) fn words(&self) -> usize {
        self.space.words()
    }

    /// Checks the limits after `transitions` more steps.
    pub(in crate::order) fn poll(&self, transitions: u64) {
        let bytes = self.space.memory() + self.tables.load(Relaxed);
        self.control.poll_bytes(transitions, bytes);
    }

    #[cold]
    pub(in crate::order) fn record(&self, failure: Failure, steps: u32) {
        let is_new = lock(&self.failures).record(failure, steps, |new, old| new < old);
        if is_new && self.counts_failures {
            self.control.count_failure();
        }
    }

    pub(in crate::order) fn expander<'m>(&'m self) -> Expander<M::Stepper<'m>> {
        Expander::new(self.model.stepper(), self.model.shape(), checks(self.plan))
    }

    /// Runs `work` on each of `inputs`, with as many workers as there are, until one fails.
    fn in_parallel<I: Send, R: Send>(
        &self,
        inputs: Vec<I>,
        work: impl Fn(I) -> Result<R, RunError> + Sync,
    ) -> Result<Vec<R>, RunError> {
        let results = parallel::run(inputs, || {}, &work, |_, input| work(input));
        results.into_iter().collect()
    }

    /// The number of workers for a phase with this many states.
    pub(in crate::order) fn workers(&self, states: u64) -> usize {
        if states < SHARED { 1 } else { self.plan.jobs }
    }

    /// Phase 1: expands the rest of the level, or a part of it if the search pauses.
    fn expand<const W: usize>(&self, progress: &mut Progress) -> Result<(), RunError> {
        let Progress { level, expanded, candidates, depth, .. } = progress;
        let (depth, expected) = (*depth, states(level));
        let workers = self.workers(expected);
        let blocks = blocks(level);
        let next = AtomicUsize::new(*expanded);
        let work = |()| {
            let mut worker =
                Expansion::<M, W>::among(self, expected, workers, depth, SingleProcess);
            worker.expand(&blocks, &next, usize::MAX)?;
            worker.finish()
        };
        let runs = self.in_parallel(vec![(); workers], work);
        self.collect_counts(&mut progress.seen);
        *expanded = next.into_inner().min(blocks.len());
        candidates.extend(runs?.into_iter().flatten());
        Ok(())
    }

    /// Phase 2: the candidates that were not visited, cut into ranges.
    pub(in crate::order) fn subtract<const W: usize>(
        &self,
        progress: &mut Progress,
    ) -> Result<Runs, RunError> {
        let candidates = std::mem::take(&mut progress.candidates);
        let (visited, depth) = (&progress.visited, progress.depth + 1);
        let ranges = ranges(&candidates, self.workers(states(&candidates)));
        let work = |(start, end): Range<'_>| {
            let (mut expander, mut seen) = (self.expander(), Coverage::default());
            let mut union = Union::<W>::new(&candidates, start, end)?;
            // Most states that are met again are young, so the youngest generations come first.
            let mut readers: Vec<RunReader<'_, W>> =
                visited.iter().rev().flatten().map(RunReader::new).collect();
            let (mut run, mut part) = (RunWriter::<W>::new(&self.space), Vec::new());
            let mut more = true;
            while more && !self.control.stopped() {
                more = union.take(PART, &mut part)?;
                for reader in &mut readers {
                    remove_visited(&mut part, self.words(), reader)?;
                }
                for state in part.chunks_exact(self.words()) {
                    if let Err(failure) = expander.invariant(state) {
                        seen.failed += 1;
                        self.record(*failure, depth);
                    }
                    run.push(state)?;
                }
                seen.states = (part.len() / self.words()) as u64;
                self.control.add_states(seen.states);
                lock(&self.seen).add(&std::mem::take(&mut seen));
                self.poll(0);
                part.clear();
            }
            run.finish()
        };
        let next = self.in_parallel(ranges, work);
        self.collect_counts(&mut progress.seen);
        Ok(next?.into_iter().filter(|run| run.states() > 0).collect())
    }

    /// Phase 3: adds a copy of the next level to the visited states.
    pub(in crate::order) fn merge<const W: usize>(
        &self,
        visited: &mut Vec<Runs>,
        next: &[Run],
    ) -> Result<(), RunError> {
        let mut parts: Vec<&[Run]> = vec![next];
        let mut all = states(next);
        let mut kept = visited.len();
        while kept > 0 && all > states(&visited[kept - 1]) / 2 {
            kept -= 1;
            all += states(&visited[kept]);
            parts.push(&visited[kept]);
        }
        let sources: Vec<&Run> = parts.into_iter().flatten().collect();
        let ranges = ranges(sources.iter().copied(), self.workers(all));
        let work = |(start, end): Range<'_>| {
            let mut union = Union::<W>::new(sources.iter().copied(), start, end)?;
            let (mut run, mut part) = (RunWriter::<W>::new(&self.space), Vec::new());
            let mut more = true;
            while more && !self.control.stopped() {
                more = union.take(PART, &mut part)?;
                part.chunks_exact(self.words()).try_for_each(|state| run.push(state))?;
                part.clear();
                self.poll(0);
            }
            run.finish()
        };
        let merged = self.in_parallel(ranges, work)?;
        visited.truncate(kept);
        visited.push(merged.into_iter().filter(|run| run.states() > 0).collect());
        Ok(())
    }

    /// The first level: the initial state.
    fn begin<const W: usize>(&self, progress: &mut Progress) -> Result<(), RunError> {
        let mut expander = self.expander();
        let Some(initial) = expander.begin(self.control) else { return Ok(()) };
        let continues = initial.failures.is_empty() || self.plan.keep_going;
        progress.seen.failed += initial.failures.len() as u64;
        progress.seen.states = 1;
        self.control.add_states(1);
        initial.failures.into_iter().for_each(|failure| self.record(failure, 0));
        if continues {
            let level = || -> Result<Runs, RunError> {
                let mut run = RunWriter::<W>::new(&self.space);
                run.push(&initial.state)?;
                Ok(vec![run.finish()?])
            };
            progress.level = level()?;
            progress.visited.push(level()?);
        }
        Ok(())
    }

    /// Whether the level of `progress` is to be expanded.
    fn enters_level(&self, progress: &mut Progress) -> bool {
        let control = self.control;
        if !self.plan.keep_going && !lock(&self.failures).is_empty() {
            control.stop(Stop::Finding);
        }
        let waiting = states(&progress.level);
        if waiting > 0 {
            progress.seen.depth = progress.depth;
            control.reach_depth(progress.depth);
            if control.limits.depth.is_some_and(|limit| progress.depth >= limit) {
                control.stop(Stop::Limit(Limit::Depth));
            }
        }
        waiting > 0 && !control.stopped()
    }

    /// Explores the level of `progress` and moves to the next one. `keep` gets the old level.
    fn explore_level<const W: usize>(
        &self,
        progress: &mut Progress,
        keep: &mut dyn FnMut(Runs),
    ) -> Result<(), RunError> {
        let control = self.control;
        let blocks = progress.level.iter().map(Run::blocks).sum();
        while progress.expanded < blocks {
            self.expand::<W>(progress)?;
            if control.is_pausing() && !control.stopped() {
                self.pause(progress);
            }
            if control.stopped() {
                return Ok(());
            }
        }
        let next = self.subtract::<W>(progress)?;
        let waiting = states(&next);
        if control.stopped() {
            return Ok(());
        }
        self.merge::<W>(&mut progress.visited, &next)?;
        if control.stopped() {
            return Ok(());
        }
        keep(std::mem::replace(&mut progress.level, next));
        progress.seen.settled = Some(progress.depth);
        progress.seen.frontier = progress.seen.frontier.max(waiting);
        (progress.depth, progress.expanded) = (progress.depth + 1, 0);
        Ok(())
    }

    fn run<const W: usize>(&self, progress: &mut Progress) -> Result<(), RunError> {
        // A checkpoint is from the middle of a level, which may have failures already. It is
        // explored to its end.
        let mut is_in_level = self.resume::<W>(progress);
        if !is_in_level && !self.control.stopped() {
            self.begin::<W>(progress)?;
        }
        while !self.control.stopped() && (is_in_level || self.enters_level(progress)) {
            is_in_level = false;
            self.explore_level::<W>(progress, &mut drop)?;
        }
        Ok(())
    }

    fn pause(&self, progress: &Progress) {
        self.control.pause(|to| {
            self.failures.save_contents(to);
            progress.save(to);
        });
    }

    /// Continues from a checkpoint. Returns whether there is one.
    fn resume<const W: usize>(&self, progress: &mut Progress) -> bool {
        let resumed = self.control.resume(|from| {
            self.failures.load_contents(from)?;
            *progress = Progress::load::<W, M>(from, self)?;
            Ok(())
        });
        resumed.is_some()
    }
}

impl Progress {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(self.seen, self.depth));
        to.put(&self.expanded);
        let sets = [&self.level, &self.candidates];
        to.put(&(sets.len() + self.visited.len()));
        for runs in sets.into_iter().chain(&self.visited) {
            to.put(&runs.len());
            runs.iter().for_each(|run| run.save(to));
        }
    }

    fn load<const W: usize, M: Model>(
        from: &mut Reader,
        shared: &Phases<'_, M>,
    ) -> Result<Progress, Damaged> {
        let (seen, depth) = from.get()?;
        let expanded = from.get()?;
        let mut sets = Vec::new();
        for _ in 0..from.count()? {
            let runs = (0..from.count()?).map(|_| Run::load::<W>(from, &shared.space));
            sets.push(runs.collect::<Result<Runs, Damaged>>()?);
        }
        if sets.len() < 2 {
            return Err(Damaged);
        }
        let visited = sets.split_off(2);
        let candidates = sets.pop().expect("there are two");
        let level = sets.pop().expect("there are two");
        let blocks: usize = level.iter().map(Run::blocks).sum();
        if expanded > blocks {
            return Err(Damaged);
        }
        Ok(Progress { seen, depth, visited, level, expanded, candidates })
    }
}

/// A range of states: from the first on and below the second, or without an end.
type Range<'r> = (Option<&'r [u64]>, Option<&'r [u64]>);

/// Cuts the states of `runs` into `count` ranges with about as many blocks each.
fn ranges<'r>(runs: impl IntoIterator<Item = &'r Run>, count: usize) -> Vec<Range<'r>> {
    if count == 1 {
        return vec![(None, None)];
    }
    let firsts = runs.into_iter().flat_map(|run| (0..run.blocks()).map(|block| run.first(block)));
    let mut firsts: Vec<&[u64]> = firsts.collect();
    firsts.sort_unstable();
    firsts.dedup();
    let cut = |number: usize| firsts[number * firsts.len() / count];
    let mut cuts: Vec<&[u64]> = (1..count).map(cut).collect();
    cuts.dedup();
    let starts = [None].into_iter().chain(cuts.iter().copied().map(Some));
    let ends = cuts.iter().copied().map(Some).chain([None]);
    starts.zip(ends).collect()
}

/// A worker in the first phase.
pub(in crate::order) struct Expansion<'s, M: Model, const W: usize, O = SingleProcess> {
    shared: &'s Phases<'s, M>,
    /// Takes the successors that another process stores.
    pub(in crate::order) outbox: O,
    expander: Expander<M::Stepper<'s>>,
    batch: Batch<W>,
    candidates: Candidates<W>,
    /// The bytes of the table that the search counts.
    counted: usize,
    runs: Runs,
    depth: u32,
    poll_timer: PollTimer,
}

impl<'s, M: Model, const W: usize, O: Outbox> Expansion<'s, M, W, O> {
    /// One of `workers` workers on a level of `expected` states.
    pub(in crate::order) fn among(
        shared: &'s Phases<'s, M>,
        expected: u64,
        workers: usize,
        depth: u32,
        outbox: O,
    ) -> Self {
        let (expected, bytes) = (expected / workers as u64, shared.table_bytes / workers);
        let words = shared.words();
        let mut expansion = Expansion {
            shared,
            outbox,
            expander: shared.expander(),
            batch: Batch::new(words),
            candidates: Candidates::new(words, expected, bytes),
            counted: 0,
            runs: Runs::new(),
            depth,
            poll_timer: PollTimer::new(shared.control, 0, 0),
        };
        expansion.count_table();
        expansion
    }

    /// Reports the size of the table to the search.
    fn count_table(&mut self) {
        let bytes = self.candidates.bytes();
        if bytes != self.counted {
            self.shared.tables.fetch_add(bytes.wrapping_sub(self.counted), Relaxed);
            self.counted = bytes;
        }
    }

    /// Expands at most `most` blocks, until none is left or the search pauses or stops. A block
    /// that was taken is expanded to its end, so that the number of the next one says what was
    /// done. Returns whether there may be more.
    pub(in crate::order) fn expand(
        &mut self,
        blocks: &[(&Run, usize)],
        next: &AtomicUsize,
        most: usize,
    ) -> Result<bool, RunError> {
        let control = self.shared.control;
        let (mut raw, mut level) = (Vec::new(), Vec::new());
        for _ in 0..most {
            if control.stopped() || control.is_pausing() {
                return Ok(false);
            }
            let Some(&(run, block)) = blocks.get(next.fetch_add(1, Relaxed)) else {
                return Ok(false);
            };
            run.read::<W>(block, &mut raw, &mut level)?;
            for state in level.chunks_exact(self.batch.words()) {
                if let Err(capacity) = self.expander.expand(state, &mut self.batch) {
                    control.stop(Stop::Restart(capacity));
                    return Ok(false);
                }
                if !self.expander.failures.is_empty() {
                    self.pass_failures();
                }
                if self.batch.len() >= BATCH {
                    self.flush()?;
                }
            }
            let seen = &self.expander.seen;
            if self.poll_timer.is_due(seen.expanded) {
                let steps = self.poll_timer.restart(seen.expanded, seen.transitions);
                self.shared.poll(steps);
            }
        }
        Ok(true)
    }

    #[cold]
    fn pass_failures(&mut self) {
        self.expander.seen.failed += self.expander.failures.len() as u64;
        for (choice, failure) in self.expander.failures.drain(..) {
            self.shared.record(failure, self.depth + u32::from(choice.is_some()));
        }
    }

    /// Moves successors from the batch into the table.
    pub(in crate::order) fn flush(&mut self) -> Result<(), RunError> {
        self.outbox.divert(&mut self.batch);
        self.candidates.add(self.batch.states());
        self.batch.clear();
        self.empty_full_table()
    }

    /// Adds states that another process has found.
    pub(in crate::order) fn add(&mut self, states: &[u64]) -> Result<(), RunError> {
        let words = self.shared.words();
        states.chunks(BATCH * words).try_for_each(|part| {
            self.candidates.add(part);
            self.empty_full_table()
        })
    }

    fn empty_full_table(&mut self) -> Result<(), RunError> {
        self.count_table();
        if self.candidates.is_full() {
            self.runs.extend(self.candidates.take(&self.shared.space)?);
        }
        Ok(())
    }

    /// The candidates of this worker.
    pub(in crate::order) fn finish(mut self) -> Result<Runs, RunError> {
        self.flush()?;
        self.runs.extend(self.candidates.take(&self.shared.space)?);
        Ok(std::mem::take(&mut self.runs))
    }
}

impl<M: Model, const W: usize, O> Drop for Expansion<'_, M, W, O> {
    fn drop(&mut self) {
        lock(&self.shared.seen).add(&self.expander.seen);
        self.shared.tables.fetch_sub(self.counted, Relaxed);
    }
}

/// The memory that a search may use for tables and runs.
pub(in crate::order) fn budget(limits: &Limits) -> usize {
    let process = limits.resident.and_then(|limit| {
        // The process needs memory for other things, and a limit is checked a little late.
        Some((limit - limit / 8).saturating_sub(memory::resident()?))
    });
    let tables = limits.memory.map(|limit| limit - limit / 8);
    tables.into_iter().chain(process).min().unwrap_or(UNLIMITED)
}

/// Searches, and adds schedules of the failures to the result.
pub(crate) fn search<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    explored: &mut Explored,
) {
    search_within::<M, W>(plan, model, control, budget(&control.limits), explored);
}

/// The same with `budget` bytes of memory for tables and runs.
fn search_within<M: Model, const W: usize>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    budget: usize,
    explored: &mut Explored,
) {
    let shared = Phases::new(plan, model, control, budget);
    let mut progress = Progress::default();
    if let Err(error) = shared.run::<W>(&mut progress) {
        control.stop(Stop::Limit(error.into()));
    }
    explored.seen = progress.seen;
    explored.store_bytes = progress.visited.iter().flatten().map(Run::bytes).sum();
    explored.frontier_bytes = progress.level.iter().map(Run::bytes).sum();
    explored.spilled_bytes = shared.space.most_disk();
    drop(progress);
    let wanted = std::mem::take(&mut *lock(&shared.failures));
    if !wanted.is_empty() && !matches!(control.reason(), Some(Stop::Restart(_))) {
        explored.failures = marking::schedules::<M, W>(plan, model, control, budget, &wanted);
    }
}
