//! Prints cpc's Table 1 next to our own encodings, the states that all variants visit on these, and
//! the figures.

use std::collections::BTreeMap;

use anyhow::Result;
use preempt_explore::reduce::cpc::{Propagation, Variant};
use serde::Deserialize;

use super::{SEARCHES, figures_of, full, search};
use crate::corpus;
use crate::papers::sheet::{Mark, Marks, Sheet, columns};
use crate::papers::{Ask, Data};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    row: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    loc: u64,
    unsound: u64,
    cpc: u64,
    cycle: u64,
    /// The replacement of an unpublished program, and why it was chosen.
    nearest: Option<String>,
    ours: Vec<Encoding>,
}

/// A model of ours in place of the paper's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoding {
    file: String,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    prototype: Option<[u64; 7]>,
    prototype_otherwise: Option<[u64; 7]>,
    #[serde(default)]
    big: bool,
}

/// States of the full search and of the [variants](COLUMNS).
type States = [u64; 7];

const COLUMNS: [(Variant, Propagation); 6] = [
    (Variant::Unsound, Propagation::AtPop),
    (Variant::WithoutL19, Propagation::AtPop),
    (Variant::Printed, Propagation::AtPop),
    (Variant::Repaired, Propagation::AtPop),
    (Variant::Repaired, Propagation::AtOnce),
    (Variant::CycleDetection, Propagation::AtPop),
];

const HEADS: [&str; 8] = [
    "",
    "full",
    "unsound",
    "without L19",
    "L19 printed",
    "L19 repaired",
    "at once",
    "cycle detection",
];

/// Which of them are the paper's columns: unsound, CPC, cycle detection.
const PUBLISHED: [usize; 3] = [1, 4, 6];

impl Encoding {
    fn name(&self) -> String {
        let settings: Vec<String> =
            self.set.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        self.file.clone() + &settings.concat()
    }

    fn run(&self) -> Result<States> {
        let settings: Vec<_> =
            self.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let machine = corpus::machine(&corpus::root().join(&self.file), &settings)?;
        let mut states = [full(&machine)?.0; 7];
        for (states, (variant, propagation)) in states[1..].iter_mut().zip(COLUMNS) {
            *states = search(&machine, variant, propagation).states;
        }
        Ok(states)
    }
}

/// A variant that misses errors visits the fewest states; the printed one is not sound either.
fn ordered(states: &States) -> bool {
    [2, 4, 5, 6].iter().all(|&sound| states[1] <= states[sound])
}

/// Prints the figures and the table. A quick run skips large rows.
pub fn print(ask: &Ask) -> Result<Marks> {
    let mut marks = Marks::default();
    if ask.wants_figure(&[1, 2, 3, 8]) {
        marks = marks + figures(&ask.data)?.print();
    }
    if ask.wants_table(1) {
        let Published { row } = ask.data.read("cpc-table-1.toml")?;
        let ran = |row: &Row| {
            row.ours
                .iter()
                .map(|own| (!ask.is_quick() || !own.big).then(|| own.run()).transpose())
                .collect()
        };
        let ours: Vec<Vec<Option<States>>> = row.iter().map(ran).collect::<Result<_>>()?;
        marks = marks + table_1(&row, &ours).print() + variants(&row, &ours).print();
    }
    Ok(marks)
}

fn figures(data: &Data) -> Result<Sheet> {
    let mut sheet = Sheet::new(
        "cpc, Figures 1, 2, 3 and 8: states (of all but the full search with phases), and whether \
         the error is found; a prototype's beside ours",
        columns("", SEARCHES.into_iter().chain(["forced ends"])),
    );
    for figure in figures_of(data)? {
        let (shown, expected) = (figure.show()?, figure.expected());
        let mut line = sheet.row(&figure.name);
        for (i, name) in SEARCHES.iter().enumerate() {
            let cell = |of: &super::Shown| {
                let missed = of.missed.iter().any(|missed| missed == name);
                format!("{} {}", of.states[i], if missed { "missed" } else { "found" })
            };
            line = line.same(cell(&expected), cell(&shown));
        }
        line.same(expected.forced, shown.forced).end();
    }
    Ok(sheet)
}

fn table_1(rows: &[Row], ours: &[Vec<Option<States>>]) -> Sheet {
    let mut head = columns("", ["unsound", "CPC", "cycle detection"]);
    head.insert(1, "lines");
    let mut sheet = Sheet::new(
        "cpc, Table 1: states visited; the paper's programs beside models of our own",
        head,
    );
    let own = sheet.note(
        "the Zing sources were never published: an encoding of our own, smaller than the paper's. \
         What must hold for it: no sound search visits fewer states than the unsound one",
    );
    for (row, ran) in rows.iter().zip(ours) {
        let nearest = row
            .nearest
            .as_ref()
            .map(|why| sheet.note(format!("{} was never published: {why}", row.name)));
        for (encoding, states) in row.ours.iter().zip(ran) {
            let mut line = sheet.row(format!("{}: {}", row.name, encoding.name())).text(row.loc);
            for (published, column) in [row.unsound, row.cpc, row.cycle].into_iter().zip(PUBLISHED)
            {
                let mark = match (states, nearest) {
                    (None, _) => Mark::LeftOut,
                    (Some(states), _) if !ordered(states) => Mark::Different,
                    (Some(_), Some(note)) => Mark::NotToBeHad(note),
                    (Some(_), None) => Mark::Explained(own),
                };
                line = line.cell(Some(published), states.map(|states| states[column]), mark);
            }
            line.end();
        }
    }
    sheet
}

fn variants(rows: &[Row], ours: &[Vec<Option<States>>]) -> Sheet {
    let title = "cpc, Table 1: what all variants visit; of an independent prototype, where it had \
                 the model, and ours";
    let mut sheet = Sheet::new(title, columns("", HEADS[1..].iter().copied()));
    let other = sheet
        .note("the prototype had another encoding, with the same states in all but other steps");
    for (encoding, states) in rows.iter().flat_map(|row| &row.ours).zip(ours.iter().flatten()) {
        let Some(states) = states else { continue };
        let prototype = encoding.prototype.or(encoding.prototype_otherwise);
        let mut line = sheet.row(encoding.name());
        for (column, &figure) in states.iter().enumerate() {
            let its = prototype.map(|prototype| prototype[column]);
            let mark = match its {
                None => Mark::Blank,
                Some(its) if its == figure => Mark::Equal,
                Some(_) if column > 0 && encoding.prototype.is_none() => Mark::Explained(other),
                Some(_) => Mark::Different,
            };
            line = line.cell(its, Some(figure), mark);
        }
        line.end();
    }
    sheet
}
