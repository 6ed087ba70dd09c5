//! One tool, one way to search, one test, in a child process: so CPU time and memory are its own,
//! and it may crash.

use std::process::Command;

use anyhow::{Result, ensure};

use super::meter::{self, Ended, Run};
use super::tools::{self, Tool, Way};
use crate::measure;

/// A request to a child.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The tool.
    pub tool: Tool,
    /// The way to search.
    pub way: Way,
    /// The test.
    pub test: &'a str,
    /// A search that ends sooner is repeated, so that the rate is measured over this many
    /// CPU-seconds. 0 for one search.
    pub repeat: f64,
    /// A longer search is ended.
    pub cap: f64,
}

impl Ask<'_> {
    /// Explores in a child process (this program, command `rust-one`).
    pub fn in_child(&self) -> Result<Run> {
        let me = std::env::current_exe()?;
        let tool = format!("{:?}", self.tool).to_lowercase();
        let (repeat, cap) = (self.repeat.to_string(), self.cap.to_string());
        let output = Command::new(me)
            .arg("rust-one")
            .args([&tool, &self.way.word(), self.test, &repeat, &cap])
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

    /// Explores in this process, and prints the result for [`in_child`](Ask::in_child).
    pub fn here(&self) -> Result<()> {
        // The report of a failing test belongs in the table, once.
        std::panic::set_hook(Box::new(|_| ()));
        let begin = measure::thread_seconds()?;
        let ended = tools::explore(self.tool, self.way, self.test, self.cap)?;
        let first = (meter::executions(), meter::starts());
        let mut seconds = measure::thread_seconds()? - begin;
        // Reading the clock takes as long as a small search, so it is read more and more rarely.
        let mut searches = 1;
        while ended == Ended::Complete && seconds < self.repeat {
            for _ in 0..searches {
                tools::explore(self.tool, self.way, self.test, self.cap)?;
            }
            seconds = measure::thread_seconds()? - begin;
            searches = if seconds < self.repeat / 16.0 { 2 * searches } else { searches };
        }
        println!("{}", meter::run(first, ended, seconds)?.line());
        Ok(())
    }
}
