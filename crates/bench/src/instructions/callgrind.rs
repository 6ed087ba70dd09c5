//! Runs a hot path under callgrind: the number of instructions, by source.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use anyhow::{Context, Result, anyhow, ensure};

use super::HotPath;

/// The result of one run.
pub(super) struct Counted {
    /// All instructions that were counted.
    pub(super) instructions: u64,
    /// The number of operations.
    pub(super) operations: u64,
    /// Percentages by source, the greatest first.
    pub(super) profile: Vec<(String, f64)>,
}

/// Runs a path of this size in a child (this program, command `instructions-one`).
pub(super) fn run(path: HotPath, size: u32) -> Result<Counted> {
    let file = std::env::temp_dir().join(format!("preempt-instructions-{}", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", &format!("--callgrind-out-file={}", file.display())]);
    valgrind.args(path.only_in().map(|functions| format!("--toggle-collect={functions}")));
    valgrind.arg(std::env::current_exe()?).args([
        "instructions-one",
        path.word(),
        &size.to_string(),
    ]);
    let output = valgrind
        .output()
        .context("valgrind is not installed; on Debian: apt-get install valgrind")?;
    let counted = read(&output).and_then(|(instructions, operations)| {
        let annotate = Command::new("callgrind_annotate")
            .args(["--threshold=100", "--auto=no"])
            .arg(&file)
            .output()?;
        Ok(Counted {
            instructions,
            operations,
            profile: profile(&String::from_utf8_lossy(&annotate.stdout)),
        })
    });
    // If the removal fails, the files remain in the folder for temporary files.
    let _ = std::fs::remove_file(&file);
    counted
}

fn read(output: &Output) -> Result<(u64, u64)> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let collected = errors.lines().find_map(|line| line.split_once("Collected : "));
    let instructions = collected
        .with_context(|| format!("callgrind counts nothing:\n{errors}"))?
        .1
        .trim()
        .parse()?;
    ensure!(instructions > 0, "no function of that name was called");
    let operations = String::from_utf8_lossy(&output.stdout).trim().parse();
    Ok((instructions, operations.map_err(|error| anyhow!("the child prints how often: {error}"))?))
}

/// Sums the output of `callgrind_annotate` by source: lines of a number, a percentage, and
/// `file:function`.
fn profile(annotated: &str) -> Vec<(String, f64)> {
    let mut by_source: BTreeMap<String, u64> = BTreeMap::new();
    for line in annotated.lines() {
        let Some((count, rest)) = line.trim_start().split_once(" (") else { continue };
        let Ok(count) = count.replace(',', "").parse::<u64>() else { continue };
        let Some(place) = rest.split_once("%)").map(|(_, place)| place.trim()) else { continue };
        let Some((file, function)) = place.split_once(':') else { continue };
        *by_source.entry(source(file, function)).or_default() += count;
    }
    let all: u64 = by_source.values().sum();
    let mut shares: Vec<(String, f64)> = by_source
        .into_iter()
        .map(|(source, count)| (source, 100.0 * count as f64 / all as f64))
        .collect();
    shares.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    shares
}

/// A file without the folders of this machine; without a source, the name of the function.
fn source(file: &str, function: &str) -> String {
    let of = |folder: &str| file.split_once(folder).map(|(_, rest)| rest.to_owned());
    let ours = of("/crates/").filter(|_| !file.contains("/registry/"));
    let std = || of("/library/").map(|rest| format!("std: {rest}"));
    let other = || {
        of("/registry/src/").and_then(|rest| rest.split_once('/').map(|(_, rest)| rest.to_owned()))
    };
    let unknown = || function.split(" [").next().unwrap_or(function).to_owned();
    ours.or_else(other).or_else(std).unwrap_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_summed_by_source() {
        let annotated = "\
Ir\n14,000 (100.0%)  PROGRAM TOTALS\n\
 6,000 (42.9%)  /a/crates/explore/src/engine/store/exact.rs:insert [/a/b]\n\
 4,000 (28.6%)  /rustc/59/library/core/src/slice/index.rs:insert\n\
 3,000 (21.4%)  /a/crates/explore/src/engine/store/exact.rs:other\n\
 1,000 ( 7.1%)  ???:memcpy [/usr/lib/libc.so]\n";
        let expected = [
            ("explore/src/engine/store/exact.rs", 9),
            ("std: core/src/slice/index.rs", 4),
            ("memcpy", 1),
        ];
        let expected: Vec<(String, f64)> = expected
            .iter()
            .map(|&(source, count)| (source.to_owned(), 100.0 * f64::from(count) / 14.0))
            .collect();
        assert_eq!(profile(annotated), expected);
    }
}
