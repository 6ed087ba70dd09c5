//! Prints cartesian's Table 1: states and transitions of both algorithms, savings, and times.

use anyhow::Result;
use preempt_explore::Reduction;

use super::{CARTESIAN, LITERAL, MEMORY, Ours, QUICK, Row, rows_of};
use crate::papers::Ask;
use crate::papers::sheet::{Mark, Marks, Sheet, columns};

/// The results of our searches of a row, where they were run and are complete.
struct Ran {
    row: Row,
    standard: Option<Ours>,
    cartesian: Option<Ours>,
    /// Figure 6 as it is printed.
    literal: Option<Ours>,
    /// The cartesian search by two workers.
    concurrent: Option<Ours>,
}

impl Ran {
    fn of(row: Row, quick: bool) -> Result<Ran> {
        let wanted = |published: Option<[u64; 2]>, largest| {
            published.is_some_and(|[states, _]| !quick || states <= largest)
        };
        let run =
            |wanted, reduction, jobs| if wanted { row.run(reduction, jobs) } else { Ok(None) };
        let standard = run(wanted(row.standard, QUICK[0]), Reduction::None, 1)?;
        let small = wanted(row.cartesian, QUICK[1]);
        let cartesian = run(small, CARTESIAN, 1)?;
        let literal = run(wanted(row.literal, QUICK[1]), LITERAL, 1)?;
        let concurrent = run(small && !quick, CARTESIAN, 2)?;
        Ok(Ran { row, standard, cartesian, literal, concurrent })
    }
}

/// Prints the table.
pub fn print(ask: &Ask) -> Result<Marks> {
    if !ask.wants_table(1) {
        return Ok(Marks::default());
    }
    let rows: Vec<Ran> = rows_of(&ask.data)?
        .into_iter()
        .map(|row| Ran::of(row, ask.is_quick()))
        .collect::<Result<_>>()?;
    let standard = figures("the standard algorithm: a full search", &rows, |ran| {
        (ran.row.standard, ran.standard)
    });
    let cartesian =
        figures("the cartesian algorithm", &rows, |ran| (ran.row.cartesian, ran.cartesian));
    let title = "Figure 6 as it is printed: a prototype's figures, not the paper's";
    let literal = figures(title, &rows, |ran| (ran.row.literal, ran.literal));
    Ok(standard.print()
        + cartesian.print()
        + literal.print()
        + saved(&rows).print()
        + times(&rows).print())
}

fn figures(
    what: &str,
    rows: &[Ran],
    of: impl Fn(&Ran) -> (Option<[u64; 2]>, Option<Ours>),
) -> Sheet {
    let mut sheet =
        Sheet::new(format!("cartesian, Table 1, {what}"), columns("", ["states", "transitions"]));
    for ran in rows {
        let (published, ours) = of(ran);
        let mut line = sheet.row(&ran.row.name);
        for i in [0, 1] {
            let (published, ours) =
                (published.map(|figures| figures[i]), ours.map(|ours| ours.figures[i]));
            line = line.cell(published, ours, mark(published, ours));
        }
        line.end();
    }
    sheet.remark(format!("left out: by --quick, or more than {} GB", MEMORY >> 30));
    sheet
}

fn mark<T: PartialEq>(published: Option<T>, ours: Option<T>) -> Mark {
    match (published, ours) {
        (None, _) => Mark::Blank,
        (Some(_), None) => Mark::LeftOut,
        (Some(published), Some(ours)) if published == ours => Mark::Equal,
        _ => Mark::Different,
    }
}

fn saved(rows: &[Ran]) -> Sheet {
    let title = "cartesian, Table 1, percentage of saving";
    let mut sheet = Sheet::new(title, columns("", ["states", "transitions"]));
    for ran in rows {
        let mut line = sheet.row(&ran.row.name);
        for i in [0, 1] {
            let tenths = |percent: f64| format!("{percent:.1}");
            let ours = ran.standard.zip(ran.cartesian).map(|(standard, cartesian)| {
                tenths(100.0 * (1.0 - cartesian.figures[i] as f64 / standard.figures[i] as f64))
            });
            let published = ran.row.saved.map(|saved| tenths(saved[i]));
            let mark = mark(published.as_ref(), ours.as_ref());
            line = line.cell(published, ours, mark);
        }
        line.end();
    }
    sheet
}

fn times(rows: &[Ran]) -> Sheet {
    let title = "cartesian, Table 1, milliseconds";
    let mut sheet = Sheet::new(title, columns("", ["standard", "cartesian", "concurrent"]));
    let note = sheet.note(
        "times are of another machine and another program, and ours of one run that shares the \
         machine; concurrent: 4 processors there, 2 workers here. `papers cartesian --time` has \
         ratios within one run",
    );
    for ran in rows {
        let published = ran.row.milliseconds;
        let columns = [
            (published.standard, ran.standard),
            (published.cartesian, ran.cartesian),
            (published.concurrent, ran.concurrent),
        ];
        let mut line = sheet.row(&ran.row.name);
        for (published, ours) in columns {
            let mark = match (published, ours) {
                (None, _) => Mark::Blank,
                (Some(_), None) => Mark::LeftOut,
                (Some(_), Some(_)) => Mark::Explained(note),
            };
            line = line.cell(
                published,
                ours.map(|ours| format!("{:.1}", ours.elapsed.as_secs_f64() * 1e3)),
                mark,
            );
        }
        line.end();
    }
    sheet
}
