//! Mirrors of [`std::sync`].

pub mod atomic;
mod mutex;

pub use self::mutex::{Mutex, MutexGuard};
pub use std::sync::{Arc, Weak};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
