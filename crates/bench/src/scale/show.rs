//! Measurements as text and as charts.

use preempt_report::plot::{Axis, Chart, Look, Series};

use super::Line;
use super::curves::{Dimension, Point};
use super::growth::{factor, power};
use crate::measure::Measured;
use crate::table::{Table, absent, grouped};

/// Shorter times are dominated by the start of the process and say nothing about states.
const LEAST_SECONDS: f64 = 0.02;

/// Less memory is mostly that of the program itself.
const LEAST_BYTES: f64 = 10e6;

/// The meaning of the columns.
pub const LEGEND: &str = "\
seconds: CPU time with the start of the process; elapsed: with all that the machine did besides; MB, B/state: peak memory of the process
icb's states are distinct happens-before graphs
what took less than 0.02 s or 10 MB says nothing about a single state (–), and is not part of the laws: nearest lines through logarithms";

fn axis(dimension: Dimension) -> Axis {
    match dimension {
        Dimension::Threads => Axis::whole("threads"),
        Dimension::Steps => Axis::log("rounds of each thread"),
        Dimension::Bound => Axis::whole("preemptions"),
        Dimension::States => Axis::log("states"),
        Dimension::Cores => Axis::whole("cores"),
    }
}

/// The coordinate of a point.
fn place(dimension: Dimension, point: &Point, run: &Measured) -> f64 {
    if dimension == Dimension::States { run.states as f64 } else { f64::from(point.x) }
}

/// The points of a line that have this value.
fn pairs(
    dimension: Dimension,
    line: &Line,
    value: impl Fn(&Measured) -> Option<f64>,
) -> Vec<(f64, f64)> {
    line.points
        .iter()
        .filter_map(|(point, run)| Some((place(dimension, point, run), value(run)?)))
        .collect()
}

fn seconds(run: &Measured) -> Option<f64> {
    (run.seconds >= LEAST_SECONDS).then_some(run.seconds)
}

fn bytes(run: &Measured) -> Option<f64> {
    (run.peak_bytes as f64 >= LEAST_BYTES).then_some(run.peak_bytes as f64)
}

fn microseconds_per_state(run: &Measured) -> Option<f64> {
    Some(seconds(run)? * 1e6 / run.states as f64)
}

fn bytes_per_state(run: &Measured) -> Option<f64> {
    Some(bytes(run)? / run.states as f64)
}

/// The table of a dimension, the laws of its curves, and the missing points.
pub fn text(dimension: Dimension, lines: &[Line]) -> String {
    let mut text =
        format!("growth with {}\n{}", dimension.name(), table(dimension, lines).to_text());
    for line in lines {
        if let Some(law) = law(dimension, line) {
            text += &format!("{}: {law}\n", line.name);
        }
    }
    lines.iter().flat_map(|line| &line.left_out).for_each(|note| text += &format!("{note}\n"));
    text
}

fn table(dimension: Dimension, lines: &[Line]) -> Table {
    let cores = dimension == Dimension::Cores;
    let mut head = vec!["program, search"];
    head.extend(cores.then_some("cores"));
    head.extend(["states", "transitions", "seconds"]);
    head.extend(if cores { ["elapsed", "speed-up"] } else { ["µs/state", "MB"] });
    head.push("B/state");
    let mut table = Table::new(head);
    for line in lines {
        for (point, run) in &line.points {
            let mut cells = vec![point.to_string()];
            cells.extend(cores.then(|| point.jobs.to_string()));
            cells.extend([
                grouped(run.states),
                grouped(run.transitions),
                format!("{:.3}", run.seconds),
            ]);
            if cores {
                let alone = line.points.first().map_or(run, |(_, run)| run);
                cells.extend([format!("{:.2}", run.wall), format!("{:.2}", alone.wall / run.wall)]);
            } else {
                let each =
                    microseconds_per_state(run).map_or_else(absent, |each| format!("{each:.2}"));
                cells.extend([each, format!("{:.1}", run.peak_bytes as f64 / 1e6)]);
            }
            cells.push(bytes_per_state(run).map_or_else(absent, |each| format!("{each:.1}")));
            cells.extend(
                (!line.counts_right(dimension, point, run)).then(|| "COUNTS DIFFER".to_owned()),
            );
            table.row(cells);
        }
    }
    table
}

/// How a line grows, in words. `None` if nothing grows.
fn law(dimension: Dimension, line: &Line) -> Option<String> {
    let states = pairs(dimension, line, |run| Some(run.states as f64));
    let (seconds, bytes) = (pairs(dimension, line, seconds), pairs(dimension, line, bytes));
    let times = |factor: Option<f64>| factor.map_or_else(absent, |factor| format!("{factor:.1}"));
    let exponent = |power: Option<f64>| power.map_or_else(absent, |power| format!("{power:.2}"));
    let law = match dimension {
        Dimension::Threads => {
            format!(
                "each thread more: states × {}, time × {}",
                times(factor(&states)),
                times(factor(&seconds))
            )
        }
        Dimension::Bound => {
            format!(
                "each preemption more: states × {}, time × {}",
                times(factor(&states)),
                times(factor(&seconds))
            )
        }
        Dimension::Steps => {
            format!(
                "states grow as rounds^{}, time as rounds^{}",
                exponent(power(&states)),
                exponent(power(&seconds))
            )
        }
        Dimension::States => {
            format!(
                "time grows as states^{}, memory as states^{}",
                exponent(power(&seconds)),
                exponent(power(&bytes))
            )
        }
        Dimension::Cores => return None,
    };
    Some(law)
}

/// The charts of a dimension, each with the name of its file.
pub fn charts(dimension: Dimension, lines: &[Line]) -> Vec<(String, Chart)> {
    let name = dimension.name();
    let chart = |what: &str, y: Axis, value: fn(&Measured) -> Option<f64>| {
        let mut chart = Chart::new(format!("Growth with {name}: {}", y.label), axis(dimension), y);
        let series = lines
            .iter()
            .map(|line| Series::new(&line.name, Look::Line, pairs(dimension, line, value)));
        chart.series = series.filter(|series| !series.points.is_empty()).collect();
        for note in lines.iter().flat_map(|line| &line.left_out) {
            chart = chart.note(note);
        }
        (format!("scale-{name}-{what}"), chart)
    };
    let cpu = || chart("seconds", Axis::log("CPU seconds"), |run| Some(run.seconds));
    let time = || chart("time", Axis::log("CPU microseconds for a state"), microseconds_per_state);
    let memory = || chart("memory", Axis::log("bytes for a state"), bytes_per_state);
    let elapsed = || chart("elapsed", Axis::linear("elapsed seconds"), |run| Some(run.wall));
    match dimension {
        Dimension::States => vec![time(), memory()],
        Dimension::Cores => vec![elapsed(), cpu()],
        Dimension::Threads | Dimension::Steps | Dimension::Bound => vec![cpu(), time(), memory()],
    }
}
