//! Runs one tool in one search mode on one test in a child process, so that CPU time and memory are
//! measured separately and a crash does no harm.

use std::process::Command;

use anyhow::{Result, ensure};

use super::meter::{self, Ended, Run};
use super::tools::{self, Mode, Tool};
use crate::measure;

/// A request to a child process.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The tool to run.
    pub tool: Tool,
    /// Its search mode.
    pub mode: Mode,
    /// The name of the test.
    pub test: &'a str,
    /// The minimum of CPU-seconds to measure: a shorter search is repeated. 0 for one search.
    pub repeat: f64,
    /// CPU-seconds after which a search is stopped.
    pub cap: f64,
}

impl Request<'_> {
    /// Explores in a child process (this program, command `rust-one`).
    pub fn in_child(&self) -> Result<Run> {
        let me = std::env::current_exe()?;
        let tool = format!("{:?}", self.tool).to_lowercase();
        let (repeat, cap) = (self.repeat.to_string(), self.cap.to_string());
        let output = Command::new(me)
            .arg("rust-one")
            .args([&tool, &self.mode.word(), self.test, &repeat, &cap])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().last().unwrap_or_default();
        ensure!(
            output.status.success(),
            "{self:?}: {} {}",
            output.status,
            said.lines().last().unwrap_or_default()
        );
        Run::parse(last)
    }

    /// Explores in this process, and prints the result for [`in_child`](Request::in_child).
    pub fn here(&self) -> Result<()> {
        // The report of a failing test belongs in the table, once.
        std::panic::set_hook(Box::new(|_| ()));
        let begin = measure::thread_seconds()?;
        let ended = tools::explore(self.tool, self.mode, self.test, self.cap)?;
        let first = (meter::executions(), meter::starts());
        let mut seconds = measure::thread_seconds()? - begin;
        // Reading the clock takes as long as a small search, so it is read more and more rarely.
        let mut searches = 1;
        while ended == Ended::Complete && seconds < self.repeat {
            for _ in 0..searches {
                tools::explore(self.tool, self.mode, self.test, self.cap)?;
            }
            seconds = measure::thread_seconds()? - begin;
            searches = if seconds < self.repeat / 16.0 { 2 * searches } else { searches };
        }
        println!("{}", meter::run(first, ended, seconds)?.line());
        Ok(())
    }
}
