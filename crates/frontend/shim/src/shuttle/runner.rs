//! shuttle's `Runner` and its configuration.

use std::path::PathBuf;
use std::time::Duration;

use super::scheduler::{Checking, Scheduler};
use crate::check::Check;
use crate::report::Format;

/// What to do about long executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxSteps {
    /// To follow them, however long they are.
    None,
    /// To fail after so many steps.
    FailAfter(usize),
    /// To leave them after so many steps and go on with others.
    ContinueAfter(usize),
}

/// Where the schedule of a failure goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailurePersistence {
    /// Into the report, where it always is.
    None,
    /// Into the report.
    Print,
    /// Also into a new file `schedule000.txt` of this folder, or of the present one.
    File(Option<PathBuf>),
}

/// shuttle's configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The size of each thread's stack in bytes.
    pub stack_size: usize,
    /// Where the schedule of a failure goes.
    pub failure_persistence: FailurePersistence,
    /// What to do about long executions.
    pub max_steps: MaxSteps,
    /// The most time: after it nothing more is explored, and that is no failure.
    pub max_time: Option<Duration>,
    /// Whether nothing is said while a check runs.
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

/// A way to search, and how.
#[derive(Debug)]
pub struct Runner<S> {
    scheduler: S,
    config: Config,
}

impl<S: Scheduler> Runner<S> {
    /// Searches in this way.
    pub fn new(scheduler: S, config: Config) -> Runner<S> {
        Runner { scheduler, config }
    }

    /// Explores the schedules of `f`, and panics with the whole trace if one of them fails. Returns
    /// how many executions there were.
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
            let told = match keep(folder.clone().unwrap_or_default(), token) {
                Ok(path) => format!("  kept in   {}\n", path.display()),
                Err(why) => format!("  kept in   no file: {why}\n"),
            };
            text += &told;
        }
        panic!("{text}");
    }
    explored.print_caveat();
    explored.outcome.executions().map_or(0, |executions| executions as usize)
}

/// Writes a token to a file that is new.
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
    unreachable!("some number is free")
}

/// Several ways to search, one after the other.
#[derive(Debug)]
pub struct PortfolioRunner {
    stop_on_first_failure: bool,
    config: Config,
    checks: Vec<Checking>,
}

impl PortfolioRunner {
    /// No way yet.
    pub fn new(stop_on_first_failure: bool, config: Config) -> PortfolioRunner {
        PortfolioRunner { stop_on_first_failure, config, checks: Vec::new() }
    }

    /// One more.
    pub fn add(&mut self, scheduler: impl Scheduler) {
        self.checks.push(scheduler.check());
    }

    /// Explores the schedules of `f` in all ways, and panics with the trace of the first failure:
    /// at once, or after all ways were tried.
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
