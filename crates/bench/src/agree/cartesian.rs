//! Compares the cartesian search with the oracle: the same failures, including deadlocks, the same
//! local states of every thread, and the same counts for both orders and any number of workers.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::oracle::{self, FailureName, Reachable};
use preempt_explore::reduce::cartesian::{self, Config, Reading};
use preempt_explore::{Coverage, Limits, Order, Plan, Reduction};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Failure, Model, ThreadId};

use crate::random::{Shape, program};

/// Programs with more states are skipped.
pub const MOST_STATES: u64 = 20_000;

/// Invariants of random programs. Evaluating the second may fail.
const INVARIANTS: [&str; 3] =
    ["x != 2 || y != 1", "4 / y >= 1 + x", "a[0] == 0 || a[1] == 0 || x == 0"];

/// Compares on the random program with this seed. `false` if it is too large.
pub fn one(seed: u64, shape: Shape) -> Result<bool> {
    let mut text = program(seed, shape);
    // Every third program has an invariant.
    if seed.is_multiple_of(3) {
        text +=
            &format!("invariant one: {};\n", INVARIANTS[(seed / 3) as usize % INVARIANTS.len()]);
    }
    compare(&text).with_context(|| format!("on this program:\n{text}"))
}

/// The expected results.
struct Expected {
    failures: BTreeSet<FailureName>,
    states: u64,
    /// For every thread, the bits that belong to it, and its local states.
    masks: Vec<Vec<u64>>,
    locals: Vec<BTreeSet<Vec<u64>>>,
}

impl Expected {
    fn of(machine: &Machine) -> Expected {
        let Reachable { states, failures, .. } = oracle::reachable(machine);
        let masks: Vec<Vec<u64>> = (0..machine.shape().threads)
            .map(|slot| machine.local_bits(ThreadId::new(slot)))
            .collect();
        let local = |mask: &Vec<u64>| -> BTreeSet<Vec<u64>> {
            states
                .iter()
                .map(|state| state.iter().zip(mask).map(|(word, mask)| word & mask).collect())
                .collect()
        };
        let locals = masks.iter().map(local).collect();
        Expected {
            failures: failures.into_keys().collect(),
            states: states.len() as u64,
            masks,
            locals,
        }
    }
}

/// Compares on the program with this text. `false` if it is too large.
pub fn compare(text: &str) -> Result<bool> {
    let machine = preempt_lang::load(&Source::new("random.pre", text), &[])
        .map_err(|d| anyhow!("{}", d[0].message))?;
    let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
    let (outcome, machine) =
        super::run(Plan::new().keep_going().limits(limits), machine.with_stable_names())?;
    if !outcome.complete {
        return Ok(false);
    }
    let expected = Expected::of(&machine);
    for reading in [Reading::Late, Reading::Literal] {
        let mut numbers = None;
        for (order, jobs) in [
            (Order::BreadthFirst, 1),
            (Order::BreadthFirst, 2),
            (Order::BreadthFirst, 4),
            (Order::DepthFirst, 1),
        ] {
            let config = Config { reading, locals: expected.masks.clone() };
            let plan = Plan::new().order(order).jobs(jobs).keep_going();
            let (failures, seen, covered) = cartesian::cover(&plan, &config, &machine)
                .map_err(|capacity| anyhow!("a step does not fit its state: {capacity:?}"))?;
            let what = || format!("{reading:?}, {order:?}, {jobs} workers");
            let found = names(&failures);
            ensure!(
                found == expected.failures,
                "{}: expected {:?}, found {found:?}",
                what(),
                expected.failures
            );
            for (thread, (found, expected)) in
                covered.locals.iter().zip(&expected.locals).enumerate()
            {
                let [found, expected] = [found, expected].map(BTreeSet::len);
                ensure!(
                    found == expected,
                    "{}: {found} of {expected} local states of thread {thread}",
                    what()
                );
            }
            ensure!(covered.locals == expected.locals, "{}: other local states", what());
            ensure!(
                seen.states <= expected.states,
                "{}: {} of {} states",
                what(),
                seen.states,
                expected.states
            );
            let counted = counts(&seen);
            let same = *numbers.get_or_insert(counted);
            ensure!(counted == same, "{}: {counted:?} is not {same:?}", what());
        }
        by_plan(reading, &machine, &expected)?;
    }
    Ok(true)
}

/// Compares the findings of a plan; the driver replays every schedule.
fn by_plan(reading: Reading, machine: &Machine, expected: &Expected) -> Result<()> {
    let plan = Plan::new().reduction(Reduction::Cartesian { reading });
    let (all, _) = super::run(plan.keep_going(), machine.clone())?;
    let found = names(&all.findings.into_iter().map(|finding| finding.failure).collect::<Vec<_>>());
    ensure!(
        found == expected.failures,
        "{reading:?}: expected {:?}, the plan found {found:?}",
        expected.failures
    );
    let mut firsts = Vec::new();
    for jobs in [1, 3] {
        let (first, _) = super::run(plan.jobs(jobs), machine.clone())?;
        ensure!(
            first.findings.len() == usize::from(!found.is_empty()),
            "{reading:?}: one failure is enough"
        );
        ensure!(first.complete == found.is_empty(), "{reading:?}: complete: {}", first.complete);
        firsts.push((first.findings, counts(&first.coverage)));
    }
    ensure!(firsts[0] == firsts[1], "{reading:?}: one worker and several end with {firsts:?}");
    Ok(())
}

fn names(failures: &[Failure]) -> BTreeSet<FailureName> {
    failures.iter().map(oracle::name).collect()
}

/// The results that do not depend on the order.
fn counts(seen: &Coverage) -> [u64; 6] {
    [seen.states, seen.expanded, seen.transitions, seen.blocked, seen.ended, seen.failed]
}
