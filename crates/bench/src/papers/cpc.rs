//! cpc: the figures, statement by statement, and Table 1.
//!
//! The states of the figures must be equal to those of an independent prototype, for all variants. Table 1 was measured on programs that
//! were never published; what must hold for ours is what the paper claims: no sound search visits fewer states than the unsound one.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, ensure};
use preempt_explore::reduce::cpc::{self, Config, Found, Handing, Variant};
use preempt_explore::{Plan, Silent};
use preempt_lang::machine::Machine;
use preempt_system::Schedule;
use serde::Deserialize;

use crate::corpus;

/// The data of the tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    row: Vec<Row>,
    /// The paper's figures.
    pub figure: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[expect(dead_code, reason = "published, and not compared with anything")]
    loc: u64,
    unsound: u64,
    cpc: u64,
    cycle: u64,
    #[serde(default)]
    ours: Vec<Ours>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    file: String,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    /// Full, and the variants of [`COLUMNS`].
    prototype: Option<[u64; 7]>,
    #[serde(default)]
    big: bool,
}

/// A figure of the paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its number.
    pub name: String,
    file: String,
    /// Full, Figure 5, and CPC without L19, with it as printed, with it repaired, cycle detection.
    states: [u64; 6],
    /// The searches that miss the error.
    missed: Vec<String>,
    /// The transactions ended by force by the repaired search before the second thread has moved.
    forced: Option<u64>,
}

/// What the searches made of a figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    states: [u64; 6],
    missed: Vec<String>,
    forced: u64,
}

const SEARCHES: [&str; 6] = ["full", "Figure 5", "without L19", "L19 printed", "L19 repaired", "cycle"];

const COLUMNS: [(Variant, Handing); 6] = [
    (Variant::Unsound, Handing::AtPop),
    (Variant::WithoutL19, Handing::AtPop),
    (Variant::Printed, Handing::AtPop),
    (Variant::Repaired, Handing::AtPop),
    (Variant::Repaired, Handing::AtOnce),
    (Variant::CycleDetection, Handing::AtPop),
];

/// The data of the tables.
pub fn tables() -> Result<Tables> {
    Ok(toml::from_str(include_str!("../../data/cpc-table-1.toml"))?)
}

impl Figure {
    /// What must come out.
    pub fn expected(&self) -> Shown {
        Shown { states: self.states, missed: self.missed.clone(), forced: self.forced.unwrap_or(0) }
    }

    /// What comes out. What the data do not say of forced ends is not counted.
    pub fn show(&self) -> Result<Shown> {
        let machine = corpus::machine(&corpus::root().join(&self.file), &[])?;
        let (states, failures) = full(&machine)?;
        ensure!(failures == 1, "one thread goes wrong, not {failures}");
        let variants = [Variant::WithoutL19, Variant::Printed, Variant::Repaired, Variant::CycleDetection];
        let runs: Vec<Found> = [cpc::figure_5(machine.clone())]
            .into_iter()
            .chain(variants.map(|variant| search(&machine, variant, Handing::AtPop)))
            .collect();
        let missed = SEARCHES[1..].iter().zip(&runs).filter(|(_, found)| found.failures.is_empty());
        Ok(Shown {
            states: std::array::from_fn(|i| if i == 0 { states } else { runs[i - 1].states }),
            missed: missed.map(|(&name, _)| name.to_owned()).collect(),
            forced: if self.forced.is_some() { alone(&runs[3]) } else { 0 },
        })
    }
}

/// The forced ends at which only one thread has moved.
fn alone(found: &Found) -> u64 {
    let alone = |schedule: &&Schedule| schedule.steps().iter().all(|step| step.thread == schedule.steps()[0].thread);
    found.forced.iter().filter(alone).count() as u64
}

fn search(machine: &Machine, variant: Variant, handing: Handing) -> Found {
    cpc::run(machine.clone(), Config { variant, handing, ..Config::default() })
}

/// The states of the full search, and how many failures it finds.
fn full(machine: &Machine) -> Result<(u64, usize)> {
    let search = Plan::new().keep_going().ignore_deadlocks().build().map_err(|refusal| anyhow!("{refusal}"))?;
    let (outcome, _) = search.run(machine.clone(), &Silent);
    Ok((outcome.coverage.states, outcome.findings.len()))
}

/// Prints both tables; says whether all that must hold does. `quick` leaves out large rows.
pub fn print(quick: bool) -> Result<bool> {
    let tables = tables()?;
    let figures = print_figures(&tables.figure)?;
    println!();
    Ok(print_table_1(&tables.row, quick)? && figures)
}

fn print_figures(figures: &[Figure]) -> Result<bool> {
    println!("cpc, the figures: states (of all but the full search with phases), and whether the error is found");
    print!("{:<24}", "");
    SEARCHES.iter().for_each(|name| print!(" {name:>14}"));
    println!();
    let mut good = true;
    for figure in figures {
        let (shown, expected) = (figure.show()?, figure.expected());
        print!("{:<24}", figure.name);
        for (name, states) in SEARCHES.iter().zip(shown.states) {
            let missed = shown.missed.iter().any(|missed| missed == name);
            print!(" {:>14}", format!("{states} {}", if missed { "MISSED" } else { "found" }));
        }
        println!("  {}", if shown == expected { "equal" } else { "DIFFERENT" });
        good &= shown == expected;
    }
    Ok(good)
}

fn print_table_1(rows: &[Row], quick: bool) -> Result<bool> {
    println!("cpc, Table 1: the paper's programs, and encodings of our own below those we have");
    let heads = ["full", "unsound", "without L19", "L19 printed", "L19 repaired", "at once", "cycle"];
    print!("{:<44}", "");
    heads.iter().for_each(|head| print!(" {head:>12}"));
    println!();
    let mut good = true;
    for row in rows {
        let Row { name, unsound, cpc, cycle, .. } = row;
        println!(
            "{name:<44} {:>12} {unsound:>12} {:>12} {:>12} {cpc:>12} {:>12} {cycle:>12}  published",
            "-", "-", "-", "-"
        );
        for ours in row.ours.iter().filter(|ours| !(quick && ours.big)) {
            let settings: Vec<_> = ours.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
            let machine = corpus::machine(&corpus::root().join(&ours.file), &settings)?;
            let mut states = vec![full(&machine)?.0];
            states.extend(COLUMNS.map(|(variant, handing)| search(&machine, variant, handing).states));
            let label: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            print!("{:<44}", format!("  {} {}", ours.file, label.join(" ")));
            states.iter().for_each(|states| print!(" {states:>12}"));
            // What misses errors is the least; what is printed is not sound either.
            let ordered = [2, 4, 5, 6].iter().all(|&sound| states[1] <= states[sound]);
            let word = match ours.prototype.map(|prototype| states == prototype) {
                _ if !ordered => "DIFFERENT: fewer than unsound",
                Some(true) => "equal to the prototype",
                Some(false) => "the prototype had another encoding",
                None => "",
            };
            println!("  {word}");
            good &= ordered;
        }
    }
    Ok(good)
}
