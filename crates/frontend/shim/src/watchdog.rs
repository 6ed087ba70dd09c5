//! A look from outside at code that does not come back.
//!
//! All threads of an execution run on one OS thread. If one of them blocks in a primitive of std
//! that the search does not control, or loops without an operation, everything stands still and
//! nobody inside can tell. So an OS thread looks every second whether the executions are where they
//! were:
//!
//! - A thread that sleeps in the kernel until another one wakes it, and does so for [`BLOCKED`]
//!   seconds, is [taken out](crate::runtime::interrupt), and the check fails with the place.
//! - A thread that runs, or waits for something else, may be computing. After [`SLOW`] seconds the
//!   standard error says which thread it is and where it was seen last; after a
//!   [limit](crate::Check::max_turn) the process ends with a report, since code that runs cannot be
//!   left in the middle.
//!
//! One OS thread watches all checks of the process: to start one for each would cost more than many
//! a check. It ends when there is no check to watch, and the next check starts another.

use std::panic::Location as Site;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::runtime::interrupt::{self, OsThread};
use crate::stderr::{end_process, say};

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// After how many seconds a thread that sleeps is taken out.
pub(crate) const BLOCKED: u32 = 3;

/// After how many seconds it says that a thread runs.
const SLOW: u32 = 4;

/// What one worker shows of the execution that it makes.
///
/// A sequence lock: `turns` is odd while a thread runs, and what else is read counts only if
/// `turns` was the same before and after.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// It grows with the beginning and with the end of every turn of a thread.
    turns: AtomicU64,
    slot: AtomicUsize,
    /// The last operation of the thread.
    site: AtomicPtr<Site<'static>>,
    /// The names of threads by their slots, as they were given last: a slot has the same name in
    /// every execution.
    names: Mutex<Vec<String>>,
    /// The OS thread that makes the execution.
    pub(crate) os: OsThread,
}

impl Pulse {
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

    /// A slot has this name from now on.
    pub(crate) fn name(&self, slot: usize, name: &str) {
        let mut names = lock(&self.names);
        if names.len() <= slot {
            names.resize(slot + 1, String::new());
        }
        name.clone_into(&mut names[slot]);
    }

    /// The number of the turn, and a message about it; `None` if no thread runs.
    fn look(&self) -> Option<(u64, String)> {
        let turn = self.turns.load(Acquire);
        let (slot, site) = (self.slot.load(Relaxed), self.site.load(Relaxed));
        fence(Acquire);
        if turn.is_multiple_of(2) || self.turns.load(Relaxed) != turn {
            return None;
        }
        // SAFETY: only references to statics are stored.
        let site = unsafe { site.as_ref() };
        let seen = site.map_or_else(
            || "it has made none yet".to_owned(),
            |site| format!("its last was at {site}"),
        );
        let name = match lock(&self.names).get(slot) {
            Some(name) if !name.is_empty() => name.clone(),
            _ if slot == 0 => "main".to_owned(),
            _ => format!("number {slot}"),
        };
        Some((
            turn,
            format!("the thread {name} of a test has not come to its next operation; {seen}"),
        ))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the watchdog does something about a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Threads may block in what is not controlled.
    pub(crate) allow_uncontrolled: bool,
    /// The longest turn.
    pub(crate) max_turn: Duration,
}

/// What is watched of a check: a pulse for every worker.
#[derive(Debug)]
pub(crate) struct Pulses {
    pulses: Mutex<Vec<Arc<Pulse>>>,
    seen: Mutex<Vec<Seen>>,
    patience: Patience,
}

/// A thread that ran at the last look.
#[derive(Debug)]
struct Seen {
    pulse: Arc<Pulse>,
    /// The number of its turn.
    turn: u64,
    /// At how many looks it has been the same turn.
    looks: u32,
    /// At how many of them the OS thread was in the same sleep, and how often it had gone to sleep.
    asleep: u32,
    sleeps: Option<u64>,
}

/// What to do about a thread.
#[derive(Debug, PartialEq, Eq)]
enum Deed {
    Nothing,
    /// To say that it runs.
    Say,
    /// To take it out.
    TakeOut,
    /// To end the process.
    End,
}

impl Patience {
    fn decide(&self, seen: &Seen) -> Deed {
        let longest = u32::try_from(self.max_turn.as_secs()).unwrap_or(u32::MAX).max(1);
        match seen {
            seen if seen.asleep == BLOCKED && !self.allow_uncontrolled => Deed::TakeOut,
            seen if seen.looks >= longest && !self.allow_uncontrolled => Deed::End,
            seen if seen.looks == SLOW => Deed::Say,
            _ => Deed::Nothing,
        }
    }
}

impl Pulses {
    pub(crate) fn new(patience: Patience) -> Pulses {
        Pulses { pulses: Mutex::default(), seen: Mutex::default(), patience }
    }

    /// One more.
    pub(crate) fn begin(&self) -> Arc<Pulse> {
        let pulse = Arc::new(Pulse::default());
        lock(&self.pulses).push(pulse.clone());
        pulse
    }

    /// One less.
    pub(crate) fn end(&self, pulse: &Arc<Pulse>) {
        lock(&self.pulses).retain(|other| !Arc::ptr_eq(other, pulse));
    }

    /// Looks at all threads that run, and does something about those that have for too long.
    fn look(&self) {
        let mut seen = lock(&self.seen);
        let pulses = lock(&self.pulses).clone();
        let mut now = Vec::new();
        for pulse in pulses {
            let Some((turn, words)) = pulse.look() else { continue };
            let sleeps = pulse.os.sleeps();
            let known =
                seen.iter().find(|known| Arc::ptr_eq(&known.pulse, &pulse) && known.turn == turn);
            let looks = known.map_or(0, |known| known.looks + 1);
            let same_sleep = known.filter(|known| sleeps.is_some() && known.sleeps == sleeps);
            let asleep = same_sleep.map_or(0, |known| known.asleep + 1);
            let found = Seen { pulse, turn, looks, asleep, sleeps };
            match self.patience.decide(&found) {
                Deed::Nothing => {}
                Deed::Say => say(&format!(
                    "{words}, for {SLOW} seconds. If it waits for something that is not controlled here, use what preempt has instead. If it loops without \
                     an operation, nobody else can run meanwhile. If it computes, this is no error"
                )),
                Deed::TakeOut => interrupt::send(&found.pulse, turn),
                Deed::End => end_process(&format!(
                    "{words}, for {} seconds, and the test cannot be ended without the process. It waits for something that is not controlled here, or \
                         loops without an operation: use what preempt has instead. If it only computes, `Check::max_turn` or PREEMPT_MAX_TURN=seconds gives it \
                         more time",
                    self.patience.max_turn.as_secs()
                )),
            }
            now.push(found);
        }
        *seen = now;
    }
}

/// All checks that are watched, and whether there is a thread that does it.
struct Watched {
    checks: Vec<Arc<Pulses>>,
    running: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { checks: Vec::new(), running: false });

/// Watches one check, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog(Arc<Pulses>);

impl Watchdog {
    pub(crate) fn new(pulses: Arc<Pulses>) -> Watchdog {
        let mut watched = lock(&WATCHED);
        watched.checks.push(pulses.clone());
        if !watched.running {
            // Without it a check works as well.
            watched.running =
                std::thread::Builder::new().name("preempt watchdog".into()).spawn(watch).is_ok();
        }
        Watchdog(pulses)
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
        checks.iter().for_each(|check| check.look());
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
        let pulse = Pulse::default();
        assert_eq!(pulse.look(), None);
        pulse.name(2, "reader");
        pulse.begin(2, Some(Site::caller()));
        let (turn, text) = pulse.look().expect("a thread runs");
        assert!(
            text.contains("the thread reader of a test") && text.contains("its last was at "),
            "{text}"
        );
        assert!(text.contains("watchdog.rs:"), "{text}");
        assert_eq!(pulse.look().map(|(again, _)| again), Some(turn));
        pulse.end();
        assert_eq!(pulse.look(), None);
        pulse.begin(0, None);
        let (_, text) = pulse.look().expect("a thread runs");
        assert!(
            text.contains("the thread main of") && text.contains("it has made none yet"),
            "{text}"
        );
    }

    #[test]
    fn it_ends_what_sleeps_and_warns_of_what_runs() {
        let patience = Patience { allow_uncontrolled: false, max_turn: Duration::from_secs(9) };
        let lax = Patience { allow_uncontrolled: true, ..patience };
        let seen =
            |looks, asleep| Seen { pulse: Arc::default(), turn: 1, looks, asleep, sleeps: None };
        let deeds = |patience: Patience, asleep: fn(u32) -> u32| {
            let deeds = (0..11).map(|looks| patience.decide(&seen(looks, asleep(looks))));
            deeds.filter(|deed| *deed != Deed::Nothing).collect::<Vec<_>>()
        };
        assert_eq!(deeds(patience, |_| 0), [Deed::Say, Deed::End, Deed::End]);
        assert_eq!(deeds(patience, |looks| looks)[0], Deed::TakeOut);
        assert_eq!(deeds(lax, |looks| looks), [Deed::Say]);
    }
}
