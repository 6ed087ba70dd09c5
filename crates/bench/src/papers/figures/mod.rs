//! Redraws the papers' figures: our curves, and the numbers that the papers print.
//!
//! The papers show curves and few numbers. Statements of the text about a curve are drawn as
//! points; the rest can only be compared by eye. A figure of an unpublished program is drawn for
//! the most similar one that we have, and says so.

mod blocks;
mod icb;

use std::path::Path;

use anyhow::{Context, Result, bail};
use preempt_report::plot::{Chart, Scale, Series};

/// A figure: its number and its chart.
pub struct Figure {
    /// The number of the figure in the paper.
    pub number: u32,
    /// The chart, with the published values among its series.
    pub chart: Chart,
}

/// The numbers of a paper's figures that are curves.
fn numbers(paper: &str) -> &'static [u32] {
    match paper {
        "icb" => &[1, 2, 4, 5, 6],
        "blocks" => &[1, 2, 3, 4, 5],
        _ => &[],
    }
}

/// One figure of a paper. `quick` skips what takes more than a few seconds.
pub fn figure(paper: &str, number: u32, quick: bool) -> Result<Figure> {
    let chart = match (paper, number) {
        ("icb", 1) => icb::figure_1()?,
        ("icb", 2) => icb::figure_2(quick)?,
        ("icb", 4) => icb::figure_4()?,
        ("icb", 5) => icb::figure_5(quick)?,
        ("icb", 6) => icb::figure_6(quick)?,
        ("blocks", 1) => blocks::figure_1(),
        ("blocks", 2) => blocks::figure_2(),
        ("blocks", 3) => blocks::figure_3(),
        ("blocks", 4) => blocks::figure_4(),
        ("blocks", 5) => blocks::figure_5(),
        _ => match numbers(paper) {
            [] => bail!("{paper} has no figure with curves; icb and blocks have"),
            all => bail!("{paper} has no figure {number} with curves; it has {all:?}"),
        },
    };
    Ok(Figure { number, chart })
}

/// Prints a figure, or all of a paper, and draws it into a folder if one is given.
pub fn print(paper: &str, number: Option<u32>, quick: bool, folder: Option<&Path>) -> Result<bool> {
    let wanted = number.map_or_else(|| numbers(paper).to_vec(), |number| vec![number]);
    for (at, number) in wanted.into_iter().enumerate() {
        let Figure { number, chart } = figure(paper, number, quick)?;
        print!("{}{}", if at == 0 { "" } else { "\n" }, table(&chart));
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("making {}", folder.display()))?;
            let file = folder.join(format!("{paper}-figure-{number}.svg"));
            std::fs::write(&file, chart.to_svg())
                .with_context(|| format!("writing {}", file.display()))?;
            println!("  drawn as {}", file.display());
        }
    }
    Ok(true)
}

/// The number of points of a curve that are printed.
const POINTS: usize = 12;

/// The data of a chart: a line for each series.
fn table(chart: &Chart) -> String {
    let mut text = format!("{}\n  {} → {}\n", chart.title, chart.x.label, chart.y.label);
    let width = chart.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
    for Series { name, points, .. } in &chart.series {
        let every = points.len().div_ceil(POINTS).max(1);
        let shown =
            points.iter().enumerate().filter(|(at, _)| at % every == 0 || at + 1 == points.len());
        let shown = shown.map(|(_, &(x, y))| {
            format!("{} → {}", number(x, chart.x.scale), number(y, chart.y.scale))
        });
        text += &format!("  {name:width$}  {}\n", shown.collect::<Vec<_>>().join(", "));
    }
    chart.notes.iter().for_each(|note| text += &format!("  {note}\n"));
    text
}

fn number(n: f64, scale: Scale) -> String {
    match scale {
        Scale::Percent => format!("{n:.1} %"),
        Scale::PowersOfTen => format!("10^{n:.1}"),
        _ => format!("{n}"),
    }
}
