//! The return of a thread's function, which comes before its thread-local values are dropped.
//!
//! `join` of a handle waits for the thread itself, and so for the destructors of its thread-local
//! values. A scope does not: it waits until the functions of its threads have returned. And
//! `is_finished` is true from then on. Most threads have no such destructors, or none that another
//! thread can notice, and then their return needs no step: it is part of the last one, and whoever
//! waits for it waits for the end of the thread.
//!
//! If a destructor operates on a mirror, or accesses a cell, and a scope or `is_finished` observes
//! the end of a thread, the search starts over, and from then on the return of every thread is a
//! step ([`Requirements::exits`](super::restart::Requirements)): it sets an event for which scopes
//! wait, and which `is_finished` reads. The event synchronises as the end of a thread does: what
//! the function did happens before the end of the scope, and what the destructors do does not.
//!
//! An execution in which both happen exists whenever the difference matters: a destructor that is
//! never reached, or an end that no thread observes, makes none.

use std::panic::Location as Site;
use std::sync::atomic::Ordering;

use preempt_replay::OpKind;
use preempt_system::{Action, Kind};

use super::place::Place;
use super::restart::RestartReason;
use super::{Runtime, describe, inside, op, point, site, with};

const EVENT: Kind = Kind::Event { auto: false, set: false };

/// How far a thread has come to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Its function has not returned, or its return is not a step.
    #[default]
    Before,
    /// Its return is not a step, and it drops its thread-local values.
    DropsLocals,
    /// Its function has returned, in a step.
    Returned,
}

/// What the executions so far have done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exits {
    /// A destructor of a thread-local value has performed an operation.
    operates_late: bool,
    /// A scope or `is_finished` has observed the end of a thread.
    is_observed: bool,
}

impl Runtime {
    /// The event of the return of a thread.
    fn exit(&mut self, slot: usize) -> u32 {
        let started = self.threads[slot].started.expect("only the first thread was not started");
        let place = Place::Exit { slot: slot as u8 };
        self.recording.names_mut().locate(place, Some(EVENT), "return", site::id(started))
    }

    /// A destructor of a thread-local value performs an operation.
    #[cold]
    pub(crate) fn operates_late(&mut self) {
        self.exits.operates_late = true;
        self.judge_exits();
    }

    fn judge_exits(&mut self) {
        let Exits { operates_late, is_observed } = self.exits;
        if operates_late && is_observed && !self.requirements.exits {
            self.restart.get_or_insert(RestartReason::Exits);
        }
    }

    /// The event of the return of a thread, which is observed now; `None` if its end is observed
    /// instead.
    fn observed_exit(&mut self, slot: usize) -> Option<u32> {
        if self.requirements.exits {
            return Some(self.exit(slot));
        }
        self.exits.is_observed = true;
        self.judge_exits();
        None
    }
}

/// The function of the running thread has returned.
#[track_caller]
pub(crate) fn returns() {
    if !inside() {
        return;
    }
    let exit = with(|runtime| runtime.requirements.exits.then(|| runtime.exit(runtime.current)));
    let Some(exit) = exit else { return };
    point(op(OpKind::Object(Action::Set), exit, "return", Site::caller()));
    with(|runtime| runtime.threads[runtime.current].exit = Exit::Returned);
    describe(|| "returns".into());
}

/// Waits until the function of a thread has returned. Returns `false` if that is not a step; then
/// the end of the thread has to be waited for.
pub(crate) fn wait_for_return(slot: usize, site: &'static Site<'static>) -> bool {
    let Some(exit) = with(|runtime| runtime.observed_exit(slot)) else { return false };
    point(op(OpKind::Object(Action::Await), exit, "scope", site));
    describe(|| format!("{} has returned", with(|runtime| runtime.thread_name(slot))));
    true
}

/// Whether the function of a thread has returned.
pub(crate) fn has_returned(slot: usize, site: &'static Site<'static>) -> bool {
    let exit = with(|runtime| runtime.observed_exit(slot));
    point(op(OpKind::Peek, exit.unwrap_or(slot as u32), "is_finished", site));
    let has = with(|runtime| {
        let has = match exit {
            Some(_) => runtime.threads[slot].exit == Exit::Returned,
            None => runtime.has_ended(slot),
        };
        runtime.outcome.value = u64::from(has);
        if has {
            // Like a relaxed load: it does not synchronise with the thread.
            runtime.note_weak(Ordering::Relaxed);
        }
        has
    });
    describe(|| format!("is_finished() = {has}"));
    has
}
