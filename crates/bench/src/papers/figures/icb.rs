//! Draws icb's Figures 1 and 4 (coverage by bound), and 2, 5 and 6 (coverage by executions).
//!
//! The paper counts states of models, and for programs the happens-before graphs of executions and
//! their prefixes; so do we.

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::{Cache, Count, Limits, Order, Outcome, Plan, Sampling, Silent};
use preempt_machine::Machine;
use preempt_report::curves::{Covered, Curve, chart_by_bound, chart_by_executions};
use preempt_report::plot::{Axis, Chart, Look, Series};
use preempt_system::Model as _;

use crate::corpus;
use crate::papers::queue::{self, Lock};

/// The seed of random executions.
const SEED: u64 = 1;

fn run(plan: Plan, machine: Machine) -> Result<Outcome> {
    let search = plan.keep_going().build().map_err(|refusal| anyhow!("{refusal}"))?;
    Ok(search.run(machine, &Silent).0)
}

fn model(file: &str, settings: &[(&str, u32)]) -> Result<Machine> {
    let settings: Vec<_> =
        settings.iter().map(|&(name, value)| (name.to_owned(), value.to_string())).collect();
    corpus::machine(&corpus::root().join(file), &settings)
}

/// Level by level until nothing is left.
fn by_bound(name: &str, machine: Machine, cache: Cache) -> Result<Curve> {
    let outcome = run(Plan::new().order(Order::Icb { cache }), machine)?;
    ensure!(outcome.complete, "{name}: {}", outcome.guarantee());
    Ok(Curve { name: name.to_owned(), outcome })
}

fn percent(curve: &Curve, covered: Covered) -> Result<Series> {
    let all = curve
        .outcome
        .tally
        .as_ref()
        .and_then(|tally| covered.of(tally))
        .context("it was counted")?;
    let points = curve.by_bound(covered).into_iter();
    let points = points.map(|(bound, n)| (f64::from(bound), 100.0 * n as f64 / all as f64));
    Ok(Series::new(&*curve.name, Look::Line, points))
}

pub(super) fn figure_1() -> Result<Chart> {
    let queues = [3, 4, 5].map(|size| {
        by_bound(&format!("queue, size {size}"), queue::machine(size, Lock::Blocking)?, Cache::Hb)
    });
    let queues = queues.into_iter().collect::<Result<Vec<_>>>()?;
    let chart = chart_by_bound(
        "icb, Figure 1: the work-stealing queue, coverage by bound",
        &queues,
        Covered::Graphs,
    );
    Ok(chart
        .with(Series::new("the paper's text", Look::Points, [(8.0, 90.0), (11.0, 100.0)]))
        .note(
            "The paper's driver is not known; it has executions with at least 35 preemptions. \
               Text: 90 % within 8, all within 11.",
        ))
}

/// Searches that are compared by their executions.
fn compared(machine: &Machine, orders: &[(&str, Order)], executions: u64) -> Result<Vec<Curve>> {
    let run = |&(name, order): &(&str, Order)| {
        let limits = Limits { executions: Some(executions), ..Limits::default() };
        let plan = Plan::new()
            .order(order)
            .seed(SEED)
            .runs(executions)
            .count(Count::States)
            .limits(limits);
        let outcome = run(plan.sampling(Sampling::Decades), machine.clone().with_stable_names())?;
        Ok(Curve { name: name.to_owned(), outcome })
    };
    orders.iter().map(run).collect()
}

pub(super) fn figure_2(quick: bool) -> Result<Chart> {
    let orders = [
        ("icb", Order::Icb { cache: Cache::None }),
        ("random", Order::Random),
        ("dfs", Order::Executions),
        ("db:40", Order::Depth { steps: 40 }),
        ("db:20", Order::Depth { steps: 20 }),
    ];
    let curves = compared(
        &queue::machine(5, Lock::Blocking)?,
        &orders,
        if quick { 1_000 } else { 100_000 },
    )?;
    let title = "icb, Figure 2: the work-stealing queue, coverage by executions";
    let mut chart = chart_by_executions(title, &curves, Covered::Graphs);
    chart.y = Axis::log(Covered::Graphs.noun());
    Ok(chart
        .note("Size 5. The paper has the same five curves without numbers: icb above the others."))
}

pub(super) fn figure_4() -> Result<Chart> {
    let subjects = [
        ("Bluetooth", model("bluetooth/model.pre", &[("ADDERS", 2)])?, Cache::Hb, Covered::Graphs),
        (
            "file system",
            model("file-system/model.pre", &[("THREADS", 3)])?,
            Cache::Hb,
            Covered::Graphs,
        ),
        (
            "transaction manager",
            model("transaction-manager/model.pre", &[])?,
            Cache::State,
            Covered::States,
        ),
        ("work-stealing queue", queue::machine(5, Lock::Blocking)?, Cache::Hb, Covered::Graphs),
    ];
    let (x, y) = (Axis::whole("preemptions at most"), Axis::percent("states covered"));
    let mut chart = Chart::new("icb, Figure 4: coverage of whole state spaces by bound", x, y);
    for (name, machine, cache, covered) in subjects {
        chart = chart.with(percent(&by_bound(name, machine, cache)?, covered)?);
    }
    Ok(chart
        .with(Series::new("paper: Bluetooth, file system", Look::Points, [(4.0, 100.0)]))
        .with(Series::new("paper: queue", Look::Points, [(8.0, 90.0), (11.0, 100.0)]))
        .note(
            "Our models are written after the descriptions; sizes differ. Caption: more than 90 \
               % within 8 preemptions.",
        ))
}

/// The depths of which the best, the worst and the median are shown, as the paper does for idfs.
const DEPTHS: [u32; 7] = [10, 15, 20, 30, 40, 60, 80];

fn incomplete(title: &str, machine: &Machine, quick: bool) -> Result<Chart> {
    let executions = if quick { 200 } else { 1_000 };
    let curves = compared(
        machine,
        &[("icb", Order::Icb { cache: Cache::None }), ("dfs", Order::Executions)],
        executions,
    )?;
    let names = DEPTHS.map(|depth| format!("db:{depth}"));
    let depths: Vec<(&str, Order)> =
        DEPTHS.iter().zip(&names).map(|(&steps, name)| (&**name, Order::Depth { steps })).collect();
    let mut bounded = compared(machine, &depths, executions)?;
    bounded.sort_by_key(|curve| curve.outcome.tally.and_then(|tally| tally.graphs));
    let chosen = [bounded.len() - 1, bounded.len() / 2, 0].map(|at| bounded[at].clone());
    let curves: Vec<Curve> = curves.into_iter().chain(chosen).collect();
    Ok(chart_by_executions(title, &curves, Covered::Graphs).note(
        "The depth bounds are those of the greatest, the middle and the least coverage among \
               10 to 80 steps.",
    ))
}

pub(super) fn figure_5(quick: bool) -> Result<Chart> {
    let machine = model("transaction-manager/model.pre", &[("SCANS", 2)])?;
    let chart =
        incomplete("icb, Figure 5: in place of APE, the transaction manager", &machine, quick)?;
    Ok(chart.note(
        "APE was never published. The nearest that we have: workers and a timer around one \
               shared structure.",
    ))
}

pub(super) fn figure_6(quick: bool) -> Result<Chart> {
    let machine = model("bounded-buffer/model.pre", &[("ITEMS", 2), ("CAPACITY", 2)])?;
    let chart = incomplete("icb, Figure 6: in place of Dryad, a bounded buffer", &machine, quick)?;
    Ok(chart.note(
        "Dryad was never published. The nearest that we have: threads that hand items over \
               through a channel.",
    ))
}
