//! All twins, with and without reduction: the cartesian search and SPIN's partial-order reduction,
//! next to the full searches of both.
//!
//! SPIN takes the steps of a process alone where they access nothing global. The cartesian search
//! considers which steps really conflict, so it saves most where threads work on different elements
//! of shared arrays, as in the models of its own paper. In counter2, where all threads conflict at
//! every step, neither can save much. SPIN's verifier is compiled for the model before its time
//! starts; ours includes the time for reading and compiling the model.

use anyhow::Result;

use super::Case;
use super::pan::{Mode, Pan};
use crate::measure::{self, Cap, Measured, Search};
use crate::table::{Table, grouped};

/// Models of one size.
const SMALL: [Case; 7] = [
    Case::new("peterson", "peterson/model.pre", ["-m1000", "-w14"]),
    Case::new("dekker", "dekker/model.pre", ["-m1000", "-w14"]),
    Case::new("bakery", "bakery/model.pre", ["-m100000", "-w17"]).set(&[("N", 3), ("CAP", 2)]),
    Case::new("philosophers", "philosophers/model.pre", ["-m100000", "-w16"]).set(&[("N", 8)]),
    Case::new("shared-ptr", "shared-ptr/model.pre", ["-m1000", "-w15"]),
    Case::new("shared-array", "shared-array/model.pre", ["-m1000", "-w14"]),
    Case::new("bluetooth", "bluetooth/fixed.pre", ["-m1000", "-w14"]).set(&[("ADDERS", 4)]),
];

/// Sizes that both full searches can complete.
const BOTH: [Case; 5] = [
    file_system(&[("THREADS", 6)], ["-m1000", "-w19"]),
    indexer(&[("THREADS", 6)], ["-m1000", "-w14"]),
    robots(["-m400000", "-w18"]),
    cmis(&[("C", 4), ("N", 16)], ["-m10000", "-w20"]),
    counter2(&[("N", 3), ("K", 5)], ["-m1000", "-w18"]),
];

/// The same models in small sizes.
const QUICK: [Case; 5] = [
    file_system(&[("THREADS", 4)], ["-m1000", "-w14"]),
    indexer(&[("THREADS", 5)], ["-m1000", "-w14"]),
    robots(["-m400000", "-w18"]),
    cmis(&[("C", 2), ("N", 8)], ["-m10000", "-w14"]),
    counter2(&[("N", 2), ("K", 5)], ["-m1000", "-w14"]),
];

/// Sizes that no full search can complete.
const ALONE: [Case; 3] = [
    file_system(&[("THREADS", 16)], ["-m10000", "-w24"]),
    indexer(&[("THREADS", 15)], ["-m10000", "-w24"]),
    cmis(&[("C", 32), ("N", 128)], ["-m1000000", "-w24"]),
];

/// The limits of both programs.
const CAP: Cap = Cap { megabytes: 8_000, minutes: 1 };

/// Runs shorter than this many seconds are repeated: with `--quick`, and without.
const SECONDS: [f64; 2] = [0.05, 0.5];

const fn file_system(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case {
        ours: &["CHECKED=false"],
        ..Case::new("file-system", "file-system/model.pre", spin).set(set)
    }
}

const fn indexer(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case::new("indexer", "indexer/model.pre", spin).set(set)
}

const fn robots(spin: [&'static str; 2]) -> Case {
    Case::new("robots", "robots/model.pre", spin).set(&[("ROBOTS", 3)])
}

const fn cmis(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case { before: 1, ..Case::new("cmis", "cmis/model.pre", spin).set(set) }
}

const fn counter2(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case::new("counter2", "bench/counter2.pre", spin).set(set)
}

fn ours(case: &Case, search: Search, seconds: f64) -> Result<Measured> {
    measure::repeated(seconds, || case.search(search, 1, CAP))
}

fn spin(case: &Case, mode: Mode, seconds: f64) -> Result<Measured> {
    let pan = Pan::new(case, mode, CAP)?;
    measure::repeated(seconds, || pan.run())
}

/// Prints the comparison; returns whether the counts of the full searches agree.
pub(super) fn compare(quick: bool) -> Result<bool> {
    let mut table = Table::new(HEAD);
    let mut agree = true;
    let (sized, seconds) = if quick { (&QUICK, SECONDS[0]) } else { (&BOTH, SECONDS[1]) };
    for case in sized.iter().chain(&SMALL) {
        let (full, cartesian) =
            (ours(case, Search::Full, seconds)?, ours(case, Search::Cartesian, seconds)?);
        let (all, pruned) = (spin(case, Mode::Full, seconds)?, spin(case, Mode::Reduced, seconds)?);
        let same = case.agree(all, full);
        agree &= same;
        let best = if pruned.seconds < all.seconds { pruned } else { all };
        table.row(line(&case.name(), "Preempt full", full, String::new()));
        table.row(line(
            "",
            "Preempt cartesian",
            cartesian,
            times(cartesian, best, "SPIN's best time"),
        ));
        let counts = if same { "counts agree".to_owned() } else { "COUNTS DIFFER".to_owned() };
        table.row(line(
            "",
            "SPIN full",
            all,
            format!("{counts}; ahead of our full search {}", ahead(all, full)),
        ));
        table.row(line(
            "",
            "SPIN reduced",
            pruned,
            format!("ahead of our cartesian search {}", ahead(pruned, cartesian)),
        ));
    }
    println!("twins, with and without reduction, one core\n{}", table.to_text().trim_end());
    println!(
        "seconds: CPU time with the start of the process, but without compiling SPIN's verifier\n"
    );
    if quick {
        println!("sizes that no full search can complete: omitted by --quick");
        return Ok(agree);
    }
    let mut table = Table::new(HEAD);
    for case in &ALONE {
        let (cartesian, pruned) =
            (ours(case, Search::Cartesian, seconds)?, spin(case, Mode::Reduced, seconds)?);
        table.row(line(&case.name(), "Preempt cartesian", cartesian, String::new()));
        table.row(line("", "SPIN reduced", pruned, String::new()));
    }
    println!(
        "sizes that no full search can complete, at most {} MB and {} s each\n{}",
        CAP.megabytes,
        60 * CAP.minutes,
        table.to_text().trim_end()
    );
    Ok(agree)
}

const HEAD: [&str; 8] =
    ["model", "search", "states", "transitions", "seconds", "MB", "B/state", ""];

/// One time as a multiple of another.
fn times(one: Measured, other: Measured, name: &str) -> String {
    format!("{:.4} × {name}", one.seconds / other.seconds)
}

/// The figures in which SPIN needs less than Preempt.
fn ahead(spin: Measured, ours: Measured) -> String {
    let smaller = [
        ("states", spin.states < ours.states),
        ("transitions", spin.transitions < ours.transitions),
        ("time", spin.seconds < ours.seconds),
        ("memory", spin.peak_bytes < ours.peak_bytes),
    ];
    let names: Vec<&str> =
        smaller.iter().filter(|(_, less)| *less).map(|(name, _)| *name).collect();
    if names.is_empty() { "in nothing".to_owned() } else { format!("in {}", names.join(" and ")) }
}

fn line(model: &str, search: &str, run: Measured, word: String) -> [String; 8] {
    [
        model.to_owned(),
        search.to_owned(),
        grouped(run.states),
        grouped(run.transitions),
        format!("{:.4}", run.seconds),
        format!("{:.1}", run.peak_bytes as f64 / 1048576.0),
        format!("{:.1}", run.bytes_per_state()),
        if run.complete { word } else { "gave up".to_owned() },
    ]
}
