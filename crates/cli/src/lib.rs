//! The command `preempt`: checks, replays and simulates models of concurrent programs. The command
//! `cargo preempt` shares its code, so both are binaries of this package.
//!
//! One file for each command; [`args`] is the command line as types, [`input`] reads files,
//! [`screen`] prints the reports of `preempt-report`. [`Exit`] lists the exit codes.
#![forbid(unsafe_code)]

mod args;
mod cargo;
mod check;
mod checkpoint;
mod choice;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod cluster_checkpoint;
#[cfg(feature = "cluster")]
mod cluster_environment;
mod compare;
mod doctor;
mod flags;
mod graph;
mod input;
mod output;
mod page;
mod progress;
mod replay;
mod replay_executable;
mod run;
mod screen;
mod search;
mod simulate;
mod strategies;
mod terms;
mod values;

use std::io::{self, Write as _};
use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::process::ExitCode;

use preempt_explore::memory;
use preempt_report::{json, json_report};
use preempt_system::Verdict;

use self::args::{Cli, ColorArg, Command};
pub use self::cargo::cargo_preempt;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// No error, search complete.
    Covered = 0,
    /// An error of the program under test.
    Finding = 1,
    /// Bad input, or a combination of options that is refused.
    Refused = 2,
    /// A limit or an interrupt.
    Incomplete = 3,
    /// An internal error.
    Fault = 70,
}

impl Exit {
    /// The exit code of a search with this verdict.
    fn of(verdict: Verdict) -> Exit {
        match verdict {
            Verdict::Ok => Exit::Covered,
            Verdict::Incomplete => Exit::Incomplete,
            _ => Exit::Finding,
        }
    }
}

/// Why a command was refused, ready to be printed.
#[derive(Debug)]
struct Refused(String);

impl Refused {
    /// A reason in one sentence.
    fn because(why: impl Into<String>) -> Refused {
        Refused(format!("error: {}\n", why.into()))
    }

    /// Why the engine refuses, in terms of the command line.
    fn by_engine(refusal: &preempt_explore::Refusal) -> Refused {
        Refused::because(refusal.in_terms_of(&terms::Flags).to_string())
    }

    /// The same for an executable.
    fn of_executable(refusal: &preempt_explore::Refusal) -> Refused {
        Refused::because(refusal.in_terms_of(&terms::ExecutableFlags).to_string())
    }

    /// A text that is complete.
    fn rendered(text: String) -> Refused {
        Refused(text)
    }
}

/// The command `preempt`.
pub fn preempt() -> ExitCode {
    execute(
        |cli: &Cli| match &cli.command {
            Command::Check(args) if args.search.json => Format::Json,
            Command::Run(args) if args.search.json => Format::Json,
            _ => Format::Text,
        },
        |cli: &Cli| cli.color,
        |cli| match cli.command {
            Command::Check(args) => check::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Simulate(args) => simulate::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Graph(args) => graph::run(&args),
            Command::Strategies => strategies::run(),
            Command::Doctor => doctor::run(),
            Command::Flags(args) => flags::run(&args),
            #[cfg(feature = "cluster")]
            Command::Worker(args) => cluster::work(&args),
        },
    )
}

/// Parses the command line and runs the command that it names.
fn execute<C: clap::Parser + UnwindSafe>(
    format: impl FnOnce(&C) -> Format,
    color: impl FnOnce(&C) -> ColorArg,
    command: impl FnOnce(C) -> Result<Exit, Refused> + UnwindSafe,
) -> ExitCode {
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let asked = std::env::args_os().any(|arg| arg == "--json");
            if asked && error.use_stderr() {
                let why = refusal(Exit::Refused, &error.render().to_string());
                // The exit code says it too.
                let _ = screen::print(&format!("{why}\n"));
            }
            return explain(&error);
        }
    };
    screen::colour(color(&cli));
    // So that the process stays close to a limit on memory while tables and vectors grow.
    memory::map_large_blocks();
    panic::set_hook(Box::new(|fault| screen::complain(&apology(fault))));
    let format = format(&cli);
    ExitCode::from(guarded(format, || command(cli)) as u8)
}

/// Prints what is wrong with the command line, or the help.
fn explain(error: &clap::Error) -> ExitCode {
    let written = error.print().and_then(|()| io::stdout().flush());
    match written {
        Err(unwritten) if unwritten.kind() != io::ErrorKind::BrokenPipe => {
            let Refused(text) = screen::unwritten(&unwritten);
            screen::complain(&text);
            ExitCode::from(Exit::Refused as u8)
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Refused as u8)),
    }
}

/// The output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Text, for people.
    Text,
    /// One object, even if the command is refused.
    Json,
}

/// Runs a command. Prints a refusal; a panic is an internal error.
fn guarded(format: Format, command: impl FnOnce() -> Result<Exit, Refused> + UnwindSafe) -> Exit {
    let (exit, why) = match panic::catch_unwind(command) {
        Ok(Ok(exit)) => return exit,
        Ok(Err(Refused(text))) => {
            screen::complain(&text);
            (Exit::Refused, text)
        }
        Err(fault) => {
            let why = fault
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(fault.downcast_ref::<&str>().copied());
            (Exit::Fault, format!("fault: {}", why.unwrap_or("no reason given")))
        }
    };
    if format == Format::Json {
        // The exit code says it too.
        let _ = screen::print(&format!("{}\n", refusal(exit, &why)));
    }
    exit
}

/// The JSON object for a refused command.
fn refusal(exit: Exit, why: &str) -> json::Value {
    let verdict = if exit == Exit::Fault { "fault" } else { "refused" };
    json_report::refusal(verdict, &anstream::adapter::strip_str(why).to_string())
}

/// The message for a violated invariant of Preempt itself.
fn apology(fault: &PanicHookInfo<'_>) -> String {
    let what = fault.payload_as_str().unwrap_or("no reason given");
    let place = fault
        .location()
        .map(|place| format!(" ({}:{})", place.file(), place.line()))
        .unwrap_or_default();
    format!(
        "preempt: fault: {what}{place}\nThis is a bug in preempt {}, not in your program. Please \
         report it with the command and the model or program.\n",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_our_fault_and_a_refusal_is_not() {
        assert_eq!(guarded(Format::Text, || panic!("this is part of the test")), Exit::Fault);
        assert_eq!(
            guarded(Format::Text, || Err(Refused::because("this is part of the test"))),
            Exit::Refused
        );
        assert_eq!(Exit::Fault as u8, 70);
    }
}
