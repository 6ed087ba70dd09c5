//! The command `cargo preempt`: explores tests and programs of an unmodified crate, on a stable
//! toolchain.
//!
//! ```text
//! build        what cargo builds, and where: a target directory of its own
//!   instrument   the flags that make atomic operations visible, and the wrapper that adds them
//! tests        the tests of an executable
//! test         explores every test on its own
//!   budget       how much each test may cost
//!   summary      the table of tests
//! run, replay  explore a program, replay a schedule
//! ```

mod budget;
mod build;
pub(crate) mod instrument;
mod replay;
mod run;
mod summary;
mod test;
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use preempt_system::MemoryModel;

use self::build::BuildArgs;
use crate::args::ColorArg;
use crate::run::{ProgramArgs, SearchArgs};
use crate::values::{memory_model, seconds, whole};
use crate::{Format, execute};

/// As cargo calls it: `cargo-preempt preempt test …`.
#[derive(Debug, Parser)]
#[command(name = "cargo", bin_name = "cargo", version)]
enum Cargo {
    Preempt(Preempt),
}

/// Explores the schedules of the tests and programs of an unmodified crate: each test runs under
/// every schedule with few preemptions, and the report of a failing test has a command that replays
/// it.
#[derive(Debug, Args)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
struct Preempt {
    #[command(subcommand)]
    command: Command,
    /// When to use colours: auto (in a terminal, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    #[arg(help_heading = "Output", hide_possible_values = true)]
    color: ColorArg,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explore the schedules of each test
    #[command(allow_negative_numbers = true)]
    Test(TestArgs),
    /// Explore the schedules of a program
    #[command(allow_negative_numbers = true)]
    Run(RunArgs),
    /// Replay a schedule of a test or of a program and print its steps
    #[command(allow_negative_numbers = true)]
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
struct TestArgs {
    /// Only tests whose names contain this
    filter: Option<String>,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    search: SearchArgs,
    /// Stop exploring a test after this time; --time is for all tests together, --executions for
    /// each, and without any of these a test ends after 10000 executions
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Limits")]
    test_time: Option<Duration>,
    #[command(flatten)]
    program: ProgramArgs,
    /// As for cargo test: more filters, --exact, --skip, --ignored, --include-ignored
    #[arg(last = true, value_name = "TEST OPTIONS")]
    libtest: Vec<String>,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    program: ProgramArgs,
    /// The arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// A schedule token, or a file that --save-schedule wrote
    schedule: String,
    /// The test; without it, the schedule belongs to a program
    #[arg(value_name = "TEST")]
    name: Option<String>,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    program: ProgramArgs,
    /// Memory model of the test or program: sc or weak [default: sc]
    #[arg(long, value_name = "MODEL", value_parser = memory_model)]
    memory: Option<MemoryModel>,
    /// Stop before the K-th preemption, and show where each thread is
    #[arg(long, value_name = "K", value_parser = whole::<u32>)]
    stop_at: Option<u32>,
    /// Run the schedule under gdb, and stop before the failing step
    #[arg(long, conflicts_with_all = ["stop_at", "html"])]
    gdb: bool,
    /// With --gdb, stop before the N-th step
    #[arg(long, value_name = "N", value_parser = whole::<u32>, requires = "gdb")]
    step: Option<u32>,
    /// With --gdb, a command for gdb at that point; may be given several times
    #[arg(long, value_name = "COMMAND", requires = "gdb")]
    gdb_command: Vec<String>,
    /// Show every step instead of one line per statement
    #[arg(long)]
    all_steps: bool,
    /// Write an HTML page to this file, in which the execution can be stepped through
    #[arg(long, value_name = "FILE")]
    html: Option<std::path::PathBuf>,
    /// The arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// The command `cargo preempt`, and the wrapper of the compiler that it asks cargo to call.
pub fn cargo_preempt() -> ExitCode {
    if let Some(exit) = instrument::as_wrapper() {
        return exit;
    }
    execute(
        |Cargo::Preempt(cli): &Cargo| match &cli.command {
            Command::Test(args) if args.search.json => Format::Json,
            Command::Run(args) if args.search.json => Format::Json,
            _ => Format::Text,
        },
        |Cargo::Preempt(cli): &Cargo| cli.color,
        |Cargo::Preempt(cli)| match cli.command {
            Command::Test(args) => test::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Replay(args) => replay::run(&args),
        },
    )
}

#[cfg(test)]
mod command_line {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cargo::command().debug_assert();
    }

    #[test]
    fn options_of_the_harness_follow_two_dashes() {
        let given = ["cargo", "preempt", "test", "queue", "--bound", "1", "--", "--skip", "slow"];
        let Ok(Cargo::Preempt(Preempt { command: Command::Test(args), .. })) =
            Cargo::try_parse_from(given)
        else {
            panic!("it is parsed");
        };
        assert_eq!(args.filter.as_deref(), Some("queue"));
        assert_eq!(args.search.bound, Some(1));
        assert_eq!(args.libtest, ["--skip", "slow"]);
    }
}
