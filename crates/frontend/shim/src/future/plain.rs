//! The signal between a waker and a waiting thread of std.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Wake;

/// A signal that a waker sets and one thread waits for.
#[derive(Default)]
pub(super) struct Signal(Mutex<bool>, Condvar);

impl Signal {
    pub(super) fn new() -> Arc<Signal> {
        Arc::default()
    }

    /// Waits until the signal is set, and resets it.
    pub(super) fn wait(&self) {
        let woken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *self.1.wait_while(woken, |woken| !*woken).unwrap_or_else(PoisonError::into_inner) = false;
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Signal>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_one();
    }
}
