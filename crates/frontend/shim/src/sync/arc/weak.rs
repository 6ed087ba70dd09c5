//! A mirror of [`std::sync::Weak`].

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location as Site;
use std::sync::Weak as Std;

use super::Arc;
use super::count::{count, counted, observe_counts_at};
use crate::runtime::inside;

/// A mirror of [`std::sync::Weak`].
pub struct Weak<T: ?Sized> {
    std: ManuallyDrop<Std<T>>,
    /// The execution in which its `Arc` was made; 0 outside all.
    execution: u64,
}

impl<T> Weak<T> {
    /// A weak reference to no value.
    pub const fn new() -> Weak<T> {
        Weak { std: ManuallyDrop::new(Std::new()), execution: 0 }
    }
}

impl<T: ?Sized> Weak<T> {
    pub(super) fn of(std: Std<T>, execution: u64) -> Weak<T> {
        Weak { std: ManuallyDrop::new(std), execution }
    }

    fn address(&self) -> usize {
        self.std.as_ptr().cast::<()>().addr()
    }

    /// A step, if the counts matter.
    fn step(&self, verb: &'static str, site: Option<&'static Site<'static>>) {
        if inside()
            && let Some(shared) = counted(self.address())
        {
            count(&shared, verb, site.unwrap_or(shared.site));
        }
    }

    /// A reference to the value, if it is still there.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let observed = observe_counts_at(self.address(), "upgrade", Site::caller());
        // Like std's, it acquires what the creation of the value and drops of other references
        // released.
        let std = self.std.upgrade().inspect(|_| observed.acquire())?;
        Some(Arc { std: ManuallyDrop::new(std), execution: self.execution })
    }

    /// The number of references.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        let _ = observe_counts_at(self.address(), "strong_count", Site::caller());
        self.std.strong_count()
    }

    /// The number of weak references; 0 if there is no strong one.
    #[track_caller]
    pub fn weak_count(&self) -> usize {
        let _ = observe_counts_at(self.address(), "weak_count", Site::caller());
        self.std.weak_count()
    }

    /// Whether both are references to the same value.
    pub fn ptr_eq(&self, other: &Weak<T>) -> bool {
        self.std.ptr_eq(&other.std)
    }

    /// A pointer to the value, which may have been dropped.
    pub fn as_ptr(&self) -> *const T {
        self.std.as_ptr()
    }

    /// The pointer that [`Weak::from_raw`] takes back.
    #[must_use = "the reference is lost with its pointer"]
    pub fn into_raw(self) -> *const T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and not dropped.
        unsafe { ManuallyDrop::take(&mut this.std) }.into_raw()
    }

    /// The `Weak` from which [`Weak::into_raw`] made the pointer.
    ///
    /// # Safety
    ///
    /// Those of [`std::sync::Weak::from_raw`].
    pub unsafe fn from_raw(pointer: *const T) -> Weak<T> {
        // SAFETY: the caller upholds the contract.
        Weak { std: ManuallyDrop::new(unsafe { Std::from_raw(pointer) }), execution: 0 }
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    #[track_caller]
    fn clone(&self) -> Weak<T> {
        self.step("clone weak", Some(Site::caller()));
        Weak { std: self.std.clone(), execution: self.execution }
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    fn drop(&mut self) {
        self.step("drop weak", None);
        // SAFETY: called once, by the drop of its owner.
        unsafe { ManuallyDrop::drop(&mut self.std) };
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Weak<T> {
        Weak::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
