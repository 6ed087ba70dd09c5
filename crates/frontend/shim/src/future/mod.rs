//! Futures inside a check.
//!
//! A task is a thread that polls its future, and waits between two polls until its waker is called:
//! waking and continuing are steps on an object of that task. There is no executor whose task order
//! would hide schedules. Outside a check this works on std's threads.

#[cfg(feature = "check")]
mod signal;
#[cfg(not(feature = "check"))]
#[path = "plain.rs"]
mod signal;
mod task;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use self::signal::Signal;
use crate::sync::{Mutex, MutexGuard};
use crate::thread;

pub use self::task::{AbortHandle, JoinError, JoinHandle, spawn};

/// Polls a future until it is ready; waits between two polls until its waker is called.
///
/// ```
/// use preempt::future::{block_on, spawn};
///
/// # #[cfg(feature = "check")]
/// preempt::check(|| {
///     let answer = block_on(async { spawn(async { 42 }).await });
///     assert_eq!(answer, Ok(42));
/// });
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Signal::new();
    let waker = Waker::from(signal.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        signal.wait();
    }
}

/// Lets other tasks run.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        thread::yield_now();
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// A slot for the waker of one task, like loom's `AtomicWaker`.
#[derive(Default)]
pub struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    /// Creates an empty slot.
    #[track_caller]
    pub const fn new() -> AtomicWaker {
        AtomicWaker(Mutex::new(None))
    }

    /// Stores a waker and drops the previous one.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        *self.lock() = Some(waker);
    }

    /// Stores a clone of a waker.
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Takes the stored waker out and calls it.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes the stored waker out.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        self.lock().take()
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AtomicWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicWaker").finish_non_exhaustive()
    }
}
