//! What the crate is without its feature `check`: std's own types, at no cost.

pub use std::{hint, thread, thread_local};

/// std's.
pub mod sync {
    pub use std::sync::*;
}

/// Plain memory, with the interface that checks need.
pub mod cell {
    pub use std::cell::Cell;

    /// [`std::cell::UnsafeCell`] whose value is reached through closures.
    #[derive(Debug, Default)]
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// A cell with this value.
        pub const fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        /// The value.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Reads the value.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Writes the value.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }

        /// The value, if this is the only reference.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }
}
