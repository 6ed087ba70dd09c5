//! icb, Tables 1 and 2: the sizes of the programs, and the preemptions that their errors need.
//!
//! Of the paper's programs only the file system was published. Next to the others are models of
//! ours after the paper's descriptions; their figures must be equal to those of brute force.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, ensure};
use preempt_explore::{Plan, Silent, oracle};
use serde::Deserialize;

use super::extent::Extent;
use crate::corpus;
use crate::papers::Data;
use crate::papers::sheet::{Mark, Note, Sheet, columns};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table1 {
    row: Vec<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    name: String,
    lines: u64,
    /// Threads, K, B, c.
    figures: [u64; 4],
    ours: Subject,
    expected: [u64; 4],
    nearest: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    file: String,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table2 {
    row: Vec<Errors>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Errors {
    name: String,
    /// The number of errors by their preemptions, from 0.
    bugs: [u64; 4],
    ours: Vec<String>,
    expected: [u64; 4],
    why: Option<String>,
    nearest: Option<String>,
}

/// Where ours replaces an unavailable program, it must only be as expected.
fn mark(published: u64, ours: u64, expected: u64, [nearest, why]: [Option<Note>; 2]) -> Mark {
    match (nearest, why) {
        _ if ours != expected => Mark::Different,
        (Some(note), _) => Mark::NotToBeHad(note),
        _ if ours == published => Mark::Equal,
        (None, Some(note)) => Mark::Explained(note),
        (None, None) => Mark::Different,
    }
}

/// Table 1.
pub(super) fn table_1(data: &Data) -> Result<Sheet> {
    let Table1 { row } = data.read("icb-table-1.toml")?;
    let title = "icb, Table 1: the programs, and the longest executions: steps (K), blocking ones \
                 among them (B), preemptions (c)";
    let mut sheet = Sheet::new(title, columns("", ["lines", "threads", "K", "B", "c"]));
    let own = sheet.note(
        "the paper's program was never published, or is not this one in every detail: a model of \
         ours after its description. The paper has the largest figures that it met, ours are the \
         largest that there are; where a thread starts there is no step of ours",
    );
    for row in row {
        let nearest = row
            .nearest
            .as_ref()
            .map(|why| sheet.note(format!("{} was never published: {why}", row.name)));
        let settings: Vec<_> =
            row.ours.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let file = corpus::root().join(&row.ours.file);
        let lines = std::fs::read_to_string(&file)?.lines().count() as u64;
        let extent = Extent::of(corpus::machine(&file, &settings)?)?;
        let ours = [extent.threads, extent.steps, extent.blocking, extent.preemptions];
        let mut line = sheet.row(format!("{}: {}", row.name, row.ours.file));
        line = line.cell(
            Some(row.lines),
            Some(lines),
            mark(row.lines, lines, lines, [nearest, Some(own)]),
        );
        for ((published, ours), expected) in row.figures.into_iter().zip(ours).zip(row.expected) {
            line = line.cell(
                Some(published),
                Some(ours),
                mark(published, ours, expected, [nearest, Some(own)]),
            );
        }
        line.end();
    }
    Ok(sheet)
}

/// Table 2.
pub(super) fn table_2(data: &Data) -> Result<Sheet> {
    let Table2 { row } = data.read("icb-table-2.toml")?;
    let title = "icb, Table 2: errors by the fewest preemptions with which they show";
    let mut sheet = Sheet::new(title, columns("", ["0", "1", "2", "3"]));
    for row in row {
        let nearest = row
            .nearest
            .as_ref()
            .map(|why| sheet.note(format!("{} was never published: {why}", row.name)));
        let why = row.why.as_ref().map(|why| sheet.note(why));
        let mut ours = [0; 4];
        for file in &row.ours {
            let least = least_preemptions(file)?;
            ensure!(least < 4, "the error of {file} needs {least} preemptions");
            ours[least as usize] += 1;
        }
        let mut line = sheet.row(&row.name);
        for ((published, ours), expected) in row.bugs.into_iter().zip(ours).zip(row.expected) {
            line = line.cell(
                Some(published),
                Some(ours),
                mark(published, ours, expected, [nearest, why]),
            );
        }
        line.end();
    }
    Ok(sheet)
}

/// The fewest preemptions of the error of a model, by brute force.
fn least_preemptions(file: &str) -> Result<u32> {
    let machine = corpus::machine(&corpus::root().join(file), &[])?;
    let search = Plan::new().keep_going().build().map_err(|refusal| anyhow!("{refusal}"))?;
    // After a full search the states are large enough.
    let (_, machine) = search.run(machine, &Silent);
    oracle::least_preemptions(&machine)
        .into_values()
        .min()
        .ok_or_else(|| anyhow!("{file} has no error"))
}
