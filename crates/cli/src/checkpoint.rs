//! `--checkpoint` and `--resume`: opens and writes checkpoint files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use preempt_explore::{Checkpoints, Limit, Outcome, Refusal, Saved};
use preempt_report::checkpoint::{self, CheckpointFile, INTERVAL, Unopened};

use crate::terms::Flags;
use crate::values::seconds;
use crate::{Refused, input, output, screen};

#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// Write checkpoints to this file
    #[arg(long, value_name = "FILE", help_heading = "Checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Seconds between two checkpoints; more if writing one takes long [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Checkpoints")]
    pub checkpoint_every: Option<Duration>,
    /// Resume from a checkpoint, with the same program and the same options
    #[arg(long, value_name = "FILE", help_heading = "Checkpoints")]
    pub resume: Option<PathBuf>,
}

/// The checkpoints of one command.
pub struct Checkpointing {
    program: u64,
    file: Option<CheckpointFile>,
    saved: Option<Saved>,
}

impl CheckpointArgs {
    /// Whether a checkpoint is written or resumed.
    pub fn are_used(&self) -> bool {
        self.checkpoint.is_some() || self.resume.is_some()
    }

    /// Refuses options that need others.
    pub fn check(&self) -> Result<(), Refused> {
        match self.checkpoint.is_none() && self.checkpoint_every.is_some() {
            true => Err(Refused::because("--checkpoint-every needs --checkpoint")),
            false => Ok(()),
        }
    }

    /// Opens the checkpoint to resume. `None` without `--checkpoint` and `--resume`. `program` is
    /// the hash of the program that is searched.
    pub fn open(
        &self,
        program: impl FnOnce() -> Result<u64, Refused>,
    ) -> Result<Option<Checkpointing>, Refused> {
        self.check()?;
        if self.checkpoint.is_none() && self.resume.is_none() {
            return Ok(None);
        }
        let saved = self.resume.as_deref().map(open).transpose()?;
        if let Some(path) = &self.checkpoint {
            output::writable(path, "checkpoints")?;
        }
        let interval = self.checkpoint_every.unwrap_or(INTERVAL);
        let file = self.checkpoint.clone().map(|path| CheckpointFile::new(path, interval));
        Ok(Some(Checkpointing { program: program()?, file, saved }))
    }
}

impl Checkpointing {
    /// Whether there is a checkpoint that was not resumed yet.
    pub fn is_resuming(&self) -> bool {
        self.saved.is_some()
    }

    /// Runs a search, from the checkpoint if there is one that was not resumed yet.
    pub fn run<R>(
        &mut self,
        run: impl FnOnce(Checkpoints<'_>) -> Result<R, Refusal>,
    ) -> Result<R, Refused> {
        let checkpoints = match &self.file {
            Some(file) => Checkpoints::of(self.program, file),
            None => Checkpoints::of(self.program, &()),
        };
        let checkpoints = match self.saved.take() {
            Some(saved) => checkpoints.resume(saved),
            None => checkpoints,
        };
        run(checkpoints).map_err(|refusal| Refused::by_engine(&refusal))
    }

    /// Prints the command that resumes the search, and errors of writing.
    pub fn finish(&self, outcome: &Outcome) {
        if let Some(file) = &self.file {
            report(file, outcome);
        }
    }
}

/// Prints the command that resumes the search, and the error of the last attempt to write `file`.
pub fn report(file: &CheckpointFile, outcome: &Outcome) {
    if let Some(error) = file.error() {
        let path = file.path().display();
        screen::complain(&format!(
            "warning: the last checkpoint could not be written to {path}: {error}\n"
        ));
    }
    let more = match outcome.stopped {
        Some(Limit::Interrupt | Limit::Process) => "",
        Some(Limit::Time) => ", with a larger --time (it includes the time so far)",
        Some(Limit::Memory) => ", with more --memory",
        _ => return,
    };
    if file.written() > 0 {
        screen::complain(&format!("To resume{more}: {}\n", resume_command(file.path())));
    }
}

/// Opens a checkpoint.
pub fn open(path: &Path) -> Result<Saved, Refused> {
    checkpoint::open(path).map_err(|unopened| {
        let why = match unopened {
            Unopened::File(error) if error.kind() == io::ErrorKind::NotFound => {
                "there is no such file".to_owned()
            }
            Unopened::File(error) => error.to_string(),
            Unopened::Content(refusal) => refusal.in_terms_of(&Flags).to_string(),
        };
        Refused::because(format!("cannot resume from {}: {why}", path.display()))
    })
}

/// The command of this process, resuming from this checkpoint.
fn resume_command(path: &Path) -> String {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let path = path.display().to_string();
    let words = ["preempt".to_owned()].into_iter().chain(resuming(&given, &path));
    words.map(|word| input::quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// These arguments with `--resume PATH` instead of another one. What follows `--` is a program with
/// its own arguments.
fn resuming(given: &[String], path: &str) -> Vec<String> {
    let end = given.iter().position(|word| word == "--").unwrap_or(given.len());
    let mut words = Vec::new();
    let mut options = given[..end].iter();
    while let Some(word) = options.next() {
        match word.as_str() {
            "--resume" => drop(options.next()),
            word if word.starts_with("--resume=") => {}
            word => words.push(word.to_owned()),
        }
    }
    words.extend(["--resume".to_owned(), path.to_owned()]);
    words.extend_from_slice(&given[end..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_program_are_its_own() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        for (given, expected) in [
            ("check a.pre", "check a.pre --resume c"),
            ("check --resume=b a.pre", "check a.pre --resume c"),
            ("run --resume b --jobs 2 -- p --resume x", "run --jobs 2 --resume c -- p --resume x"),
        ] {
            assert_eq!(resuming(&words(given), "c"), words(expected));
        }
    }
}
