//! Compares reductions by transactions with the full search: the same steps fail.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::oracle::{self, FailureName};
use preempt_explore::reduce::cpc::{self, Config, Found, Propagation, Variant};
use preempt_explore::{Limits, Order, Plan, Reduction};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::Failure;

use crate::random::{self, Shape, locked, records};

/// Programs with more states are skipped.
pub const MOST_STATES: u64 = 20_000;

/// Sums over the comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Programs that were small enough.
    pub programs: u64,
    /// Programs with a failure.
    pub failing: u64,
    /// The states of all full searches.
    pub full: u64,
    /// The states of all reduced ones.
    pub reduced: u64,
    /// Searches that restarted because a variable proved to be unprotected.
    pub breaches: u64,
    /// Programs in which the unsound variant misses a failure.
    pub missed: u64,
}

impl Compared {
    fn add(&mut self, other: Compared) {
        self.programs += other.programs;
        self.failing += other.failing;
        self.full += other.full;
        self.reduced += other.reduced;
        self.breaches += other.breaches;
        self.missed += other.missed;
    }
}

/// Writes the random program with a seed.
pub type Generator = fn(u64) -> String;

/// Programs with locks, with records, and with all constructs.
pub const GENERATORS: [Generator; 3] = [locked::program, records::program, |seed| {
    random::program(seed, Shape { threads: (2, 3), statements: 4 })
}];

/// Compares on the random programs with each of these seeds.
pub fn many(
    generators: &[Generator],
    seeds: impl Iterator<Item = u64>,
    mut tell: impl FnMut(u64, &Compared),
) -> Result<Compared> {
    let mut all = Compared::default();
    for (done, seed) in (1..).zip(seeds) {
        for text in generators.iter().map(|generator| generator(seed)) {
            all.add(compare(&text).with_context(|| format!("on this program:\n{text}"))?);
        }
        tell(done, &all);
    }
    Ok(all)
}

/// Compares on the program with this text.
pub fn compare(text: &str) -> Result<Compared> {
    compare_machine(machine(text)?)
}

/// Compares on a machine without invariants.
pub fn compare_machine(machine: Machine) -> Result<Compared> {
    let Some((machine, states, expected)) = full(machine)? else { return Ok(Compared::default()) };
    let mut breaches = 0;
    let mut reduced = 0;
    for reduction in [Reduction::Transactions, Reduction::TransactionsCycle] {
        // Findings of a plan are replayed.
        let plan = Plan::new()
            .order(Order::DepthFirst)
            .reduction(reduction)
            .ignore_deadlocks()
            .keep_going();
        let (outcome, _) = super::run(plan, machine.clone())?;
        let found = names(outcome.findings.iter().map(|finding| &finding.failure));
        ensure!(
            outcome.complete && found == expected,
            "{reduction:?}: expected {expected:?}, found {found:?}"
        );
        reduced += if reduction == Reduction::Transactions { outcome.coverage.states } else { 0 };
    }
    for (variant, propagation) in [
        (Variant::Repaired, Propagation::AtPop),
        (Variant::WithoutL19, Propagation::AtPop),
        (Variant::WithoutL19, Propagation::AtOnce),
    ] {
        let found = run(&machine, Config { variant, propagation });
        breaches += found.breaches;
        let found = names_of(&found);
        ensure!(
            found == expected,
            "{variant:?} {propagation:?}: expected {expected:?}, found {found:?}"
        );
    }
    let unsound =
        names_of(&run(&machine, Config { variant: Variant::Unsound, ..Config::default() }));
    ensure!(
        unsound.is_subset(&expected),
        "what the unsound search finds is real: {unsound:?}, not in {expected:?}"
    );
    Ok(Compared {
        programs: 1,
        failing: u64::from(!expected.is_empty()),
        full: states,
        reduced,
        breaches,
        missed: u64::from(unsound != expected),
    })
}

fn machine(text: &str) -> Result<Machine> {
    preempt_lang::load(&Source::new("random.pre", text), &[])
        .map_err(|d| anyhow!("{}", d[0].message))
}

/// The machine grown to hold all states, their number, and the failing steps; `None` if there are
/// too many.
fn full(machine: Machine) -> Result<Option<(Machine, u64, BTreeSet<FailureName>)>> {
    let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
    let (outcome, machine) =
        super::run(Plan::new().ignore_deadlocks().keep_going().limits(limits), machine)?;
    let expected = names(outcome.findings.iter().map(|finding| &finding.failure));
    Ok(outcome.complete.then_some((machine, outcome.coverage.states, expected)))
}

/// Whether a variant misses a failure of the program with this text.
pub fn misses(text: &str, variant: Variant) -> Result<bool> {
    let Some((machine, _, expected)) = full(machine(text)?)? else { return Ok(false) };
    let found = names_of(&run(&machine, Config { variant, propagation: Propagation::AtPop }));
    Ok(found != expected)
}

fn run(machine: &Machine, config: Config) -> Found {
    cpc::run(machine.clone(), config)
}

fn names<'a>(failures: impl Iterator<Item = &'a Failure>) -> BTreeSet<FailureName> {
    failures.map(oracle::name).collect()
}

fn names_of(found: &Found) -> BTreeSet<FailureName> {
    names(found.failures.iter().map(|(failure, _)| failure))
}
