//! cpc: the figures, statement by statement; [`table`] has Table 1.
//!
//! The states of the figures must be equal to those of an independent prototype, for all variants.
//! Table 1 was measured on programs that were never published; our encodings must satisfy the
//! paper's claim that no sound search visits fewer states than the unsound one.

use anyhow::{Result, anyhow, ensure};
use preempt_explore::reduce::cpc::{self, Config, Found, Propagation, Variant};
use preempt_explore::{Plan, Silent};
use preempt_machine::Machine;
use preempt_system::Schedule;
use serde::Deserialize;

use super::Data;
use crate::corpus;

mod table;

pub use table::print;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    figure: Vec<Figure>,
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
    /// The transactions that the repaired search ends by force before the second thread has moved.
    forced: Option<u64>,
}

/// The results of the searches for a figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    states: [u64; 6],
    missed: Vec<String>,
    forced: u64,
}

const SEARCHES: [&str; 6] =
    ["full", "Figure 5", "without L19", "L19 printed", "L19 repaired", "cycle"];

/// The figures.
pub fn figures() -> Result<Vec<Figure>> {
    figures_of(&Data::default())
}

fn figures_of(data: &Data) -> Result<Vec<Figure>> {
    Ok(data.read::<Figures>("cpc-figures.toml")?.figure)
}

impl Figure {
    /// The expected results.
    pub fn expected(&self) -> Shown {
        Shown { states: self.states, missed: self.missed.clone(), forced: self.forced.unwrap_or(0) }
    }

    /// The results. Forced ends are counted only if the data contain them.
    pub fn show(&self) -> Result<Shown> {
        let machine = corpus::machine(&corpus::root().join(&self.file), &[])?;
        let (states, failures) = full(&machine)?;
        ensure!(failures == 1, "one thread goes wrong, not {failures}");
        let variants =
            [Variant::WithoutL19, Variant::Printed, Variant::Repaired, Variant::CycleDetection];
        let runs: Vec<Found> = [cpc::figure_5(machine.clone())]
            .into_iter()
            .chain(variants.map(|variant| search(&machine, variant, Propagation::AtPop)))
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
    let alone = |schedule: &&Schedule| {
        schedule.steps().iter().all(|step| step.thread == schedule.steps()[0].thread)
    };
    found.forced.iter().filter(alone).count() as u64
}

fn search(machine: &Machine, variant: Variant, propagation: Propagation) -> Found {
    cpc::run(machine.clone(), Config { variant, propagation })
}

/// The states of the full search, and the number of its failures.
fn full(machine: &Machine) -> Result<(u64, usize)> {
    let search = Plan::new()
        .keep_going()
        .ignore_deadlocks()
        .build()
        .map_err(|refusal| anyhow!("{refusal}"))?;
    let (outcome, _) = search.run(machine.clone(), &Silent);
    Ok((outcome.coverage.states, outcome.findings.len()))
}
