//! What a waker wakes: an object of the execution, inside a check.

use std::panic::Location as Site;
use std::sync::{Arc, Condvar, PoisonError};
use std::task::Wake;

use preempt_system::{Action, Kind};

use crate::runtime::identity::Identity;
use crate::runtime::op::{Act, Op};
use crate::runtime::{inside, is_set, point, tell, unobserved, with};

/// What a waker wakes.
pub(super) struct Signal {
    identity: Identity,
    /// Outside a check.
    woken: (std::sync::Mutex<bool>, Condvar),
    site: &'static Site<'static>,
}

impl Signal {
    #[track_caller]
    pub(super) fn new() -> Arc<Signal> {
        let site = Site::caller();
        // Not the program's memory: who drops the last reference to it is no part of a schedule.
        let signal = Signal { identity: Identity::new(), woken: Default::default(), site };
        let signal = unobserved(|| Arc::new(signal));
        if inside() {
            let (address, size) = (Arc::as_ptr(&signal).addr(), size_of::<Signal>());
            with(|runtime| runtime.cover(address, size, site));
        }
        signal
    }

    fn wake(&self) {
        if !self.identity.inside() {
            *self.woken.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            return self.woken.1.notify_one();
        }
        let object = self.identity.locate(Some(Kind::Parker), "waker", self.site);
        point(Op::new(Act::Object(Action::Unpark), object, "wake", self.site));
        tell(|| "wake()".into());
    }

    /// Waits until it was woken.
    pub(super) fn wait(&self) {
        if self.identity.inside() {
            let object = self.identity.locate(Some(Kind::Parker), "waker", self.site);
            point(Op::new(Act::Park { early: false }, object, "wait", self.site));
            return tell(|| "was woken".into());
        }
        assert!(!is_set(), "no future is waited for while an execution is given up");
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
