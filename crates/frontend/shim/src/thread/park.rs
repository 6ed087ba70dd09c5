//! Threads as values: names, `park` and `unpark`.

use std::fmt;
use std::panic::Location as Site;
use std::time::Duration;

use preempt_replay::{EarlyWake, OpKind};
use preempt_system::Action;

use crate::foreign_threads;
use crate::runtime::{describe, inside, is_set, op, point, with};

/// A mirror of [`std::thread::Thread`].
#[derive(Clone)]
pub struct Thread(Which);

#[derive(Clone)]
enum Which {
    Real(std::thread::Thread),
    Checked { slot: usize, execution: u64, name: Option<String> },
}

/// A mirror of [`std::thread::ThreadId`]. Inside a check it is the same in every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(Id);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Id {
    Real(std::thread::ThreadId),
    Checked(usize),
}

impl Thread {
    pub(super) fn real(thread: &std::thread::Thread) -> Thread {
        Thread(Which::Real(thread.clone()))
    }

    pub(super) fn checked(slot: usize) -> Thread {
        Thread(with(|runtime| {
            let name = runtime.threads[slot].name.clone();
            Which::Checked { slot, execution: runtime.execution, name }
        }))
    }

    /// Whether the running execution is the one to which the thread belongs, so that operations on
    /// it are scheduled.
    pub(super) fn belongs(&self, site: &'static Site<'static>) -> bool {
        match &self.0 {
            Which::Real(_) => false,
            Which::Checked { execution, .. } => {
                foreign_threads::belongs(*execution, "a thread", site)
            }
        }
    }

    /// The identifier of the thread.
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Which::Real(thread) => Id::Real(thread.id()),
            Which::Checked { slot, .. } => Id::Checked(*slot),
        })
    }

    /// The name of the thread, if it has one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Real(thread) => thread.name(),
            Which::Checked { slot: 0, name: None, .. } => Some("main"),
            Which::Checked { name, .. } => name.as_deref(),
        }
    }

    /// Makes the thread's token available, which ends its current or next park.
    #[track_caller]
    pub fn unpark(&self) {
        match &self.0 {
            Which::Real(thread) => thread.unpark(),
            Which::Checked { slot, .. } if self.belongs(Site::caller()) => {
                let object = with(|runtime| runtime.recording.names().parker(*slot));
                let act = OpKind::Object(Action::Unpark);
                point(op(act, object, "unpark", Site::caller()));
                describe(|| "unpark()".into());
            }
            Which::Checked { .. } => {}
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.id())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// The running thread.
pub fn current() -> Thread {
    if is_set() {
        Thread::checked(with(|runtime| {
            runtime.depends_on_thread();
            runtime.current
        }))
    } else {
        Thread::real(&std::thread::current())
    }
}

/// Waits until another thread unparks this one.
#[track_caller]
pub fn park() {
    if !inside() {
        if !is_set() {
            std::thread::park();
        }
        return;
    }
    let early = with(|runtime| runtime.options.spurious_wakeups());
    wait("park", early, Site::caller());
}

/// Like [`park`], for at most `timeout`. Inside a check the timeout may fire at any time.
#[track_caller]
pub fn park_timeout(time: Duration) {
    if !inside() {
        if !is_set() {
            std::thread::park_timeout(time);
        }
        return;
    }
    wait("park_timeout", EarlyWake::Timeout, Site::caller());
}

fn wait(verb: &'static str, early: EarlyWake, site: &'static Site<'static>) {
    let object = with(|runtime| runtime.recording.names().parker(runtime.current));
    point(op(OpKind::Park { early }, object, verb, site));
    let early = with(|runtime| {
        let early = runtime.outcome.alternative == 1;
        if early {
            runtime.yields(site);
        }
        early
    });
    describe(|| format!("{verb}() ends{}", if early { " without a token" } else { "" }));
}
