//! A mirror of [`std::sync::Mutex`].

use std::ops::DerefMut;
use std::panic::Location as Site;
use std::sync::{LockResult, TryLockResult};

use preempt_system::Action;

use super::guarded::{self, Guarded, Held};

/// A mirror of [`std::sync::Mutex`].
///
/// Inside a check, locking and unlocking are scheduling points.
pub struct Mutex<T: ?Sized> {
    guarded: Guarded<Real, T>,
}

// SAFETY: the value is only reached through a guard, of which there is one at a time: outside a
// check by the lock of std, inside it because the search performs a lock only where the mutex is
// free.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

type Real = std::sync::Mutex<()>;
type RealGuard<'a> = std::sync::MutexGuard<'a, ()>;

/// A mirror of [`std::sync::MutexGuard`].
#[must_use = "the mutex is unlocked when its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    held: Held<'a, Real, RealGuard<'a>, T>,
}

guarded::lock!(Mutex, "Mutex", try_lock);
guarded::guard!(MutexGuard);

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    #[track_caller]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { guarded: Guarded::new(Real::new(()), value) }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex; waits until it is free.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guarded
            .lock(Action::Lock, "lock", "lock", Real::lock)
            .guard(|held| MutexGuard { held })
    }

    /// Locks the mutex if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let held = self.guarded.try_lock(Action::TryLock, "try_lock", Real::try_lock)?;
        Ok(held.guard(|held| MutexGuard { held })?)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// The location of the mutex, which is used at `site` inside a check.
    pub(super) fn locate(&self, site: &'static Site<'static>) -> u32 {
        self.guarded.locate(site)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The lock, and the guard of std outside a check. The mutex stays locked.
    pub(super) fn into_parts(self) -> (Locked<'a, T>, Option<RealGuard<'a>>) {
        let mut guard = std::mem::ManuallyDrop::new(self);
        (Locked(guard.held.lock), guard.held.real.take())
    }

    /// Whether the mutex was locked inside a check.
    pub(super) fn is_inside(&self) -> bool {
        self.held.real.is_none()
    }

    /// A mutable reference to the value that does not count as a change.
    pub(super) fn value_mut(&mut self) -> &mut T {
        // SAFETY: a mutex is held exclusively.
        unsafe { self.held.value_unchanged() }
    }
}

/// A mutex whose guard was released for a wait.
pub(super) struct Locked<'a, T: ?Sized>(&'a Guarded<Real, T>);

impl<'a, T: ?Sized> Locked<'a, T> {
    /// The location of the mutex.
    pub(super) fn locate(&self, site: &'static Site<'static>) -> u32 {
        self.0.locate(site)
    }

    /// The guard of the thread that has locked the mutex again.
    pub(super) fn guard(
        self,
        real: Option<RealGuard<'a>>,
        site: &'static Site<'static>,
    ) -> LockResult<MutexGuard<'a, T>> {
        self.0.held(real, site).guard(|held| MutexGuard { held })
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.held.unlock_exclusive(Action::Unlock);
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a mutex is held exclusively.
        unsafe { self.held.value_mut() }
    }
}
