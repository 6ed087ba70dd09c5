//! Searches with scheduling points at synchronisation only: names the two accesses of each race,
//! and continues after races.
//!
//! A race is found in an execution of coarse steps. Its two accesses are looked up in the same
//! execution of fine steps, so that they can be named. After a race nothing is guaranteed
//! ([`points`](crate::engine::points)), so a search that is to [continue](crate::Plan::promote)
//! starts again with the variable promoted to a synchronisation variable, at whose accesses threads
//! are switched, and so on until no race is left. The guarantee is that of the last search.

use std::collections::BTreeSet;

use preempt_system::{FailureKind, Finding, Location, Model, Shrunk, Verdict};

use crate::codec::Writer;
use crate::driver::executions;
use crate::driver::outcome::Outcome;
use crate::driver::search::{Restarts, Search, Surroundings};
use crate::driver::shrink;
use crate::engine::checkpoint::{Layer, Pauses};
use crate::engine::cursor::Cursor;
use crate::engine::model::{ModelExecution, ModelProgram};
use crate::engine::observer::Observer;
use crate::engine::points::SyncPoints;
use crate::engine::race;

/// The frame of a search that continues after races: the races of the searches before it, and the
/// promoted variables.
type Raced = (Vec<Finding>, Vec<Location>);

impl Search {
    /// Searches `model` at the points of synchronisation.
    pub(crate) fn run_at_sync_points<'a, M: Model>(
        &self,
        model: M,
        (observer, pauses): (&'a dyn Observer, Option<&'a Pauses<'a>>),
    ) -> (Outcome, M) {
        // One clock for all restarts.
        let clock = self.clock(pauses);
        let mut coarse = SyncPoints::of(model);
        let (mut races, mut restarts) = (Vec::new(), Restarts::none(self.resolved().jobs));
        if let Some((found, raced)) =
            pauses.and_then(|pauses| pauses.read(|from| from.get::<Raced>()))
        {
            (races, coarse) = (found, coarse.promote(raced));
        }
        // Steps are counted as they are reported, so each schedule is refined before it is shrunk.
        let as_found = self.without_shrinking();
        loop {
            if let Some(pauses) = pauses {
                pauses.frame(Layer::Promotions, |to| {
                    to.put(&(races.clone(), coarse.promoted().iter().copied().collect::<Vec<_>>()))
                });
            }
            let mut program = ModelProgram(coarse);
            restarts.resume(self.resolved(), pauses, &mut program);
            // Races of a checkpoint are reported without being found again.
            if let Some(pauses) = pauses
                && pauses.is_resuming()
                && !races.iter().all(|race| is_race(&program.0, race))
            {
                pauses.refuse();
            }
            let (mut outcome, program) = as_found.drive(
                program,
                &mut restarts,
                Surroundings {
                    observer,
                    pauses,
                    clock,
                    keep_restarts: |restarts: &Restarts<_>| restarts.keep(pauses),
                    save_learned: |_: &_, _: &mut Writer<'_>| (),
                },
                executions::explore_executions,
            );
            let lengths = outcome
                .findings
                .iter()
                .map(|finding| program.0.refine(&finding.schedule).steps().len());
            let lengths: Vec<usize> = lengths.collect();
            shrink::shrink(&program, self.resolved(), &mut outcome.findings, observer);
            let ModelProgram(searched) = program;
            for (finding, steps) in outcome.findings.iter_mut().zip(lengths) {
                finding.schedule = searched.refine(&finding.schedule);
                finding.shrunk = finding.shrunk.map(|shrunk| Shrunk { steps, ..shrunk });
            }
            let mut raced = BTreeSet::new();
            for finding in outcome
                .findings
                .iter_mut()
                .filter(|finding| finding.failure.kind == FailureKind::Race)
            {
                raced.extend(name(&searched, finding));
            }
            let again = self.resolved().promote && !raced.is_empty() && outcome.stopped.is_none();
            if !again {
                return (finish(outcome, races, &searched), searched.into_fine());
            }
            races.extend(
                outcome
                    .findings
                    .into_iter()
                    .filter(|finding| finding.failure.kind == FailureKind::Race),
            );
            coarse = searched.promote(raced);
        }
    }
}

/// Whether the execution of a finding has a race on the variable that the finding names. Variables
/// that were promoted since count as plain.
fn is_race<M: Model>(coarse: &SyncPoints<M>, finding: &Finding) -> bool {
    let fine = coarse.fine();
    let Some(cursor) = follow(fine, finding) else { return false };
    finding.failure.kind == FailureKind::Race
        && race::all(&cursor, |location| fine.location_kind(location)).into_iter().any(|race| {
            let name = format!("`{}`", fine.location_name(race.location));
            finding.failure.message.contains(&name)
        })
}

/// The execution of a finding, if it can be executed.
fn follow<'m, M: Model>(fine: &'m M, finding: &Finding) -> Option<Cursor<ModelExecution<'m, M>>> {
    let mut cursor = Cursor::new(fine).ok()?;
    for &choice in finding.schedule.steps() {
        let can = choice.thread.index() < cursor.threads() && cursor.can(choice);
        can.then(|| cursor.step(choice))?.ok()?;
    }
    Some(cursor)
}

/// Names the two accesses of a race and returns their location.
fn name<M: Model>(coarse: &SyncPoints<M>, finding: &mut Finding) -> Option<Location> {
    let cursor = follow(coarse.fine(), finding)?;
    let race = race::at(&cursor, |location| coarse.location_kind(location))?;
    finding.failure = race::failure(&cursor, race);
    Some(race.location)
}

/// The outcome of the last search together with the races of the searches before it.
fn finish<M: Model>(
    mut outcome: Outcome,
    races: Vec<Finding>,
    searched: &SyncPoints<M>,
) -> Outcome {
    let promoted =
        searched.promoted().iter().map(|&location| searched.fine().location_name(location));
    outcome.promoted = promoted.collect();
    outcome.findings.splice(0..0, races);
    if let Some(first) = outcome.findings.first() {
        outcome.verdict = Verdict::from(first.failure.kind);
    }
    outcome
}
