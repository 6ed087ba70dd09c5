//! What a check says on the standard error: the only file of this crate that prints.
//!
//! A check ends with a text, as a panic or as a report. Some things have to be said before its end,
//! or because there will be none: that it still runs, that a thread does not come back, what two
//! panics said before the process aborts.

use std::io::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use preempt_explore::{Observer, Progress};

use crate::strangers::Strangers;

/// How often a long check says how far it has come.
const INTERVAL: Duration = Duration::from_secs(10);

/// Says something. If nobody listens, nothing is lost that a check depends on.
pub(crate) fn say(text: &str) {
    // In one write, so that lines of tests that run at the same time do not mix.
    let _ = std::io::stderr().write_all(format!("preempt: {text}\n").as_bytes());
}

/// Ends the process as one whose tests have failed, after a last word.
pub(crate) fn end_process(text: &str) -> ! {
    say(text);
    std::process::exit(101)
}

/// The name of the test that runs: tests run on threads that have their names.
pub(crate) fn test_name() -> String {
    std::thread::current().name().unwrap_or("a check").to_owned()
}

/// Follows a search: says how far it has come, and ends it if it makes no sense to go on.
pub(crate) struct Following<'a> {
    name: String,
    quiet: bool,
    strangers: &'a Strangers,
    /// How many intervals are over.
    said: AtomicU64,
}

impl<'a> Following<'a> {
    pub(crate) fn new(quiet: bool, strangers: &'a Strangers) -> Following<'a> {
        Following { name: test_name(), quiet, strangers, said: AtomicU64::new(0) }
    }

    /// What to say, if it is time to.
    fn words(&self, progress: &Progress) -> Option<String> {
        let intervals = progress.elapsed.as_secs() / INTERVAL.as_secs();
        if self.quiet || self.said.fetch_max(intervals, Relaxed) >= intervals {
            return None;
        }
        let seconds = progress.elapsed.as_secs();
        let steps = progress.transitions;
        Some(format!(
            "{} still runs after {seconds} s: {steps} steps so far, the longest execution has {}; PREEMPT_TIME=seconds ends a check, \
             PREEMPT_QUIET=1 silences this line",
            self.name, progress.depth
        ))
    }
}

impl Observer for Following<'_> {
    fn progress(&self, progress: &Progress) {
        if let Some(words) = self.words(progress) {
            say(&words);
        }
    }

    fn interrupted(&self) -> bool {
        self.strangers.complaint().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_speaks_once_in_an_interval() {
        let strangers = Strangers::default();
        let following = Following::new(false, &strangers);
        let after = |seconds| Progress {
            elapsed: Duration::from_secs(seconds),
            transitions: 7,
            depth: 3,
            ..Progress::default()
        };
        assert_eq!(following.words(&after(9)), None);
        let words = following.words(&after(12)).expect("it is time");
        assert!(
            words.contains("it_speaks_once_in_an_interval still runs after 12 s: 7 steps"),
            "{words}"
        );
        assert_eq!(following.words(&after(19)), None);
        assert!(following.words(&after(20)).is_some());
        assert_eq!(Following::new(true, &strangers).words(&after(50)), None);
    }
}
