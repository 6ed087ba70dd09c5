//! SPIN on Promela twins of our models: `spin -a`, `gcc -O2`, full search; then both programs with their reductions.
//!
//! Both programs run alone, one after the other, on one core. Times are CPU times of the processes. SPIN counts the
//! initial state as a transition, and prints eight digits of large numbers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::measure::{self, Cap, Measured, Search};

mod reduced;

/// One comparison: the model (the name of the twin too) and its constants.
struct Case {
    model: &'static str,
    set: &'static [(&'static str, u32)],
    /// SPIN's `-m` and `-w`: the longest path, and the size of its table as a power of two, chosen to fit the run.
    spin: [&'static str; 2],
}

/// What SPIN's search leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pruning {
    /// Nothing.
    Off,
    /// SPIN's own partial-order reduction.
    On,
}

/// More than any run of the first table needs.
const ROOMY: Cap = Cap { megabytes: 20_000, minutes: 60 };

/// Runs beyond ten million states.
const LARGE: [Case; 3] = [
    Case { model: "counter2", set: &[("N", 4), ("K", 5)], spin: ["-m1000", "-w25"] },
    Case { model: "grid", set: &[("N", 7), ("K", 10)], spin: ["-m1000", "-w24"] },
    Case { model: "phil", set: &[("N", 15)], spin: ["-m13000000", "-w24"] },
];

/// The same models, small.
const QUICK: [Case; 3] = [
    Case { model: "counter2", set: &[("N", 3), ("K", 5)], spin: ["-m1000", "-w18"] },
    Case { model: "grid", set: &[("N", 6), ("K", 10)], spin: ["-m1000", "-w21"] },
    Case { model: "phil", set: &[("N", 12)], spin: ["-m1000000", "-w19"] },
];

/// Prints the comparison; says whether the counts agree.
pub fn compare(quick: bool) -> Result<bool> {
    if Command::new("spin").arg("-V").output().is_err() {
        bail!("spin is not installed; on Debian: apt-get install spin");
    }
    println!("full search, one core: SPIN (-O2 -DSAFETY -DNOREDUCE) and Preempt (interpreter, exact store), CPU times");
    println!(
        "{:<16} {:>12} {:>13} {:>10} {:>10} {:>7} {:>8} {:>8}",
        "model", "states", "transitions", "SPIN Mt/s", "ours Mt/s", "ratio", "SPIN B/s", "ours B/s"
    );
    let mut agree = true;
    for case in if quick { &QUICK } else { &LARGE } {
        let spin = Pan::new(case, Pruning::Off, ROOMY)?.run()?;
        ensure!(spin.complete, "SPIN did not search all of {}", case.model);
        let ours = ours(case)?;
        // SPIN's first transition leads to the initial state.
        let same = spin.states == ours.states && printed(spin.transitions, ours.transitions + 1);
        agree &= same;
        println!(
            "{:<16} {:>12} {:>13} {:>10.2} {:>10.2} {:>7.1} {:>8.1} {:>8.1}{}",
            case.name(),
            ours.states,
            ours.transitions,
            spin.rate(),
            ours.rate(),
            ours.rate() / spin.rate(),
            spin.bytes_per_state(),
            ours.bytes_per_state(),
            if same { String::new() } else { format!("  COUNTS DIFFER: SPIN {} {}", spin.states, spin.transitions) },
        );
    }
    println!("Mt/s: million transitions per CPU-second. B/s: peak memory of the process per state.\n");
    Ok(reduced::compare(quick)? && agree)
}

impl Case {
    fn name(&self) -> String {
        let values: Vec<String> = self.set.iter().map(|(_, value)| value.to_string()).collect();
        format!("{} {}", self.model, values.join("x"))
    }

    fn settings(&self) -> Vec<String> {
        self.set.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }
}

/// Whether SPIN prints `exact` as `shown`: it has eight digits for numbers of more than that.
fn printed(shown: u64, exact: u64) -> bool {
    let unit = 10u64.pow(exact.checked_ilog10().unwrap_or(0).saturating_sub(7));
    shown.abs_diff(exact) <= unit / 2
}

fn ours(case: &Case) -> Result<Measured> {
    let model = crate::corpus::root().join("bench").join(format!("{}.pre", case.model));
    let ours = measure::in_child(Search::Full, &model, &case.settings(), ROOMY)?;
    ensure!(ours.complete, "Preempt did not search all of {}", case.model);
    Ok(ours)
}

/// SPIN's verifier of one twin, in a folder that goes with it.
struct Pan {
    folder: PathBuf,
    arguments: Vec<String>,
}

impl Pan {
    /// Generates and compiles it.
    fn new(case: &Case, pruning: Pruning, cap: Cap) -> Result<Pan> {
        let folder = std::env::temp_dir().join(format!("preempt-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        // -E: deadlocks are no errors here; -n: no list of unreached code; -Q: minutes.
        let mut arguments = vec!["-E".to_owned(), "-n".to_owned(), format!("-Q{}", cap.minutes)];
        arguments.extend(case.spin.map(str::to_owned));
        let pan = Pan { folder, arguments };
        let twin = Path::new(env!("CARGO_MANIFEST_DIR")).join("spin").join(format!("{}.pml", case.model));
        let defines = case.settings().into_iter().map(|setting| format!("-D{setting}"));
        run(Command::new("spin").current_dir(&pan.folder).arg("-a").args(defines).arg(twin))?;
        let mut gcc = Command::new("gcc");
        gcc.current_dir(&pan.folder).args(["-O2", "-DSAFETY", "-o", "pan", "pan.c"]);
        gcc.arg(format!("-DMEMLIM={}", cap.megabytes));
        if pruning == Pruning::Off {
            gcc.arg("-DNOREDUCE");
        }
        run(&mut gcc)?;
        Ok(pan)
    }

    fn run(&self) -> Result<Measured> {
        let before = measure::children_seconds()?;
        let output = run(Command::new(self.folder.join("pan")).current_dir(&self.folder).args(&self.arguments))?;
        let seconds = measure::children_seconds()? - before;
        ensure!(!output.contains("max search depth too small"), "SPIN did not search all: -m is too small");
        ensure!(output.contains("errors: 0"), "SPIN finds an error in a twin of a model without one:\n{output}");
        let figure = |word: &str| -> Result<f64> {
            let line =
                output.lines().find(|line| line.contains(word)).with_context(|| format!("pan prints no {word:?}"))?;
            let number = line.split_whitespace().next().context("a figure stands first in the line")?;
            Ok(number.parse()?)
        };
        Ok(Measured {
            states: figure("states, stored")? as u64,
            transitions: figure("transitions (=")? as u64,
            seconds,
            peak_bytes: (figure("total actual memory usage")? * 1048576.0) as u64,
            complete: !output.contains("Search not completed"),
        })
    }
}

impl Drop for Pan {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{command:?} failed:\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}
