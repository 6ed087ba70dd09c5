//! Detects code that does not return to its next operation.
//!
//! All threads of an execution run on one OS thread. If one of them blocks in a primitive of std
//! that the search does not control, or loops without an operation, the whole check hangs, and
//! cannot notice it. So another OS thread checks every second whether the executions have made
//! progress:
//!
//! - A thread that has been blocked in the kernel for [`BLOCKED`] seconds is
//!   [interrupted](crate::runtime::interrupt), and the check fails with the place.
//! - A thread that runs, or waits for something else, may be computing. After [`SLOW`] seconds a
//!   message on the standard error names the thread and its last operation; after a
//!   [limit](crate::Check::max_turn) the process ends with a report, since running code cannot be
//!   abandoned.
//!
//! One OS thread watches all checks of the process: starting one per check would cost more than
//! many checks do. It ends when there is no check left, and the next check starts another.

use std::panic::Location as Site;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::runtime::interrupt::{self, OsThread};
use crate::stderr::{end_process, say};

/// The interval between two observations.
const INTERVAL: Duration = Duration::from_secs(1);

/// The number of seconds after which a blocked thread is interrupted.
pub(crate) const BLOCKED: u32 = 3;

/// The number of seconds after which a message names a thread that is still running.
const SLOW: u32 = 4;

/// The number of seconds after which the process ends if a thread is running in a check that has
/// failed already: the rest of its execution, which may wait for an interrupted thread.
const FAILED: u32 = 5;

/// The progress of one worker's execution, visible to the watchdog.
///
/// A sequence lock: `turns` is odd while a thread runs, and the other fields are valid only if
/// `turns` was the same before and after reading them.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// Incremented at the beginning and at the end of every turn of a thread.
    turns: AtomicU64,
    slot: AtomicUsize,
    /// The last operation of the thread.
    site: AtomicPtr<Site<'static>>,
    /// The names of threads by their slots, as assigned last: a slot has the same name in every
    /// execution.
    names: Mutex<Vec<String>>,
    /// The OS thread that makes the execution.
    pub(crate) os: OsThread,
}

impl Heartbeat {
    /// The number of the turn.
    pub(crate) fn turn(&self) -> u64 {
        self.turns.load(Relaxed)
    }

    /// A thread gets its turn.
    #[inline]
    pub(crate) fn begin(&self, slot: usize, site: Option<&'static Site<'static>>) {
        fence(Release);
        self.slot.store(slot, Relaxed);
        let site = site.map_or(std::ptr::null_mut(), |site| std::ptr::from_ref(site).cast_mut());
        self.site.store(site, Relaxed);
        self.turns.store(self.turns.load(Relaxed) + 1, Release);
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn end(&self) {
        self.turns.store(self.turns.load(Relaxed) + 1, Relaxed);
    }

    /// Sets the name of a slot.
    pub(crate) fn name(&self, slot: usize, name: &str) {
        let mut names = lock(&self.names);
        if names.len() <= slot {
            names.resize(slot + 1, String::new());
        }
        name.clone_into(&mut names[slot]);
    }

    /// The number of the current turn and a message about it; `None` if no thread runs.
    fn observe(&self) -> Option<(u64, String)> {
        let turn = self.turns.load(Acquire);
        let (slot, site) = (self.slot.load(Relaxed), self.site.load(Relaxed));
        fence(Acquire);
        if turn.is_multiple_of(2) || self.turns.load(Relaxed) != turn {
            return None;
        }
        // SAFETY: only references to statics are stored.
        let site = unsafe { site.as_ref() };
        let seen = site.map_or_else(
            || "it has performed none yet".to_owned(),
            |site| format!("its last was at {site}"),
        );
        let name = match lock(&self.names).get(slot) {
            Some(name) if !name.is_empty() => name.clone(),
            _ if slot == 0 => "main".to_owned(),
            _ => format!("number {slot}"),
        };
        Some((
            turn,
            format!("the thread {name} of a test has not reached its next operation; {seen}"),
        ))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The timeouts after which the watchdog acts on a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Whether threads may block in uncontrolled code.
    pub(crate) allow_uncontrolled: bool,
    /// The longest allowed turn.
    pub(crate) max_turn: Duration,
}

/// A watched check: one heartbeat for every worker.
#[derive(Debug)]
pub(crate) struct WatchedCheck {
    heartbeats: Mutex<Vec<Arc<Heartbeat>>>,
    seen: Mutex<Vec<Observation>>,
    timeouts: Timeouts,
    /// Why the check fails, if it is known to.
    failed: OnceLock<String>,
}

/// A thread that was running at the last observation.
#[derive(Debug)]
struct Observation {
    heartbeat: Arc<Heartbeat>,
    /// The number of its turn.
    turn: u64,
    /// The number of observations of the same turn.
    observations: u32,
    /// The number of these at which the OS thread was in the same sleep, and its count of context
    /// switches then.
    asleep: u32,
    sleeps: Option<u64>,
}

/// The reaction to a thread.
#[derive(Debug, PartialEq, Eq)]
enum Reaction {
    Nothing,
    /// Print that it is still running.
    Warn,
    /// Interrupt it.
    Interrupt,
    /// End the process.
    EndProcess,
}

impl Timeouts {
    fn decide(&self, seen: &Observation, has_failed: bool) -> Reaction {
        let longest = u32::try_from(self.max_turn.as_secs()).unwrap_or(u32::MAX).max(1);
        let longest = if has_failed { longest.min(FAILED) } else { longest };
        match seen {
            seen if seen.asleep == BLOCKED && !self.allow_uncontrolled => Reaction::Interrupt,
            seen if seen.observations >= longest && !self.allow_uncontrolled => {
                Reaction::EndProcess
            }
            seen if seen.observations == SLOW => Reaction::Warn,
            _ => Reaction::Nothing,
        }
    }
}

impl WatchedCheck {
    pub(crate) fn new(timeouts: Timeouts) -> WatchedCheck {
        let (heartbeats, seen) = (Mutex::default(), Mutex::default());
        WatchedCheck { heartbeats, seen, timeouts, failed: OnceLock::new() }
    }

    /// The check fails, whatever the rest of its execution does.
    pub(crate) fn fail(&self, why: &str) {
        let _ = self.failed.set(why.to_owned());
    }

    /// Adds a worker.
    pub(crate) fn begin(&self) -> Arc<Heartbeat> {
        let heartbeat = Arc::new(Heartbeat::default());
        lock(&self.heartbeats).push(heartbeat.clone());
        heartbeat
    }

    /// Removes a worker.
    pub(crate) fn end(&self, heartbeat: &Arc<Heartbeat>) {
        lock(&self.heartbeats).retain(|other| !Arc::ptr_eq(other, heartbeat));
    }

    /// Observes all running threads, and acts on those that have been running for too long.
    fn observe(&self) {
        let mut seen = lock(&self.seen);
        let heartbeats = lock(&self.heartbeats).clone();
        let mut now = Vec::new();
        for heartbeat in heartbeats {
            let Some((turn, words)) = heartbeat.observe() else { continue };
            let sleeps = heartbeat.os.sleeps();
            let known = seen
                .iter()
                .find(|known| Arc::ptr_eq(&known.heartbeat, &heartbeat) && known.turn == turn);
            let observations = known.map_or(0, |known| known.observations + 1);
            let same_sleep = known.filter(|known| sleeps.is_some() && known.sleeps == sleeps);
            let asleep = same_sleep.map_or(0, |known| known.asleep + 1);
            let found = Observation { heartbeat, turn, observations, asleep, sleeps };
            match self.timeouts.decide(&found, self.failed.get().is_some()) {
                Reaction::Nothing => {}
                Reaction::Warn => say(&format!(
                    "{words}, for {SLOW} seconds. If it waits for synchronisation that is not \
                     controlled, use the types of preempt instead. If it loops without an \
                     operation, no other thread can run meanwhile. If it computes, this is not \
                     an error"
                )),
                Reaction::Interrupt => interrupt::send(&found.heartbeat, turn),
                Reaction::EndProcess => end_process(&self.last_words(&found, &words)),
            }
            now.push(found);
        }
        *seen = now;
    }
}

impl WatchedCheck {
    /// The message about a thread that runs for too long, before the process ends.
    fn last_words(&self, found: &Observation, words: &str) -> String {
        if let Some(failed) = self.failed.get() {
            return format!(
                "{failed}. The rest of the test does not end without it, so that the process has \
                 to end"
            );
        }
        let seen = interrupt::observe(&found.heartbeat, found.turn)
            .map(|backtrace| interrupt::blocked(&backtrace.to_string()).words(None))
            .filter(|place| !place.is_empty())
            .map_or_else(String::new, |place| format!(". It is{place}"));
        format!(
            "{words}, for {} seconds, and the test cannot be ended without the process{seen}. It \
             waits for synchronisation that is not controlled, or loops without an operation: use \
             the types of preempt instead. If it only computes, `Check::max_turn` or \
             PREEMPT_MAX_TURN=seconds gives it more time",
            self.timeouts.max_turn.as_secs()
        )
    }
}

/// All watched checks, and whether the watchdog thread is running.
struct Watched {
    checks: Vec<Arc<WatchedCheck>>,
    running: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { checks: Vec::new(), running: false });

/// Watches one check, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog(Arc<WatchedCheck>);

impl Watchdog {
    pub(crate) fn new(heartbeats: Arc<WatchedCheck>) -> Watchdog {
        let mut watched = lock(&WATCHED);
        watched.checks.push(heartbeats.clone());
        if !watched.running {
            // If the thread cannot be started, the check runs without a watchdog.
            watched.running =
                std::thread::Builder::new().name("preempt watchdog".into()).spawn(watch).is_ok();
        }
        Watchdog(heartbeats)
    }
}

fn watch() {
    loop {
        let checks = {
            let mut watched = lock(&WATCHED);
            watched.running = !watched.checks.is_empty();
            watched.checks.clone()
        };
        if checks.is_empty() {
            return;
        }
        checks.iter().for_each(|check| check.observe());
        drop(checks);
        std::thread::sleep(INTERVAL);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        lock(&WATCHED).checks.retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_is_stuck_and_where() {
        let heartbeat = Heartbeat::default();
        assert_eq!(heartbeat.observe(), None);
        heartbeat.name(2, "reader");
        heartbeat.begin(2, Some(Site::caller()));
        let (turn, text) = heartbeat.observe().expect("a thread runs");
        assert!(
            text.contains("the thread reader of a test") && text.contains("its last was at "),
            "{text}"
        );
        assert!(text.contains("watchdog.rs:"), "{text}");
        assert_eq!(heartbeat.observe().map(|(again, _)| again), Some(turn));
        heartbeat.end();
        assert_eq!(heartbeat.observe(), None);
        heartbeat.begin(0, None);
        let (_, text) = heartbeat.observe().expect("a thread runs");
        assert!(
            text.contains("the thread main of") && text.contains("it has performed none yet"),
            "{text}"
        );
    }

    #[test]
    fn it_ends_what_sleeps_and_warns_of_what_runs() {
        let timeouts = Timeouts { allow_uncontrolled: false, max_turn: Duration::from_secs(9) };
        let lax = Timeouts { allow_uncontrolled: true, ..timeouts };
        let seen = |observations, asleep| Observation {
            heartbeat: Arc::default(),
            turn: 1,
            observations,
            asleep,
            sleeps: None,
        };
        let reactions = |timeouts: Timeouts, asleep: fn(u32) -> u32| {
            let reactions = (0..11).map(|at| timeouts.decide(&seen(at, asleep(at)), false));
            reactions.filter(|reaction| *reaction != Reaction::Nothing).collect::<Vec<_>>()
        };
        assert_eq!(
            reactions(timeouts, |_| 0),
            [Reaction::Warn, Reaction::EndProcess, Reaction::EndProcess]
        );
        assert_eq!(reactions(timeouts, |observations| observations)[0], Reaction::Interrupt);
        assert_eq!(reactions(lax, |observations| observations), [Reaction::Warn]);
        assert_eq!(timeouts.decide(&seen(FAILED, 0), true), Reaction::EndProcess);
    }
}
