//! Pointers into an [`UnsafeCell`](super::UnsafeCell) that say when they are dropped: the access lasts so long.
//!
//! Its beginning and its end are noted. An access of another thread that is not ordered with the beginning races with it; one that comes after
//! the beginning and not after the end races with the end.

use std::fmt;

use super::Accessed;
use crate::runtime::{inside, with};

macro_rules! pointer {
    ($(#[$doc:meta])* $name:ident, $pointer:ty, $reference:ty, $through:expr) => {
        $(#[$doc])*
        pub struct $name<T: ?Sized> {
            pointer: *mut T,
            accessed: Option<Accessed>,
        }

        impl<T: ?Sized> $name<T> {
            pub(super) fn new(pointer: *mut T, accessed: Option<Accessed>) -> Self {
                $name { pointer, accessed }
            }

            /// Lends the pointer, which must not outlive the closure.
            pub fn with<R>(&self, f: impl FnOnce($pointer) -> R) -> R {
                f(self.pointer)
            }

            /// The value.
            ///
            /// # Safety
            ///
            /// The cell is still there, and nobody breaks the rules of references meanwhile. Whether others access the cell is checked.
            #[allow(clippy::should_implement_trait, clippy::mut_from_ref)]
            pub unsafe fn deref(&self) -> $reference {
                // SAFETY: the caller's.
                unsafe { $through(self.pointer) }
            }
        }

        impl<T: ?Sized> Drop for $name<T> {
            fn drop(&mut self) {
                if let Some(accessed) = &self.accessed
                    && inside()
                    && with(|runtime| runtime.execution) == accessed.execution
                {
                    accessed.note();
                }
            }
        }

        impl<T: ?Sized> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.pointer.fmt(f)
            }
        }
    };
}

pointer!(
    /// A pointer through which a cell is read, until it is dropped.
    ConstPtr,
    *const T,
    &T,
    |pointer: *mut T| &*pointer
);
pointer!(
    /// A pointer through which a cell is written, until it is dropped.
    MutPtr,
    *mut T,
    &mut T,
    |pointer: *mut T| &mut *pointer
);
