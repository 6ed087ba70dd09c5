//! A mirror of [`std::sync::RwLock`].
//!
//! No thread is preferred: any that can take the lock may, so that what std does on one system,
//! which may prefer writers or readers, is one of the schedules. std does not say whether a thread
//! that reads may begin to read again: where writers are preferred it deadlocks as soon as one
//! waits. Inside a check it always waits for itself, so that such code is found whoever comes.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{Location as Site, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use preempt_replay::OpKind;
use preempt_system::{Action, Kind};

use super::mutex::poison;
use crate::runtime::identity::Identity;
use crate::runtime::{act, changes, inside, is_set, op, point, tell, with};
use crate::thread::panicking;

/// A mirror of [`std::sync::RwLock`].
pub struct RwLock<T: ?Sized> {
    identity: Identity,
    /// What excludes others outside a check.
    real: std::sync::RwLock<()>,
    poisoned: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through guards, of which there are many that read or one that
// writes: outside a check by the real lock, inside it because the search performs a lock only where
// it is possible.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// A mirror of [`std::sync::RwLockReadGuard`].
#[must_use = "the lock is given back when its guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    lock: &'a RwLock<T>,
    real: Option<std::sync::RwLockReadGuard<'a, ()>>,
    site: &'static Site<'static>,
    not_send: PhantomData<*const ()>,
}

/// A mirror of [`std::sync::RwLockWriteGuard`].
#[must_use = "the lock is given back when its guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    lock: &'a RwLock<T>,
    real: Option<std::sync::RwLockWriteGuard<'a, ()>>,
    unwinding: bool,
    site: &'static Site<'static>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// A lock that is free.
    #[track_caller]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock {
            identity: Identity::new(),
            real: std::sync::RwLock::new(()),
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

impl<T: ?Sized> RwLock<T> {
    /// Becomes a reader; waits for the writer.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let site = Site::caller();
        if self.identity.inside() {
            self.act(Action::ReadLock, "read", site);
            tell(|| "read()".into());
            return self.reader(None, site);
        }
        let real = (!is_set()).then(|| self.real.read().unwrap_or_else(PoisonError::into_inner));
        self.reader(real, site)
    }

    /// Becomes a reader if nobody writes.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let site = Site::caller();
        if self.identity.inside() {
            self.attempt(Action::TryReadLock, "try_read", site)?;
            return Ok(self.reader(None, site)?);
        }
        match self.real.try_read() {
            Ok(real) => Ok(self.reader(Some(real), site)?),
            Err(TryLockError::Poisoned(real)) => Ok(self.reader(Some(real.into_inner()), site)?),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// Becomes the writer; waits for the writer and all readers.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let site = Site::caller();
        if self.identity.inside() {
            self.act(Action::WriteLock, "write", site);
            tell(|| "write()".into());
            return self.writer(None, site);
        }
        let real = (!is_set()).then(|| self.real.write().unwrap_or_else(PoisonError::into_inner));
        self.writer(real, site)
    }

    /// Becomes the writer if nobody reads or writes.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let site = Site::caller();
        if self.identity.inside() {
            self.attempt(Action::TryWriteLock, "try_write", site)?;
            return Ok(self.writer(None, site)?);
        }
        match self.real.try_write() {
            Ok(real) => Ok(self.writer(Some(real), site)?),
            Err(TryLockError::Poisoned(real)) => Ok(self.writer(Some(real.into_inner()), site)?),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// Whether a thread panicked that was writing.
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

    fn act(&self, action: Action, verb: &'static str, site: &'static Site<'static>) -> i64 {
        act(&self.identity, Kind::RwLock, "rwlock", action, verb, site)
    }

    fn attempt<G>(
        &self,
        action: Action,
        verb: &'static str,
        site: &'static Site<'static>,
    ) -> Result<(), TryLockError<G>> {
        let taken = self.act(action, verb, site) == 1;
        with(|runtime| runtime.outcome.value = u64::from(taken));
        tell(|| format!("{verb}() = {}", if taken { "Ok" } else { "WouldBlock" }));
        if taken { Ok(()) } else { Err(TryLockError::WouldBlock) }
    }

    fn reader<'a>(
        &'a self,
        real: Option<std::sync::RwLockReadGuard<'a, ()>>,
        site: &'static Site<'static>,
    ) -> LockResult<RwLockReadGuard<'a, T>> {
        poison(
            self.is_poisoned(),
            RwLockReadGuard { lock: self, real, site, not_send: PhantomData },
        )
    }

    fn writer<'a>(
        &'a self,
        real: Option<std::sync::RwLockWriteGuard<'a, ()>>,
        site: &'static Site<'static>,
    ) -> LockResult<RwLockWriteGuard<'a, T>> {
        let unwinding = panicking();
        poison(
            self.is_poisoned(),
            RwLockWriteGuard { lock: self, real, unwinding, site, not_send: PhantomData },
        )
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on as a reader: nobody writes in between.
    #[track_caller]
    pub fn downgrade(this: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let site = Site::caller();
        let mut guard = std::mem::ManuallyDrop::new(this);
        let lock = guard.lock;
        let real = guard.real.take();
        if real.is_none() && inside() {
            let object = lock.identity.locate(Some(Kind::RwLock), "rwlock", site);
            point(op(OpKind::Downgrade, object, "downgrade", site));
            tell(|| "downgrade()".into());
        }
        let real = real.map(std::sync::RwLockWriteGuard::downgrade);
        RwLockReadGuard { lock, real, site, not_send: PhantomData }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        if self.real.is_none() && inside() {
            self.lock.act(Action::ReadUnlock, "unlock", self.site);
            tell(|| "unlock".into());
        }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        if (inside() || !is_set()) && !self.unwinding && panicking() {
            self.lock.poisoned.store(true, Relaxed);
        }
        if self.real.is_none() && inside() {
            self.lock.act(Action::WriteUnlock, "unlock", self.site);
            tell(|| "unlock".into());
        }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while there is a reader there is no writer.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the writer is alone, and shared references to the guard give shared references to
        // the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        changes();
        // SAFETY: the writer is alone, and the reference to the guard is exclusive.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    /// As std's it tries to read the value: inside a check that is a step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => shown.field("data", &&*guard),
            Err(TryLockError::Poisoned(guard)) => shown.field("data", &&**guard.get_ref()),
            Err(TryLockError::WouldBlock) => shown.field("data", &format_args!("<locked>")),
        };
        shown.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}
