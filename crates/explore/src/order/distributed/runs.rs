//! Sorted runs in several processes: the part of a process whose states do not fit into memory.
//!
//! The phases of a level are those of [`sorted`](crate::order::sorted). While a process expands its
//! part of the level, successors of other processes go into parcels, and received states become
//! candidates like own successors. When everything has arrived, each process subtracts its visited
//! states from its candidates by itself: all copies of a state are candidates of its owner.
//!
//! **Guarantees.** A level is the same set of states as with tables, so all counts and schedules
//! are the same.
//!
//! **Cost.** Each process has its own runs, whose states are a random sample of all states. The
//! differences between neighbours are larger by a factor of the number of processes: by that
//! factor's logarithm to base 128 in bytes per state.

use std::sync::atomic::AtomicUsize;
use std::thread;

use preempt_system::Model;

use super::report::LevelReport;
use super::{Arrivals, Cluster, Failures, Goal, Parcels, Part, Receiver, Shared};
use crate::engine::exchange::{Lost, Round};
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::runs::{Run, RunError, RunWriter};
use crate::engine::store::hash::hash;
use crate::order::bfs::Outbox as _;
use crate::order::sorted::{Expansion, Phases, Progress, Runs, blocks, states};
use crate::plan::coverage::Limit;

/// Blocks that the first worker expands in a round.
const ROUND: usize = 4;

/// The part of the states that a process keeps in sorted runs.
pub(super) struct SortedPart<'a, M: Model, const W: usize> {
    pub(super) cluster: &'a Cluster<'a, M>,
    pub(super) shared: &'a Shared<'a>,
    pub(super) phases: &'a Phases<'a, M>,
    progress: Progress,
    /// The next level. Its states are visited.
    next: Runs,
    /// The most states of a level.
    most_waiting: u64,
}

impl<'a, M: Model, const W: usize> SortedPart<'a, M, W> {
    pub(super) fn new(
        cluster: &'a Cluster<'a, M>,
        shared: &'a Shared<'a>,
        phases: &'a Phases<'a, M>,
    ) -> Self {
        SortedPart {
            cluster,
            shared,
            phases,
            progress: Progress::default(),
            next: Runs::new(),
            most_waiting: 0,
        }
    }

    fn expansion(&self, workers: usize) -> Expansion<'a, M, W, Parcels<'a>> {
        let parcels = Parcels::new(self.cluster.exchange, self.phases.words());
        let (level, phases) = (states(&self.progress.level), self.phases);
        Expansion::among(phases, level, workers, self.progress.depth, parcels)
    }

    /// Ends the search of this process after an error of its files.
    fn fail(&self, error: RunError) {
        self.shared.control.stop(Stop::Limit(error.into()));
    }

    /// Expands this process's states of the level, and receives its candidates for the next one.
    fn expand(&mut self) -> Result<(), Lost> {
        let workers = self.phases.workers(states(&self.progress.level));
        let blocks = blocks(&self.progress.level);
        let next = AtomicUsize::new(self.progress.expanded);
        let help = || {
            let mut expansion = self.expansion(workers);
            let expanded = expansion.expand(&blocks, &next, usize::MAX);
            let flushed = expanded.and_then(|_| expansion.flush());
            expansion.outbox.send_all::<W>();
            flushed.and_then(|()| expansion.finish())
        };
        let mut own = self.expansion(workers);
        let runs = thread::scope(|scope| {
            let helpers: Vec<_> = (1..workers).map(|_| scope.spawn(help)).collect();
            let expanded = self.expand_own(&mut own, &blocks, &next);
            if expanded.is_err() {
                // The helpers end at once.
                self.shared.control.stop(Stop::Limit(Limit::Process));
            }
            let mut runs = Vec::new();
            for helper in helpers {
                let done = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                match done {
                    Ok(found) => runs.extend(found),
                    Err(error) => self.fail(error),
                }
            }
            expanded.map(|()| runs)
        })?;
        self.end_round(&mut own, Round::Last)?;
        let expanded = next.into_inner().min(blocks.len());
        match own.finish() {
            Ok(found) => self.progress.candidates.extend(runs.into_iter().chain(found)),
            Err(error) => self.fail(error),
        }
        self.progress.expanded = expanded;
        Ok(())
    }

    /// Expands what the helpers leave.
    fn expand_own(
        &self,
        own: &mut Expansion<'a, M, W, Parcels<'a>>,
        blocks: &[(&Run, usize)],
        next: &AtomicUsize,
    ) -> Result<(), Lost> {
        let control = self.shared.control;
        while !control.stopped() && !control.is_pausing() {
            match own.expand(blocks, next, ROUND) {
                Ok(true) => self.end_round(own, Round::More)?,
                Ok(false) => break,
                Err(error) => self.fail(error),
            }
        }
        Ok(())
    }

    fn end_round(
        &self,
        own: &mut Expansion<'a, M, W, Parcels<'a>>,
        round: Round,
    ) -> Result<(), Lost> {
        let control = self.shared.control;
        if !control.stopped()
            && let Err(error) = own.flush()
        {
            self.fail(error);
        }
        own.outbox.send_all::<W>();
        let at = (self.cluster.exchange, control, self.phases.words());
        Arrivals::<_, W>::end_round(at, round, &mut Candidates { own, part: self })
    }

    /// The next level, and all visited states with it.
    fn close_level(&mut self) -> Result<(), RunError> {
        let next = self.phases.subtract::<W>(&mut self.progress)?;
        if !self.shared.control.stopped() {
            self.phases.merge::<W>(&mut self.progress.visited, &next)?;
        }
        self.next = next;
        Ok(())
    }
}

/// Received states become candidates of the first worker.
struct Candidates<'c, 'a, M: Model, const W: usize> {
    own: &'c mut Expansion<'a, M, W, Parcels<'a>>,
    part: &'c SortedPart<'a, M, W>,
}

impl<M: Model, const W: usize> Receiver for Candidates<'_, '_, M, W> {
    fn add(&mut self, states: &[u64]) {
        if !self.part.shared.control.stopped()
            && let Err(error) = self.own.add(states)
        {
            self.part.fail(error);
        }
    }

    fn poll(&mut self) {
        self.part.phases.poll(0);
    }
}

impl<M: Model, const W: usize> Part for SortedPart<'_, M, W> {
    fn begin(
        &mut self,
        _: &mut Explored,
        _: &mut Failures,
    ) -> Result<Option<(u64, Option<u32>)>, Lost> {
        let mut expander = self.phases.expander();
        let Some(initial) = expander.begin(self.shared.control) else {
            return Ok(Some((0, None)));
        };
        let hash = hash::<W>(&initial.state);
        let parcels = Parcels::new(self.cluster.exchange, self.phases.words());
        if parcels.is_mine::<W>(&initial.state) {
            let continues = initial.failures.is_empty() || self.cluster.plan.keep_going;
            self.progress.seen.failed += initial.failures.len() as u64;
            self.progress.seen.states = 1;
            initial.failures.into_iter().for_each(|failure| self.phases.record(failure, 0));
            let level = || -> Result<Runs, RunError> {
                let mut run = RunWriter::<W>::new(self.phases.space());
                run.push(&initial.state)?;
                Ok(vec![run.finish()?])
            };
            match (continues, level(), level()) {
                (true, Ok(next), Ok(visited)) => {
                    self.next = next;
                    self.progress.visited.push(visited);
                }
                (true, Err(error), _) | (true, _, Err(error)) => self.fail(error),
                (false, ..) => {}
            }
        }
        Ok(Some((hash, None)))
    }

    fn report(&mut self) -> LevelReport {
        let progress = &mut self.progress;
        self.phases.collect_counts(&mut progress.seen);
        let bytes = |runs: &[Run]| runs.iter().map(Run::bytes).sum::<usize>() as u64;
        self.most_waiting = self.most_waiting.max(states(&self.next));
        let all: usize = progress.level.iter().map(Run::blocks).sum();
        LevelReport {
            seen: std::mem::take(&mut progress.seen),
            rest: (all - progress.expanded.min(all)) as u64,
            waiting: states(&self.next),
            failures: self.phases.take_failures().into_vec(),
            store_bytes: progress.visited.iter().map(|runs| bytes(runs)).sum(),
            frontier_bytes: bytes(&progress.level),
            frontier: self.most_waiting,
            disk_bytes: self.phases.space().most_disk(),
            ..LevelReport::default()
        }
    }

    fn checkpoint(
        &mut self,
        _: u64,
        _: u64,
        _: Option<u32>,
        _: &Explored,
        _: &Failures,
    ) -> Result<(), Lost> {
        unreachable!("checkpoints of sorted runs in several processes are refused")
    }

    fn advance(&mut self, depth: u32, goal: &mut Goal<'_>) {
        let next = std::mem::take(&mut self.next);
        let old = std::mem::replace(&mut self.progress.level, next);
        (self.progress.depth, self.progress.expanded) = (depth, 0);
        if let Goal::Levels { last, kept } = goal {
            // A level is kept when it has been expanded, the last one at once.
            if depth > 0 {
                kept.push(old);
            }
            if depth == *last {
                kept.push(std::mem::take(&mut self.progress.level));
            }
        }
    }

    fn expand_level(&mut self) -> Result<(), Lost> {
        self.expand()?;
        let control = self.shared.control;
        // A level that was cut short has no end: the search stops, or continues with it.
        if !control.stopped()
            && !control.is_pausing()
            && let Err(error) = self.close_level()
        {
            self.fail(error);
        }
        Ok(())
    }
}
