//! A mirror of [`std::sync::Mutex`].

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{Location as Site, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use preempt_system::{Action, Kind};

use crate::runtime::identity::Identity;
use crate::runtime::{act, changes, inside, tell, with};
use crate::thread::panicking;

/// A mirror of [`std::sync::Mutex`].
///
/// Inside a check, taking it and giving it back are scheduling points.
pub struct Mutex<T: ?Sized> {
    pub(super) identity: Identity,
    /// What excludes others outside a check.
    pub(super) real: std::sync::Mutex<()>,
    poisoned: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, of which there is one at a time: outside a
// check by the real mutex, inside it because the search performs a lock only where the mutex is
// free.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// A mirror of [`std::sync::MutexGuard`].
#[must_use = "the mutex is given back when its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    pub(super) mutex: &'a Mutex<T>,
    /// The real one, outside a check.
    pub(super) real: Option<std::sync::MutexGuard<'a, ()>>,
    /// Whether the thread was unwinding when it took the mutex.
    unwinding: bool,
    site: &'static Site<'static>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// A mutex that is free.
    #[track_caller]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            identity: Identity::new(),
            real: std::sync::Mutex::new(()),
            poisoned: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.is_poisoned();
        poison(poisoned, self.value.into_inner())
    }
}

/// A result that says whether a lock is poisoned.
pub(super) fn poison<T>(poisoned: bool, value: T) -> LockResult<T> {
    if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the mutex; waits until it is free.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let site = Site::caller();
        if self.identity.inside() {
            act(&self.identity, Kind::Mutex, "mutex", Action::Lock, "lock", site);
            tell(|| "lock".into());
            return self.guard(None, site);
        }
        self.guard(self.real(), site)
    }

    /// Takes the mutex if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let site = Site::caller();
        let real = if self.identity.inside() {
            let taken =
                act(&self.identity, Kind::Mutex, "mutex", Action::TryLock, "try_lock", site) == 1;
            with(|runtime| runtime.outcome.value = u64::from(taken));
            tell(|| format!("try_lock() = {}", if taken { "Ok" } else { "WouldBlock" }));
            if !taken {
                return Err(TryLockError::WouldBlock);
            }
            None
        } else {
            match self.real.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
                Err(TryLockError::WouldBlock) => return Err(TryLockError::WouldBlock),
            }
        };
        Ok(self.guard(real, site)?)
    }

    /// Whether a thread panicked that had taken the mutex.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Relaxed)
    }

    /// Forgets that a thread panicked.
    pub fn clear_poison(&self) {
        self.poisoned.store(false, Relaxed);
    }

    /// The value, if this is the only reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let poisoned = self.is_poisoned();
        poison(poisoned, self.value.get_mut())
    }

    fn real(&self) -> Option<std::sync::MutexGuard<'_, ()>> {
        // While an execution is torn down nobody waits.
        if crate::runtime::is_set() {
            return None;
        }
        Some(self.real.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The guard of one who has the mutex.
    pub(super) fn guard<'a>(
        &'a self,
        real: Option<std::sync::MutexGuard<'a, ()>>,
        site: &'static Site<'static>,
    ) -> LockResult<MutexGuard<'a, T>> {
        let guard =
            MutexGuard { mutex: self, real, unwinding: panicking(), site, not_send: PhantomData };
        poison(self.is_poisoned(), guard)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex and the real guard, without giving anything back.
    #[allow(clippy::type_complexity)]
    pub(super) fn into_parts(self) -> (&'a Mutex<T>, Option<std::sync::MutexGuard<'a, ()>>) {
        let mut guard = std::mem::ManuallyDrop::new(self);
        (guard.mutex, guard.real.take())
    }

    /// The value, without counting as a change of it.
    pub(super) fn value_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref_mut`.
        unsafe { &mut *self.mutex.value.get() }
    }

    /// Takes note if the thread unwinds.
    fn poison(&self) {
        if !self.unwinding && panicking() {
            self.mutex.poisoned.store(true, Relaxed);
        }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.real.is_some() || !inside() {
            if !crate::runtime::is_set() {
                self.poison();
            }
            return;
        }
        self.poison();
        act(&self.mutex.identity, Kind::Mutex, "mutex", Action::Unlock, "unlock", self.site);
        tell(|| "unlock".into());
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one, and shared references to it give shared references to
        // the value.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        changes();
        // SAFETY: the guard is the only one, and the reference to it is exclusive.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    /// As std's it tries to take the mutex: inside a check that is a step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => shown.field("data", &&*guard),
            Err(TryLockError::Poisoned(guard)) => shown.field("data", &&**guard.get_ref()),
            Err(TryLockError::WouldBlock) => shown.field("data", &format_args!("<locked>")),
        };
        shown.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}
