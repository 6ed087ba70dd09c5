//! Reduction against reduction: the cartesian search and SPIN's partial-order reduction, beside the full searches of both.
//!
//! SPIN takes the steps of a process alone where they touch nothing global. The cartesian search asks which steps
//! really meet, so it saves most where threads work on different elements of shared arrays, which these models do:
//! they are chosen to its advantage. In counter2, where all threads meet at every step, neither can save much. SPIN's
//! verifier is compiled for the model before its time begins; ours reads and compiles the model within it. The memory
//! is the peak of the process for ours, and what SPIN says it allocated.

use anyhow::Result;

use super::{Case, Pan, Pruning, printed};
use crate::measure::{self, Cap, Measured, Search};

/// A model of the corpus with a twin.
struct Row {
    case: Case,
    /// Its file in the corpus.
    file: &'static str,
    /// Settings that the twin does not have.
    ours: &'static [&'static str],
    /// States of SPIN before the first of ours, with a transition each.
    before: u64,
}

/// Rows that the full searches can do.
const BOTH: [Row; 5] = [
    file_system(&[("THREADS", 6)], ["-m1000", "-w19"]),
    indexer(&[("THREADS", 6)], ["-m1000", "-w14"]),
    robots(["-m400000", "-w18"]),
    cmis(&[("C", 4), ("N", 16)], ["-m10000", "-w20"]),
    counter2(&[("N", 3), ("K", 5)], ["-m1000", "-w18"]),
];

/// The same models, small.
const QUICK: [Row; 5] = [
    file_system(&[("THREADS", 4)], ["-m1000", "-w14"]),
    indexer(&[("THREADS", 5)], ["-m1000", "-w14"]),
    robots(["-m400000", "-w18"]),
    cmis(&[("C", 2), ("N", 8)], ["-m10000", "-w14"]),
    counter2(&[("N", 2), ("K", 5)], ["-m1000", "-w14"]),
];

/// Rows that no full search can do.
const ALONE: [Row; 3] = [
    file_system(&[("THREADS", 16)], ["-m10000", "-w24"]),
    indexer(&[("THREADS", 15)], ["-m10000", "-w24"]),
    cmis(&[("C", 32), ("N", 128)], ["-m1000000", "-w24"]),
];

/// Where both programs give up.
const CAP: Cap = Cap { megabytes: 8_000, minutes: 1 };

/// Shorter runs are repeated; with `--quick` and without.
const SECONDS: [f64; 2] = [0.05, 0.5];

const fn file_system(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Row {
    Row {
        case: Case { model: "file-system", set, spin },
        file: "file-system/model.pre",
        ours: &["CHECKED=false"],
        before: 0,
    }
}

const fn indexer(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Row {
    Row { case: Case { model: "indexer", set, spin }, file: "indexer/model.pre", ours: &[], before: 0 }
}

const fn robots(spin: [&'static str; 2]) -> Row {
    Row { case: Case { model: "robots", set: &[("ROBOTS", 3)], spin }, file: "robots/model.pre", ours: &[], before: 0 }
}

const fn cmis(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Row {
    Row { case: Case { model: "cmis", set, spin }, file: "cmis/model.pre", ours: &[], before: 1 }
}

const fn counter2(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Row {
    Row { case: Case { model: "counter2", set, spin }, file: "bench/counter2.pre", ours: &[], before: 0 }
}

impl Row {
    fn ours(&self, search: Search, seconds: f64) -> Result<Measured> {
        let model = crate::corpus::root().join(self.file);
        let mut settings = self.case.settings();
        settings.extend(self.ours.iter().map(|&setting| setting.to_owned()));
        measure::repeated(seconds, || measure::in_child(search, &model, &settings, CAP))
    }

    fn spin(&self, pruning: Pruning, seconds: f64) -> Result<Measured> {
        let pan = Pan::new(&self.case, pruning, CAP)?;
        measure::repeated(seconds, || pan.run())
    }
}

/// Prints the comparison; says whether the counts of the full searches agree.
pub fn compare(quick: bool) -> Result<bool> {
    println!(
        "with reduction, one core: CPU times with the start of the process, but without compiling SPIN's verifier"
    );
    println!("{:<16} {:<17} {:>10} {:>12} {:>9} {:>8}", "model", "search", "states", "transitions", "seconds", "MB");
    let mut agree = true;
    let (rows, seconds) = if quick { (&QUICK, SECONDS[0]) } else { (&BOTH, SECONDS[1]) };
    for row in rows {
        let (full, cartesian) = (row.ours(Search::Full, seconds)?, row.ours(Search::Cartesian, seconds)?);
        let (all, pruned) = (row.spin(Pruning::Off, seconds)?, row.spin(Pruning::On, seconds)?);
        let same =
            all.states == full.states + row.before && printed(all.transitions, full.transitions + 1 + row.before);
        agree &= same;
        line(&row.case.name(), "Preempt full", full);
        line("", "Preempt cartesian", cartesian);
        line("", "SPIN full", all);
        line("", "SPIN reduced", pruned);
        if !same {
            println!("{:<16} COUNTS DIFFER", "");
        }
        println!(
            "{:<16} the cartesian search takes {}, {} and {}",
            "",
            times(cartesian, pruned, "SPIN's reduced time"),
            times(cartesian, all, "SPIN's full time"),
            times(cartesian, full, "our full time"),
        );
        println!("{:<16} SPIN's reduction takes {}", "", times(pruned, all, "its full time"));
        println!("{:<16} SPIN is ahead: reduced {}, full {}", "", ahead(pruned, cartesian), ahead(all, full));
    }
    if quick {
        println!("left out by --quick: sizes that no full search can do");
        return Ok(agree);
    }
    println!("sizes that no full search can do, at most {} MB and {} s each:", CAP.megabytes, 60 * CAP.minutes);
    for row in &ALONE {
        let (cartesian, pruned) = (row.ours(Search::Cartesian, seconds)?, row.spin(Pruning::On, seconds)?);
        line(&row.case.name(), "Preempt cartesian", cartesian);
        line("", "SPIN reduced", pruned);
    }
    Ok(agree)
}

/// One time as a multiple of another.
fn times(one: Measured, other: Measured, name: &str) -> String {
    format!("{:.4}× {name}", one.seconds / other.seconds)
}

/// In which figures SPIN needs less than we do.
fn ahead(spin: Measured, ours: Measured) -> String {
    let smaller = [
        ("states", spin.states < ours.states),
        ("transitions", spin.transitions < ours.transitions),
        ("time", spin.seconds < ours.seconds),
        ("memory", spin.peak_bytes < ours.peak_bytes),
    ];
    let names: Vec<&str> = smaller.iter().filter(|(_, less)| *less).map(|(name, _)| *name).collect();
    if names.is_empty() { "in nothing".to_owned() } else { format!("in {}", names.join(" and ")) }
}

fn line(model: &str, search: &str, run: Measured) {
    println!(
        "{model:<16} {search:<17} {:>10} {:>12} {:>9.4} {:>8.1}{}",
        run.states,
        run.transitions,
        run.seconds,
        run.peak_bytes as f64 / 1048576.0,
        if run.complete { "" } else { "  gave up" },
    );
}
