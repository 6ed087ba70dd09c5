//! Compares every search over executions, at all scheduling points and at synchronisation only,
//! with brute force: traces within each bound, failures with their least preemptions, and data
//! races.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::cursor::Cursor;
use preempt_explore::model::ModelExecution;
use preempt_explore::oracle::{self, FailureName};
use preempt_explore::points::SyncPoints;
use preempt_explore::{Cache, Count, Limits, Order, Outcome, Plan, Points, Reduction, race};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Capacity, Choice, FailureKind, Fingerprint, HbGraph, Model, System};

use super::executions;
use crate::random::{self, outcomes::Kind};

/// Programs with more executions are skipped.
pub const MOST_EXECUTIONS: u64 = 1_000;

/// The bounds within which searches are compared.
const BOUNDS: [Option<u32>; 4] = [None, Some(0), Some(1), Some(2)];

/// The extent of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Programs.
    pub programs: u64,
    /// Programs with a data race.
    pub racy: u64,
    /// Programs with another failure.
    pub failing: u64,
    /// Searches.
    pub searches: u64,
}

impl Compared {
    /// Adds what was compared on other programs.
    pub fn add(&mut self, other: Compared) {
        self.programs += other.programs;
        self.racy += other.racy;
        self.failing += other.failing;
        self.searches += other.searches;
    }
}

/// All executions of a model, without any reduction.
#[derive(Default)]
struct Brute {
    executions: u64,
    /// For each trace the least preemptions of its executions.
    traces: BTreeMap<Fingerprint, u32>,
    /// For each failure, including deadlocks, the least preemptions with which it occurs.
    failures: BTreeMap<FailureName, u32>,
    /// The least preemptions of an execution with a data race.
    race: Option<u32>,
}

impl Brute {
    /// Takes all executions of a model whose states are large enough; `None` if there are too many.
    fn of(model: &impl Model) -> Result<Option<Brute>> {
        let small = |capacity: Capacity| anyhow!("the states are too small: {capacity:?}");
        let mut cursor = Cursor::new(model).map_err(small)?;
        let (mut brute, mut graph) = (Brute::default(), HbGraph::new());
        if cursor.system().failure().is_some() {
            return Ok(None);
        }
        brute.explore(&mut cursor, &mut graph).map_err(small)?;
        Ok((brute.executions <= MOST_EXECUTIONS).then_some(brute))
    }

    fn fail(&mut self, failure: FailureName, preemptions: u32) {
        let least = self.failures.entry(failure).or_insert(preemptions);
        *least = preemptions.min(*least);
    }

    fn explore<M: Model>(
        &mut self,
        cursor: &mut Cursor<ModelExecution<'_, M>>,
        graph: &mut HbGraph,
    ) -> Result<(), Capacity> {
        if self.executions > MOST_EXECUTIONS {
            return Ok(());
        }
        if cursor.enabled().is_empty() {
            self.end(cursor, graph);
            return Ok(());
        }
        for thread in cursor.enabled().iter() {
            let alternatives: Vec<u32> =
                cursor.pending(thread).footprints.iter().map(|&(number, _)| number).collect();
            for alternative in alternatives {
                let choice = Choice { thread, alternative };
                let failure = cursor.step(choice)?;
                if let Some(failure) = failure {
                    self.fail(oracle::name(&failure), cursor.preemptions().count());
                }
                graph.push(choice, cursor.taken(cursor.len() - 1));
                self.explore(cursor, graph)?;
                graph.pop();
                cursor.rewind(cursor.len() - 1);
            }
        }
        Ok(())
    }

    fn end<S: System>(&mut self, cursor: &Cursor<S>, graph: &HbGraph) {
        let preemptions = cursor.preemptions().count();
        self.executions += 1;
        let least = self.traces.entry(graph.fingerprint()).or_insert(preemptions);
        *least = preemptions.min(*least);
        if cursor.is_deadlock() {
            self.fail(oracle::deadlock(), preemptions);
        }
        if race::at(cursor, |location| cursor.system().location_kind(location)).is_some() {
            self.race = Some(self.race.map_or(preemptions, |least| least.min(preemptions)));
        }
    }
}

/// Whether a number of preemptions is within a bound.
fn within(bound: Option<u32>, preemptions: u32) -> bool {
    bound.is_none_or(|bound| preemptions <= bound)
}

/// The numbers of workers, in addition to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workers {
    /// None: starting workers takes longer than searching a small program.
    One,
    /// Two, where the plan allows it.
    Two,
}

/// The plans to compare within a bound.
fn plans(bound: Option<u32>, points: Points, workers: Workers) -> Vec<Plan> {
    let allowed =
        |plan: &Plan| points == Points::All || plan.order != Order::Icb { cache: Cache::State };
    let with = |order: Order| Plan { bound, ..Plan::new().order(order) };
    let mut plans: Vec<Plan> = executions::orders(bound)
        .into_iter()
        .chain(executions::reductions(bound))
        .filter(allowed)
        .collect();
    if bound.is_none() {
        plans.push(with(Order::Icb { cache: Cache::None }));
        plans.push(with(Order::Executions));
    }
    if workers == Workers::Two {
        plans.push(with(Order::Icb { cache: Cache::None }).jobs(2));
        if bound.is_none() && points == Points::All {
            plans.push(with(Order::DfsHb).jobs(2));
        }
    }
    plans.into_iter().map(|plan| plan.points(points).count(Count::Traces).keep_going()).collect()
}

/// Compares all searches on the random program with this seed, of this kind or of [all
/// kinds](random::program). Does nothing if it has too many executions.
pub fn one(kind: Option<Kind>, seed: u64) -> Result<Compared> {
    let of_all_sorts = || random::program(seed, random::Shape { threads: (2, 3), statements: 3 });
    let text = kind.map_or_else(of_all_sorts, |kind| random::outcomes::program(kind, seed));
    let workers = if seed.is_multiple_of(10) { Workers::Two } else { Workers::One };
    compare_with(&text, workers).with_context(|| format!("on this program:\n{text}"))
}

/// The same on the program with this text.
pub fn compare_text(text: &str) -> Result<Compared> {
    compare_with(text, Workers::Two)
}

fn compare_with(text: &str, workers: Workers) -> Result<Compared> {
    let machine = preempt_lang::load(&Source::new("random.pre", text), &[])
        .map_err(|d| anyhow!("{}", d[0].message))?;
    let Some(machine) = executions::grown(machine)? else { return Ok(Compared::default()) };
    let machine = machine.with_stable_names();
    let Some(fine) = Brute::of(&machine)? else { return Ok(Compared::default()) };
    let coarse = SyncPoints::of(machine.clone());
    let Some(sync) = Brute::of(&coarse)? else { return Ok(Compared::default()) };
    let mut searches = compare(&machine, &fine, (Points::All, workers))?
        + compare(&machine, &sync, (Points::Sync, workers))?;
    match sync.race {
        None => ensure!(
            sync.failures == fine.failures,
            "without a race, points at synchronisation show {:?}, all points {:?}",
            sync.failures,
            fine.failures
        ),
        Some(_) => searches += compare_promoted(&machine, &fine)?,
    }
    ensure!(
        sync.race.is_some() == fine.race.is_some(),
        "races: {:?} and {:?}",
        sync.race,
        fine.race
    );
    let (racy, failing) = (sync.race.is_some().into(), (!fine.failures.is_empty()).into());
    Ok(Compared { programs: 1, racy, failing, searches })
}

/// Runs a plan to completion; `None` if it stops before that.
fn run(plan: Plan, machine: &Machine) -> Result<Option<Outcome>> {
    let limits = Limits { executions: Some(100 * MOST_EXECUTIONS), ..Limits::default() };
    let (outcome, _) = super::run(plan.limits(limits), machine.clone())?;
    Ok(outcome.stopped.is_none().then_some(outcome))
}

fn compare(machine: &Machine, brute: &Brute, (points, workers): (Points, Workers)) -> Result<u64> {
    let mut compared = 0;
    for bound in BOUNDS {
        let expected: BTreeMap<&FailureName, u32> = brute
            .failures
            .iter()
            .map(|(name, &least)| (name, least))
            .filter(|&(_, least)| within(bound, least))
            .collect();
        let traces = brute.traces.values().filter(|&&least| within(bound, least)).count() as u64;
        let race = brute.race.filter(|&least| points == Points::Sync && within(bound, least));
        for plan in plans(bound, points, workers) {
            let outcome = run(plan, machine)?.ok_or_else(|| anyhow!("{plan:?} stopped"))?;
            compared += 1;
            check(&plan, &outcome, (&expected, traces, race)).with_context(|| {
                format!(
                    "{:?} {:?} jobs {}, bound {bound:?}, points {points:?}",
                    plan.order, plan.reduction, plan.jobs
                )
            })?;
        }
    }
    Ok(compared)
}

fn check(
    plan: &Plan,
    outcome: &Outcome,
    (expected, traces, race): (&BTreeMap<&FailureName, u32>, u64, Option<u32>),
) -> Result<()> {
    let is_race = |finding: &&preempt_system::Finding| finding.failure.kind == FailureKind::Race;
    let found: BTreeMap<FailureName, u32> = outcome
        .findings
        .iter()
        .filter(|finding| !is_race(finding))
        .map(|finding| (oracle::name(&finding.failure), finding.preemptions))
        .collect();
    ensure!(found.keys().eq(expected.keys().copied()), "expected {expected:?}, found {found:?}");
    let found_race =
        outcome.findings.iter().filter(is_race).map(|finding| finding.preemptions).min();
    ensure!(
        found_race.is_some() == race.is_some(),
        "expected a race {race:?}, found {found_race:?}"
    );
    if let Order::Icb { .. } = plan.order {
        let same = found
            .iter()
            .map(|(name, &least)| (name, least))
            .eq(expected.iter().map(|(&name, &least)| (name, least)));
        ensure!(
            same && found_race == race,
            "least preemptions: expected {expected:?} {race:?}, found {found:?} {found_race:?}"
        );
    }
    let tally = outcome.tally.as_ref().context("a search over executions counts them")?;
    let whole = !matches!(plan.order, Order::Icb { cache: Cache::State });
    if let Some(seen) = tally.traces.filter(|_| whole) {
        ensure!(seen == traces, "expected {traces} traces, found {seen}");
    }
    let once = matches!(
        plan.reduction,
        Reduction::Sleep | Reduction::Source | Reduction::Optimal | Reduction::CbPor
    );
    if once {
        ensure!(
            tally.executions == traces,
            "expected {traces} executions, found {}",
            tally.executions
        );
    }
    let gave_up = plan.reduction == Reduction::Optimal && tally.pruned > 0;
    ensure!(!gave_up, "{} executions were given up", tally.pruned);
    Ok(())
}

/// Compares searches that continue after races with those at all points: everything else must be
/// found.
fn compare_promoted(machine: &Machine, fine: &Brute) -> Result<u64> {
    let mut compared = 0;
    for plan in plans(None, Points::Sync, Workers::One) {
        let outcome = run(plan.promote(), machine)?.ok_or_else(|| anyhow!("{plan:?} stopped"))?;
        let failures =
            outcome.findings.iter().filter(|finding| finding.failure.kind != FailureKind::Race);
        let found: BTreeSet<FailureName> =
            failures.map(|finding| oracle::name(&finding.failure)).collect();
        ensure!(
            found.iter().eq(fine.failures.keys()),
            "{:?} {:?}, with races promoted: expected {:?}, found {found:?}",
            plan.order,
            plan.reduction,
            fine.failures
        );
        compared += 1;
    }
    Ok(compared)
}
