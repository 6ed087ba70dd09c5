//! The sentences that say what a search proves that does not expand every state.

use preempt_system::memory::MemoryModel;

use crate::driver::outcome::{Outcome, counted};
use crate::plan::coverage::Limit;
use crate::plan::strategy::{ExecutionSearch, Strategy, Transactions};
use crate::plan::tally::{BoundCoverage, Tally};
use crate::plan::{Cache, Cost};

/// The sentence for a reduction by transactions.
pub(crate) fn of_transactions(outcome: &Outcome) -> String {
    let (states, errors) = (counted(outcome.coverage.states, "state"), outcome.errors());
    let lost = "deadlocks were not looked for";
    match (outcome.stopped, outcome.at_finding, outcome.strategy) {
        (Some(limit), ..) => {
            format!("INCOMPLETE: stopped {}; {states} seen; {errors}; {lost}", outcome.at(limit))
        }
        (None, true, _) => {
            format!("stopped at the first error: {states} seen, the rest not explored")
        }
        (None, false, Strategy::Transactions(Transactions::Unsound)) => format!(
            "INCOMPLETE: {states}, but a transaction that never ends hides what others do, and \
             errors may be missed; {errors}; {lost}"
        ),
        (None, false, _) => {
            format!(
                "complete: by transactions, in {states}, every step that fails in any execution; \
                 {errors}; {lost}"
            )
        }
    }
}

/// The sentence for a search over executions.
pub(crate) fn of_executions(outcome: &Outcome, tally: &Tally) -> String {
    let sentence = of_counted_executions(outcome, tally);
    if tally.discarded == 0 {
        return sentence;
    }
    let discarded = counted(tally.discarded, "execution");
    format!("{sentence}; not counted: {discarded} in which an assumption failed")
}

/// The same without the executions that were discarded.
fn of_counted_executions(outcome: &Outcome, tally: &Tally) -> String {
    let errors = outcome.errors();
    if outcome.complete {
        let why = if outcome.bounds.is_empty() { "" } else { "the bound excluded nothing; " };
        return format!("complete: {why}{}; {errors}", all(&what(&outcome.strategy, tally)));
    }
    if let Some(limit) = outcome.stopped {
        return match limit {
            Limit::Depth => up_to_steps(outcome).map_or_else(
                || {
                    format!(
                        "INCOMPLETE: {} not followed beyond the depth limit; {} followed to \
                         the end; {errors}",
                        counted(tally.cut, "execution"),
                        counted(tally.executions, "execution")
                    )
                },
                |reached| format!("INCOMPLETE: {reached}"),
            ),
            limit => format!(
                "INCOMPLETE: stopped {}{}; {}{}; {errors}",
                outcome.at(limit),
                inside(outcome),
                counted(tally.executions, "execution"),
                before(outcome),
            ),
        };
    }
    if outcome.at_finding {
        return format!(
            "stopped at the first error after {}, the rest not explored{}",
            counted(tally.executions, "complete execution"),
            fewest(outcome)
        );
    }
    match (&outcome.strategy, outcome.bounds.last()) {
        // Complete, under the assumptions of the search.
        (strategy, bound) if !strategy.is_sample() && bound.is_none_or(|bound| !bound.cut) => {
            format!("{}; {errors}", all(&what(strategy, tally)))
        }
        (_, Some(bound)) => format!(
            "{}; {errors}; any {}error needs at least {}",
            all(&within(outcome, bound)),
            other(outcome),
            cost(outcome, u64::from(bound.bound) + 1)
        ),
        (_, None) => format!(
            "a sample of {}; {errors} in it; nothing is proved",
            traces_or_executions(tally)
        ),
    }
}

/// The coverage of a search that is bounded by a number of steps.
fn up_to_steps(outcome: &Outcome) -> Option<String> {
    match outcome.strategy.executions()? {
        ExecutionSearch::Depth { .. } | ExecutionSearch::IterativeDepth { .. } => {}
        _ => return None,
    }
    let bound = outcome.bounds.last()?;
    Some(format!(
        "all executions up to {}: {} complete, {} cut; {}; any {}error needs at least {}",
        counted(bound.bound.into(), "step"),
        bound.new.executions,
        bound.new.cut,
        outcome.errors(),
        other(outcome),
        counted(u64::from(bound.bound) + 1, "step"),
    ))
}

/// The sentence for a completed cartesian search.
pub(crate) fn of_cartesian(outcome: &Outcome) -> String {
    let states = counted(outcome.coverage.states, "covered state");
    let errors = outcome.errors();
    format!(
        "complete: every local state of every thread, and all deadlocks and invariants asked for, \
         from {states}; {errors}"
    )
}

/// `150 traces (756 executions)`: what a search by this strategy covers each of.
fn what(strategy: &Strategy, tally: &Tally) -> String {
    match (strategy.executions(), tally.states, tally.traces) {
        (Some(ExecutionSearch::Icb { cache: Cache::State, .. }), Some(states), _) => {
            counted(states, "state")
        }
        (Some(ExecutionSearch::Icb { cache: Cache::State, .. }), None, _) => "states".into(),
        (_, _, None) if strategy.compares_graphs() => "traces".into(),
        _ => traces_or_executions(tally),
    }
}

/// `all 150 traces`, or `the only trace`.
pub(crate) fn all(covered: &str) -> String {
    match covered.strip_prefix("1 ") {
        Some(one) => format!("the only {one}"),
        None => format!("all {covered}"),
    }
}

fn traces_or_executions(tally: &Tally) -> String {
    let executions = counted(tally.executions, "execution");
    match tally.traces {
        Some(traces) => format!("{} ({executions})", counted(traces, "trace")),
        None => executions,
    }
}

/// `150 traces with at most 2 preemptions (756 executions)`.
fn within(outcome: &Outcome, bound: &BoundCoverage) -> String {
    let what = what(&outcome.strategy, &bound.all);
    let limit = format!("with at most {}", cost(outcome, bound.bound.into()));
    match what.split_once(" (") {
        Some((traces, executions)) => format!("{traces} {limit} ({executions}"),
        None => format!("{what} {limit}"),
    }
}

/// The unit of a bound.
fn cost(outcome: &Outcome, count: u64) -> String {
    let switches = counted(count, outcome.strategy.cost().noun());
    match (outcome.memory, count) {
        (MemoryModel::Weak, 1) => format!("{switches} or stale access"),
        (MemoryModel::Weak, _) => format!("{switches} or stale accesses"),
        _ => switches,
    }
}

fn other(outcome: &Outcome) -> &'static str {
    if outcome.findings.is_empty() { "" } else { "other " }
}

/// The bound in which the search was stopped.
fn inside(outcome: &Outcome) -> String {
    match (outcome.strategy.executions(), outcome.bounds.last()) {
        (Some(ExecutionSearch::Icb { .. }), Some(bound)) => {
            format!(" inside bound {}", bound.bound + 1)
        }
        (Some(ExecutionSearch::Icb { .. }), None) => " inside bound 0".into(),
        (Some(ExecutionSearch::IterativeDepth { .. }), Some(bound)) => {
            format!(" beyond depth {}", bound.bound)
        }
        _ => String::new(),
    }
}

/// The coverage before the search was stopped.
fn before(outcome: &Outcome) -> String {
    match (outcome.strategy.executions(), outcome.bounds.last()) {
        (Some(ExecutionSearch::Icb { .. }), Some(bound)) => {
            format!("; covered: {}", all(&within(outcome, bound)))
        }
        _ => String::new(),
    }
}

/// The fewest preemptions, delays or steps of any error, as the first finding shows.
fn fewest(outcome: &Outcome) -> String {
    match (outcome.strategy.executions(), outcome.findings.first()) {
        // The schedule of the finding may have been replaced by one with fewer preemptions and more
        // delays. It was found in the first level that was not completed.
        (Some(ExecutionSearch::Icb { cost: Cost::Delays, .. }), Some(_)) => {
            match outcome.bounds.last() {
                Some(bound) => format!(
                    "; no error needs fewer than {}",
                    cost(outcome, u64::from(bound.bound) + 1)
                ),
                None => String::new(),
            }
        }
        (Some(ExecutionSearch::Icb { .. }), Some(first)) if first.preemptions > 0 => {
            format!("; no error needs fewer than {}", cost(outcome, first.preemptions.into()))
        }
        (Some(ExecutionSearch::IterativeDepth { .. }), Some(_)) => match outcome.bounds.last() {
            Some(bound) => format!(
                "; no error needs fewer than {}",
                counted(u64::from(bound.bound) + 1, "step")
            ),
            None => String::new(),
        },
        _ => String::new(),
    }
}
