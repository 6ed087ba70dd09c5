//! Records of runs: the output of a command of this program, with the command, the commit and the
//! hardware.
//!
//! A record is a file `bench/runs/<date>/<command>.toml`. A run with `--record` runs the same
//! command as a child and saves its output, so commands need not know about it. [`performance`]
//! makes a page from the records.

pub mod machine;
pub mod performance;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use self::machine::Machine;

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The command.
    pub command: String,
    /// The commit, and whether there were uncommitted changes.
    pub commit: String,
    /// The date: year, month, day.
    pub date: String,
    /// How long it took.
    pub seconds: u64,
    /// The hardware.
    pub machine: Machine,
    /// The output.
    pub output: String,
}

/// The folder of the records.
pub fn runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runs")
}

/// The name of the file for a command with these arguments: its words, without the dashes of
/// options. `--check` and `--svg DIR` do not affect the measurements.
pub fn name(arguments: &[String]) -> String {
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--check" => {}
            "--svg" => _ = rest.next(),
            word => words.push(word.trim_start_matches('-')),
        }
    }
    words.join("-")
}

impl Record {
    /// The record as TOML.
    pub fn to_text(&self) -> Result<String> {
        let Record { command, commit, date, seconds, machine, output } = self;
        ensure!(!output.contains("'''"), "what was printed ends the text in which it is kept");
        let mut text = format!(
            "command = '{command}'\ncommit = '{commit}'\ndate = '{date}'\nseconds = {seconds}\n"
        );
        writeln!(text, "output = '''\n{output}'''\n\n[machine]")?;
        let Machine { cores, memory_gb, cpu, rustc, load } = machine;
        write!(
            text,
            "cores = {cores}\nmemory_gb = {memory_gb}\ncpu = '{cpu}'\nrustc = '{rustc}'\nload = \
             {load:?}\n"
        )?;
        Ok(text)
    }

    /// Parses the result of [`to_text`](Record::to_text).
    pub fn parse(text: &str) -> Result<Record> {
        Ok(toml::from_str(text)?)
    }

    /// The newest record of this name.
    pub fn newest(runs: &Path, name: &str) -> Result<Record> {
        let mut days: Vec<PathBuf> = std::fs::read_dir(runs)
            .with_context(|| format!("reading {}", runs.display()))?
            .map(|entry| Ok(entry?.path().join(format!("{name}.toml"))))
            .collect::<Result<_>>()?;
        days.retain(|file| file.exists());
        let file = days.iter().max().with_context(|| format!("no run of {name:?} was recorded"))?;
        Record::parse(&std::fs::read_to_string(file)?)
            .with_context(|| format!("in {}", file.display()))
    }

    /// The parts of the output, separated by empty lines.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.output
            .split("\n\n")
            .map(|part| part.trim_matches('\n'))
            .filter(|part| !part.is_empty())
    }

    /// One line: date, commit, hardware, command.
    pub fn origin(&self) -> String {
        let Record { command, commit, date, machine, .. } = self;
        format!("{date}, commit {commit}, {machine}: `{command}`")
    }
}

/// Runs this program with these arguments, shows its output, and saves it if the run succeeds.
/// Returns whether it does.
pub fn run(arguments: &[String]) -> Result<bool> {
    if cfg!(debug_assertions) {
        bail!("measurements of a debug build are not recorded: run with --release");
    }
    let (started, machine) = (Instant::now(), Machine::here()?);
    let mut child =
        Command::new(std::env::current_exe()?).args(arguments).stdout(Stdio::piped()).spawn()?;
    let mut output = String::new();
    for line in BufReader::new(child.stdout.take().context("its output is a pipe")?).lines() {
        let line = line?;
        println!("{line}");
        output += &line;
        output.push('\n');
    }
    if !child.wait()?.success() {
        eprintln!("not recorded: the command failed");
        return Ok(false);
    }
    let peers = arguments.iter().any(|word| ["rust", "pct", "stateright"].contains(&&**word));
    let features = if peers { " --features peers" } else { "" };
    let record = Record {
        command: format!(
            "cargo run --release -p preempt-bench{features} -- {}",
            arguments.join(" ")
        ),
        commit: commit()?,
        date: asked("date", &["-u", "+%Y-%m-%d"])?,
        seconds: started.elapsed().as_secs(),
        machine,
        output,
    };
    let folder = runs().join(&record.date);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{}.toml", name(arguments)));
    std::fs::write(&file, record.to_text()?)
        .with_context(|| format!("writing {}", file.display()))?;
    eprintln!("recorded in bench/runs/{}/{}.toml", record.date, name(arguments));
    Ok(true)
}

/// The commit, and whether anything else than the records and the page made from them has changed
/// since.
fn commit() -> Result<String> {
    let commit = asked("git", &["rev-parse", "--short=12", "HEAD"])?;
    let others =
        ["status", "--porcelain", "--", ":/", ":(exclude,top)bench/runs", ":(exclude,top)docs"];
    let changed = !asked("git", &others)?.is_empty();
    Ok(if changed { commit + " with changes" } else { commit })
}

/// The output of a program.
fn asked(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output();
    let output = output.with_context(|| format!("starting {program}"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
