//! Mirrors of [`std::sync::OnceLock`] and [`std::sync::LazyLock`].

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::once::Once;

/// A mirror of [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written once, by the thread that `once` admits, and read only after that is
// complete.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Creates it without a value.
    #[track_caller]
    pub const fn new() -> OnceLock<T> {
        OnceLock { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// The value, if there is one.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        if self.once.is_completed() { self.read() } else { None }
    }

    /// A mutable reference to the value, if there is one.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// Waits until there is a value.
    #[track_caller]
    pub fn wait(&self) -> &T {
        self.once.wait_force();
        self.read().expect("the cell was initialised")
    }

    /// Sets the value, unless there is one.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("the closure runs once"));
        value.map_or(Ok(()), Err)
    }

    /// The value, which `f` computes if there is none.
    #[track_caller]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        // A panic in an earlier attempt leaves it without a value, as in std.
        self.once.call_once_force(|_| {
            let value = f();
            // SAFETY: `once` admits one thread, and no thread reads before this is complete.
            unsafe { *self.value.get() = Some(value) };
        });
        self.read().expect("the cell was initialised")
    }

    /// The value.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out, if there is one.
    #[track_caller]
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    fn read(&self) -> Option<&T> {
        // SAFETY: called after the initialisation is complete; the value is not written again.
        unsafe { (*self.value.get()).as_ref() }
    }
}

impl<T> Default for OnceLock<T> {
    #[track_caller]
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    #[track_caller]
    fn from(value: T) -> OnceLock<T> {
        let lock = OnceLock::new();
        let Ok(()) = lock.set(value) else { unreachable!("a new `OnceLock` has no value") };
        lock
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    #[track_caller]
    fn clone(&self) -> OnceLock<T> {
        self.get().cloned().map_or_else(OnceLock::new, OnceLock::from)
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    #[track_caller]
    fn eq(&self, other: &OnceLock<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("OnceLock").field(value).finish(),
            None => f.debug_tuple("OnceLock").field(&format_args!("<uninit>")).finish(),
        }
    }
}

impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

/// A mirror of [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    lock: OnceLock<T>,
    init: UnsafeCell<Option<F>>,
}

// SAFETY: `init` is taken out once, by the thread that `lock` admits.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates it; `f` computes the value at the first use.
    #[track_caller]
    pub const fn new(f: F) -> LazyLock<T, F> {
        LazyLock { lock: OnceLock::new(), init: UnsafeCell::new(Some(f)) }
    }

    /// The value, which is computed at the first use.
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.lock.get_or_init(|| {
            // SAFETY: `lock` admits one thread.
            let init = unsafe { (*this.init.get()).take() };
            init.expect("LazyLock instance has previously been poisoned")()
        })
    }

    /// A mutable reference to the value, which is computed at the first use.
    #[track_caller]
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        this.lock.get_mut().expect("the value was just computed")
    }

    /// The value, if it was computed.
    #[track_caller]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        this.lock.get()
    }

    /// A mutable reference to the value, if it was computed.
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        this.lock.get_mut()
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    #[track_caller]
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lock.get() {
            Some(value) => f.debug_tuple("LazyLock").field(value).finish(),
            None => f.debug_tuple("LazyLock").field(&format_args!("<uninit>")).finish(),
        }
    }
}

impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
