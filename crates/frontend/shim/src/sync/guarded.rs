//! The common part of mutexes and reader-writer locks: a value behind a lock, and its guards.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::panic::{Location as Site, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use preempt_replay::OpKind;
use preempt_system::{Action, Kind, ThreadId};

use crate::runtime::identity::Identity;
use crate::runtime::{act, changes, describe, inside, is_set, op, point, with};
use crate::thread::panicking;

/// A lock of std, with the kind and the name of its mirror.
pub(super) trait Lock {
    const KIND: Kind;
    const NOUN: &'static str;
}

impl Lock for std::sync::Mutex<()> {
    const KIND: Kind = Kind::Mutex;
    const NOUN: &'static str = "mutex";
}

impl Lock for std::sync::RwLock<()> {
    const KIND: Kind = Kind::RwLock;
    const NOUN: &'static str = "rwlock";
}

/// A value behind a lock. `L` is the lock of std that excludes other threads outside a check.
///
/// Inside a check the search excludes them: it performs a lock only where it is possible. The value
/// is accessed only through a [`Held`], which exists only where std's guard would.
pub(super) struct Guarded<L, T: ?Sized> {
    identity: Identity,
    real: L,
    poisoned: AtomicBool,
    value: UnsafeCell<T>,
}

// A panic while the value is being changed poisons the lock.
impl<L, T: ?Sized> UnwindSafe for Guarded<L, T> {}
impl<L, T: ?Sized> RefUnwindSafe for Guarded<L, T> {}

impl<L: Lock, T> Guarded<L, T> {
    /// Creates an unlocked lock around a value.
    #[track_caller]
    pub(super) const fn new(real: L, value: T) -> Guarded<L, T> {
        Guarded {
            identity: Identity::new(),
            real,
            poisoned: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    pub(super) fn into_inner(self) -> LockResult<T> {
        let poisoned = self.is_poisoned();
        poison(poisoned, self.value.into_inner())
    }
}

impl<L: Lock, T: ?Sized> Guarded<L, T> {
    /// Whether the lock is poisoned, for code that has just locked it or has the only reference.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Relaxed)
    }

    /// The same for a thread that may not hold the lock: a step that reads the lock. Whatever
    /// poisons a lock or clears it writes the lock, so the two are in an order.
    #[track_caller]
    pub(super) fn observe_poison(&self) -> bool {
        let site = Site::caller();
        if !self.identity.inside() {
            return self.is_poisoned();
        }
        let location = self.locate(site);
        point(op(OpKind::Peek, location, "is_poisoned", site));
        self.identity.is_there(location, L::NOUN, site);
        let poisoned = self.is_poisoned();
        with(|runtime| {
            runtime.outcome.value = u64::from(poisoned);
            // Like std's, it does not synchronise.
            runtime.note_weak(Relaxed);
        });
        describe(|| format!("is_poisoned() = {poisoned}"));
        poisoned
    }

    #[track_caller]
    pub(super) fn clear_poison(&self) {
        let site = Site::caller();
        if self.identity.inside() {
            let location = self.locate(site);
            point(op(OpKind::Touch, location, "clear_poison", site));
            self.identity.is_there(location, L::NOUN, site);
            describe(|| "clear_poison()".into());
            with(|runtime| {
                (runtime.outcome.changed, runtime.outcome.progress) = (true, true);
                runtime.recording.change(location);
            });
        }
        self.poisoned.store(false, Relaxed);
    }

    pub(super) fn get_mut(&mut self) -> LockResult<&mut T> {
        let poisoned = self.is_poisoned();
        poison(poisoned, self.value.get_mut())
    }

    /// Performs an action on the lock, inside a check. Returns the reply of the lock.
    #[inline]
    fn act(&self, action: Action, verb: &'static str, site: &'static Site<'static>) -> i64 {
        act(&self.identity, L::KIND, L::NOUN, action, verb, site)
    }

    /// The location of the lock, which is used at `site` inside a check.
    pub(super) fn locate(&self, site: &'static Site<'static>) -> u32 {
        self.identity.locate(Some(L::KIND), L::NOUN, site)
    }

    /// Locks, and waits as long as necessary; `real` does the same with std's lock.
    #[inline]
    #[track_caller]
    pub(super) fn lock<'a, G>(
        &'a self,
        action: Action,
        verb: &'static str,
        words: &'static str,
        real: impl FnOnce(&'a L) -> LockResult<G>,
    ) -> Held<'a, L, G, T> {
        let site = Site::caller();
        if self.identity.inside() {
            self.act(action, verb, site);
            describe(|| words.into());
            if action == Action::ReadLock {
                self.note_reader(site);
            }
            return self.held(None, site);
        }
        // While an execution is torn down, no thread waits.
        let real = (!is_set()).then(|| real(&self.real).unwrap_or_else(PoisonError::into_inner));
        self.held(real, site)
    }

    /// Locks if that is possible at once; `real` does the same with std's lock.
    #[inline]
    #[track_caller]
    pub(super) fn try_lock<'a, G>(
        &'a self,
        action: Action,
        verb: &'static str,
        real: impl FnOnce(&'a L) -> TryLockResult<G>,
    ) -> Result<Held<'a, L, G, T>, WouldBlock> {
        let site = Site::caller();
        if self.identity.inside() {
            let taken = self.act(action, verb, site) == 1;
            with(|runtime| runtime.outcome.value = u64::from(taken));
            describe(|| format!("{verb}() = {}", if taken { "Ok" } else { "WouldBlock" }));
            if !taken {
                // Like a relaxed load: it may fail because of a thread with which it does not
                // synchronise.
                with(|runtime| runtime.note_weak(Relaxed));
            } else if action == Action::TryReadLock {
                self.note_reader(site);
            }
            return if taken { Ok(self.held(None, site)) } else { Err(WouldBlock) };
        }
        match real(&self.real) {
            Ok(real) => Ok(self.held(Some(real), site)),
            Err(TryLockError::Poisoned(real)) => Ok(self.held(Some(real.into_inner()), site)),
            Err(TryLockError::WouldBlock) => Err(WouldBlock),
        }
    }

    /// The running thread reads from here on. If another thread waits to write, that is an
    /// assumption: std lets a waiting writer block new readers.
    fn note_reader(&self, site: &'static Site<'static>) {
        let location = self.locate(site);
        with(|runtime| {
            let thread = ThreadId::new(runtime.current);
            if runtime.overtaking.is_none()
                && runtime.recording.has_overtaken_writer(thread, location)
            {
                runtime.overtaking = Some(site);
            }
        });
    }

    /// The lock, held by the running thread since `site`.
    #[inline]
    pub(super) fn held<G>(
        &self,
        real: Option<G>,
        site: &'static Site<'static>,
    ) -> Held<'_, L, G, T> {
        Held { lock: self, real, unwinding: panicking(), site, not_send: PhantomData }
    }
}

/// An attempt to lock failed.
pub(super) struct WouldBlock;

impl<G> From<WouldBlock> for TryLockError<G> {
    fn from(_: WouldBlock) -> TryLockError<G> {
        TryLockError::WouldBlock
    }
}

/// A lock that a thread holds. `G` is the guard of std's lock.
pub(super) struct Held<'a, L, G, T: ?Sized> {
    pub(super) lock: &'a Guarded<L, T>,
    /// The guard of std's lock, outside a check.
    pub(super) real: Option<G>,
    /// Whether the thread was unwinding when it took the lock.
    unwinding: bool,
    /// The place where it took the lock.
    site: &'static Site<'static>,
    not_send: PhantomData<*const ()>,
}

impl<L: Lock, G, T: ?Sized> Held<'_, L, G, T> {
    /// The result of a lock: a guard, in an error if the lock is poisoned.
    #[inline]
    pub(super) fn guard<R>(self, guard: impl FnOnce(Self) -> R) -> LockResult<R> {
        let poisoned = self.lock.is_poisoned();
        poison(poisoned, guard(self))
    }

    /// Unlocks an exclusive lock. A thread that started to unwind while it held the lock poisons
    /// it, in the step in which it unlocks.
    pub(super) fn unlock_exclusive(&self, action: Action) {
        let poisons = (inside() || !is_set()) && !self.unwinding && panicking();
        self.unlock(action);
        if poisons {
            self.lock.poisoned.store(true, Relaxed);
        }
    }

    /// Unlocks, inside a check.
    pub(super) fn unlock(&self, action: Action) {
        if self.real.is_none() && inside() {
            self.lock.act(action, "unlock", self.site);
            describe(|| "unlock".into());
        }
    }

    /// The value.
    #[inline]
    pub(super) fn value(&self) -> &T {
        // SAFETY: the holder of a lock may read its value: an exclusive holder is the only one, and
        // while there is a shared holder there is no writer.
        unsafe { &*self.lock.value.get() }
    }

    /// A mutable reference to the value of a lock that is held exclusively.
    ///
    /// # Safety
    ///
    /// The lock is held exclusively.
    #[inline]
    pub(super) unsafe fn value_mut(&mut self) -> &mut T {
        changes();
        // SAFETY: there is no other holder, and `self` is borrowed exclusively.
        unsafe { self.value_unchanged() }
    }

    /// Like [`Held::value_mut`], but does not count as a change.
    ///
    /// # Safety
    ///
    /// The lock is held exclusively.
    #[inline]
    pub(super) unsafe fn value_unchanged(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

fn poison<T>(poisoned: bool, value: T) -> LockResult<T> {
    if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
}

/// Implements the traits that all guards have, for a guard with a field `held`.
macro_rules! guard {
    ($name:ident) => {
        // SAFETY: a shared guard gives shared references to the value.
        unsafe impl<T: ?Sized + Sync> Sync for $name<'_, T> {}

        impl<T: ?Sized> std::ops::Deref for $name<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                self.held.value()
            }
        }

        impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + std::fmt::Display> std::fmt::Display for $name<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}

/// Defines the methods that both locks have apart from locking, given the lock attempt that `Debug`
/// makes.
macro_rules! lock {
    ($name:ident, $text:literal, $try:ident) => {
        impl<T: ?Sized> $name<T> {
            /// Whether a thread has panicked while it held the lock exclusively.
            #[track_caller]
            pub fn is_poisoned(&self) -> bool {
                self.guarded.observe_poison()
            }

            /// Clears the poisoned state.
            #[track_caller]
            pub fn clear_poison(&self) {
                self.guarded.clear_poison();
            }

            /// The value, through the only reference.
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                self.guarded.get_mut()
            }
        }

        impl<T> $name<T> {
            /// The value.
            pub fn into_inner(self) -> LockResult<T> {
                self.guarded.into_inner()
            }
        }

        impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for $name<T> {
            /// Like std's, this tries to lock; inside a check that is a step.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct($text);
                match self.$try() {
                    Ok(guard) => shown.field("data", &&*guard),
                    Err(std::sync::TryLockError::Poisoned(guard)) => {
                        shown.field("data", &&**guard.get_ref())
                    }
                    Err(std::sync::TryLockError::WouldBlock) => {
                        shown.field("data", &format_args!("<locked>"))
                    }
                };
                shown.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
            }
        }

        impl<T: Default> Default for $name<T> {
            #[track_caller]
            fn default() -> $name<T> {
                $name::new(T::default())
            }
        }

        impl<T> From<T> for $name<T> {
            #[track_caller]
            fn from(value: T) -> $name<T> {
                $name::new(value)
            }
        }
    };
}

pub(super) use {guard, lock};
