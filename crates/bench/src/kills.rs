//! Searches in several processes, one of which is killed or stopped at a random moment.
//!
//! Each round starts a search with checkpoints in two to four processes and sends SIGKILL or
//! SIGSTOP to one of them, at a moment up to the time that the search takes undisturbed. Then it
//! checks:
//!
//! - All processes end, within a minute.
//! - If process 0 is left, it ends as incomplete with one line that says why, or with the result of
//!   an undisturbed search if the signal came too late.
//! - The checkpoint, if there is one, is complete: resumed by one process, by as many, by one fewer
//!   or by one more, it gives the report of an undisturbed search, schedules included.
//!
//! The seed determines everything but the moments at which the processes are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use preempt_explore::pcg::Pcg;
use serde_json::Value;

use crate::corpus;
use crate::scale::curves::Subject;
use crate::table::Table;

/// The searches: one without an error, one with a deadlock at the end, one with wide states.
const SUBJECTS: [Subject; 3] = [
    Subject::Counter { threads: 4, rounds: 3 },
    Subject::Philosophers { threads: 11 },
    Subject::Indexer { threads: 4 },
];

/// The time in which all processes have to end after a signal.
const END: Duration = Duration::from_secs(60);

/// The counts of all rounds.
#[derive(Default)]
struct Counts {
    killed: u32,
    stopped: u32,
    leaders: u32,
    too_late: u32,
    resumed: u32,
    without_checkpoint: u32,
}

/// Runs `count` rounds. Returns whether all of them ended as they have to; a message says which
/// did not.
pub fn rounds(preempt: &Path, count: u32, seed: u64) -> Result<bool> {
    let folder = std::env::temp_dir().join(format!("preempt-kills-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let subjects: Result<Vec<Undisturbed>> =
        SUBJECTS.iter().map(|&subject| Undisturbed::run(preempt, subject)).collect();
    let (subjects, mut random) = (subjects?, Pcg::new(seed, 0));
    let (mut counts, mut failed) = (Counts::default(), 0);
    for number in 0..count {
        let round = Round {
            preempt,
            search: random.pick(&subjects),
            processes: 2 + random.below(3) as usize,
            checkpoint: folder.join(format!("{number}.checkpoint")),
        };
        let blow = Blow::random(&mut random, &round);
        if let Err(why) = round.strike(&blow, &mut counts) {
            failed += 1;
            println!("round {number}, {}, {blow:?}: {why:#}", round.search.subject);
        }
    }
    fs::remove_dir_all(&folder)?;
    let mut table = Table::new(["", "rounds"]);
    for (name, number) in [
        ("processes killed", counts.killed),
        ("processes stopped", counts.stopped),
        ("of these, process 0", counts.leaders),
        ("searches that had ended before", counts.too_late),
        ("resumed with the report of an undisturbed search", counts.resumed),
        ("ended before the first checkpoint", counts.without_checkpoint),
        ("failed", failed),
    ] {
        table.row([name.to_owned(), number.to_string()]);
    }
    print!("{}", table.to_text());
    Ok(failed == 0)
}

/// An undisturbed search.
struct Undisturbed {
    subject: Subject,
    report: Value,
    took: Duration,
}

impl Undisturbed {
    fn run(preempt: &Path, subject: Subject) -> Result<Undisturbed> {
        let began = Instant::now();
        let output = search(preempt, subject).args(["--processes", "2"]).output()?;
        let took = began.elapsed();
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code().is_some_and(|code| code < 2),
            "{subject}: {error}\nIs the binary built with --features cluster?"
        );
        let report = report(&search(preempt, subject).output()?)?;
        ensure!(self::report(&output)? == report, "{subject}: two processes differ from one");
        Ok(Undisturbed { subject, report, took })
    }
}

/// The command that searches.
fn search(preempt: &Path, subject: Subject) -> Command {
    let mut command = Command::new(preempt);
    command.arg("check").arg(corpus::root().join(subject.file()));
    command.args(["--order", "bfs", "--json"]);
    for setting in subject.settings() {
        command.args(["--set", &setting]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The report of a search, without what depends on the machine or on the number of processes.
fn report(output: &Output) -> Result<Value> {
    let mut report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("no report: {}", String::from_utf8_lossy(&output.stderr)))?;
    drop_memory(&mut report);
    Ok(report)
}

fn drop_memory(value: &mut Value) {
    let is_of_machine = |name: &String| {
        name.contains("bytes")
            || ["seconds", "peak_memory", "unreached", "frontier"].contains(&name.as_str())
    };
    match value {
        Value::Object(object) => {
            object.retain(|name, _| !is_of_machine(name));
            object.values_mut().for_each(drop_memory);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_memory),
        _ => {}
    }
}

/// A search that is going to be disturbed.
struct Round<'a> {
    preempt: &'a Path,
    search: &'a Undisturbed,
    processes: usize,
    checkpoint: PathBuf,
}

/// What happens to it.
#[derive(Debug)]
struct Blow {
    signal: &'static str,
    /// The process that gets the signal.
    victim: usize,
    after: Duration,
    /// The number of processes that resume.
    resumed_by: usize,
}

impl Blow {
    fn random(random: &mut Pcg, round: &Round<'_>) -> Blow {
        let most = round.search.took.as_micros() as u32;
        let processes = round.processes;
        Blow {
            signal: if random.below(10) == 0 { "-STOP" } else { "-KILL" },
            victim: random.below(processes as u32) as usize,
            after: Duration::from_micros(u64::from(random.below(most))),
            resumed_by: *random.pick(&[1, processes - 1, processes, processes + 1]),
        }
    }
}

impl Round<'_> {
    fn strike(&self, blow: &Blow, counts: &mut Counts) -> Result<()> {
        let mut command = search(self.preempt, self.search.subject);
        command.args(["--processes", &self.processes.to_string()]);
        command.args(["--cluster-timeout", "2", "--checkpoint-every", "0.02", "--checkpoint"]);
        let child = command.arg(&self.checkpoint).spawn()?;
        let children = Children::of(child, self.processes - 1)?;
        sleep(blow.after);
        let victim = match blow.victim {
            0 => children.parent.id(),
            number => children.others[number - 1],
        };
        let is_late = !is_there(victim);
        if !is_late {
            signal(blow.signal, victim)?;
        }
        match blow.signal {
            "-KILL" => counts.killed += 1,
            _ => counts.stopped += 1,
        }
        counts.leaders += u32::from(blow.victim == 0);
        counts.too_late += u32::from(is_late);
        let output = children.end(blow)?;
        if let Some(output) = output {
            self.ended_well(&output)?;
        }
        self.resume(blow, counts)
    }

    /// Checks how process 0 ended.
    fn ended_well(&self, output: &Output) -> Result<()> {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        if code == Some(3) && output.stdout.is_empty() {
            // A process was lost before the search began.
            ensure!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{stderr}");
            return Ok(());
        }
        let found = report(output)?;
        if found == self.search.report {
            return Ok(());
        }
        ensure!(code == Some(3), "exit code {code:?}: {stderr}");
        ensure!(found["verdict"] == "incomplete", "verdict {}", found["verdict"]);
        let lines: Vec<&str> = stderr.lines().collect();
        let is_clear = lines.first().is_some_and(|line| line.starts_with("error: process "))
            && lines[1..].iter().all(|line| line.starts_with("To resume: "))
            && lines.len() <= 2;
        ensure!(is_clear, "unclear message: {stderr}");
        Ok(())
    }

    /// Resumes from the checkpoint, if there is one.
    fn resume(&self, blow: &Blow, counts: &mut Counts) -> Result<()> {
        if !self.checkpoint.exists() {
            counts.without_checkpoint += 1;
            return Ok(());
        }
        let mut command = search(self.preempt, self.search.subject);
        command.args(["--processes", &blow.resumed_by.to_string(), "--resume"]);
        let output = command.arg(&self.checkpoint).output()?;
        let found = report(&output)?;
        ensure!(found == self.search.report, "resumed: {found}, not {}", self.search.report);
        counts.resumed += 1;
        Ok(())
    }
}

/// The processes of a search.
struct Children {
    parent: Child,
    others: Vec<u32>,
}

impl Children {
    /// Waits until process 0 has started `count` others.
    fn of(parent: Child, count: usize) -> Result<Children> {
        let deadline = Instant::now() + END;
        loop {
            let others = started_by(parent.id())?;
            if others.len() == count {
                return Ok(Children { parent, others });
            }
            ensure!(Instant::now() < deadline, "the processes do not start");
            sleep(Duration::from_millis(2));
        }
    }

    /// Waits until all processes have ended. Returns the output of process 0 if it was not hit.
    fn end(mut self, blow: &Blow) -> Result<Option<Output>> {
        if blow.victim == 0 {
            wait_for(&self.others, "process 0 was hit")?;
            // A stopped process 0 is not part of the search any more.
            let _ = self.parent.kill();
            self.parent.wait()?;
            return Ok(None);
        }
        let parent = self.parent.id();
        let deadline = Instant::now() + END;
        // Its output is short enough for the pipes.
        while self.parent.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "process 0 ({parent}) does not end");
            sleep(Duration::from_millis(5));
        }
        let output = self.parent.wait_with_output()?;
        wait_for(&self.others, "process 0 has ended")?;
        Ok(Some(output))
    }
}

/// Waits until none of the processes is there.
fn wait_for(processes: &[u32], why: &str) -> Result<()> {
    let deadline = Instant::now() + END;
    while let Some(left) = processes.iter().find(|&&process| is_there(process)) {
        if Instant::now() >= deadline {
            signal("-KILL", *left)?;
            bail!("process {left} is left although {why}");
        }
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The state and the parent of a process, from /proc.
fn stat(process: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Whether a process exists, stopped or not.
fn is_there(process: u32) -> bool {
    stat(process).is_some_and(|(state, _)| state != "Z")
}

/// The processes that `parent` has started, in the order of their numbers.
fn started_by(parent: u32) -> Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").context("this needs /proc")?.flatten();
    let mut found: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&process| stat(process).is_some_and(|(_, of)| of == parent))
        .collect();
    found.sort_unstable();
    Ok(found)
}

fn signal(name: &str, process: u32) -> Result<()> {
    // It may have ended in the meantime.
    Command::new("kill").args([name, &process.to_string()]).stderr(Stdio::null()).status()?;
    Ok(())
}
