//! The driver: runs a search over a model until its states are large enough, and turns what was seen into an outcome.

use std::time::Instant;

use preempt_system::{Failure, FailureKind, Finding, Model, Schedule, Verdict};

use crate::observer::Observer;
use crate::order::{self, Explored};
use crate::outcome::{Limit, Omission, Outcome};
use crate::plan::{Plan, Points, Refusal};
use crate::points::SyncPoints;
use crate::race;
use crate::replay::Replay;
use crate::watch::{Stop, Watch};

/// A search that makes sense: what [`Plan::build`] returns.
#[derive(Clone, Debug)]
pub struct Search {
    plan: Plan,
}

impl Search {
    pub(crate) fn new(plan: Plan) -> Search {
        Search { plan }
    }

    /// How it searches.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Searches `model` while `observer` watches. Also returns the model that the schedules' states belong to: `model`, or
    /// what it had to [grow](Model::grow) into.
    ///
    /// Panics if the search does not [suit](Search::suits) the model.
    pub fn run<M: Model>(&self, model: M, observer: &dyn Observer) -> (Outcome, M) {
        if let Err(refusal) = self.suits(&model) {
            panic!("a search is only run on models that it suits: {refusal}");
        }
        let model = if self.plan.needs_stable_names() { model.with_stable_names() } else { model };
        match self.plan.points {
            Points::All => self.drive(model, observer, order::explore),
            Points::Sync => {
                let (mut outcome, coarse) = self.drive(SyncPoints(model), observer, order::explore_executions);
                for finding in &mut outcome.findings {
                    finding.schedule = coarse.refine(&finding.schedule);
                }
                (outcome, coarse.0)
            }
        }
    }

    /// Whether the search is sound for this model, or why not.
    pub fn suits(&self, model: &impl Model) -> Result<(), Refusal> {
        let coarse = self.plan.points == Points::Sync;
        if model.has_invariants() && (coarse || !self.plan.reduction.visits_all_states()) {
            return Err(Refusal::because(
                "this model has invariants, which must hold in every state, and the search would not visit every state: \
                 use sleep, cb-por-states, or no reduction, and points at all accesses; or say it with assertions",
            ));
        }
        Ok(())
    }

    fn drive<M: Model>(
        &self,
        mut model: M,
        observer: &dyn Observer,
        explore: impl Fn(&Plan, &M, &Watch<'_>) -> Explored,
    ) -> (Outcome, M) {
        let started = Instant::now();
        let mut grown = None;
        for restarts in 0.. {
            let watch = Watch::new(self.plan.limits, observer, started, restarts);
            let explored = explore(&self.plan, &model, &watch);
            match watch.reason() {
                // The same place is too small again: it cannot become larger.
                Some(Stop::Full(capacity)) if grown == Some(capacity) => {
                    let stop = Some(Stop::Limit(Limit::Memory));
                    return (self.outcome(&model, explored, stop, started, restarts), model);
                }
                Some(Stop::Full(capacity)) => {
                    model = model.grow(capacity);
                    grown = Some(capacity);
                }
                stop => return (self.outcome(&model, explored, stop, started, restarts), model),
            }
        }
        unreachable!("a model grows finitely often")
    }

    fn outcome<M: Model>(
        &self,
        model: &M,
        explored: Explored,
        stop: Option<Stop>,
        started: Instant,
        restarts: u32,
    ) -> Outcome {
        let findings: Vec<Finding> =
            explored.failures.into_iter().map(|(failure, schedule)| confirm(model, failure, schedule)).collect();
        // What was asked for is covered; a bound or a number of runs may have asked for less than everything.
        let exact = !matches!(explored.omission, Omission::Bits { .. }) && self.plan.reduction.is_sound();
        let covered = stop.is_none() && exact;
        let complete = covered && !self.plan.order.samples() && explored.bounds.last().is_none_or(|bound| !bound.cut);
        let verdict = match findings.first() {
            Some(finding) => finding.failure.kind.into(),
            None if covered => Verdict::Ok,
            None => Verdict::Incomplete,
        };
        Outcome {
            verdict,
            complete,
            coverage: explored.seen,
            findings,
            stopped: match stop {
                Some(Stop::Limit(limit)) => Some(limit),
                _ => None,
            },
            at_finding: stop == Some(Stop::Finding),
            tally: explored.tally,
            bounds: explored.bounds,
            omission: explored.omission,
            order: self.plan.order,
            reduction: self.plan.reduction,
            elapsed: started.elapsed(),
            store_bytes: explored.store_bytes,
            frontier_bytes: explored.frontier_bytes,
            restarts,
        }
    }
}

/// The finding, after its schedule was replayed and ended in its failure.
fn confirm<M: Model>(model: &M, failure: Failure, schedule: Schedule) -> Finding {
    let replay = match Replay::of(model, &schedule) {
        Ok(replay) => replay,
        Err(error) => panic!("the schedule of a finding can be replayed: {error}"),
    };
    let fails = match failure.kind {
        FailureKind::Race => race::of(model, &schedule).is_some_and(|race| race::failure(model, race) == failure),
        _ => replay.fails_with(&failure),
    };
    assert!(fails, "the schedule of a finding ends in its failure: {failure:?}");
    Finding { failure, preemptions: replay.preemptions(), schedule }
}
