//! Compares many random closure programs with brute force, in child processes.
//!
//! A library that runs foreign code can abort the process or never return. So a child compares the
//! programs and reports on its standard output what it is about to do; if it dies or is silent for
//! too long, the program is reported and the next child starts after it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use preempt_closures::generate;
use preempt_closures::many::{self, Report};
use preempt_closures::weak;

use crate::table::{Table, grouped};

/// The time limit of one program, with all strategies, also on a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The sums: programs, skipped programs, verdicts, trace counts, unfinished searches, searches with
/// an assumption, executions of the reference.
type Sums = [u64; 7];

fn sums(report: &Report) -> Sums {
    let Report { programs, passed_over, verdicts, traces, unfinished, assumed, executions, .. } =
        *report;
    [programs, passed_over, verdicts, traces, unfinished, assumed, executions]
}

/// Compares `programs` programs from `seed` on. Returns whether all agree.
pub fn many(programs: u64, seed: u64) -> Result<bool> {
    let (mut next, end) = (seed, seed + programs);
    let (mut total, mut wrong): (Sums, u64) = ([0; 7], 0);
    let mut strategies: BTreeMap<String, u64> = BTreeMap::new();
    while next < end {
        let ended = follow(next, end)?;
        total.iter_mut().zip(ended.sums).for_each(|(total, sum)| *total += sum);
        for (name, verdicts) in ended.strategies {
            *strategies.entry(name).or_default() += verdicts;
        }
        wrong += ended.wrong;
        next = end;
        if let Some((seed, how)) = ended.died {
            wrong += 1;
            println!("seed {seed}: {how}\n{}", generate::program(seed));
            next = seed + 1;
        }
    }
    let [compared, passed_over, verdicts, traces, unfinished, assumed, executions] = total;
    println!("{programs} programs from seed {seed}: {compared} compared, {passed_over} skipped");
    println!("{executions} executions of the reference");
    println!(
        "{verdicts} verdicts, {traces} trace counts, {unfinished} unfinished searches, \
         {assumed} with an assumption"
    );
    let mut table = Table::new(["strategy", "programs"]);
    strategies.iter().for_each(|(name, verdicts)| table.row([name.clone(), grouped(*verdicts)]));
    println!("programs on which each strategy was compared\n{}", table.to_text());
    println!("{wrong} disagreements");
    Ok(wrong == 0)
}

/// Compares `programs` programs under weak memory from `seed` on, in this process. Returns whether
/// all agree.
pub fn weak(programs: u64, seed: u64) -> bool {
    let report = weak::run(seed..seed + programs, |at| {
        if at > seed && (at - seed).is_multiple_of(1_000) {
            eprintln!("{} of {programs} programs", at - seed);
        }
    });
    println!("{programs} programs under weak memory from seed {seed}\n{report}");
    report.disagreements.is_empty()
}

/// The result of one child.
struct Ended {
    sums: Sums,
    /// The number of programs on which each strategy was compared.
    strategies: BTreeMap<String, u64>,
    wrong: u64,
    /// The program at which it died, and how.
    died: Option<(u64, String)>,
}

fn follow(from: u64, to: u64) -> Result<Ended> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["closures-batch", &from.to_string(), &to.to_string()])
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take().context("the child's output is piped")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).for_each(|line| _ = sender.send(line));
    });
    let mut ended = Ended { sums: [0; 7], strategies: BTreeMap::new(), wrong: 0, died: None };
    let mut at = from;
    let silent = loop {
        let line = match lines.recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        };
        match line.split_once(' ') {
            Some(("at", seed)) => at = seed.parse()?,
            Some(("sums", numbers)) => {
                let numbers =
                    numbers.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
                ended.sums = numbers.try_into().ok().context("there are seven sums")?;
            }
            Some(("strategy", counted)) => {
                let (verdicts, name) = counted.split_once(' ').context("a count and a name")?;
                ended.strategies.insert(name.to_owned(), verdicts.parse()?);
            }
            Some(("wrong", first)) => {
                ended.wrong += 1;
                println!("{first}");
            }
            _ => println!("{line}"),
        }
    };
    if silent {
        child.kill()?;
    }
    let status = child.wait()?;
    if silent {
        ended.died = Some((at, format!("no end after {} seconds", TIMEOUT.as_secs())));
    } else if !status.success() {
        ended.died = Some((at, format!("the process ended with {status}")));
    }
    Ok(ended)
}

/// The child: compares the programs with seeds in `from..to`.
pub fn batch(from: u64, to: u64) {
    let mut printed = 0;
    let mut tell = |report: &Report| {
        report.disagreements[printed..]
            .iter()
            .for_each(|disagreement| println!("wrong {disagreement}"));
        printed = report.disagreements.len();
        println!("sums {}", sums(report).map(|sum| sum.to_string()).join(" "));
    };
    let report = many::run(from..to, |seed, report| {
        tell(report);
        println!("at {seed}");
    });
    tell(&report);
    report.strategies.iter().for_each(|(name, verdicts)| println!("strategy {verdicts} {name}"));
}
