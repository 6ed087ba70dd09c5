//! A look from outside at code that does not come back.
//!
//! All threads of an execution run on one OS thread. If one of them blocks in a primitive of std that the search does not control, or
//! loops without an operation, everything stands still and nobody inside can tell. So an OS thread looks every few seconds whether
//! the executions are where they were, and says which thread has the processor and where it was seen last: who is stuck cannot panic.
//!
//! One OS thread watches all checks of the process: to start one for each would cost more than many a check. It ends when there is nobody to
//! watch, and the next check starts another.

use std::panic::Location as Site;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::voice::say;

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(4);

/// What one worker shows of the execution that it makes.
///
/// A sequence lock: `turns` is odd while a thread runs, and what else is read counts only if `turns` was the same before and after.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// It grows with the beginning and with the end of every turn of a thread.
    turns: AtomicU64,
    slot: AtomicUsize,
    /// The last operation of the thread.
    site: AtomicPtr<Site<'static>>,
    /// The names of threads by their slots, as they were given last: a slot has the same name in every execution.
    names: Mutex<Vec<String>>,
}

impl Pulse {
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

    /// The number of the turn, and what to say about it; `None` if nobody runs.
    fn look(&self) -> Option<(u64, String)> {
        let turn = self.turns.load(Acquire);
        let (slot, site) = (self.slot.load(Relaxed), self.site.load(Relaxed));
        fence(Acquire);
        if turn.is_multiple_of(2) || self.turns.load(Relaxed) != turn {
            return None;
        }
        // SAFETY: only references to statics are stored.
        let site = unsafe { site.as_ref() };
        let seen = site.map_or_else(|| "it has made none yet".to_owned(), |site| format!("its last was at {site}"));
        let name = match lock(&self.names).get(slot) {
            Some(name) if !name.is_empty() => name.clone(),
            _ if slot == 0 => "main".to_owned(),
            _ => format!("number {slot}"),
        };
        let words = format!(
            "the thread {name} of a test has not come to its next operation for {} seconds; {seen}. If it waits for a lock, a channel or a \
             thread of std: these are not controlled here, use preempt's. If it loops without an operation: nobody else can run meanwhile. \
             If it computes: this is no error",
            INTERVAL.as_secs()
        );
        Some((turn, words))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is watched of a check: a pulse for every worker.
#[derive(Debug, Default)]
pub(crate) struct Pulses {
    pulses: Mutex<Vec<Arc<Pulse>>>,
    /// Those whose thread ran at the last look, the number of its turn, and whether that was so at the look before too.
    seen: Mutex<Vec<(Arc<Pulse>, u64, bool)>>,
}

impl Pulses {
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

    /// Says who is where it was, once for each turn.
    fn look(&self) {
        let mut seen = lock(&self.seen);
        let pulses = lock(&self.pulses).clone();
        let looked = pulses.into_iter().filter_map(|pulse| pulse.look().map(|(turn, words)| (pulse, turn, words)));
        *seen = looked
            .map(|(pulse, turn, words)| {
                let same = |known: &&(Arc<Pulse>, u64, bool)| Arc::ptr_eq(&known.0, &pulse) && known.1 == turn;
                let known = seen.iter().find(same).map(|known| known.2);
                if known == Some(false) {
                    say(&words);
                }
                (pulse, turn, known.is_some())
            })
            .collect();
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
            watched.running = std::thread::Builder::new().name("preempt watchdog".into()).spawn(watch).is_ok();
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
        let (turn, text) = pulse.look().expect("somebody runs");
        assert!(text.contains("the thread reader of a test") && text.contains("its last was at "), "{text}");
        assert!(text.contains("watchdog.rs:"), "{text}");
        assert_eq!(pulse.look().map(|(again, _)| again), Some(turn));
        pulse.end();
        assert_eq!(pulse.look(), None);
        pulse.begin(0, None);
        let (_, text) = pulse.look().expect("somebody runs");
        assert!(text.contains("the thread main of") && text.contains("it has made none yet"), "{text}");
    }
}
