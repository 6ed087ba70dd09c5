//! shuttle's `Runner` and its configuration.

use std::path::PathBuf;
use std::time::Duration;

use super::scheduler::{Checking, Scheduler};
use crate::check::Check;
use crate::report::Format;

/// The treatment of long executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxSteps {
    /// Follow them, however long they are.
    None,
    /// Fail after this many steps.
    FailAfter(usize),
    /// Abandon them after this many steps and continue with others.
    ContinueAfter(usize),
}

/// The destination of the schedule of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailurePersistence {
    /// Only into the report, where it always is.
    None,
    /// Into the report.
    Print,
    /// Also into a new file `schedule000.txt` in this folder, or in the current one.
    File(Option<PathBuf>),
}

/// shuttle's configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The size of each thread's stack in bytes.
    pub stack_size: usize,
    /// The destination of the schedule of a failure.
    pub failure_persistence: FailurePersistence,
    /// The treatment of long executions.
    pub max_steps: MaxSteps,
    /// The time limit. Reaching it is not a failure.
    pub max_time: Option<Duration>,
    /// Whether to print nothing while a check runs.
    pub silence_warnings: bool,
}

impl Config {
    /// The settings of a [`Check`].
    pub fn new() -> Config {
        Config {
            stack_size: Check::new().options.stack_size,
            failure_persistence: FailurePersistence::Print,
            max_steps: MaxSteps::FailAfter(crate::check::LONGEST),
            max_time: None,
            silence_warnings: false,
        }
    }

    fn apply(&self, Checking(check): Checking) -> Check {
        let mut check = check.stack_size(self.stack_size);
        check = match self.max_steps {
            MaxSteps::None => check.max_steps(usize::MAX),
            MaxSteps::FailAfter(steps) => check.max_steps(steps),
            MaxSteps::ContinueAfter(steps) => check
                .steps(u32::try_from(steps).unwrap_or(u32::MAX))
                .max_steps(usize::MAX)
                .allow_incomplete(),
        };
        if let Some(time) = self.max_time {
            check = check.time(time).allow_incomplete();
        }
        if self.silence_warnings { check.quiet() } else { check }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

/// A scheduler with its configuration.
#[derive(Debug)]
pub struct Runner<S> {
    scheduler: S,
    config: Config,
}

impl<S: Scheduler> Runner<S> {
    /// Creates a runner for a scheduler.
    pub fn new(scheduler: S, config: Config) -> Runner<S> {
        Runner { scheduler, config }
    }

    /// Explores the schedules of `f`, and panics with the whole trace if one of them fails. Returns
    /// the number of executions.
    #[track_caller]
    pub fn run<F: Fn() + Send + Sync + 'static>(self, f: F) -> usize {
        run(self.scheduler.check(), &self.config, &f)
    }
}

#[track_caller]
fn run(checking: Checking, config: &Config, f: &(dyn Fn() + Send + Sync)) -> usize {
    let check = config.apply(checking);
    let explored = check.explore(&|| f(), Format::Failure);
    if check.is_bad(&explored.outcome) {
        let mut text = explored.text;
        if let FailurePersistence::File(folder) = &config.failure_persistence
            && let Some(token) =
                text.split("PREEMPT_REPLAY=").nth(1).and_then(|rest| rest.split_whitespace().next())
        {
            let line = match keep(folder.clone().unwrap_or_default(), token) {
                Ok(path) => format!("  kept in   {}\n", path.display()),
                Err(why) => format!("  kept in   no file: {why}\n"),
            };
            text += &line;
        }
        panic!("{text}");
    }
    explored.print_caveat();
    explored.outcome.executions().map_or(0, |executions| executions as usize)
}

/// Writes a token to a new file.
fn keep(folder: PathBuf, token: &str) -> std::io::Result<PathBuf> {
    use std::io::Write as _;
    for nth in 0.. {
        let path = folder.join(format!("schedule{nth:03}.txt"));
        match std::fs::File::create_new(&path) {
            Ok(mut file) => return writeln!(file, "{token}").map(|()| path),
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    unreachable!("some file name is unused")
}

/// Several schedulers, run one after the other.
#[derive(Debug)]
pub struct PortfolioRunner {
    stop_on_first_failure: bool,
    config: Config,
    checks: Vec<Checking>,
}

impl PortfolioRunner {
    /// An empty portfolio.
    pub fn new(stop_on_first_failure: bool, config: Config) -> PortfolioRunner {
        PortfolioRunner { stop_on_first_failure, config, checks: Vec::new() }
    }

    /// Adds a scheduler.
    pub fn add(&mut self, scheduler: impl Scheduler) {
        self.checks.push(scheduler.check());
    }

    /// Explores the schedules of `f` with all schedulers, and panics with the trace of the first
    /// failure: at once, or after all schedulers have run.
    #[track_caller]
    pub fn run<F: Fn() + Send + Sync + 'static>(self, f: F) {
        let mut failed = None;
        for checking in self.checks {
            if self.stop_on_first_failure {
                run(checking, &self.config, &f);
            } else {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    run(checking, &self.config, &f)
                }));
                failed = failed.or(result.err());
            }
        }
        if let Some(failed) = failed {
            std::panic::resume_unwind(failed);
        }
    }
}
