//! A look from outside at code that does not come back.
//!
//! All threads of an execution run on one OS thread. If one of them blocks in a primitive of std that the search does not control, or
//! loops without an operation, everything stands still and nobody inside can tell. So an OS thread looks every few seconds whether
//! the execution is where it was, and says which thread has the processor and where it was seen last. It is the one thing in
//! this crate that prints: who is stuck cannot panic.
//!
//! One thread watches all checks of the process: to start one for each would cost more than many a check. It ends when there is nobody
//! to watch, and the next check starts another.

use std::io::Write as _;
use std::panic::Location as Site;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(4);

/// What an execution shows of itself.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Even: nobody runs. It grows with every turn of a thread.
    turns: AtomicU64,
    slot: AtomicUsize,
    /// Where the thread was before.
    site: AtomicPtr<Site<'static>>,
}

impl Pulse {
    /// A thread gets its turn.
    #[inline]
    pub(crate) fn begin(&self, slot: usize, site: Option<&'static Site<'static>>) {
        self.slot.store(slot, Relaxed);
        let site = site.map_or(std::ptr::null_mut(), |site| std::ptr::from_ref(site).cast_mut());
        self.site.store(site, Relaxed);
        self.turns.store(self.turns.load(Relaxed) + 1, Relaxed);
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn end(&self) {
        self.turns.store(self.turns.load(Relaxed) + 1, Relaxed);
    }

    fn describe(&self) -> String {
        let site = self.site.load(Relaxed);
        // SAFETY: only references to statics are stored.
        let place = unsafe { site.as_ref() }.map_or_else(|| "at its beginning".to_owned(), |site| format!("at {site}"));
        let thread = match self.slot.load(Relaxed) {
            0 => "the first thread".to_owned(),
            slot => format!("thread {slot}"),
        };
        format!(
            "preempt: {thread} of a test has not come to its next operation for {} seconds; it was seen last {place}. A lock or a channel \
             of std that it waits for is not controlled here: use preempt's. A loop without an operation never lets others run",
            INTERVAL.as_secs()
        )
    }
}

/// A check that is watched, and what was seen of it.
struct Watched {
    pulse: Arc<Pulse>,
    before: u64,
    told: u64,
}

/// All checks that are watched, and whether there is a thread that does it.
struct Watch {
    checks: Vec<Watched>,
    running: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { checks: Vec::new(), running: false });

fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches one check, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog(Arc<Pulse>);

impl Watchdog {
    pub(crate) fn new(pulse: Arc<Pulse>) -> Watchdog {
        let mut watch = lock();
        watch.checks.push(Watched { pulse: pulse.clone(), before: 0, told: 0 });
        if !watch.running {
            let thread = std::thread::Builder::new().name("preempt watchdog".into()).spawn(run);
            // Without it a check works as well.
            watch.running = thread.is_ok();
        }
        Watchdog(pulse)
    }
}

fn run() {
    loop {
        let mut watch = lock();
        if watch.checks.is_empty() {
            watch.running = false;
            return;
        }
        watch.checks.iter_mut().for_each(Watched::look);
        drop(watch);
        std::thread::sleep(INTERVAL);
    }
}

impl Watched {
    /// Says so if the check is where it was, once.
    fn look(&mut self) {
        let now = self.pulse.turns.load(Relaxed);
        if now == self.before && now % 2 == 1 && now != self.told {
            self.told = now;
            let _ = writeln!(std::io::stderr(), "{}", self.pulse.describe());
        }
        self.before = now;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        lock().checks.retain(|watched| !Arc::ptr_eq(&watched.pulse, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_is_stuck_and_where() {
        let pulse = Pulse::default();
        pulse.begin(2, Some(Site::caller()));
        let text = pulse.describe();
        assert!(text.contains("thread 2") && text.contains("watchdog.rs:"), "{text}");
        pulse.end();
        assert_eq!(pulse.turns.load(Relaxed) % 2, 0);
        pulse.begin(0, None);
        assert!(pulse.describe().contains("the first thread"));
    }
}
