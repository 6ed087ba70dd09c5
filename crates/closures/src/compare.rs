//! Compares every strategy of the library with the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use preempt::{Cache, Check, Failure, FailureKind, Memory, Order, Outcome, Reduction, Verdict};

use crate::mirror;
use crate::program::{Program, Statement, Wait};
use crate::reference::{self, Kind, Observed, Summary};

/// Programs with more executions than this are skipped.
pub const MOST_EXECUTIONS: u64 = 1_500;

/// The execution limit of one strategy. A program with loops that wait has more executions in the
/// library than in the reference.
const LIMIT: u64 = 2_000;

/// The step limit of an execution, far above the longest one that ends.
const MOST_STEPS: usize = 800;

/// A preemption bound that no program of this size reaches.
const ENOUGH: u32 = 60;

/// The search by delays that takes every execution, whose numbers are compared for each bound.
const DELAY_WITHOUT_CACHE: &str = "delay without cache";

/// Whether every step of the library is one step of the reference, so that traces and preemptions
/// can be compared too.
pub fn is_exact(program: &Program) -> bool {
    use Statement as S;
    // The library makes the return of a function a step only where that was seen to matter.
    if program.any(|statement| matches!(statement, S::LocalGuard)) && program.observes_ends() {
        return false;
    }
    !program.any(|statement| match statement {
        // Loops that wait: the library counts their iterations as steps.
        S::WaitFor(..) | S::YieldNow => true,
        // The library builds these from several objects.
        S::CallOnce(..) | S::GetOrInit(..) | S::SetOnce(..) | S::GetOnce(_) => true,
        S::Send(_) | S::TrySend(_) | S::Receive | S::TryReceive | S::ReceiveTimeout => true,
        S::SelfWaking(_) | S::Awaits(..) | S::Wakes(..) => true,
        // Freeing a node is not a step of the library. It looks for uses that may come after it.
        S::UseNode => true,
        // The library makes these steps only where the count matters.
        S::DropArc | S::CountArc | S::Upgrade | S::IntoInner | S::TryUnwrap => true,
        _ => false,
    })
}

/// The executions that a strategy guarantees to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// All executions.
    All,
    /// All executions with at most this number of preemptions.
    Within(u32),
    /// All executions with at most this number of delays.
    WithinDelays(u32),
    /// Some executions.
    Some,
}

struct Strategy {
    name: String,
    check: Check,
    promise: Promise,
    /// Whether the strategy follows spinning threads.
    spins: bool,
}

/// The strategies that are compared. The reference is sequentially consistent.
fn strategies() -> Vec<Strategy> {
    // The mirror collects the results of scoped threads in mutexes of std, without contention.
    let sc = || Check::new().memory(Memory::Sc).allow_uncontrolled();
    let all = |name: &str, check: Check, spins| Strategy {
        name: name.to_owned(),
        check,
        promise: Promise::All,
        spins,
    };
    let reduced = |name: &str, reduction| all(name, sc().reduce(reduction), false);
    let mut list = vec![
        all("executions", sc().order(Order::Executions), true),
        all("dfs-hb", sc().order(Order::DfsHb).unbounded(), true),
        all("icb", sc().order(Order::Icb { cache: Cache::Hb }).bound(ENOUGH), true),
        all("icb without cache", sc().order(Order::Icb { cache: Cache::None }).bound(ENOUGH), true),
        all("dpor-optimal", sc().unbounded(), true),
        all("delay", sc().order(Order::Delay { cache: Cache::Hb }).bound(ENOUGH), true),
        reduced("dpor", Reduction::Source),
        reduced("dpor-fg", Reduction::FlanaganGodefroid),
        reduced("sleep", Reduction::Sleep),
    ];
    for bound in 0..=3 {
        let within = |name: &str, check: Check, spins| {
            let name = format!("{name} within {bound}");
            Strategy { name, check: check.bound(bound), promise: Promise::Within(bound), spins }
        };
        list.extend([
            within("icb", sc().order(Order::Icb { cache: Cache::Hb }), true),
            within("cb-dfs", sc().order(Order::ContextBounded), true),
            within("cb-por", sc().reduce(Reduction::CbPor), false),
            within("cb-por-states", sc().reduce(Reduction::CbPorStates), false),
            within("budgeted-sleep", sc().reduce(Reduction::BudgetedSleep), false),
        ]);
        for (name, cache) in [("delay", Cache::Hb), (DELAY_WITHOUT_CACHE, Cache::None)] {
            list.push(Strategy {
                name: format!("{name} within {bound}"),
                check: sc().order(Order::Delay { cache }).bound(bound),
                promise: Promise::WithinDelays(bound),
                spins: true,
            });
        }
    }
    for (name, order) in
        [("random", Order::Random), ("pct", Order::Pct { depth: 3 }), ("urw", Order::Urw)]
    {
        let check = sc().order(order).runs(30);
        list.push(Strategy { name: name.to_owned(), check, promise: Promise::Some, spins: true });
    }
    list
}

/// A disagreement between the library and the reference, or a misbehaviour of the library.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The strategy that disagrees.
    pub strategy: String,
    /// A description of the disagreement.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.strategy, self.what)
    }
}

/// The extent and the results of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// The number of strategies whose observed values and failures were compared.
    pub verdicts: u64,
    /// The number of these whose trace counts were compared too.
    pub traces: u64,
    /// The strategies whose observed values and failures were compared.
    pub strategies: Vec<String>,
    /// The number of strategies that reached the execution limit or refused the program.
    pub unfinished: u64,
    /// The number of strategies that assumed that a loop does not end by itself. Only false alarms,
    /// and the claim to be complete, are compared.
    pub assumed: u64,
    /// The results of the reference.
    pub summary: Summary,
    /// All possible failures, including those after an earlier failure of the same execution, each
    /// with the fewest preemptions that show it.
    pub possible: BTreeMap<Kind, u32>,
}

/// Compares all strategies on a program. `Ok(None)` if the program is too large, or may wait
/// forever in a loop that changes state.
pub fn compare(program: &Program) -> Result<Option<Compared>, Disagreement> {
    let Some(summary) = reference::explore(program, MOST_EXECUTIONS) else { return Ok(None) };
    if summary.waits_busily {
        return Ok(None);
    }
    let shared = Arc::new(program.clone());
    // A search that keeps going may continue an execution after its first failure and find more.
    let stops = summary.failures.keys().any(|kind| kind.is_of_a_step());
    let possible = if stops {
        reference::failures(program, 8 * MOST_EXECUTIONS)
    } else {
        Some(summary.failures.clone())
    };
    let Some(possible) = possible else { return Ok(None) };
    let mut compared = Compared { summary, possible, ..Compared::default() };
    let exact = is_exact(program);
    for strategy in strategies() {
        // The library counts preemptions in other steps here, so comparing one bound is enough to
        // detect false alarms.
        if !exact
            && matches!(strategy.promise, Promise::Within(bound) | Promise::WithinDelays(bound) if bound != 2)
        {
            continue;
        }
        let seen = run(&strategy, &shared);
        let error = |what: String| Disagreement { strategy: strategy.name.clone(), what };
        match seen {
            Err(text) if !strategy.spins && text.contains("every thread that can move spins") => {
                compared.unfinished += 1;
            }
            Err(text) => return Err(error(format!("panicked: {text}"))),
            Ok(seen) => {
                let verdicts = compared.verdicts;
                judge(program, &strategy, &seen, &mut compared).map_err(error)?;
                if compared.verdicts > verdicts {
                    compared.strategies.push(strategy.name);
                }
            }
        }
    }
    Ok(Some(compared))
}

/// The results of a strategy.
struct Seen {
    outcome: Outcome,
    observed: BTreeSet<Observed>,
}

fn run(strategy: &Strategy, program: &Arc<Program>) -> Result<Seen, String> {
    let observed = Mutex::new(BTreeSet::new());
    let mut check =
        strategy.check.clone().keep_going().executions(LIMIT).max_steps(MOST_STEPS).quiet();
    if program.spurious_wakeups {
        check = check.spurious_wakeups();
    }
    if program.weak_failures {
        check = check.weak_cas_failures();
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        check.run(|| {
            let seen = mirror::execute(program);
            observed.lock().unwrap_or_else(PoisonError::into_inner).insert(seen);
        })
    }));
    let observed = observed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(outcome) => Ok(Seen { outcome, observed }),
        Err(panic) => Err(match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => {
                panic.downcast_ref::<&str>().copied().unwrap_or("something else").to_owned()
            }
        }),
    }
}

fn kind(failure: &Failure) -> Option<Kind> {
    match failure.kind {
        FailureKind::Runtime if failure.message.starts_with("use after free: ") => {
            Some(Kind::UseAfterFree)
        }
        FailureKind::Deadlock => Some(Kind::Deadlock),
        FailureKind::Livelock => Some(Kind::Livelock),
        FailureKind::Panic => Some(Kind::Panic),
        FailureKind::Race => Some(Kind::Race),
        _ => None,
    }
}

/// The failures of an outcome, each with its preemptions.
fn failures(program: &Program, outcome: &Outcome) -> Result<BTreeMap<Kind, u32>, String> {
    let allocates_in_loops =
        program.any(|statement| matches!(statement, Statement::WaitFor(_, Wait::Allocating)));
    let mut kinds = BTreeMap::new();
    for finding in &outcome.findings {
        let failure = &finding.failure;
        // The library does not prove of every endless loop that it is one: the allocator leaves
        // its counters in unused parts of the thread's frames, so that states of a loop that
        // allocates do not repeat. It then follows the loop up to the limit.
        let endless = failure.kind == FailureKind::StepLimit && allocates_in_loops;
        let kind = if endless { Some(Kind::Livelock) } else { kind(failure) };
        let kind =
            kind.ok_or_else(|| format!("reports {}: {}", failure.kind.word(), failure.message))?;
        let least = kinds.entry(kind).or_insert(finding.preemptions);
        *least = (*least).min(finding.preemptions);
    }
    Ok(kinds)
}

/// Whether the search held a thread back that may leave its loop by itself.
fn assumes_endless_loop(outcome: &Outcome) -> bool {
    outcome.assumptions.iter().any(|assumption| assumption.contains("that the loop at "))
}

fn judge(
    program: &Program,
    strategy: &Strategy,
    seen: &Seen,
    compared: &mut Compared,
) -> Result<(), String> {
    let (outcome, summary) = (&seen.outcome, &compared.summary);
    let found = failures(program, outcome)?;
    let first = |kind: &Kind| {
        let of =
            outcome.findings.iter().find(|finding| self::kind(&finding.failure) == Some(*kind));
        of.map(|finding| finding.failure.message.clone()).unwrap_or_default()
    };
    if let Some(kind) = found.keys().find(|kind| !compared.possible.contains_key(kind)) {
        return Err(format!("false alarm: {kind:?}, {}", first(kind)));
    }
    // The library continues an execution after a failure; the reference does not. The values are
    // recorded when main ends, which a detached thread may outlive and then fail.
    let are_final = if program.unobserved().is_empty() {
        summary.failures.keys().all(|kind| matches!(kind, Kind::Deadlock | Kind::Livelock))
    } else {
        summary.failures.is_empty() && summary.discarded == 0
    };
    if are_final
        && let Some(observed) =
            seen.observed.iter().find(|observed| !summary.observed.contains_key(*observed))
    {
        return Err(format!("threads observe {observed:?}, which they cannot"));
    }
    let (bound, unit) = match strategy.promise {
        Promise::Some => {
            compared.verdicts += 1;
            return Ok(());
        }
        Promise::All => (u32::MAX, "preemptions"),
        Promise::Within(bound) => (bound, "preemptions"),
        Promise::WithinDelays(bound) => (bound, "delays"),
    };
    let by_delays = match (strategy.promise, &summary.delays) {
        (Promise::WithinDelays(_), Some(by_delays)) => Some(by_delays),
        // The library numbers threads in the order in which it meets them.
        (Promise::WithinDelays(_), None) => {
            compared.verdicts += 1;
            return Ok(());
        }
        _ => None,
    };
    let failures = by_delays.map_or(&summary.failures, |by_delays| &by_delays.failures);
    let observed = by_delays.map_or(&summary.observed, |by_delays| &by_delays.observed);
    if outcome.stopped.is_some() {
        compared.unfinished += 1;
        return Ok(());
    }
    let exact = is_exact(program);
    if !exact && bound != u32::MAX {
        // The library counts preemptions and delays in other steps.
        compared.verdicts += 1;
        return Ok(());
    }
    if assumes_endless_loop(outcome) {
        // Executions in which the loop ends by itself may be missing, and the outcome says so. It
        // must not claim to be complete.
        if outcome.complete {
            return Err(format!("is complete although it assumes: {}", outcome.guarantee()));
        }
        compared.assumed += 1;
        return Ok(());
    }
    let missed =
        failures.iter().find(|(kind, least)| **least <= bound && !found.contains_key(kind));
    if let Some((kind, least)) = missed {
        return Err(format!(
            "misses {kind:?}, which needs {least} {unit}; {}",
            outcome.guarantee()
        ));
    }
    let missed =
        observed.iter().find(|(seen_, least)| **least <= bound && !seen.observed.contains(*seen_));
    if let Some((observed, least)) = missed {
        let guarantee = outcome.guarantee();
        return Err(format!(
            "misses that threads observe {observed:?}, which needs {least} {unit}; {guarantee}"
        ));
    }
    if found.is_empty() {
        let complete = outcome.complete && outcome.verdict == Verdict::Ok;
        if !complete && bound == u32::MAX {
            return Err(format!("is not complete: {:?}, {}", outcome.verdict, outcome.guarantee()));
        }
    }
    for (kind, &preemptions) in &found {
        // The library searches for the simplest schedule within a budget that these programs never
        // exhaust.
        let Some(&least) = summary.failures.get(kind) else { continue };
        // After a search by delays it does not search for the fewest preemptions.
        if exact && by_delays.is_none() && !(compared.possible[kind]..=least).contains(&preemptions)
        {
            return Err(format!("{kind:?} with {preemptions} preemptions, the least is {least}"));
        }
    }
    compared.verdicts += 1;
    // An execution that fails early has a trace for every path to the failure, and reductions need
    // not take them all.
    let whole = summary.failures.keys().all(|kind| *kind == Kind::Deadlock);
    if exact && whole {
        let expected = match by_delays {
            Some(by_delays) => by_delays.traces.range(..=bound).map(|(_, traces)| traces).sum(),
            None if bound == u32::MAX => summary.traces.iter().sum(),
            None => summary.traces_within(bound),
        };
        if outcome.traces() != Some(expected) {
            let guarantee = outcome.guarantee();
            return Err(format!(
                "{:?} traces, {expected} by brute force; {guarantee}",
                outcome.traces()
            ));
        }
        // A thread that comes to the same timed wait again, while no other thread has changed what
        // it uses, is assumed to let others run first. That leaves out orders of steps that
        // commute, and the outcome names the assumption.
        let executions = outcome.executions();
        let discarded = outcome.tally.map(|tally| tally.discarded);
        if strategy.name == "executions"
            && outcome.assumptions.is_empty()
            && (executions, discarded) != (Some(summary.executions), Some(summary.discarded))
        {
            return Err(format!(
                "{executions:?} executions and {discarded:?} discarded, {} and {} by brute force",
                summary.executions, summary.discarded
            ));
        }
        if let Some(by_delays) = by_delays
            && strategy.name.starts_with(DELAY_WITHOUT_CACHE)
            && outcome.assumptions.is_empty()
        {
            for level in &outcome.bounds {
                let within = by_delays.executions.range(..=level.bound);
                let expected: u64 = within.map(|(_, executions)| executions).sum();
                if level.all.executions != expected {
                    return Err(format!(
                        "{} executions with at most {} delays, {expected} by brute force",
                        level.all.executions, level.bound
                    ));
                }
            }
        }
        compared.traces += 1;
    }
    Ok(())
}
