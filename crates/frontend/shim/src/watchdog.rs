//! A look from outside at code that does not come back.
//!
//! All threads of an execution run on one OS thread. If one of them blocks in a primitive of std that the search does not control, or
//! loops without an operation, everything stands still and nobody inside can tell. So an OS thread looks every few seconds whether
//! the execution is where it was, and says which thread has the processor and where it was seen last. It is the one thing in
//! this crate that prints: who is stuck cannot panic.

use std::io::Write as _;
use std::panic::Location as Site;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
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

/// Watches one check, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn new(pulse: Arc<Pulse>) -> Watchdog {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let end = over.clone();
        // Without it a check works as well.
        let thread =
            std::thread::Builder::new().name("preempt watchdog".into()).spawn(move || watch(&pulse, &end)).ok();
        Watchdog { over, thread }
    }
}

fn watch(pulse: &Pulse, (over, ended): &(Mutex<bool>, Condvar)) {
    let (mut before, mut told) = (0, 0);
    let Ok(mut over) = over.lock() else { return };
    while !*over {
        let now = pulse.turns.load(Relaxed);
        if now == before && now % 2 == 1 && now != told {
            told = now;
            let _ = writeln!(std::io::stderr(), "{}", pulse.describe());
        }
        before = now;
        match ended.wait_timeout(over, INTERVAL) {
            Ok((guard, _)) => over = guard,
            Err(_) => return,
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Ok(mut over) = self.over.0.lock() {
            *over = true;
        }
        self.over.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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
