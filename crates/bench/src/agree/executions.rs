//! Compares searches over executions with the oracle: the same failures, within the bound if there
//! is one.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::oracle::{self, FailureName};
use preempt_explore::{Cache, Limits, Order, Plan, Reduction};
use preempt_lang::source::Source;
use preempt_machine::Machine;

use crate::random::{Shape, program};

/// Programs with more states are skipped.
pub const MOST_STATES: u64 = 2_000;

/// A search over executions distinguishes more states than one over states: it is abandoned beyond
/// this number.
const MOST_STABLE_STATES: u64 = 5_000;

/// The bounds within which plans are compared.
const BOUNDS: [Option<u32>; 4] = [None, Some(0), Some(1), Some(2)];

/// The orders that are sound within this bound.
pub fn orders(bound: Option<u32>) -> Vec<Plan> {
    let cached =
        [Order::Icb { cache: Cache::State }, Order::Icb { cache: Cache::Hb }, Order::DfsHb];
    let all = [Order::Icb { cache: Cache::None }, Order::ContextBounded];
    // Without a bound and without a cache there may be very many executions.
    let plans = cached.into_iter().chain(all.into_iter().filter(|_| bound.is_some()));
    plans.map(|order| Plan { bound, ..Plan::new().order(order) }).collect()
}

/// The reductions that are sound within this bound.
pub fn reductions(bound: Option<u32>) -> Vec<Plan> {
    let (order, reductions): (Order, &[Reduction]) = match bound {
        None => (
            Order::Executions,
            &[
                Reduction::Sleep,
                Reduction::Source,
                Reduction::Optimal,
                Reduction::FlanaganGodefroid,
            ],
        ),
        Some(_) => (
            Order::ContextBounded,
            &[Reduction::BudgetedSleep, Reduction::CbPor, Reduction::CbPorStates],
        ),
    };
    reductions
        .iter()
        .map(|&reduction| Plan { bound, ..Plan::new().order(order).reduction(reduction) })
        .collect()
}

/// Compares plans with the oracle on the random program with this seed. Returns the number of
/// comparisons: 0 if the program is too large.
pub fn one(seed: u64, plans: fn(Option<u32>) -> Vec<Plan>) -> Result<u64> {
    let text = program(seed, Shape { threads: (2, 3), statements: 3 });
    compare_text(&text, plans).with_context(|| format!("on this program:\n{text}"))
}

/// The same on the program with this text.
pub fn compare_text(text: &str, plans: fn(Option<u32>) -> Vec<Plan>) -> Result<u64> {
    let machine = preempt_lang::load(&Source::new("random.pre", text), &[])
        .map_err(|d| anyhow!("{}", d[0].message))?;
    grown(machine)?.map_or(Ok(0), |machine| compare(&machine, plans))
}

/// The machine, with states that are large enough, unless there are too many.
pub(super) fn grown(machine: Machine) -> Result<Option<Machine>> {
    let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
    let (outcome, machine) = super::run(Plan::new().keep_going().limits(limits), machine)?;
    Ok(outcome.complete.then_some(machine))
}

fn compare(machine: &Machine, plans: fn(Option<u32>) -> Vec<Plan>) -> Result<u64> {
    let least = oracle::least_preemptions(machine);
    let mut compared = 0;
    for bound in BOUNDS {
        let within = |count: u32| bound.is_none_or(|bound| count <= bound);
        let expected: BTreeMap<_, _> =
            least.clone().into_iter().filter(|&(_, count)| within(count)).collect();
        for plan in plans(bound) {
            let Some(found) = failures(plan, machine)? else { continue };
            compared += 1;
            let what = || format!("{:?} {:?}, bound {bound:?}", plan.order, plan.reduction);
            ensure!(
                found.keys().eq(expected.keys()),
                "{}: expected {expected:?}, found {found:?}",
                what()
            );
            // Level by level, an error is found with the fewest preemptions.
            let fewest = !matches!(plan.order, Order::Icb { .. }) || found == expected;
            ensure!(fewest, "{}: expected preemptions {expected:?}, found {found:?}", what());
        }
    }
    Ok(compared)
}

/// The findings of a plan, each with its preemptions; `None` if it is not complete.
fn failures(plan: Plan, machine: &Machine) -> Result<Option<BTreeMap<FailureName, u32>>> {
    let limits = Limits { states: Some(MOST_STABLE_STATES), ..Limits::default() };
    let (outcome, _) = super::run(plan.keep_going().limits(limits), machine.clone())?;
    let found = outcome.findings.iter().map(|f| (oracle::name(&f.failure), f.preemptions));
    // A program that fails before its first step has no executions: the search ends there.
    Ok((outcome.stopped.is_none() && !outcome.at_finding).then(|| found.collect()))
}
