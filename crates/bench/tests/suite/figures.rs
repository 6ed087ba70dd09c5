//! The figures of the papers: the numbers in which the papers describe their curves also hold for
//! ours.

use preempt_bench::papers::figures::figure;
use preempt_report::plot::{Chart, Look, Series};

fn chart(paper: &str, number: u32) -> Chart {
    figure(paper, number, true).expect("there is such a figure").chart
}

fn series<'c>(chart: &'c Chart, name: &str) -> &'c Series {
    chart
        .series
        .iter()
        .find(|series| series.name == name)
        .unwrap_or_else(|| panic!("no {name} in {}", chart.title))
}

/// The value of a curve at `x`.
fn at(series: &Series, x: f64) -> f64 {
    series
        .points
        .iter()
        .find(|point| point.0 == x)
        .unwrap_or_else(|| panic!("{} at {x}", series.name))
        .1
}

#[test]
fn coverage_by_bound_ends_with_everything() {
    for number in [1, 4] {
        let chart = chart("icb", number);
        for series in chart.series.iter().filter(|series| series.look != Look::Points) {
            let grows =
                series.points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
            assert!(grows, "{} in {}", series.name, chart.title);
            assert_eq!(series.points.last().expect("points").1, 100.0, "{}", series.name);
            // The paper's claim for its programs: more than 90 % within 8 preemptions.
            let within: Vec<f64> =
                series.points.iter().filter(|point| point.0 <= 8.0).map(|point| point.1).collect();
            assert!(within.last().is_some_and(|&percent| percent > 90.0), "{}", series.name);
        }
    }
}

#[test]
fn icb_covers_more_than_depth_first_search() {
    for number in [2, 5, 6] {
        let chart = chart("icb", number);
        let last = |series: &Series| series.points.last().expect("points").1;
        let icb = last(series(&chart, "icb"));
        for other in chart
            .series
            .iter()
            .filter(|series| series.name == "dfs" || series.name.starts_with("db:"))
        {
            assert!(icb > last(other), "{} in {}", other.name, chart.title);
        }
        assert_eq!(chart.series.len(), 5, "{}", chart.title);
    }
    for (number, missing) in [(5, "APE"), (6, "Dryad")] {
        let chart = chart("icb", number);
        assert!(
            chart.title.contains("in place of")
                && chart.notes.iter().any(|note| note.contains(missing))
        );
    }
}

#[test]
fn formulas_yield_the_numbers_of_the_text() {
    let drawn = chart("blocks", 1);
    assert!((at(series(&drawn, "β = 20"), 3.0) - 26.76).abs() < 0.01, "60!/(20!)³");
    let drawn = chart("blocks", 5);
    let (claimed, truth) = (series(&drawn, "by the paper's formula"), series(&drawn, "in truth"));
    assert_eq!(at(claimed, 200.0).floor(), 4923.0);
    assert!(
        at(truth, 200.0) < at(claimed, 200.0),
        "the worst case is worse than the paper's formula says"
    );
    for number in 1..=5 {
        assert!(chart("blocks", number).to_svg().contains("</svg>"));
    }
}

#[test]
fn there_is_no_other_figure() {
    for (paper, number) in [("icb", 3), ("blocks", 6), ("cpc", 1)] {
        assert!(figure(paper, number, true).is_err(), "{paper} {number}");
    }
}
