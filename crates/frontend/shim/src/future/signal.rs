//! The signal between a waker and a waiting task: inside a check, an object of the execution.

use std::panic::Location as Site;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, PoisonError};
use std::task::Wake;

use preempt_replay::{EarlyWake, OpKind};
use preempt_system::{Action, Kind};

use crate::runtime::identity::Identity;
use crate::runtime::{describe, inside, is_set, op, point, with};

/// A signal that a waker sets and one task waits for.
pub(super) struct Signal {
    identity: Identity,
    /// The thread that waits, if it is one of an execution.
    owner: Option<usize>,
    /// Whether that thread has called the waker itself since it waited last.
    self_woken: AtomicBool,
    /// The signal outside a check.
    woken: (std::sync::Mutex<bool>, Condvar),
    site: &'static Site<'static>,
}

impl Signal {
    #[track_caller]
    pub(super) fn new() -> Arc<Signal> {
        let site = Site::caller();
        let owner = inside().then(|| with(|runtime| runtime.current));
        let (identity, self_woken) = (Identity::new(), AtomicBool::new(false));
        let signal = Signal { identity, owner, self_woken, woken: Default::default(), site };
        let signal = Arc::new(signal);
        if inside() {
            let (address, size) = (Arc::as_ptr(&signal).addr(), size_of::<Signal>());
            with(|runtime| {
                // Which thread drops the last reference is not part of a schedule.
                runtime.arena.set_apart(address);
                runtime.cover(address, size, site);
            });
        }
        signal
    }

    fn wake(&self) {
        if !self.identity.inside() {
            *self.woken.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            return self.woken.1.notify_one();
        }
        if self.owner == Some(with(|runtime| runtime.current)) {
            self.self_woken.store(true, Ordering::Relaxed);
        }
        let object = self.identity.locate(Some(Kind::Parker), "waker", self.site);
        point(op(OpKind::Object(Action::Unpark), object, "wake", self.site));
        describe(|| "wake()".into());
    }

    /// Waits until the signal is set. A task that has called its own waker wants to be polled again
    /// after other tasks have run: it yields.
    pub(super) fn wait(&self) {
        if self.identity.inside() {
            if self.self_woken.swap(false, Ordering::Relaxed) {
                with(|runtime| runtime.yields(self.site));
            }
            let object = self.identity.locate(Some(Kind::Parker), "waker", self.site);
            point(op(OpKind::Park { early: EarlyWake::Never }, object, "wait", self.site));
            return describe(|| "was woken".into());
        }
        assert!(!is_set(), "no future is awaited while an execution is abandoned");
        let woken = self.woken.0.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self.woken.1.wait_while(woken, |woken| !*woken);
        *woken.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if inside() {
            let address = std::ptr::from_ref(self).addr();
            with(|runtime| runtime.uncover(address));
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Signal>) {
        Signal::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Signal>) {
        Signal::wake(self);
    }
}
