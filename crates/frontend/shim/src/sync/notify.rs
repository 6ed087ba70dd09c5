//! loom's `Notify`: one thread waits until another one notifies it.

use std::panic::Location as Site;
use std::sync::{Condvar, Mutex, PoisonError};

use preempt_replay::{EarlyWake, OpKind};
use preempt_system::{Action, Kind};

use crate::runtime::identity::Identity;
use crate::runtime::{act, describe, is_set, op, point};

/// Lets a thread wait for a notification. A notification before the wait is kept; several are kept
/// as one, as in loom.
#[derive(Debug)]
pub struct Notify {
    identity: Identity,
    /// The notification outside a check.
    notified: (Mutex<bool>, Condvar),
}

impl Notify {
    /// Creates it without a notification.
    #[track_caller]
    pub const fn new() -> Notify {
        Notify { identity: Identity::new(), notified: (Mutex::new(false), Condvar::new()) }
    }

    /// Notifies the waiting thread, or the next one that waits.
    #[track_caller]
    pub fn notify(&self) {
        if self.identity.inside() {
            act(&self.identity, Kind::Parker, "notify", Action::Unpark, "notify", Site::caller());
            return describe(|| "notify()".into());
        }
        *self.notified.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.notified.1.notify_one();
    }

    /// Waits for a notification and consumes it.
    #[track_caller]
    pub fn wait(&self) {
        if self.identity.inside() {
            let object = self.identity.locate(Some(Kind::Parker), "notify", Site::caller());
            point(op(OpKind::Park { early: EarlyWake::Never }, object, "wait", Site::caller()));
            return describe(|| "was notified".into());
        }
        assert!(!is_set(), "no thread waits while an execution is discarded");
        let notified = self.notified.0.lock().unwrap_or_else(PoisonError::into_inner);
        let notified = self.notified.1.wait_while(notified, |notified| !*notified);
        *notified.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Notify {
        Notify::new()
    }
}
