//! Uses of an execution's objects from outside: by a thread that the check does not control, or in
//! another execution.
//!
//! # Threads that a check does not control
//!
//! They are started by `std::thread`, or by a library. A mirror outside all executions behaves
//! like std's. So a thread that std started inside a check would change the objects of the
//! execution unobserved, at any time. The second of two such uses is detected, so that the verdict
//! does not depend on which comes first:
//!
//! - Objects record the execution that used them last. If that one is running, a thread that uses
//!   them from outside is a foreign thread: it panics with advice, and so does the check.
//! - Objects record when they were last used from outside. An execution that uses an object which
//!   was used from outside since the execution began reports that use.
//!
//! A thread that uses no object of the check does nothing that would be detected. On Linux its
//! [start](creation) is, if code of the check starts it.

pub(crate) mod creation;

use std::panic::Location as Site;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use preempt_system::FailureKind;

use crate::runtime::{inside, is_set, look, with};

use self::creation::Started;

/// Whether an object that was made in `execution`, or outside all executions (0), is used inside
/// of an execution. If that is another execution, the test fails here.
#[inline]
pub(crate) fn belongs(execution: u64, noun: &str, site: &'static Site<'static>) -> bool {
    if inside() && (execution == 0 || execution == look(|runtime| runtime.execution)) {
        return true;
    }
    refuse(execution, noun, site);
    false
}

/// An object is used outside all executions, or in another one than it was made in.
#[cold]
fn refuse(execution: u64, noun: &str, site: &'static Site<'static>) {
    if inside() {
        let message = format!(
            "the test uses {noun} that was made in another execution: what outlives an execution, \
             as a static does, must be made before the first one"
        );
        // The thread continues as it would outside a check, so that the execution ends.
        with(|runtime| runtime.fail(FailureKind::Runtime, message, Some(site)));
    } else if execution != 0 {
        is_over(execution, site);
    }
}

/// The first interference of a foreign thread with a check.
#[derive(Debug, Default)]
pub(crate) struct ForeignThreads(OnceLock<Interference>);

/// An interference of a foreign thread.
#[derive(Debug)]
enum Interference {
    Text(String),
    /// The code under test has started a thread. The text is expensive, so it is made only when it
    /// is needed.
    Started(Started),
}

impl ForeignThreads {
    /// The message, if a foreign thread has interfered.
    pub(crate) fn message(&self) -> Option<String> {
        self.0.get().map(|interference| match interference {
            Interference::Text(text) => text.clone(),
            Interference::Started(started) => started.text(),
        })
    }

    /// Whether a foreign thread has interfered.
    pub(crate) fn interfered(&self) -> bool {
        self.0.get().is_some()
    }

    /// Records an interference. The first one of a check counts.
    pub(crate) fn record(&self, text: String) {
        let _ = self.0.set(Interference::Text(text));
    }
}

/// The current execution of a runtime, visible to all OS threads.
#[derive(Debug)]
pub(crate) struct LiveExecution(Arc<Entry>);

#[derive(Debug)]
struct Entry {
    execution: AtomicU64,
    foreign_threads: Arc<ForeignThreads>,
}

static ALL: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());

/// The length of [`ALL`].
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether there are executions whose objects could be used from outside.
#[inline]
pub(crate) fn are_possible() -> bool {
    COUNT.load(Relaxed) > 0
}

/// The source position that was stored.
pub(crate) fn site(stored: &AtomicPtr<Site<'static>>) -> Option<&'static Site<'static>> {
    // SAFETY: only references to statics are stored.
    unsafe { stored.load(Relaxed).as_ref() }
}

/// The message about a thread that uses a `noun` of a check.
pub(crate) fn description(thread: &str, noun: &str, site: Option<&Site<'_>>) -> String {
    let place = site.map_or_else(String::new, |site| format!(" at {site}"));
    format!(
        "{thread} uses the {noun} of a check{place}, and the check does not know this thread. \
         Inside a check threads are started by `preempt::thread`: `std::thread::spawn`, and \
         libraries that use it, as rayon and tokio do, start threads that no search can control. A \
         static that another test uses at the same time looks the same"
    )
}

impl LiveExecution {
    pub(crate) fn new(foreign_threads: Arc<ForeignThreads>) -> LiveExecution {
        let entry = Arc::new(Entry { execution: AtomicU64::new(0), foreign_threads });
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        COUNT.fetch_add(1, Relaxed);
        LiveExecution(entry)
    }

    /// Records an interference. The first one of a check counts.
    pub(crate) fn record(&self, text: String) {
        self.0.foreign_threads.record(text);
    }

    /// Records that code of the execution has started a thread.
    #[allow(dead_code)] // On platforms where starts are not detected.
    fn record_start(&self, started: Started) {
        let _ = self.0.foreign_threads.0.set(Interference::Started(started));
    }

    /// An execution begins.
    #[inline]
    pub(crate) fn begin(&self, execution: u64) {
        self.0.execution.store(execution, Relaxed);
    }
}

impl Drop for LiveExecution {
    fn drop(&mut self) {
        ALL.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|entry| !Arc::ptr_eq(entry, &self.0));
        COUNT.fetch_sub(1, Relaxed);
    }
}

/// An object of `execution` is used while no code of an execution runs on this OS thread. Returns
/// whether that execution is over; if not, records the interference and panics.
#[cold]
pub(crate) fn is_over(execution: u64, site: &'static Site<'static>) -> bool {
    if is_set() {
        return false;
    }
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(entry) = all.iter().find(|entry| entry.execution.load(Relaxed) == execution).cloned()
    else {
        return true;
    };
    drop(all);
    let thread = std::thread::current();
    let name = thread.name().map_or_else(
        || "a thread without a name".to_owned(),
        |name| format!("the thread `{name}`"),
    );
    let text = description(&name, "objects", Some(site));
    entry.foreign_threads.record(text.clone());
    if !std::thread::panicking() {
        panic!("{text}");
    }
    false
}
