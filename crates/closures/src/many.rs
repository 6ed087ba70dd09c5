//! Compares many random programs.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::compare::compare;
use crate::generate::{self, AWAITED};
use crate::program::Program;
use crate::shrink::shrink;

/// The results of comparing many programs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of programs that were compared.
    pub programs: u64,
    /// The number of programs that were too large or contain an [unsupported construct](AWAITED).
    pub passed_over: u64,
    /// The number of strategies, summed over the programs, whose findings and observed values were
    /// compared.
    pub verdicts: u64,
    /// The number of verdicts of each strategy.
    pub strategies: BTreeMap<String, u64>,
    /// The number of verdicts whose trace counts were compared too.
    pub traces: u64,
    /// The number of strategies that reached a limit or refused a program.
    pub unfinished: u64,
    /// The number of strategies that assumed that a loop does not end by itself.
    pub assumed: u64,
    /// The number of executions of the reference.
    pub executions: u64,
    /// The number of executions of the reference in which an assumption failed.
    pub discarded: u64,
    /// The occurrences of each construct in the compared programs.
    pub constructs: BTreeMap<&'static str, usize>,
    /// For each kind of failure, the number of programs in which it is possible.
    pub failures: BTreeMap<String, u64>,
    /// The disagreements, each with its seed and a shrunk program.
    pub disagreements: Vec<String>,
}

/// Compares the programs with these seeds.
pub fn run(seeds: std::ops::Range<u64>, progress: impl FnMut(u64, &Report)) -> Report {
    run_generated(generate::program, seeds, progress)
}

/// Compares the programs that `generate` makes of these seeds.
pub fn run_generated(
    generate: fn(u64) -> Program,
    seeds: std::ops::Range<u64>,
    mut progress: impl FnMut(u64, &Report),
) -> Report {
    let mut report = Report::default();
    for seed in seeds {
        progress(seed, &report);
        let program = generate(seed);
        let constructs = generate::coverage(&program);
        if AWAITED.iter().any(|awaited| constructs.contains_key(awaited)) {
            report.passed_over += 1;
            continue;
        }
        match compare(&program) {
            Ok(None) => report.passed_over += 1,
            Ok(Some(compared)) => {
                report.programs += 1;
                report.verdicts += compared.verdicts;
                for strategy in compared.strategies {
                    *report.strategies.entry(strategy).or_default() += 1;
                }
                report.traces += compared.traces;
                report.unfinished += compared.unfinished;
                report.assumed += compared.assumed;
                report.executions += compared.summary.executions;
                report.discarded += compared.summary.discarded;
                for (construct, times) in constructs {
                    *report.constructs.entry(construct).or_default() += times;
                }
                for kind in compared.summary.failures.keys() {
                    *report.failures.entry(format!("{kind:?}")).or_default() += 1;
                }
            }
            Err(disagreement) => {
                let (smallest, disagreement) = shrink(&program, disagreement);
                report.disagreements.push(format!("seed {seed}: {disagreement}\n{smallest}"));
            }
        }
    }
    report
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} programs compared, {} skipped", self.programs, self.passed_over)?;
        writeln!(f, "{} executions of the reference", self.executions)?;
        writeln!(
            f,
            "{} verdicts, {} trace counts, {} unfinished, {} with an assumption",
            self.verdicts, self.traces, self.unfinished, self.assumed
        )?;
        let list = |counts: &mut dyn Iterator<Item = (&str, u64)>| {
            counts.fold(String::new(), |mut text, (name, times)| {
                let comma = if text.is_empty() { "" } else { ", " };
                write!(text, "{comma}{name} {times}").expect("a string can be written to");
                text
            })
        };
        let mut failures = self.failures.iter().map(|(kind, times)| (kind.as_str(), *times));
        writeln!(f, "failures: {}", list(&mut failures))?;
        let mut strategies = self.strategies.iter().map(|(name, times)| (name.as_str(), *times));
        writeln!(f, "verdicts by strategy: {}", list(&mut strategies))?;
        let mut constructs =
            self.constructs.iter().map(|(construct, times)| (*construct, *times as u64));
        writeln!(f, "constructs: {}", list(&mut constructs))?;
        writeln!(f, "{} disagreements", self.disagreements.len())?;
        self.disagreements.iter().try_for_each(|disagreement| writeln!(f, "{disagreement}"))
    }
}
