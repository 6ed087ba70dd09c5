//! Tasks: spawned futures.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::block_on;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};
use crate::thread;

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// The task was aborted.
    Cancelled,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task was cancelled")
    }
}

impl std::error::Error for JoinError {}

/// The state that a task shares with its handles.
struct Shared<T> {
    state: Mutex<State<T>>,
    aborted: AtomicBool,
}

struct State<T> {
    result: Option<Result<T, JoinError>>,
    finished: bool,
    /// The waker of the thread that waits for the result.
    waiting: Option<Waker>,
    /// The task itself.
    task: Option<Waker>,
}

impl<T> Shared<T> {
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn abort(&self) {
        self.aborted.store(true, Ordering::SeqCst);
        let task = self.lock().task.clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// A future for the result of a task. A panic of the task is a finding, awaited or not.
pub struct JoinHandle<T>(Arc<Shared<T>>);

/// A handle that can abort a task.
pub struct AbortHandle(Box<dyn Fn() + Send + Sync>);

/// Starts a task.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let state = State { result: None, finished: false, waiting: None, task: None };
    let shared = Arc::new(Shared { state: Mutex::new(state), aborted: AtomicBool::new(false) });
    let handle = JoinHandle(shared.clone());
    drop(thread::spawn(move || {
        let result = {
            let mut future = pin!(future);
            let mut known = false;
            block_on(poll_fn(|context| {
                if !std::mem::replace(&mut known, true) {
                    shared.lock().task = Some(context.waker().clone());
                }
                if shared.aborted.load(Ordering::SeqCst) {
                    return Poll::Ready(Err(JoinError::Cancelled));
                }
                future.as_mut().poll(context).map(Ok)
            }))
        };
        let waiting = {
            let mut state = shared.lock();
            (state.result, state.finished, state.task) = (Some(result), true, None);
            state.waiting.take()
        };
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }));
    handle
}

impl<T> JoinHandle<T> {
    /// Ends the task at its next `await`, if there is one. Then it has no result.
    #[track_caller]
    pub fn abort(&self) {
        self.0.abort();
    }

    /// A handle that can abort the task but not await it.
    pub fn abort_handle(&self) -> AbortHandle
    where
        T: Send + 'static,
    {
        let shared = self.0.clone();
        AbortHandle(Box::new(move || shared.abort()))
    }

    /// Whether the task has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        self.0.lock().finished
    }
}

impl AbortHandle {
    /// Ends the task at its next `await`, if there is one.
    pub fn abort(&self) {
        (self.0)();
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").finish_non_exhaustive()
    }
}
