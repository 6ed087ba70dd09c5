//! Compares searches with the oracle on random programs.

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::{Limits, Order, Outcome, Plan, Silent, StoreKind, oracle};
use preempt_lang::source::Source;
use preempt_machine::Machine;

use crate::random::outcomes::Kind;
use crate::random::{Shape, program};

pub mod blocks;
pub mod cartesian;
pub mod executions;
pub mod points;
pub mod transactions;

/// Programs with more states are skipped: the oracle is slow.
const MOST_STATES: u64 = 20_000;

/// Compares all full searches with the oracle on the random program with this seed. `false` if the
/// program is too large.
pub fn one(seed: u64, shape: Shape) -> Result<bool> {
    text(&program(seed, shape))
}

/// The same on the program with this text.
pub fn text(text: &str) -> Result<bool> {
    compare(text).with_context(|| format!("on this program:\n{text}"))
}

fn compare(text: &str) -> Result<bool> {
    let source = Source::new("random.pre", text);
    let machine = preempt_lang::load(&source, &[]).map_err(|d| anyhow!("{}", d[0].message))?;
    let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
    let (outcome, machine) = run(Plan::new().keep_going().limits(limits), machine)?;
    if !outcome.complete {
        return Ok(false);
    }
    // The machine has grown to hold all states, so none of these searches restarts.
    let expected = oracle::reachable(&machine);
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        for (store, jobs) in [
            (StoreKind::Exact, 1),
            (StoreKind::Exact, 3),
            (StoreKind::Tree, 1),
            (StoreKind::Tree, 2),
            (StoreKind::Fingerprint, 1),
        ] {
            let plan = Plan::new().order(order).store(store).jobs(jobs).keep_going();
            let (outcome, _) = run(plan, machine.clone())?;
            agrees(&outcome, &expected)
                .with_context(|| format!("{order:?}, {store:?}, {jobs} workers"))?;
        }
    }
    let (first, _) = run(Plan::new(), machine.clone())?;
    let shortest = expected.failures.values().min().copied();
    let found = first.findings.first().map(|finding| finding.schedule.steps().len());
    ensure!(
        found == shortest,
        "the shortest finding has {shortest:?} steps, the one found {found:?}"
    );
    Ok(true)
}

fn run(plan: Plan, machine: Machine) -> Result<(Outcome, Machine)> {
    let search = plan.build().map_err(|refusal| anyhow!("{refusal}"))?;
    Ok(search.run(machine, &Silent))
}

fn agrees(outcome: &Outcome, expected: &oracle::Reachable) -> Result<()> {
    let seen = &outcome.coverage;
    let counts = (seen.states, seen.transitions, seen.blocked, seen.ended);
    let wanted =
        (expected.states.len() as u64, expected.transitions, expected.blocked, expected.ended);
    ensure!(
        counts == wanted,
        "states, transitions, blocked, ended: expected {wanted:?}, found {counts:?}"
    );
    let mut found: Vec<_> =
        outcome.findings.iter().map(|finding| oracle::name(&finding.failure)).collect();
    found.sort();
    let names: Vec<_> = expected.failures.keys().cloned().collect();
    ensure!(found == names, "failures: expected {names:?}, found {found:?}");
    Ok(())
}

/// The searches to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// Full searches over states.
    Full,
    /// Orders of executions, within bounds and without.
    Bounded,
    /// Reductions.
    Reductions,
    /// The reduction by blocks, on programs with straight-line threads.
    Blocks,
    /// The cartesian search.
    Cartesian,
    /// Reductions by transactions, on three programs for each seed.
    Transactions,
    /// Searches over executions at all points and at synchronisation only, on programs with waits,
    /// choices and failures: five for each seed.
    Points,
}

/// Compares on many programs; returns whether all agree.
pub fn many(what: What, from: u64, programs: u64) -> Result<bool> {
    if what == What::Transactions {
        return by_transactions(from, programs);
    }
    if what == What::Points {
        return at_points(from, programs);
    }
    let mut compared = 0;
    for seed in from..from + programs {
        compared += u64::from(match what {
            What::Full => one(seed, Shape::default())?,
            What::Bounded => executions::one(seed, executions::orders)? > 0,
            What::Reductions => executions::one(seed, executions::reductions)? > 0,
            What::Blocks => blocks::one(seed)?.is_some(),
            What::Cartesian => cartesian::one(seed, Shape::default())?,
            What::Transactions | What::Points => unreachable!("they are compared by themselves"),
        });
        if (seed - from + 1).is_multiple_of(1_000) {
            println!("{} programs, {compared} compared, no disagreement", seed - from + 1);
        }
    }
    let (most, also) = match what {
        What::Full | What::Blocks => (MOST_STATES, ""),
        What::Cartesian => (cartesian::MOST_STATES, ""),
        What::Bounded | What::Reductions | What::Transactions | What::Points => {
            (executions::MOST_STATES, " or fail before their first step")
        }
    };
    println!(
        "{programs} programs from seed {from}: {compared} compared, the others have more than \
         {most} states{also}"
    );
    Ok(true)
}

/// Compares reductions by transactions with the full search.
fn by_transactions(from: u64, seeds: u64) -> Result<bool> {
    let all = transactions::many(&transactions::GENERATORS, from..from + seeds, |done, all| {
        if done.is_multiple_of(1_000) {
            println!("{done} seeds, {} programs compared, no disagreement", all.programs);
        }
    })?;
    println!(
        "{seeds} seeds from {from}, three programs each: {} compared, {} of them fail, {} states \
         by full search, {} by transactions; {} searches restarted without an assumption; the \
         unsound variant misses errors of {}",
        all.programs, all.failing, all.full, all.reduced, all.breaches, all.missed
    );
    Ok(true)
}

/// Compares searches at all points and at synchronisation only with brute force.
fn at_points(from: u64, seeds: u64) -> Result<bool> {
    for kind in Kind::ALL.map(Some).into_iter().chain([None]) {
        let mut all = points::Compared::default();
        for seed in from..from + seeds {
            all.add(points::one(kind, seed)?);
        }
        let name = kind.map_or("All sorts".into(), |kind| format!("{kind:?}"));
        let points::Compared { programs, racy, failing, searches } = all;
        println!(
            "{name}, {seeds} seeds from {from}: {programs} programs compared, {racy} with a race, \
             {failing} with other failures, {searches} searches, no disagreement; the others have \
             more than {} executions or fail before their first step",
            points::MOST_EXECUTIONS
        );
    }
    Ok(true)
}
