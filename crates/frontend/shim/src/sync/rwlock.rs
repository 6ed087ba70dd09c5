//! A mirror of [`std::sync::RwLock`].
//!
//! std does not specify whether a waiting writer blocks new readers. Inside a check it does not:
//! any thread that can take the lock may. Where writers have priority, there are fewer schedules,
//! and more states in which no thread can move: a reader may wait for a writer, which waits for
//! another reader, which waits for something that the first one would do. These deadlocks are not
//! explored. So when a reader takes a lock that other readers hold while a writer waits for it, the
//! outcome names that as an [assumption](crate::program::Assumption).
//!
//! Within one thread the difference is found: a second read lock always waits for itself, because
//! it deadlocks as soon as a writer waits.

use std::ops::DerefMut;
use std::panic::Location as Site;
use std::sync::{LockResult, TryLockResult};

use preempt_replay::OpKind;
use preempt_system::Action;

use super::guarded::{self, Guarded, Held};
use crate::runtime::{describe, inside, op, point};

type Real = std::sync::RwLock<()>;

/// A mirror of [`std::sync::RwLock`].
pub struct RwLock<T: ?Sized> {
    guarded: Guarded<Real, T>,
}

// SAFETY: the value is only reached through guards, of which there are many that read or one that
// writes: outside a check by the lock of std, inside it because the search performs a lock only
// where it is possible.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// A mirror of [`std::sync::RwLockReadGuard`].
#[must_use = "the lock is unlocked when its guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    held: Held<'a, Real, std::sync::RwLockReadGuard<'a, ()>, T>,
}

/// A mirror of [`std::sync::RwLockWriteGuard`].
#[must_use = "the lock is unlocked when its guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    held: Held<'a, Real, std::sync::RwLockWriteGuard<'a, ()>, T>,
}

guarded::lock!(RwLock, "RwLock", try_read);
guarded::guard!(RwLockReadGuard);
guarded::guard!(RwLockWriteGuard);

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    #[track_caller]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { guarded: Guarded::new(Real::new(()), value) }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading; waits for the writer.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let held = self.guarded.lock(Action::ReadLock, "read", "read()", Real::read);
        held.guard(|held| RwLockReadGuard { held })
    }

    /// Locks for reading if no thread writes.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let held = self.guarded.try_lock(Action::TryReadLock, "try_read", Real::try_read)?;
        Ok(held.guard(|held| RwLockReadGuard { held })?)
    }

    /// Locks for writing; waits for the writer and all readers.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = self.guarded.lock(Action::WriteLock, "write", "write()", Real::write);
        held.guard(|held| RwLockWriteGuard { held })
    }

    /// Locks for writing if no thread reads or writes.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let held = self.guarded.try_lock(Action::TryWriteLock, "try_write", Real::try_write)?;
        Ok(held.guard(|held| RwLockWriteGuard { held })?)
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Exchanges the write lock for a read lock: no thread writes in between.
    #[track_caller]
    pub fn downgrade(this: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let site = Site::caller();
        let mut guard = std::mem::ManuallyDrop::new(this);
        let (lock, real) = (guard.held.lock, guard.held.real.take());
        if real.is_none() && inside() {
            point(op(OpKind::Downgrade, lock.locate(site), "downgrade", site));
            describe(|| "downgrade()".into());
        }
        let real = real.map(std::sync::RwLockWriteGuard::downgrade);
        RwLockReadGuard { held: lock.held(real, site) }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.held.unlock(Action::ReadUnlock);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.held.unlock_exclusive(Action::WriteUnlock);
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held for writing.
        unsafe { self.held.value_mut() }
    }
}
