//! The result of a thread, passed to the thread that joins it.

use std::sync::{Arc, Mutex, PoisonError};

use super::Result;
use crate::runtime::unobserved;

/// The result of a thread, shared by the thread and its handle.
///
/// Which of the two drops it last is not part of a schedule. So it is freed
/// [unobserved](unobserved), which means that no thread reuses its memory. It is allocated like the
/// program's own memory, so that it is released with the rest of an execution that cannot end. The
/// result itself belongs to the program, including its destructor.
pub(super) struct Packet<T>(Option<Arc<Mutex<Option<Result<T>>>>>);

impl<T> Packet<T> {
    /// Creates it without a result.
    pub(super) fn new() -> Packet<T> {
        Packet(Some(Arc::default()))
    }

    fn result(&self) -> &Mutex<Option<Result<T>>> {
        self.0.as_ref().expect("the packet was not dropped")
    }

    /// Stores the result.
    pub(super) fn put(&self, result: Result<T>) {
        *self.result().lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// Takes the result, if there is one.
    pub(super) fn take(&self) -> Option<Result<T>> {
        self.result().lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Clone for Packet<T> {
    fn clone(&self) -> Packet<T> {
        Packet(self.0.clone())
    }
}

impl<T> Drop for Packet<T> {
    fn drop(&mut self) {
        let result = unobserved(|| self.0.take().and_then(Arc::into_inner));
        drop(result);
    }
}
