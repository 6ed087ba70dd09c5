//! The growth of coverage of several searches of one program, as a table and as a chart.
//!
//! Against the number of executions, as in icb's Figures 2, 5 and 6; or against the bound on
//! preemptions, as in its Figures 1 and 4, or on delays.

use preempt_explore::{BoundCoverage, Cost, Outcome, Tally};

use crate::bounds::{aligned, table};
use crate::number::grouped;
use crate::plot::{Axis, Chart, Look, Series};

/// A measure of coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// Distinct states.
    States,
    /// Distinct happens-before graphs of complete executions.
    Traces,
    /// Distinct happens-before graphs, including those of unfinished executions. They take the
    /// place of states where states are unknown.
    Graphs,
}

impl Covered {
    /// The name in reports.
    pub fn noun(self) -> &'static str {
        match self {
            Covered::States => "distinct states",
            Covered::Traces => "distinct traces",
            Covered::Graphs => "distinct happens-before states",
        }
    }

    /// The number in a tally; `None` if it was not counted.
    pub fn of(self, tally: &Tally) -> Option<u64> {
        match self {
            Covered::States => tally.states,
            Covered::Traces => tally.traces,
            Covered::Graphs => tally.graphs,
        }
    }
}

/// One search.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name of the search.
    pub name: String,
    /// The outcome of the search.
    pub outcome: Outcome,
}

impl Curve {
    /// The coverage after each sampled number of executions.
    pub fn by_executions(&self, covered: Covered) -> Vec<(u64, u64)> {
        let samples = self.outcome.growth.iter().flat_map(|growth| &growth.samples);
        samples.filter_map(|tally| Some((tally.taken(), covered.of(tally)?))).collect()
    }

    /// The coverage of each bound.
    pub fn by_bound(&self, covered: Covered) -> Vec<(u32, u64)> {
        self.outcome
            .bounds
            .iter()
            .filter_map(|bound| Some((bound.bound, covered.of(&bound.all)?)))
            .collect()
    }

    /// A short description of its end.
    fn end(&self) -> &'static str {
        match (self.outcome.complete, self.outcome.stopped) {
            (true, _) => "all",
            (false, Some(_)) => "limit",
            (false, None) => "end",
        }
    }
}

/// The coverage of each search after 1, 10, 100, … executions and at its end, and the execution in
/// which it found its first error.
pub fn table_by_executions(curves: &[Curve], covered: Covered) -> String {
    let points: Vec<Vec<(u64, u64)>> =
        curves.iter().map(|curve| curve.by_executions(covered)).collect();
    let most =
        points.iter().filter_map(|points| points.last()).map(|last| last.0).max().unwrap_or(0);
    let marks: Vec<u64> = (0..20).map(|n| 10u64.pow(n)).take_while(|&mark| mark <= most).collect();
    let mut columns = vec![vec!["executions".to_owned()]];
    columns[0].extend(marks.iter().map(|&mark| grouped(mark)));
    columns[0].extend(["at its end", "executions", "ended by", "first error"].map(str::to_owned));
    for (curve, points) in curves.iter().zip(&points) {
        let at = |mark: &u64| {
            points.iter().find(|(taken, _)| taken == mark).map_or("·".into(), |&(_, n)| grouped(n))
        };
        let (taken, found) = points.last().copied().unwrap_or((0, 0));
        let first = curve.outcome.growth.as_ref().and_then(|growth| growth.first_failure);
        let mut column = vec![curve.name.clone()];
        column.extend(marks.iter().map(at));
        column.extend([grouped(found), grouped(taken), curve.end().to_owned()]);
        column.push(first.map_or("none".into(), grouped));
        columns.push(column);
    }
    format!("{} by number of executions\n\n{}\n", covered.noun(), aligned(&columns).join("\n"))
}

/// The label of an axis of bounds.
fn bound_label(curves: &[Curve]) -> &'static str {
    let counts = |cost| curves.iter().all(|curve| curve.outcome.strategy.cost() == cost);
    match (counts(Cost::Preemptions), counts(Cost::Delays)) {
        (true, _) => "preemptions at most",
        (false, true) => "delays at most",
        (false, false) => "preemptions or delays at most",
    }
}

/// The coverage that each bound adds, for each search.
pub fn table_by_bound(curves: &[Curve], covered: Covered) -> String {
    let mut text = String::new();
    for curve in curves {
        let mut lines = table(&curve.outcome.bounds)
            .unwrap_or_else(|| vec!["no bound was completed".to_owned()]);
        // As a percentage if the total is known.
        let all = curve
            .outcome
            .tally
            .as_ref()
            .and_then(|tally| covered.of(tally))
            .filter(|_| curve.outcome.complete);
        if let Some(all) = all {
            let part = |bound: &BoundCoverage| {
                covered.of(&bound.all).map(|n| 100.0 * n as f64 / all.max(1) as f64)
            };
            let parts = curve
                .outcome
                .bounds
                .iter()
                .map(|bound| part(bound).map_or(String::new(), |n| format!("{n:5.1} %")));
            let parts = std::iter::once("covered".to_owned()).chain(parts);
            lines = lines
                .into_iter()
                .zip(parts)
                .map(|(line, part)| format!("{line}  {part:>7}"))
                .collect();
        }
        let known = if curve.outcome.complete { "complete" } else { "not complete" };
        text += &format!(
            "{}, {} within each bound; {known}\n\n{}\n\n",
            curve.name,
            covered.noun(),
            lines.join("\n")
        );
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The curves against the number of executions.
pub fn chart_by_executions(title: &str, curves: &[Curve], covered: Covered) -> Chart {
    let mut chart = Chart::new(title, Axis::log("executions"), Axis::linear(covered.noun()));
    for curve in curves {
        let points =
            curve.by_executions(covered).into_iter().map(|(taken, n)| (taken as f64, n as f64));
        chart = chart.with(Series::new(&*curve.name, Look::Line, points));
    }
    chart
}

/// The curves against the bound: as percentages if every search is complete, otherwise as counts.
pub fn chart_by_bound(title: &str, curves: &[Curve], covered: Covered) -> Chart {
    let all: Option<Vec<u64>> = curves
        .iter()
        .map(|curve| {
            curve
                .outcome
                .tally
                .as_ref()
                .and_then(|tally| covered.of(tally))
                .filter(|_| curve.outcome.complete)
        })
        .collect();
    let y = match &all {
        Some(_) => Axis::percent(format!("{} covered", covered.noun())),
        None => Axis::linear(covered.noun()),
    };
    let mut chart = Chart::new(title, Axis::whole(bound_label(curves)), y);
    for (number, curve) in curves.iter().enumerate() {
        let all = all.as_ref().map_or(100, |all| all[number].max(1));
        let points = curve
            .by_bound(covered)
            .into_iter()
            .map(|(bound, n)| (f64::from(bound), 100.0 * n as f64 / all as f64));
        chart = chart.with(Series::new(&*curve.name, Look::Line, points));
    }
    chart
}
