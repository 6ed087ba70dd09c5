//! Messages on the standard error: the only file of this crate that prints.
//!
//! A check ends with a text, as a panic or as a report. Some messages have to be printed before its
//! end, or because there will be none: that the check is still running, that a thread does not
//! return, the messages of two panics before the process aborts.

use std::io::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use preempt_explore::{Observer, Progress};

use crate::foreign_threads::ForeignThreads;

/// The interval between progress messages of a long check.
const INTERVAL: Duration = Duration::from_secs(10);

/// Prints a message. Errors are ignored: no check depends on it.
pub(crate) fn say(text: &str) {
    // In one write, so that lines of tests that run at the same time do not mix.
    let _ = std::io::stderr().write_all(format!("preempt: {text}\n").as_bytes());
}

/// Prints a message and ends the process as one whose tests have failed.
pub(crate) fn end_process(text: &str) -> ! {
    say(text);
    std::process::exit(101)
}

/// The name of the running test: libtest names the thread of a test after it.
pub(crate) fn test_name() -> String {
    std::thread::current().name().unwrap_or("a check").to_owned()
}

/// Observes a search: prints its progress, and ends it when a foreign thread has interfered.
pub(crate) struct ProgressObserver<'a> {
    name: String,
    quiet: bool,
    foreign_threads: &'a ForeignThreads,
    /// The number of intervals for which a message was printed or skipped.
    said: AtomicU64,
}

impl<'a> ProgressObserver<'a> {
    pub(crate) fn new(quiet: bool, foreign_threads: &'a ForeignThreads) -> ProgressObserver<'a> {
        ProgressObserver { name: test_name(), quiet, foreign_threads, said: AtomicU64::new(0) }
    }

    /// The message, if one is due.
    fn words(&self, progress: &Progress) -> Option<String> {
        let intervals = progress.elapsed.as_secs() / INTERVAL.as_secs();
        if self.quiet || self.said.fetch_max(intervals, Relaxed) >= intervals {
            return None;
        }
        let seconds = progress.elapsed.as_secs();
        let steps = progress.transitions;
        Some(format!(
            "{} still runs after {seconds} s: {steps} steps so far, the longest execution has {}; \
             PREEMPT_TIME=seconds ends a check, PREEMPT_QUIET=1 silences this line",
            self.name, progress.depth
        ))
    }
}

impl Observer for ProgressObserver<'_> {
    fn progress(&self, progress: &Progress) {
        if let Some(words) = self.words(progress) {
            say(&words);
        }
    }

    fn interrupted(&self) -> bool {
        self.foreign_threads.interfered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_speaks_once_in_an_interval() {
        let foreign_threads = ForeignThreads::default();
        let following = ProgressObserver::new(false, &foreign_threads);
        let after = |seconds| Progress {
            elapsed: Duration::from_secs(seconds),
            transitions: 7,
            depth: 3,
            ..Progress::default()
        };
        assert_eq!(following.words(&after(9)), None);
        let words = following.words(&after(12)).expect("a message is due");
        assert!(
            words.contains("it_speaks_once_in_an_interval still runs after 12 s: 7 steps"),
            "{words}"
        );
        assert_eq!(following.words(&after(19)), None);
        assert!(following.words(&after(20)).is_some());
        assert_eq!(ProgressObserver::new(true, &foreign_threads).words(&after(50)), None);
    }
}
