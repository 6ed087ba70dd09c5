//! One tool, one way, one test, in a process of its own: so that CPU time and memory are its own,
//! and it may die.

use std::process::Command;

use anyhow::{Result, ensure};

use super::meter::{self, Ended, Run};
use super::tools::{self, Tool, Way};
use crate::measure;

/// What a child is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Who explores.
    pub tool: Tool,
    /// How.
    pub way: Way,
    /// What.
    pub test: &'a str,
    /// A search that ends sooner is made again, so that the rate is measured over this many
    /// CPU-seconds. 0 for one search.
    pub repeat: f64,
    /// A search that takes longer is ended.
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

    /// Explores in this process, and prints what [`in_child`](Ask::in_child) reads.
    pub fn here(&self) -> Result<()> {
        // What a failing test says belongs into the table, once.
        std::panic::set_hook(Box::new(|_| ()));
        let begin = measure::thread_seconds()?;
        let ended = tools::explore(self.tool, self.way, self.test, self.cap)?;
        let first = (meter::executions(), meter::starts());
        let mut seconds = measure::thread_seconds()? - begin;
        // To look at the clock takes as long as a small search does: it is looked at ever more
        // rarely.
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
