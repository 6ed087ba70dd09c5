//! Where a thread leaves its result for whoever joins it.

use std::sync::{Arc, Mutex, PoisonError};

use super::Result;
use crate::runtime::unobserved;

/// The result of a thread, shared by the thread and its handle.
///
/// Its memory is not the program's: which of the two drops it last is no part of a schedule. So it
/// is allocated and freed [unobserved](unobserved). The result itself is the program's, and so is
/// what its destructor does.
pub(super) struct Packet<T>(Option<Arc<Mutex<Option<Result<T>>>>>);

impl<T> Packet<T> {
    /// Without a result.
    pub(super) fn new() -> Packet<T> {
        Packet(Some(unobserved(Arc::default)))
    }

    fn result(&self) -> &Mutex<Option<Result<T>>> {
        self.0.as_ref().expect("a packet is there until it is dropped")
    }

    /// Leaves a result.
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
