//! loom's `thread`: like [`crate::thread`], but values passed to a thread need not be `Send`.
//!
//! loom does not require `Send`, and some test suites rely on that. Inside a check it is not
//! needed: all threads of an execution are coroutines of one OS thread. Outside a check it would
//! be, so there these functions panic, as loom's do.

use crate::runtime::inside;
use crate::thread::spawn::Builder as Inner;

pub use crate::thread::{
    AccessError, JoinHandle, LocalKey, Result, Scope, ScopedJoinHandle, Thread, ThreadId,
    available_parallelism, current, panicking, park, park_timeout, scope, sleep, yield_now,
};

/// Starts a thread of a check.
///
/// # Panics
///
/// Outside a check.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    Builder::new().spawn(f).expect("a thread can be started")
}

/// A mirror of [`std::thread::Builder`] that only starts threads of a check.
#[derive(Debug, Default)]
pub struct Builder(Inner);

impl Builder {
    /// A builder of threads without a name.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Gives the thread a name, which reports use.
    pub fn name(self, name: String) -> Builder {
        Builder(self.0.name(name))
    }

    /// Has no effect: [`Check::stack_size`](crate::Check::stack_size) sets the size of all stacks
    /// of a check.
    pub fn stack_size(self, size: usize) -> Builder {
        Builder(self.0.stack_size(size))
    }

    /// Starts a thread of a check.
    ///
    /// # Panics
    ///
    /// Outside a check.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        assert!(
            inside(),
            "threads of preempt::loom can only be started inside a check; outside use \
             preempt::thread"
        );
        Ok(self.0.spawn_checked(f))
    }
}
