//! Watching a search: the progress line on stderr, and Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use preempt_explore::{Observer, Progress};
use preempt_report::progress::{bar_line, line};

use crate::screen;

/// A terminal shows nothing for shorter searches.
const FIRST: Duration = Duration::from_secs(1);
/// Between two lines that replace each other.
const REDRAW: Duration = Duration::from_millis(200);
/// Between two lines that stay.
const LINES: Duration = Duration::from_secs(10);

/// The output of the progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Nowhere.
    Nothing,
    /// On one line of a terminal of this width.
    Redrawn { width: usize },
    /// On a line now and then.
    Lines,
}

/// Watches one search.
#[derive(Debug)]
pub struct Watcher {
    show: Show,
    interrupted: Arc<AtomicBool>,
    shown: Mutex<Option<Progress>>,
}

/// Whether the user wants to see progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Show progress.
    Progress,
    /// Show nothing.
    Quiet,
}

impl Watcher {
    /// Watches from now on, and catches Ctrl-C: the first ends the search, the second the process.
    pub fn new(wish: Wish) -> Watcher {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        // Where signals cannot be caught, Ctrl-C ends the process at once.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Relaxed) {
                std::process::exit(130);
            }
        });
        let show = match (wish, screen::redrawable()) {
            (Wish::Quiet, _) => Show::Nothing,
            (Wish::Progress, Some(width)) => Show::Redrawn { width },
            (Wish::Progress, None) => Show::Lines,
        };
        Watcher { show, interrupted, shown: Mutex::new(None) }
    }

    /// Whether the user has asked for the end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Removes the progress line.
    pub fn finish(&self) {
        let shown = self.shown.lock().expect("mutex poisoned");
        if matches!(self.show, Show::Redrawn { .. }) && shown.is_some() {
            screen::complain("\r\x1b[K");
        }
    }
}

impl Observer for Watcher {
    fn progress(&self, now: &Progress) {
        let (first, pause) = match self.show {
            Show::Nothing => return,
            Show::Redrawn { .. } => (FIRST, REDRAW),
            Show::Lines => (LINES, LINES),
        };
        // A worker that finds another one drawing continues to search.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        // The next search begins with no time gone by.
        let shown_before = shown.filter(|shown| shown.elapsed <= now.elapsed);
        let due = shown_before.map_or(first, |shown| shown.elapsed + pause);
        if now.elapsed < due {
            return;
        }
        let before = shown.as_ref();
        screen::complain(&match self.show {
            Show::Redrawn { width } => {
                format!("\r{}\x1b[K", bar_line(now, before, width.saturating_sub(1)))
            }
            _ => format!("{}\n", line(now, before)),
        });
        *shown = Some(*now);
    }

    fn wants_estimates(&self) -> bool {
        self.show != Show::Nothing
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }
}
