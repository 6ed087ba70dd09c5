//! The plans that are compared, and the answer that each of them must give.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{Cache, Count, Order, Outcome, Plan, Points, Reduction, StoreKind};

use super::{Disagreement, failures, name};
use crate::executions::{ByCost, Executions};
use crate::graph::Graph;
use crate::run::{Failure, Kind};

/// The reference's results for a program.
pub struct Expected {
    /// The graph of all states.
    pub graph: Graph,
    /// All executions, if they are few and all of them end.
    pub executions: Option<ByCost>,
    /// Whether traces are compared. The language does not define which allocations conflict (it
    /// depends on when memory is reused), nor which accesses a failing step has made before its
    /// failure.
    pub traces: bool,
    /// Whether the program allocates records on the heap.
    pub heap: bool,
}

/// More steps than any execution of a small program takes.
const MANY_STEPS: u32 = 10_000;

/// The bounds, on preemptions or delays, with which searches are compared.
const BOUNDS: [u32; 3] = [0, 1, 2];

/// All plans that can be built from the orders, reductions, bounds, points, stores and numbers of
/// workers listed here.
pub fn plans() -> Vec<Plan> {
    let caches = [Cache::None, Cache::State, Cache::Hb];
    let mut orders = vec![
        Order::BreadthFirst,
        Order::DepthFirst,
        Order::ContextBounded,
        Order::DfsHb,
        Order::Executions,
        Order::Depth { steps: MANY_STEPS },
        Order::IterativeDepth { by: MANY_STEPS },
    ];
    orders.extend(caches.map(|cache| Order::Icb { cache }));
    orders.extend(caches.map(|cache| Order::Delay { cache }));
    let reductions = [
        Reduction::None,
        Reduction::Sleep,
        Reduction::FlanaganGodefroid,
        Reduction::Source,
        Reduction::Optimal,
        Reduction::BudgetedSleep,
        Reduction::CbPor,
        Reduction::CbPorStates,
        Reduction::Blocks,
        Reduction::BlocksPaper,
        Reduction::Cartesian { reading: Reading::Late },
        Reduction::Cartesian { reading: Reading::Literal },
        Reduction::Transactions,
        Reduction::TransactionsCycle,
    ];
    let stores = [StoreKind::Exact, StoreKind::Tree, StoreKind::Sorted, StoreKind::Fingerprint];
    let mut plans = Vec::new();
    for &order in &orders {
        for reduction in reductions {
            for bound in std::iter::once(None).chain(BOUNDS.map(Some)) {
                for points in [Points::All, Points::Sync] {
                    for store in stores {
                        for jobs in [1, 2] {
                            let deadlock = !reduction.is_by_transactions();
                            let plan = Plan { bound, deadlock, ..Plan::new() };
                            let plan = plan.order(order).reduction(reduction).points(points);
                            plans.push(
                                plan.store(store).jobs(jobs).count(Count::States).keep_going(),
                            );
                        }
                    }
                }
            }
        }
    }
    let more: Vec<Plan> = plans.iter().flat_map(variants).collect();
    plans.extend(more);
    plans.retain(|plan| plan.build().is_ok());
    plans
}

/// Variants of a plan that report something else: the first finding only, races promoted to errors,
/// a sample.
fn variants(plan: &Plan) -> Vec<Plan> {
    let mut variants = Vec::new();
    let plain = plan.reduction == Reduction::None && plan.bound.is_none() && plan.jobs == 1;
    if plan.points == Points::Sync && plan.bound.is_none() && plan.jobs == 1 {
        variants.push(plan.promote());
    }
    if plain && plan.points == Points::All && plan.store == StoreKind::Exact {
        variants.push(Plan { keep_going: false, ..*plan });
        if plan.order == Order::BreadthFirst {
            variants.push(plan.store(StoreKind::Bitstate { bytes: BITSTATE }));
            for order in [Order::Random, Order::Pct { depth: 2 }, Order::Urw] {
                variants.push(plan.order(order).runs(SAMPLES));
            }
        }
    }
    variants
}

/// The number of bits of a bitstate store, large enough for a small program.
const BITSTATE: usize = 1 << 16;
/// The number of executions of a sample.
const SAMPLES: u64 = 30;

/// The strategy of a plan, as named in a row of docs/design/soundness.md.
pub fn strategy(plan: &Plan) -> String {
    let reduction = match plan.reduction {
        Reduction::None => String::new(),
        reduction => format!(" {reduction:?}"),
    };
    let bound = if plan.bound.is_some() { ", bounded" } else { "" };
    let promote = if plan.promote { ", races promoted" } else { "" };
    format!("{:?}{reduction}{bound}{promote}", plan.order)
}

/// The name of a plan in reports.
pub fn label(plan: &Plan) -> String {
    let mut text = format!("{:?}", plan.order);
    if plan.reduction != Reduction::None {
        text += &format!(" {:?}", plan.reduction);
    }
    if let Some(bound) = plan.bound {
        text += &format!(" bound {bound}");
    }
    if plan.points == Points::Sync {
        text += " sync";
    }
    if plan.store != StoreKind::Exact {
        text += &format!(" {:?}", plan.store);
    }
    if plan.promote {
        text += " promote";
    }
    if !plan.keep_going {
        text += " first";
    }
    if plan.jobs > 1 {
        text += &format!(" jobs {}", plan.jobs);
    }
    text
}

impl Expected {
    /// Whether this plan can be compared on the program. Searches over executions need all
    /// executions to be known. A cartesian search does not rename records, so it needs their number
    /// to be bounded.
    pub fn covers(&self, plan: &Plan) -> bool {
        match plan.reduction {
            Reduction::Cartesian { .. } => !(self.heap && self.graph.cyclic),
            _ => !plan.order.is_of_executions() || self.executions.is_some(),
        }
    }

    /// Compares the outcome of a plan with the reference.
    pub fn check(&self, plan: &Plan, outcome: &Outcome) -> Result<(), Disagreement> {
        let check = Check { plan, outcome };
        let wanted = |failures: BTreeSet<Failure>| -> BTreeSet<Failure> {
            failures.into_iter().filter(|f| plan.deadlock || f.kind != Kind::Deadlock).collect()
        };
        let all: BTreeSet<Failure> = self.graph.failures.keys().cloned().collect();
        if self.graph.states == 0 {
            return check.same("failures before the first step", &all, &failures(outcome));
        }
        if plan.order.samples() {
            let strange: BTreeSet<Failure> = failures(outcome).difference(&all).cloned().collect();
            check.same("failures of a sample", &BTreeSet::new(), &strange)?;
            return check.same("complete", &false, &outcome.complete);
        }
        if !plan.keep_going {
            return check.first(&self.graph, check.counted(self.executions.as_ref()));
        }
        match check.counted(self.executions.as_ref()) {
            Some(executions) if plan.order.is_of_executions() => {
                check.executions(executions, self.traces)
            }
            _ => {
                check.same("failures", &wanted(all), &failures(outcome))?;
                let exact = !matches!(plan.store, StoreKind::Bitstate { .. });
                check.same("complete", &exact, &outcome.complete)?;
                if plan.reduction != Reduction::None {
                    return Ok(());
                }
                let (seen, graph) = (&outcome.coverage, &self.graph);
                check.same("states", &graph.states, &seen.states)?;
                check.same("transitions", &graph.transitions, &seen.transitions)?;
                check.same("waiting threads", &graph.blocked, &seen.blocked)?;
                check.same("ended threads", &graph.ended, &seen.ended)
            }
        }
    }
}

struct Check<'a> {
    plan: &'a Plan,
    outcome: &'a Outcome,
}

impl Check<'_> {
    fn same<T: Debug + PartialEq>(
        &self,
        what: &'static str,
        expected: &T,
        found: &T,
    ) -> Result<(), Disagreement> {
        if expected == found {
            return Ok(());
        }
        let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
        Err(Disagreement { search: label(self.plan), what, expected, found })
    }

    /// All executions with the cost that the search counts.
    fn counted<'e>(&self, executions: Option<&'e ByCost>) -> Option<&'e Executions> {
        executions.map(|executions| match self.plan.order {
            Order::Delay { .. } => &executions.delays,
            _ => &executions.preemptions,
        })
    }

    /// Checks a search that stops at its first finding: it must report an existing failure if there
    /// is one, and a simplest one by the measure of its order.
    fn first(&self, graph: &Graph, all: Option<&Executions>) -> Result<(), Disagreement> {
        let found = failures(self.outcome);
        let known = found.iter().all(|failure| graph.failures.contains_key(failure));
        self.same("whether the first failure is one", &true, &known)?;
        self.same("whether there is a failure", &!graph.failures.is_empty(), &!found.is_empty())?;
        let first = self.outcome.findings.first();
        match (self.plan.order, all) {
            (Order::BreadthFirst, _) => {
                let steps = first.map(|finding| finding.schedule.steps().len());
                self.same(
                    "steps of the first failure",
                    &graph.failures.values().min().copied(),
                    &steps,
                )
            }
            (Order::Icb { .. }, Some(all)) => {
                let preemptions = first.map(|finding| finding.preemptions);
                let least = all.failures.values().min().copied();
                self.same("preemptions of the first failure", &least, &preemptions)
            }
            (Order::Delay { .. }, Some(all)) => {
                // The bounds below that of the first failure were completed.
                let delays = first.map(|_| self.outcome.bounds.len() as u32);
                let least = all.failures.values().min().copied();
                self.same("delays of the first failure", &least, &delays)
            }
            _ => Ok(()),
        }
    }

    /// Checks a search over executions.
    fn executions(&self, all: &Executions, traces: bool) -> Result<(), Disagreement> {
        let (plan, outcome) = (self.plan, self.outcome);
        let bound = plan.bound.unwrap_or(u32::MAX);
        if plan.points == Points::Sync {
            return self.at_synchronisation(all, bound);
        }
        self.same("failures", &all.failures_within(bound), &failures(outcome))?;
        self.least_preemptions(all, bound)?;
        if plan.bound.is_none() || bound >= all.most() {
            self.same("complete", &true, &outcome.complete)?;
        }
        self.complete(all, traces)?;
        let tally = outcome.tally.unwrap_or_default();
        let takes_all = plan.reduction == Reduction::None
            && plan.order != Order::DfsHb
            && plan.order.cache().is_none_or(|cache| cache == Cache::None);
        if takes_all {
            self.same("executions", &all.within(bound), &tally.executions)?;
            for level in outcome.bounds.iter().filter(|_| plan.order.cache().is_some()) {
                self.same(
                    "executions of a bound",
                    &all.within(level.bound),
                    &level.all.executions,
                )?;
                if !traces {
                    continue;
                }
                self.same(
                    "traces of a bound",
                    &Some(all.traces_within(level.bound)),
                    &level.all.traces,
                )?;
            }
        }
        if !traces {
            return Ok(());
        }
        let once = matches!(
            plan.reduction,
            Reduction::Sleep
                | Reduction::Source
                | Reduction::Optimal
                | Reduction::CbPor
                | Reduction::CbPorStates
        );
        if once {
            self.same(
                "executions, one for each trace",
                &all.traces_within(bound),
                &tally.executions,
            )?;
        }
        if matches!(plan.reduction, Reduction::Sleep | Reduction::CbPorStates) {
            // Each of them takes one step to every happens-before graph but the empty one.
            let steps = Some(tally.steps + 1);
            self.same("happens-before graphs, one for each step", &steps, &tally.graphs)?;
        }
        if plan.reduction == Reduction::Optimal {
            self.same("abandoned executions", &0, &tally.pruned)?;
        }
        // A cache of states merges executions of different traces.
        if plan.order.cache() != Some(Cache::State) {
            self.same("traces", &Some(all.traces_within(bound)), &tally.traces)?;
        }
        Ok(())
    }

    /// A bounded search may be complete below the most preemptions, if executions within the bound
    /// show every failure and every trace.
    fn complete(&self, all: &Executions, traces: bool) -> Result<(), Disagreement> {
        if !self.outcome.complete {
            return Ok(());
        }
        let bound = self.plan.bound.unwrap_or(u32::MAX);
        let failures = |bound: u32| all.failures_within(bound);
        self.same("failures of a complete search", &failures(u32::MAX), &failures(bound))?;
        // A cache of states is complete if it has seen every state.
        if !traces || self.plan.order.cache() == Some(Cache::State) {
            return Ok(());
        }
        let traces = |bound: u32| all.traces_within(bound);
        self.same("traces of a complete search", &traces(u32::MAX), &traces(bound))
    }

    /// Searches in order of preemptions must find each failure with the fewest preemptions.
    fn least_preemptions(&self, all: &Executions, bound: u32) -> Result<(), Disagreement> {
        if !matches!(self.plan.order, Order::Icb { .. }) {
            return Ok(());
        }
        let expected: BTreeMap<_, _> = all
            .failures
            .iter()
            .filter(|&(_, &least)| least <= bound)
            .map(|(f, &n)| (f.clone(), n))
            .collect();
        // Errors of different variables can have the same name here.
        let mut found = BTreeMap::new();
        for finding in &self.outcome.findings {
            let least = found.entry(name(&finding.failure)).or_insert(u32::MAX);
            *least = finding.preemptions.min(*least);
        }
        self.same("least preemptions", &expected, &found)
    }

    /// A search with points at synchronisation must find the same as a search with all points, or a
    /// data race.
    fn at_synchronisation(&self, all: &Executions, bound: u32) -> Result<(), Disagreement> {
        let mut found = failures(self.outcome);
        if self.plan.promote {
            found.retain(|failure| failure.kind != Kind::Race);
            return self.same("failures with races promoted", &all.failures_within(bound), &found);
        }
        if found.iter().any(|failure| failure.kind == Kind::Race) {
            return self.same("whether some execution has a race", &!all.races.is_empty(), &true);
        }
        self.same("failures without a race", &all.failures_within(bound), &found)?;
        self.least_preemptions(all, bound)?;
        self.complete(all, false)?;
        let raced = all.races.values().any(|&least| least <= bound);
        self.same("a race", &raced, &false)
    }
}
