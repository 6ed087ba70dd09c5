//! Draws blocks' Figures 1 to 5. All of them show formulas; numbers in the text are drawn as
//! points.

use preempt_report::plot::{Axis, Chart, Look, Series};

use crate::papers::blocks::growth::{PER_BLOCK, interleavings, worst_case};

/// A curve of a formula over whole numbers.
fn curve(
    name: impl Into<String>,
    range: impl Iterator<Item = usize>,
    formula: impl Fn(usize) -> f64,
) -> Series {
    Series::new(name, Look::Curve, range.map(|n| (n as f64, formula(n))))
}

fn chart(title: &str, x: &str, y: &str) -> Chart {
    Chart::new(title, Axis::whole(x), Axis::powers_of_ten(y))
}

const STATEMENTS: &str = "statements of each thread";
const THREADS: &str = "threads";

pub(super) fn figure_1() -> Chart {
    let mut chart = chart(
        "blocks, Figure 1: interleavings of threads with β statements",
        THREADS,
        "interleavings",
    );
    for each in [5, 10, 15, 20, 25, 30] {
        chart = chart
            .with(curve(format!("β = {each}"), 1..=20, |threads| interleavings(threads, each)));
    }
    chart
        .with(Series::new("section 5: 3 × 20", Look::Points, [(3.0, 5e26f64.log10())]))
        .note("The text has 60!/(20!)³ as 5·10²⁶: cut after the first digit of 5.8.")
}

pub(super) fn figure_2() -> Chart {
    let title = "blocks, Figure 2: interleavings by threads and statements";
    let mut chart = chart(title, THREADS, "interleavings");
    for each in [2, 20, 50, 100, 150, 200] {
        chart = chart
            .with(curve(format!("β = {each}"), 1..=40, |threads| interleavings(threads, each)));
    }
    chart.note("The paper draws a surface over both; these are cuts through it.")
}

/// Threads of Figures 3 and 5.
const MANY: usize = 20;

fn blocks_of(threads: usize, each: usize) -> usize {
    threads * (each / PER_BLOCK)
}

pub(super) fn figure_3() -> Chart {
    let statements = || (PER_BLOCK..=200).step_by(PER_BLOCK);
    chart(
        "blocks, Figure 3: interleavings and worst cases, 20 threads, 5 statements in a block",
        STATEMENTS,
        "orders",
    )
    .with(curve("interleavings", statements(), |each| interleavings(MANY, each)))
    .with(curve("the paper's worst case", statements(), |each| {
        worst_case(MANY, blocks_of(MANY, each))
    }))
    .with(curve("the true worst case", statements(), |each| interleavings(MANY, each / PER_BLOCK)))
    .note(
        "The paper's worst case rests on its Theorem 1, which is false. The true one: all \
             blocks on one variable.",
    )
}

pub(super) fn figure_4() -> Chart {
    let each = 50;
    chart(
        "blocks, Figure 4: reduction in the worst case, 50 statements, 5 in a block",
        THREADS,
        "fewer by",
    )
    .with(curve("by the paper's formula", 1..=20, |n| {
        interleavings(n, each) - worst_case(n, blocks_of(n, each))
    }))
    .with(curve("in truth", 1..=20, |n| {
        interleavings(n, each) - interleavings(n, each / PER_BLOCK)
    }))
}

pub(super) fn figure_5() -> Chart {
    let statements = || (PER_BLOCK..=200).step_by(PER_BLOCK);
    let claimed = |each| interleavings(MANY, each) - worst_case(MANY, blocks_of(MANY, each));
    chart(
        "blocks, Figure 5: reduction in the worst case, 20 threads, 5 statements in a block",
        STATEMENTS,
        "fewer by",
    )
    .with(curve("by the paper's formula", statements(), claimed))
    .with(curve("in truth", statements(), |each| {
        interleavings(MANY, each) - interleavings(MANY, each / PER_BLOCK)
    }))
    .with(Series::new("section 4: at least 10⁴⁹²³", Look::Points, [(200.0, 4923.0)]))
}
