//! The measurement of how cost grows: counts are right, programs that do not fit are left out, and
//! everything is shown. No time is measured here.

use std::cell::RefCell;

use preempt_bench::measure::{Cap, Measured, Search};
use preempt_bench::papers::Extent;
use preempt_bench::scale::curves::{Curve, DIMENSIONS, Dimension, Point, Subject, curves};
use preempt_bench::scale::{Here, Line, Scales, measure, show};

// A search counts the memory of the whole process, and thus of the other tests too, so the limit is
// generous.
const HERE: Here = Here { free: 1 << 40, cores: 2 };

fn grid(x: u32, threads: u32, rounds: u32, jobs: usize) -> Point {
    Point { x, subject: Subject::Grid { threads, rounds }, search: Search::Full, jobs }
}

fn tiny(dimension: Dimension) -> Vec<Curve> {
    let curve = |name: &str, points: Vec<Point>| Curve { name: name.to_owned(), points };
    let sizes = |of: fn(u32) -> Point| (1..=4).map(of).collect::<Vec<Point>>();
    match dimension {
        Dimension::Threads => vec![curve("grid Nx2", sizes(|x| grid(x, x, 2, 1)))],
        Dimension::Steps => vec![curve("grid 2xK", sizes(|x| grid(x, 2, x, 1)))],
        Dimension::Bound => vec![curve(
            "queue 3, icb",
            sizes(|x| Point {
                x: x - 1,
                subject: Subject::Queue { rounds: 3 },
                search: Search::Icb { bound: x - 1 },
                jobs: 1,
            }),
        )],
        Dimension::States => vec![
            curve("grid", sizes(|x| grid(x, 3, x, 1))),
            curve(
                "phil",
                sizes(|x| Point {
                    x: x + 2,
                    subject: Subject::Philosophers { threads: x + 2 },
                    search: Search::Full,
                    jobs: 1,
                }),
            ),
        ],
        Dimension::Cores => {
            vec![curve("grid 3x5", (1..=2).map(|x| grid(x, 3, 5, x as usize)).collect())]
        }
    }
}

fn measured(dimension: Dimension) -> Vec<Line> {
    tiny(dimension).iter().map(|curve| measure(curve, &HERE).expect("the curve is tiny")).collect()
}

#[test]
fn tiny_programs_have_the_right_counts_in_every_dimension() {
    for dimension in DIMENSIONS {
        for line in measured(dimension) {
            assert!(line.is_right(dimension), "{}", line.name);
            assert!(line.left_out.is_empty(), "{:?}", line.left_out);
            assert!(
                line.points
                    .iter()
                    .all(|(_, run)| run.complete && run.transitions > 0 && run.peak_bytes > 0)
            );
        }
    }
    let states = |dimension, at: usize| -> Vec<u64> {
        measured(dimension)[at].points.iter().map(|(_, run)| run.states).collect()
    };
    assert_eq!(states(Dimension::Threads, 0), [3, 9, 27, 81]);
    assert_eq!(states(Dimension::Steps, 0), [4, 9, 16, 25]);
    assert_eq!(states(Dimension::States, 1), [26, 80, 242, 728]);
    assert_eq!(states(Dimension::Cores, 0), [216, 216]);
    let graphs = states(Dimension::Bound, 0);
    assert!(graphs.windows(2).all(|two| two[0] < two[1]), "every bound adds something: {graphs:?}");
}

#[test]
fn everything_that_was_measured_is_shown() {
    for dimension in DIMENSIONS {
        let lines = measured(dimension);
        let text = show::text(dimension, &lines);
        assert!(text.starts_with(&format!("growth with {}\n", dimension.name())), "{text}");
        for (point, _) in lines.iter().flat_map(|line| &line.points) {
            assert!(
                text.lines().any(|row| row.starts_with(&point.to_string())),
                "{point} in\n{text}"
            );
        }
        // Such small programs say nothing about the cost of a state, so it is not drawn.
        let whole = ["seconds", "elapsed"];
        let charts = show::charts(dimension, &lines);
        for (name, chart) in
            charts.iter().filter(|(name, _)| whole.iter().any(|end| name.ends_with(end)))
        {
            let drawn: Vec<(&str, usize)> = chart
                .series
                .iter()
                .map(|series| (series.name.as_str(), series.points.len()))
                .collect();
            let expected: Vec<(&str, usize)> =
                lines.iter().map(|line| (line.name.as_str(), line.points.len())).collect();
            assert_eq!(drawn, expected, "{name}");
        }
        for (name, chart) in charts {
            assert!(name.starts_with(&format!("scale-{}-", dimension.name())), "{name}");
            assert!(chart.to_svg().starts_with("<svg "), "{name}");
        }
    }
}

/// Programs with states of some bytes that take a millisecond each; two workers need half of it.
struct Made {
    free: u64,
    cores: usize,
    /// The bytes of a state.
    bytes: u64,
    /// The number of extra states for each additional worker.
    miscount: u64,
    asked: RefCell<Vec<String>>,
}

impl Made {
    fn with(free: u64, cores: usize) -> Made {
        Made { free, cores, bytes: 10, miscount: 0, asked: RefCell::new(Vec::new()) }
    }
}

impl Scales for Made {
    fn weigh(&self, point: &Point, cap: Cap) -> anyhow::Result<Measured> {
        assert!((cap.megabytes as u64) << 20 <= self.free, "a search gets no more than is free");
        self.asked.borrow_mut().push(point.to_string());
        let states = point.subject.states().expect("all of these have a formula")
            + self.miscount * (point.jobs as u64 - 1);
        let seconds = states as f64 / 1e3;
        Ok(Measured {
            states,
            transitions: 2 * states,
            seconds,
            wall: seconds / point.jobs as f64,
            peak_bytes: self.bytes * states,
            disk_bytes: 0,
            complete: true,
        })
    }

    fn free(&self) -> anyhow::Result<u64> {
        Ok(self.free)
    }

    fn cores(&self) -> usize {
        self.cores
    }
}

fn threads() -> Curve {
    Curve { name: "grid Nx9, full".to_owned(), points: (2..=5).map(|x| grid(x, x, 9, 1)).collect() }
}

#[test]
fn the_table_and_its_law() {
    let made = Made { bytes: 1_000, ..Made::with(1 << 40, 1) };
    let line = measure(&threads(), &made).expect("nothing can fail");
    let expected = "\
growth with threads
program, search   states  transitions  seconds  µs/state     MB  B/state
grid 2x9, full       100          200    0.100   1000.00    0.1        –
grid 3x9, full     1,000        2,000    1.000   1000.00    1.0        –
grid 4x9, full    10,000       20,000   10.000   1000.00   10.0   1000.0
grid 5x9, full   100,000      200,000  100.000   1000.00  100.0   1000.0
grid Nx9, full: each thread more: states × 10.0, time × 10.0
";
    assert_eq!(show::text(Dimension::Threads, std::slice::from_ref(&line)), expected);
    let charts = show::charts(Dimension::Threads, &[line]);
    let points = |end: &str| {
        let (_, chart) =
            charts.iter().find(|(name, _)| name.ends_with(end)).expect("there is such a chart");
        chart.series[0].points.clone()
    };
    assert_eq!(points("seconds"), [(2.0, 0.1), (3.0, 1.0), (4.0, 10.0), (5.0, 100.0)]);
    assert_eq!(points("time"), [2.0, 3.0, 4.0, 5.0].map(|threads| (threads, 1000.0)));
    assert_eq!(
        points("memory"),
        [(4.0, 1000.0), (5.0, 1000.0)],
        "what is the program's own is not drawn"
    );
}

#[test]
fn programs_that_do_not_fit_are_left_out_and_mentioned() {
    // 5 threads need 100,000 states of 10,000 bytes, twice.
    let made = |free| Made { bytes: 10_000, ..Made::with(free, 1) };
    let fits = made(2_000_000_000);
    assert_eq!(measure(&threads(), &fits).expect("nothing can fail").points.len(), 4);
    let full = made(1_500_000_000);
    let line = measure(&threads(), &full).expect("nothing can fail");
    assert_eq!(
        full.asked.borrow().last().map(String::as_str),
        Some("grid 4x9, full"),
        "it is not even tried"
    );
    let note = "grid 5x9, full is left out: it may need 1.9 GB, 1.4 GB are free";
    assert_eq!(line.left_out, [note]);
    assert!(
        show::text(Dimension::Threads, std::slice::from_ref(&line)).ends_with(&format!("{note}\n"))
    );
    assert!(
        show::charts(Dimension::Threads, &[line]).iter().all(|(_, chart)| chart.notes == [note])
    );
}

#[test]
fn cores_are_compared_and_must_count_the_same() {
    let curve = &tiny(Dimension::Cores)[0];
    let expected = "\
growth with cores
program, search  cores  states  transitions  seconds  elapsed  speed-up  B/state
grid 3x5, full       1     216          432    0.216     0.22      1.00        –
grid 3x5, full       2     216          432    0.216     0.11      2.00        –
";
    let line = measure(curve, &Made::with(1 << 40, 2)).expect("nothing can fail");
    assert_eq!(show::text(Dimension::Cores, &[line]), expected);

    let wrong =
        measure(curve, &Made { miscount: 1, ..Made::with(1 << 40, 2) }).expect("nothing can fail");
    assert!(!wrong.is_right(Dimension::Cores));
    let text = show::text(Dimension::Cores, &[wrong]);
    assert_eq!(text.lines().filter(|row| row.ends_with("COUNTS DIFFER")).count(), 1, "{text}");

    let alone = measure(curve, &Made::with(1 << 40, 1)).expect("nothing can fail");
    assert_eq!(alone.left_out, ["grid 3x5, full on 2 cores is left out: there are 1"]);
}

#[test]
fn the_curves_go_beyond_fifty_million_states() {
    let largest = |extent| {
        let all = curves(Dimension::States, extent);
        all.iter()
            .flat_map(|curve| &curve.points)
            .filter_map(Point::states)
            .max()
            .expect("formulas say some")
    };
    assert!(largest(Extent::Whole) > 50_000_000);
    assert!(largest(Extent::Quick) < 2_000_000);
    for dimension in DIMENSIONS {
        for curve in
            [Extent::Quick, Extent::Whole].into_iter().flat_map(|extent| curves(dimension, extent))
        {
            let grows = curve.points.windows(2).all(|two| two[0].x < two[1].x);
            assert!(curve.points.len() >= 2 && grows, "{}", curve.name);
        }
    }
}

#[test]
fn searches_are_read_as_they_are_written() {
    for search in [Search::Full, Search::Cartesian, Search::Icb { bound: 12 }] {
        assert_eq!(
            search.to_string().parse::<Search>().expect("the name is the one that was written"),
            search
        );
    }
    for wrong in ["", "dfs", "icb", "icb:", "icb:x"] {
        assert!(wrong.parse::<Search>().is_err(), "{wrong:?}");
    }
}
