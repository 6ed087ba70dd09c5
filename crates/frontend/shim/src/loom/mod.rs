//! The API of loom, so that `use preempt::loom` ports a test.
//!
//! `use preempt as loom` is enough for most tests; only this module has [`thread`].
//!
//! What differs: the bound on preemptions is that of CHESS, a switch away from a thread that cannot
//! run is free; weak memory is that of Rust and C++20 (see
//! [`Check::memory`](crate::Check::memory)); reaching a limit fails the test.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use preempt_system::MAX_THREADS as MOST;

use crate::check::{Check, LONGEST};
use crate::report::Format;
use crate::stderr::say;

pub mod thread;

pub use crate::{alloc, cell, future, hint, lazy_static, sync, thread_local};

pub mod model {
    //! loom's configuration.
    pub use super::Builder;
}

/// The most threads of a test that loom allows, the first one included. Tests use it to decide how
/// many threads to start. It is not a limit here: [`Builder::max_threads`] is 64.
pub const MAX_THREADS: usize = 5;

/// Checks a closure like [`check`](crate::check()), but without a bound on preemptions, as loom
/// does.
#[track_caller]
pub fn model<F: Fn() + Sync + Send + 'static>(f: F) {
    Builder::new().check(f);
}

/// loom's configuration. Its `LOOM_…` variables are honoured; those of this crate take precedence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Builder {
    /// The most threads, including the first one. Like loom, this has no environment variable.
    pub max_threads: usize,
    /// The most steps of an execution; a longer one fails. `LOOM_MAX_BRANCHES`.
    pub max_branches: usize,
    /// The most executions; if there are more, the check fails as incomplete.
    /// `LOOM_MAX_PERMUTATIONS`.
    pub max_permutations: Option<usize>,
    /// The time limit; a check that reaches it fails as incomplete. `LOOM_MAX_DURATION`, in
    /// seconds.
    pub max_duration: Option<Duration>,
    /// The most preemptions. As in loom, `None` explores all schedules. `LOOM_MAX_PREEMPTIONS`.
    pub preemption_bound: Option<usize>,
    /// There are no checkpoints: a check with one is refused, and says what to do instead.
    /// `LOOM_CHECKPOINT_FILE`.
    pub checkpoint_file: Option<PathBuf>,
    /// See [`Builder::checkpoint_file`].
    pub checkpoint_interval: usize,
    /// See [`explore`].
    pub expect_explicit_explore: bool,
    /// Has no effect: reports always contain source positions.
    pub location: bool,
    /// Whether to print the coverage at the end. `LOOM_LOG`.
    pub log: bool,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// No limits and no bound, unless `LOOM_…` variables set them.
    pub fn new() -> Builder {
        Builder::with(|name| {
            std::env::var(format!("LOOM_{name}")).ok().filter(|value| !value.is_empty())
        })
    }

    fn with(get: impl Fn(&str) -> Option<String>) -> Builder {
        fn number<N: FromStr<Err: Display>>(name: &str, value: &str) -> N {
            value
                .parse()
                .unwrap_or_else(|why| panic!("LOOM_{name}={value} is not understood: {why}"))
        }
        let of = |name| get(name).map(|value| number(name, &value));
        Builder {
            max_threads: MOST,
            max_branches: of("MAX_BRANCHES").unwrap_or(LONGEST),
            max_permutations: of("MAX_PERMUTATIONS"),
            max_duration: get("MAX_DURATION")
                .map(|value| Duration::from_secs(number("MAX_DURATION", &value))),
            preemption_bound: of("MAX_PREEMPTIONS"),
            checkpoint_file: get("CHECKPOINT_FILE").map(PathBuf::from),
            checkpoint_interval: of("CHECKPOINT_INTERVAL").unwrap_or(20_000),
            expect_explicit_explore: false,
            location: true,
            log: get("LOG").is_some(),
        }
    }

    /// Refused when the check begins; see
    /// [`Builder::checkpoint_file`](field@Builder::checkpoint_file).
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Builder {
        self.checkpoint_file = Some(file.into());
        self
    }

    /// Checks a closure.
    #[track_caller]
    pub fn check<F: Fn() + Sync + Send + 'static>(&self, f: F) {
        if let Some(file) = &self.checkpoint_file {
            panic!(
                "this check cannot be made: there are no checkpoints, so that {} stays as it is. A \
                 failure comes with its schedule, and PREEMPT_REPLAY=token takes only that",
                file.display()
            );
        }
        let check = self.to_check();
        let explored = check.explore(&f, if self.log { Format::Text } else { Format::Failure });
        if check.is_bad(&explored.outcome) {
            panic!("{}", explored.text);
        }
        if self.log {
            say(&explored.text);
        }
        explored.print_caveat();
    }

    fn to_check(&self) -> Check {
        let mut check = match self.preemption_bound {
            Some(bound) => Check::new().bound(u32::try_from(bound).unwrap_or(u32::MAX)),
            None => Check::new().unbounded(),
        };
        check = check.max_steps(self.max_branches).max_threads(self.max_threads);
        if let Some(executions) = self.max_permutations {
            check = check.executions(executions as u64);
        }
        match self.max_duration {
            Some(time) => check.time(time),
            None => check,
        }
    }
}

/// Has no effect. loom can be set to explore only between this and [`stop_exploring`]; here all of
/// an execution is explored.
pub fn explore() {}

/// See [`explore`].
pub fn stop_exploring() {}

/// Has no effect. loom skips the alternatives of the next step; here they are explored.
pub fn skip_branch() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_loom_are_obeyed() {
        let set = [
            ("MAX_BRANCHES", "7"),
            ("MAX_PERMUTATIONS", "8"),
            ("MAX_DURATION", "9"),
            ("MAX_PREEMPTIONS", "1"),
            ("CHECKPOINT_FILE", "checkpoint.json"),
            ("CHECKPOINT_INTERVAL", "5"),
            ("LOG", "info"),
        ];
        let get = |name: &str| {
            set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        let builder = Builder::with(get);
        assert_eq!((builder.max_branches, builder.max_permutations), (7, Some(8)));
        assert_eq!(
            (builder.max_duration, builder.preemption_bound),
            (Some(Duration::from_secs(9)), Some(1))
        );
        assert_eq!(
            (builder.checkpoint_file.clone(), builder.checkpoint_interval),
            (Some("checkpoint.json".into()), 5)
        );
        assert!(builder.log);
        let check = builder.to_check();
        assert_eq!(
            (check.options.max_steps, check.limits.executions, check.plan().bound),
            (7, Some(8), Some(1))
        );
    }

    #[test]
    #[should_panic(expected = "LOOM_MAX_BRANCHES=many is not understood")]
    fn a_variable_that_is_no_number_is_refused() {
        let _ = Builder::with(|name| (name == "MAX_BRANCHES").then(|| "many".to_owned()));
    }
}
