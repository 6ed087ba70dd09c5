//! Compares the reduction by blocks with the oracle, on programs with straight-line threads: the
//! same terminal states and failures, every trace, and as many PO graphs as were counted in
//! advance.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::cursor::Cursor;
use preempt_explore::execution::{Cut, Stop, Visitor};
use preempt_explore::model::ModelExecution;
use preempt_explore::oracle::{self, FailureName, State};
use preempt_explore::reduce::blocks::{self, Blocks, Config, Figures};
use preempt_explore::reduce::{Dependence, Reduction, dpor};
use preempt_explore::{Limits, Order, Plan};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Access, Failure, Fingerprint, HbGraph, Model, System};

use crate::random::Shape;
use crate::straight;

/// The constructs of random programs.
const SHAPE: Shape = Shape { threads: (1, 4), statements: 4 };

/// Programs with more PO graphs are skipped.
const MOST_GRAPHS: u128 = 5_000;

/// The counts of one program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// Combinations of orders, including contradictory ones, as the paper counts them.
    pub product: u128,
    /// PO graphs, as the paper counts them.
    pub paper: u128,
    /// PO graphs where reads commute.
    pub graphs: u128,
    /// Whether there are more graphs than formula (12) gives.
    pub beyond: bool,
    /// Whether some step can fail.
    pub fails: bool,
}

/// Compares on the random program with this seed. `None` if the program is too large.
pub fn one(seed: u64) -> Result<Option<Sums>> {
    let text = straight::program(seed, SHAPE);
    compare_text(&text).with_context(|| format!("on this program:\n{text}"))
}

/// The same on the program with this text.
pub fn compare_text(text: &str) -> Result<Option<Sums>> {
    let machine = preempt_lang::load(&Source::new("random.pre", text), &[])
        .map_err(|d| anyhow!("{}", d[0].message))?;
    let limits = Limits { states: Some(super::MOST_STATES), ..Limits::default() };
    let (outcome, machine) = super::run(Plan::new().keep_going().limits(limits), machine)?;
    // A program that fails before its first step has no executions.
    if !outcome.complete
        || outcome.findings.iter().any(|finding| finding.schedule.steps().is_empty())
    {
        return Ok(None);
    }
    compare(&machine.with_stable_names())
}

/// Compares on a machine whose states are large enough.
pub fn compare(machine: &Machine) -> Result<Option<Sums>> {
    let lines = machine.straight_lines().map_err(|why| anyhow!("{why}"))?;
    let paper = figures(&lines, Dependence::All)?;
    if paper.graphs.is_none_or(|graphs| graphs > MOST_GRAPHS) {
        return Ok(None);
    }
    let expected = oracle::reachable(machine);
    let fails = !expected.failures.is_empty();
    let mut sums = Sums { fails, ..Sums::default() };
    for dependence in [Dependence::All, Dependence::ReadWrite] {
        let counted = figures(&lines, dependence)?;
        let config = Config { dependence };
        let (counts, seen) = seen(machine, dependence, |cursor, seen| {
            blocks::run_po_graphs(&lines, cursor, seen, &config)
        })?;
        let (_, optimal) = self::seen(machine, dependence, |cursor, seen| {
            dpor::optimal(cursor, seen, dependence)
        })?;
        ensure!(
            counts.dead_ends == 0,
            "{dependence:?}: {} combinations led nowhere",
            counts.dead_ends
        );
        let graphs = Some(u128::from(counts.graphs));
        ensure!(
            graphs == counted.graphs,
            "{dependence:?}: {graphs:?} PO graphs, counted were {:?}",
            counted.graphs
        );
        ensure!(
            seen.executions == counts.graphs,
            "{dependence:?}: one execution of every PO graph"
        );
        ensure!(seen.terminal == expected.terminal, "{dependence:?}: other terminal states");
        let failures: BTreeSet<&FailureName> = expected.failures.keys().collect();
        ensure!(
            seen.failures.iter().collect::<BTreeSet<_>>() == failures,
            "{dependence:?}: other failures"
        );
        ensure!(
            seen.traces == optimal.traces,
            "{dependence:?}: other traces than dynamic reduction has"
        );
        let traces = optimal.executions;
        ensure!(
            fails || traces == counts.graphs,
            "{dependence:?}: {traces} traces, {} graphs",
            counts.graphs
        );
        match dependence {
            Dependence::All => {
                (sums.paper, sums.product) = (counts.graphs.into(), paper.product.unwrap_or(0));
                sums.beyond = counts.graphs as f64 > paper.claimed * (1.0 + 1e-9);
            }
            Dependence::ReadWrite => sums.graphs = counts.graphs.into(),
        }
    }
    check_outcomes(machine, &expected, &sums)?;
    Ok(Some(sums))
}

/// The counts, after a sanity check: an order in which no two accesses commute is an interleaving.
fn figures(lines: &[Vec<preempt_system::Footprint>], dependence: Dependence) -> Result<Figures> {
    let blocks = Blocks::new(lines, dependence);
    let figures = Figures::of(&blocks);
    if dependence == Dependence::All {
        for (variable, &orders) in blocks.variables.iter().zip(&figures.orders) {
            let accesses: Vec<usize> = variable.accesses.iter().map(Vec::len).collect();
            ensure!(
                blocks::multinomial(&accesses) == orders,
                "{orders:?} orders of {accesses:?} accesses"
            );
        }
    }
    ensure!(figures.graphs <= figures.product, "a combination is one graph at most: {figures:?}");
    Ok(figures)
}

/// From a plan to an outcome with replayed findings.
fn check_outcomes(machine: &Machine, expected: &oracle::Reachable, sums: &Sums) -> Result<()> {
    for (reduction, graphs) in
        [(Reduction::Blocks, sums.graphs), (Reduction::BlocksPaper, sums.paper)]
    {
        let plan = Plan::new().order(Order::Executions).reduction(reduction).keep_going();
        let (outcome, _) = super::run(plan, machine.clone())?;
        let tally = outcome.tally.context("a search over executions has a tally")?;
        ensure!(outcome.complete, "{reduction:?}: {}", outcome.guarantee());
        ensure!(
            u128::from(tally.executions) == graphs,
            "{reduction:?}: {} executions",
            tally.executions
        );
        ensure!(
            tally.ends == Some(expected.terminal.len() as u64),
            "{reduction:?}: ends {:?}",
            tally.ends
        );
        let found: BTreeSet<FailureName> =
            outcome.findings.iter().map(|f| oracle::name(&f.failure)).collect();
        ensure!(found.iter().eq(expected.failures.keys()), "{reduction:?}: found {found:?}");
    }
    Ok(())
}

/// The results of executions.
#[derive(Default)]
struct Seen {
    dependence: Dependence,
    executions: u64,
    terminal: BTreeSet<State>,
    failures: BTreeSet<FailureName>,
    traces: BTreeSet<Fingerprint>,
}

impl<S: System> Visitor<S> for Seen {
    fn step(
        &mut self,
        _: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<S::Need>> {
        self.failures.extend(failure.map(|failure| oracle::name(&failure)));
        Ok(())
    }

    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>> {
        let mut graph = HbGraph::new();
        for at in 0..cursor.len() {
            let access =
                |access| if self.dependence == Dependence::All { Access::Write } else { access };
            let touched =
                cursor.taken(at).accesses().iter().map(|&(location, how)| (location, access(how)));
            graph.push(cursor.choice(at), &touched.collect());
        }
        self.executions += 1;
        self.terminal.extend(cursor.system().words().map(<[u64]>::to_vec));
        self.traces.insert(graph.fingerprint());
        Ok(())
    }

    fn cut(&mut self, _: &mut Cursor<S>, _: Cut) -> Result<(), Stop<S::Need>> {
        Ok(())
    }
}

/// Runs a strategy.
fn seen<T>(
    machine: &Machine,
    dependence: Dependence,
    strategy: impl FnOnce(&mut Cursor<ModelExecution<'_, Machine>>, &mut Seen) -> Result<T, Stop>,
) -> Result<(T, Seen)> {
    let mut cursor = Cursor::new(machine).map_err(|_| anyhow!("its states are too small"))?;
    let mut seen = Seen { dependence, ..Seen::default() };
    let counts = strategy(&mut cursor, &mut seen).map_err(|stop| anyhow!("stopped: {stop:?}"))?;
    Ok((counts, seen))
}
