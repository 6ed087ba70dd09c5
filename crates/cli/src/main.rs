//! The command `preempt`: checks, replays and simulates models of concurrent programs.
#![forbid(unsafe_code)]

mod args;
mod check;
mod input;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Cli, Command};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing was found, and all that was asked is covered.
    Covered = 0,
    /// An error of the program under test.
    Finding = 1,
    /// Bad input, or a combination of options that makes no sense.
    Refused = 2,
    /// A limit or an interrupt.
    Incomplete = 3,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Check(args) => check::run(&args),
    };
    let exit = match result {
        Ok((text, exit)) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            exit
        }
        Err(text) => {
            eprint!("{text}");
            Exit::Refused
        }
    };
    ExitCode::from(exit as u8)
}
