//! Pointers into an [`UnsafeCell`](super::UnsafeCell) that record their uses.
//!
//! Making one is an access, and so is every use of it. Dropping one is not: a guard whose
//! destructor unlocks drops its fields afterwards, when the lock no longer orders anything, and
//! nothing is read or written then. Accesses through the reference that [`deref`](MutPtr::deref)
//! returns count as made when `deref` was called.

use std::fmt;
use std::panic::Location as Site;

use super::Accessed;

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

            /// Lends the pointer, which must not outlive the closure: an access as long as the
            /// closure.
            #[track_caller]
            pub fn with<R>(&self, f: impl FnOnce($pointer) -> R) -> R {
                let accessed = self.follow(Site::caller());
                let _lasting = accessed.map(|accessed| accessed.lasts(None));
                f(self.pointer)
            }

            /// The value: an access.
            ///
            /// # Safety
            ///
            /// The cell must outlive the reference, and Rust's aliasing rules must hold. Concurrent
            /// accesses by other threads are detected.
            #[allow(clippy::should_implement_trait, clippy::mut_from_ref)]
            #[track_caller]
            pub unsafe fn deref(&self) -> $reference {
                self.follow(Site::caller());
                // SAFETY: the caller upholds the contract.
                unsafe { $through(self.pointer) }
            }

            /// Records an access through the pointer at `site`, if the pointer belongs to the
            /// running execution.
            fn follow(&self, site: &'static Site<'static>) -> Option<Accessed> {
                self.accessed.as_ref()?.again(site)
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
    /// A pointer through which a cell is read.
    ConstPtr,
    *const T,
    &T,
    |pointer: *mut T| &*pointer
);
pointer!(
    /// A pointer through which a cell is written.
    MutPtr,
    *mut T,
    &mut T,
    |pointer: *mut T| &mut *pointer
);
