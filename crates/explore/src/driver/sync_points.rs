//! Searches with points at synchronisation only: what becomes of the races that they find.
//!
//! A race is found in an execution of coarse steps. Its two accesses are looked up in the same
//! execution step by step, so that they can be named. Behind a race nothing is guaranteed
//! ([`points`](crate::engine::points)), so a search that shall [go on](crate::Plan::promote) begins
//! anew with the variable promoted to a synchronisation variable, at whose accesses threads are
//! switched, and so on until no race is left. What it then covers, it covers.

use std::collections::BTreeSet;

use preempt_system::{FailureKind, Finding, Location, Model, Shrunk, Verdict};

use crate::driver::executions;
use crate::driver::outcome::Outcome;
use crate::driver::search::{Restarts, Search};
use crate::driver::shrink;
use crate::engine::checkpoint::Pauses;
use crate::engine::cursor::Cursor;
use crate::engine::model::ModelProgram;
use crate::engine::observer::Observer;
use crate::engine::points::SyncPoints;
use crate::engine::race;

/// The frame of a search that goes on after races: those of the searches before it, and the
/// variables that are synchronisation now.
type Raced = (Vec<Finding>, Vec<Location>);

impl Search {
    /// Searches `model` at the points of synchronisation.
    pub(crate) fn run_at_sync_points<'a, M: Model>(
        &self,
        model: M,
        (observer, pauses): (&'a dyn Observer, Option<&'a Pauses<'a>>),
    ) -> (Outcome, M) {
        // It runs on when the search begins anew.
        let clock = self.clock(pauses);
        let mut coarse = SyncPoints::of(model);
        let (mut races, mut restarts) = (Vec::new(), Restarts::none(self.resolved().jobs));
        if let Some((found, raced)) =
            pauses.and_then(|pauses| pauses.read(|from| from.get::<Raced>()))
        {
            (races, coarse) = (found, coarse.promote(raced));
        }
        // Steps are counted as they are reported: each schedule is refined before a simpler one is
        // looked for.
        let as_found = self.without_shrinking();
        loop {
            if let Some(pauses) = pauses {
                pauses.frame(0, |to| {
                    to.put(&(races.clone(), coarse.promoted().iter().copied().collect::<Vec<_>>()))
                });
            }
            let mut program = ModelProgram(coarse);
            restarts.resume(self.resolved(), pauses, &mut program);
            let (mut outcome, program) = as_found.drive(
                program,
                (observer, pauses),
                (clock, &mut restarts),
                (|restarts| restarts.keep(pauses), |_, _| ()),
                executions::explore,
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

/// Names the two accesses of a race; says what they are accesses to.
fn name<M: Model>(coarse: &SyncPoints<M>, finding: &mut Finding) -> Option<Location> {
    let mut cursor = Cursor::new(coarse.fine()).ok()?;
    for &choice in finding.schedule.steps() {
        cursor.step(choice).ok()?;
    }
    let race = race::at(&cursor, |location| coarse.location_kind(location))?;
    finding.failure = race::failure(&cursor, race);
    Some(race.location)
}

/// The outcome of the last search together with the races of those before it.
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
