//! A mirror of [`std::sync::Once`].

use std::fmt;

use super::atomic::{AtomicU8, Ordering};
use super::mutex::Mutex;

/// A mirror of [`std::sync::Once`].
pub struct Once {
    stage: AtomicU8,
    running: Mutex<()>,
}

const INCOMPLETE: u8 = 0;
const POISONED: u8 = 1;
const COMPLETE: u8 = 2;

/// A mirror of [`std::sync::OnceState`].
#[derive(Debug)]
pub struct OnceState(bool);

impl OnceState {
    /// Whether an earlier attempt panicked.
    pub fn is_poisoned(&self) -> bool {
        self.0
    }
}

/// Marks an attempt as panicked when it is dropped, unless it has completed.
struct Attempt<'a>(&'a Once);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.stage.store(POISONED, Ordering::Release);
    }
}

impl Once {
    /// Creates a `Once` that has not run.
    #[track_caller]
    pub const fn new() -> Once {
        Once { stage: AtomicU8::new(INCOMPLETE), running: Mutex::new(()) }
    }

    /// Calls `f` unless a call has completed before; waits while another thread is calling.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.call(|state| {
            assert!(!state.is_poisoned(), "Once instance has previously been poisoned");
            f();
        });
    }

    /// Like [`Once::call_once`], but also runs after an attempt that panicked.
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        self.call(f);
    }

    /// Whether a call has completed.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.stage.load(Ordering::Acquire) == COMPLETE
    }

    /// Waits until a call has completed. Panics if an attempt panicked.
    #[track_caller]
    pub fn wait(&self) {
        let poisoned = self.wait_for(|stage| stage != INCOMPLETE) == POISONED;
        assert!(!poisoned, "Once instance has previously been poisoned");
    }

    /// Waits until a call has completed, even if an attempt panicked.
    #[track_caller]
    pub fn wait_force(&self) {
        self.wait_for(|stage| stage == COMPLETE);
    }

    #[track_caller]
    fn wait_for(&self, is_it: impl Fn(u8) -> bool) -> u8 {
        loop {
            let stage = self.stage.load(Ordering::Acquire);
            if is_it(stage) {
                return stage;
            }
            crate::thread::yield_now();
        }
    }

    #[track_caller]
    fn call(&self, f: impl FnOnce(&OnceState)) {
        if self.is_completed() {
            return;
        }
        // Another attempt may have panicked; the stage says so.
        let _running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let stage = self.stage.load(Ordering::Acquire);
        if stage != COMPLETE {
            if stage == POISONED {
                // While another attempt runs, `wait` waits.
                self.stage.store(INCOMPLETE, Ordering::Release);
            }
            let attempt = Attempt(self);
            f(&OnceState(stage == POISONED));
            std::mem::forget(attempt);
            self.stage.store(COMPLETE, Ordering::Release);
        }
    }
}

impl Default for Once {
    #[track_caller]
    fn default() -> Once {
        Once::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
