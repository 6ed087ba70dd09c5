//! Sorted runs compared with the table of visited states: time, memory and disk.
//!
//! Each program is searched three times in child processes: with the table, with sorted runs in
//! memory, and with sorted runs and a tenth of the table's memory, so that most of them are in
//! files. Times are CPU time. All three must count the same states and transitions.

use anyhow::{Context, Result, ensure};

use crate::corpus;
use crate::measure::{self, Cap, Measured, Search};
use crate::papers::Extent;
use crate::scale::curves::Subject;
use crate::table::{Table, grouped};

/// The limit of elapsed time for one search.
const MINUTES: u64 = 30;

/// The memory of a search that is not limited.
const AMPLE: usize = 16 << 10;

fn subjects(extent: Extent) -> Vec<Subject> {
    match extent {
        Extent::Quick => vec![
            Subject::Counter { threads: 4, rounds: 3 },
            Subject::Grid { threads: 5, rounds: 8 },
            Subject::Philosophers { threads: 11 },
            Subject::Indexer { threads: 3 },
        ],
        Extent::Whole => vec![
            Subject::Counter { threads: 4, rounds: 5 },
            Subject::Counter { threads: 2, rounds: 60 },
            Subject::Grid { threads: 7, rounds: 10 },
            Subject::Philosophers { threads: 15 },
            Subject::Indexer { threads: 5 },
        ],
    }
}

/// A program with a billion states, of which the table would need more than ten gigabytes.
const BILLION: Subject = Subject::Grid { threads: 9, rounds: 9 };

/// The limits of its search. Most of its runs are in files.
const BILLION_CAP: Cap = Cap { megabytes: 1 << 10, minutes: 150 };

/// Searches a program with a billion states in a gigabyte of memory. Returns whether all of them
/// were counted: their number is known without a search.
pub fn billion() -> Result<bool> {
    let expected = BILLION.states().context("the size of a grid is known")?;
    let model = corpus::root().join(BILLION.file());
    let run = measure::in_child(Search::Sorted, 1, &model, &BILLION.settings(), BILLION_CAP)?;
    let mut table = Table::new(["", "figure"]);
    table.row(["program".to_owned(), BILLION.to_string()]);
    table.row(["states".to_owned(), grouped(run.states)]);
    table.row(["transitions".to_owned(), grouped(run.transitions)]);
    table.row(["memory, MB".to_owned(), format!("{:.0}", run.peak_bytes as f64 / 1e6)]);
    table.row(["disk, MB".to_owned(), format!("{:.0}", run.disk_bytes as f64 / 1e6)]);
    let bytes = (run.peak_bytes + run.disk_bytes) as f64 / run.states as f64;
    table.row(["bytes/state, both".to_owned(), format!("{bytes:.2}")]);
    table.row(["CPU s".to_owned(), format!("{:.0}", run.seconds)]);
    table.row(["elapsed s".to_owned(), format!("{:.0}", run.wall)]);
    table.row(["transitions per CPU-second".to_owned(), format!("{:.1} million", run.rate())]);
    print!("{}", table.to_text());
    println!("\n{} states were expected: one for each point of the grid.", grouped(expected));
    Ok(run.complete && run.states == expected)
}

/// Prints the table. Returns whether all counts agree.
pub fn compare(extent: Extent) -> Result<bool> {
    let mut table = Table::new([
        "program",
        "states",
        "store",
        "memory MB",
        "disk MB",
        "bytes/state",
        "CPU s",
        "ratio",
    ]);
    let mut agree = true;
    for subject in subjects(extent) {
        let run = |search, megabytes| {
            let cap = Cap { megabytes, minutes: MINUTES };
            let model = corpus::root().join(subject.file());
            measure::in_child(search, 1, &model, &subject.settings(), cap)
        };
        let exact = run(Search::Full, AMPLE)?;
        ensure!(exact.complete, "{subject:?} is too large for the table");
        let tenth = ((exact.peak_bytes >> 20) as usize / 10).max(8);
        let rows = [
            ("table", exact),
            ("runs", run(Search::Sorted, AMPLE)?),
            ("runs, a tenth of the memory", run(Search::Sorted, tenth)?),
        ];
        for (number, (name, measured)) in rows.iter().enumerate() {
            agree &= measured.complete
                && (measured.states, measured.transitions) == (exact.states, exact.transitions);
            table.row(row(subject, number == 0, name, measured, &exact));
        }
    }
    print!("{}", table.to_text());
    println!(
        "\nbytes/state: peak memory and files together. ratio: CPU time to that of the table."
    );
    Ok(agree)
}

fn row(
    subject: Subject,
    is_first: bool,
    name: &str,
    measured: &Measured,
    exact: &Measured,
) -> [String; 8] {
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let bytes = (measured.peak_bytes + measured.disk_bytes) as f64 / measured.states as f64;
    let (program, states) = match is_first {
        true => (subject.to_string(), grouped(measured.states)),
        false => Default::default(),
    };
    [
        program,
        states,
        name.to_owned(),
        megabytes(measured.peak_bytes),
        if measured.disk_bytes > 0 { megabytes(measured.disk_bytes) } else { String::new() },
        format!("{bytes:.2}"),
        format!("{:.2}", measured.seconds),
        format!("{:.2}", measured.seconds / exact.seconds),
    ]
}
