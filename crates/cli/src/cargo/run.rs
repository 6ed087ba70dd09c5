//! `cargo preempt run`: explores the schedules of a program of the crate.

use preempt_native::Native;
use preempt_report::ReplayCommand;

use super::RunArgs;
use super::build::{BuildArgs, Built, Goal, build};
use crate::run::{Explored, memory_words, report};
use crate::{Exit, Refused, input};

/// Runs the command.
pub(super) fn run(args: &RunArgs) -> Result<Exit, Refused> {
    args.search.search()?;
    args.search.check_files()?;
    let built = program(&args.build)?;
    let memory = args.search.memory_model();
    let executable = args.program.executable(&built.path.clone().into(), &args.args, memory)?;
    let search = args.search.search_of(&executable, args.search.limits())?;
    let watcher = args.search.watcher();
    let explored = Explored::new(search, Native::new(executable), &watcher);
    watcher.finish();
    report(&explored?, &args.search, &built.target, &replay_command(args, &built))
}

/// The only program that the options select.
pub(super) fn program(args: &BuildArgs) -> Result<Built, Refused> {
    let mut all = build(args, Goal::Program)?;
    match all.len() {
        1 => Ok(all.remove(0)),
        0 => Err(Refused::because(
            "the crate has no program to run; `cargo preempt test` explores its tests",
        )),
        _ => {
            let names: Vec<String> =
                all.iter().map(|built| format!("--{} {}", built.kind, built.target)).collect();
            Err(Refused::because(format!(
                "there are several programs: choose one with {}",
                names.join(", ")
            )))
        }
    }
}

fn replay_command(args: &RunArgs, built: &Built) -> ReplayCommand {
    let memory = memory_words(args.search.memory_model());
    let options = args.build.to_shell(built) + &args.program.words() + memory;
    let word = |word: &std::ffi::OsString| format!(" {}", input::quoted(&word.to_string_lossy()));
    let words: String = args.args.iter().map(word).collect();
    ReplayCommand {
        before: format!("cargo preempt replay{options} "),
        after: if words.is_empty() { words } else { format!(" --{words}") },
    }
}
