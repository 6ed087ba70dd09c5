//! Uses of what an execution has made, from elsewhere: by a thread that the check does not know, or
//! in another execution.
//!
//! # Threads that a check does not know
//!
//! They are started by `std::thread`, or by a library. A mirror outside of all executions behaves
//! like std's. So a thread that std started inside a check would change the objects of the
//! execution unobserved, at any time. The second of two such uses is detected, so that the verdict
//! does not depend on which comes first:
//!
//! - Objects know the execution that used them last. If that one is running, a thread that uses
//!   them from outside is a foreign thread: it panics with advice, and so does the check.
//! - Objects know when they were last used from outside. An execution that uses one which was used
//!   since it began reports that use.
//!
//! # What is not detected
//!
//! A thread of std that uses no object of the check, in a test that has several schedules anyway.
//! Nothing that it does tells it from a thread that has a right to exist: a logger gets memory from
//! the test and frees it, other tests start threads at the same moment, and when the machine lets
//! it run is chance. A report of such a thread would either depend on timing or blame correct
//! tests. What it does to memory that is not controlled is not explored.

use std::panic::Location as Site;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use preempt_system::FailureKind;

use crate::runtime::{inside, is_set, look, with};

/// Whether something that was made in an execution, or outside of all (0), is used in an execution.
/// If in another one, the test fails here.
#[inline]
pub(crate) fn belongs(execution: u64, noun: &str, site: &'static Site<'static>) -> bool {
    if inside() && (execution == 0 || execution == look(|runtime| runtime.execution)) {
        return true;
    }
    refuse(execution, noun, site);
    false
}

/// Something is used outside of all executions, or in another one than it was made in.
#[cold]
fn refuse(execution: u64, noun: &str, site: &'static Site<'static>) {
    if inside() {
        let message = format!(
            "the test uses {noun} that was made in another execution: what outlives an execution, as a static does, must be made before the \
             first one"
        );
        // The thread goes on as it would outside of a check, so that the execution ends.
        with(|runtime| runtime.fail(FailureKind::Runtime, message, Some(site)));
    } else if execution != 0 {
        is_over(execution, site);
    }
}

/// What foreign threads did to a check: the first of them.
#[derive(Debug, Default)]
pub(crate) struct ForeignThreads(OnceLock<String>);

impl ForeignThreads {
    /// What is wrong, if something is.
    pub(crate) fn complaint(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Something is wrong. The first complaint of a check counts.
    pub(crate) fn complain(&self, text: String) {
        let _ = self.0.set(text);
    }
}

/// The execution that a runtime makes at present, visible to all OS threads while it lives.
#[derive(Debug)]
pub(crate) struct Live(Arc<Entry>);

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

/// A place that was stored.
pub(crate) fn site(stored: &AtomicPtr<Site<'static>>) -> Option<&'static Site<'static>> {
    // SAFETY: only references to statics are stored.
    unsafe { stored.load(Relaxed).as_ref() }
}

/// The message about a thread that uses a `noun` of a check.
pub(crate) fn told(thread: &str, noun: &str, site: Option<&Site<'_>>) -> String {
    let place = site.map_or_else(String::new, |site| format!(" at {site}"));
    format!(
        "{thread} uses the {noun} of a check{place}, and the check does not know this thread. Inside a check threads are started by \
         `preempt::thread`: `std::thread::spawn`, and libraries that use it, as rayon and tokio do, start threads that no search can control. A static \
         that another test uses at the same time looks the same"
    )
}

impl Live {
    pub(crate) fn new(foreign_threads: Arc<ForeignThreads>) -> Live {
        let entry = Arc::new(Entry { execution: AtomicU64::new(0), foreign_threads });
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        COUNT.fetch_add(1, Relaxed);
        Live(entry)
    }

    /// Something is wrong. The first complaint of a check counts.
    pub(crate) fn complain(&self, text: String) {
        self.0.foreign_threads.complain(text);
    }

    /// An execution begins.
    #[inline]
    pub(crate) fn begin(&self, execution: u64) {
        self.0.execution.store(execution, Relaxed);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        ALL.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|entry| !Arc::ptr_eq(entry, &self.0));
        COUNT.fetch_sub(1, Relaxed);
    }
}

/// Something of an execution is used while no code of an execution runs on this OS thread. Returns
/// whether that execution is over; if not, complains.
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
    let text = told(&name, "objects", Some(site));
    entry.foreign_threads.complain(text.clone());
    if !std::thread::panicking() {
        panic!("{text}");
    }
    false
}
