//! `--checkpoint` and `--resume`: opens and writes checkpoint files.

use std::io;
use std::path::Path;

use preempt_explore::program_hash;
use preempt_explore::{Checkpoints, Limit, Observer, Outcome, Plan, Saved, Search};
use preempt_machine::Machine;
use preempt_report::checkpoint::{self, CheckpointFile, INTERVAL, Unopened};

use crate::args::Check;
use crate::terms::Flags;
use crate::{Refused, input, output, screen};

/// The checkpoints of one command.
pub struct Checkpointing {
    program: u64,
    file: Option<CheckpointFile>,
    saved: Option<Saved>,
}

impl Checkpointing {
    /// Opens the checkpoint to resume. `None` without `--checkpoint` and `--resume`.
    pub fn of(args: &Check) -> Result<Option<Checkpointing>, Refused> {
        if args.checkpoint.is_none() && args.checkpoint_every.is_some() {
            let why = "--checkpoint-every needs --checkpoint";
            return Err(Refused::because(why));
        }
        if args.checkpoint.is_none() && args.resume.is_none() {
            return Ok(None);
        }
        let mut texts = vec![input::read(&args.model.file)?];
        // The order of `--set` options does not matter.
        let mut settings: Vec<String> =
            args.model.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.sort();
        texts.extend(settings);
        let saved = args.resume.as_deref().map(open).transpose()?;
        if let Some(path) = &args.checkpoint {
            output::writable(path, "checkpoints")?;
        }
        let interval = args.checkpoint_every.unwrap_or(INTERVAL);
        let file = args.checkpoint.clone().map(|path| CheckpointFile::new(path, interval));
        Ok(Some(Checkpointing {
            program: program_hash(texts.iter().map(String::as_str)),
            file,
            saved,
        }))
    }

    /// Whether the checkpoint belongs to a search by this plan.
    pub fn resumes(&self, plan: &Plan) -> bool {
        self.saved.as_ref().is_some_and(|saved| saved.fits(self.program, plan).is_ok())
    }

    /// Whether there is a checkpoint that was not resumed yet.
    pub fn is_resuming(&self) -> bool {
        self.saved.is_some()
    }

    /// Runs a search, from the checkpoint if there is one that was not resumed yet.
    pub fn run(
        &mut self,
        search: &Search,
        machine: Machine,
        observer: &dyn Observer,
    ) -> Result<(Outcome, Machine), Refused> {
        let checkpoints = match &self.file {
            Some(file) => Checkpoints::of(self.program, file),
            None => Checkpoints::of(self.program, &()),
        };
        let checkpoints = match self.saved.take() {
            Some(saved) => checkpoints.resume(saved),
            None => checkpoints,
        };
        search
            .run_with(machine, observer, checkpoints)
            .map_err(|refusal| Refused::by_engine(&refusal))
    }

    /// Prints the command that resumes the search, and errors of writing.
    pub fn finish(&self, outcome: &Outcome) {
        let Some(file) = &self.file else { return };
        if let Some(error) = file.error() {
            let path = file.path().display();
            screen::complain(&format!(
                "warning: the last checkpoint could not be written to {path}: {error}\n"
            ));
        }
        let more = match outcome.stopped {
            Some(Limit::Interrupt) => "",
            Some(Limit::Time) => ", with a longer --time: the parts count together",
            Some(Limit::Memory) => ", with more --memory",
            _ => return,
        };
        if file.written() > 0 {
            screen::complain(&format!("To go on{more}: {}\n", resume_command(file.path())));
        }
    }
}

fn open(path: &Path) -> Result<Saved, Refused> {
    checkpoint::open(path).map_err(|unopened| {
        let why = match unopened {
            Unopened::File(error) if error.kind() == io::ErrorKind::NotFound => {
                "there is no such file".to_owned()
            }
            Unopened::File(error) => error.to_string(),
            Unopened::Content(refusal) => refusal.in_terms_of(&Flags).to_string(),
        };
        Refused::because(format!("cannot go on from {}: {why}", path.display()))
    })
}

/// The command of this process, resuming from this checkpoint.
fn resume_command(path: &Path) -> String {
    let mut words = vec!["preempt".to_owned()];
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--resume" => drop(given.next()),
            word if word.starts_with("--resume=") => {}
            word => words.push(input::quoted(word)),
        }
    }
    words.extend(["--resume".to_owned(), input::quoted(&path.display().to_string())]);
    words.join(" ")
}
