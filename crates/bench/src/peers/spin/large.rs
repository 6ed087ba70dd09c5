//! Full searches without reduction on models beyond the size of caches: SPIN (`-O2 -DSAFETY
//! -DNOREDUCE`) and Preempt (exact store), on one core and on two.

use anyhow::{Result, ensure};

use super::Case;
use super::pan::{Mode, Pan};
use crate::measure::{Cap, Measured, Search};
use crate::table::{Table, grouped};

/// Limits that no run reaches.
const ROOMY: Cap = Cap { megabytes: 20_000, minutes: 60 };

const fn counter2(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case::new("counter2", "bench/counter2.pre", spin).set(set)
}

const fn grid(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case::new("grid", "bench/grid.pre", spin).set(set)
}

const fn phil(set: &'static [(&'static str, u32)], spin: [&'static str; 2]) -> Case {
    Case::new("phil", "bench/phil.pre", spin).set(set)
}

/// Runs beyond ten million states.
const LARGE: [Case; 3] = [
    counter2(&[("N", 4), ("K", 5)], ["-m1000", "-w25"]),
    grid(&[("N", 7), ("K", 10)], ["-m1000", "-w24"]),
    phil(&[("N", 15)], ["-m13000000", "-w24"]),
];

/// The same models in small sizes.
const QUICK: [Case; 3] = [
    counter2(&[("N", 3), ("K", 5)], ["-m1000", "-w18"]),
    grid(&[("N", 6), ("K", 10)], ["-m1000", "-w21"]),
    phil(&[("N", 12)], ["-m1000000", "-w19"]),
];

/// Prints the comparison; returns whether the counts agree.
pub(super) fn compare(quick: bool) -> Result<bool> {
    let head = [
        "model",
        "search",
        "states",
        "transitions",
        "seconds",
        "wall",
        "Ms/s",
        "Mt/s",
        "B/state",
        "",
    ];
    let mut table = Table::new(head);
    let mut notes = Vec::new();
    let mut agree = true;
    for case in if quick { &QUICK } else { &LARGE } {
        let [one, two] = [1, 2].map(|jobs| case.search(Search::Full, jobs, ROOMY));
        let (one, two) = (one?, two?);
        ensure!(one.complete && two.complete, "Preempt did not search all of {}", case.twin);
        agree &= (one.states, one.transitions) == (two.states, two.transitions);
        table.row(line(&case.name(), "Preempt", one, String::new()));
        table.row(line("", "Preempt, 2 cores", two, against(two, one)));
        let mut first = None;
        for (mode, name) in MODES {
            let spin = match Pan::new(case, mode, ROOMY).and_then(|pan| pan.run()) {
                Ok(spin) if spin.complete => spin,
                // SPIN's multi-core modes do not work on every machine.
                Ok(_) if mode != Mode::Full => {
                    notes.push(format!("{}, {name}: SPIN did not finish", case.name()));
                    continue;
                }
                Err(error) if mode != Mode::Full => {
                    let text = format!("{error:#}");
                    notes.push(format!(
                        "{}, {name}: {}",
                        case.name(),
                        text.lines().last().unwrap_or_default()
                    ));
                    continue;
                }
                Ok(_) => anyhow::bail!("SPIN did not search all of {}", case.twin),
                Err(error) => return Err(error),
            };
            // A search that stores only hashes may lose states.
            let same = case.agree(spin, one);
            agree &= same || mode == Mode::TwoCoresHashed;
            let single = *first.get_or_insert(spin);
            let word = match (same, mode) {
                (true, Mode::Full) => format!("ours {:.1} × its Mt/s", one.rate() / spin.rate()),
                (true, _) => against(spin, single),
                (false, Mode::TwoCoresHashed) => "lost states".to_owned(),
                (false, _) => "COUNTS DIFFER".to_owned(),
            };
            table.row(line("", name, spin, word));
        }
    }
    println!("full search without reduction, one core and two\n{}", table.to_text().trim_end());
    println!(
        "seconds: CPU time; Ms/s, Mt/s: million states and transitions per CPU-second; wall: \
         elapsed, with all that the machine did besides;"
    );
    println!("B/state: peak memory of the process for ours, for SPIN what it says it allocated");
    notes.iter().for_each(|note| println!("{note}"));
    println!();
    Ok(agree)
}

const MODES: [(Mode, &str); 3] = [
    (Mode::Full, "SPIN"),
    (Mode::TwoCores, "SPIN, 2 cores (NCORE)"),
    (Mode::TwoCoresHashed, "SPIN, 2 cores (BFS_PAR)"),
];

/// The speed-up by a second core.
fn against(two: Measured, one: Measured) -> String {
    format!("{:.2} × as fast as one core", one.wall / two.wall)
}

fn line(model: &str, search: &str, run: Measured, word: String) -> [String; 10] {
    [
        model.to_owned(),
        search.to_owned(),
        grouped(run.states),
        grouped(run.transitions),
        format!("{:.2}", run.seconds),
        format!("{:.2}", run.wall),
        format!("{:.2}", run.states_rate()),
        format!("{:.2}", run.rate()),
        format!("{:.1}", run.bytes_per_state()),
        word,
    ]
}
